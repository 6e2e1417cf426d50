/* SPDX-License-Identifier: Apache-2.0 */
/* `lessor lease …`: for scripts, which have a process of their own that the lease can live as long as. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "client/consumer.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/look.h"
#include "programs/lessor/obtain.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

const struct option acquire_options[] = {
        { "wait", "TIME", "wait at most so long, then exit 124 (default: for ever)", 0, "1m|10m|1h" },
        { "no-wait", NULL, "now, or exit 124" },
        { "pid", "PID", "it ends with this process (default: the one that called lessor)" },
        { "ttl", "TIME", "it ends when nobody renews it for so long, instead of with a process" },
        { "if-down", "HOW", "lessord is away: wait (60 s) or fail", 0, "wait|fail" },
        { "json", NULL, "print the whole lease instead of its id" },
        { 0 },
};

const char acquire_more[] = "Prints the id. The lease is bound to the process that called lessor - the script - and "
                            "ends with it, at the latest.\n"
                            "In a pipeline or a subshell that process may end at once: say --pid $$ there.\n"
                            "\n"
                            "  id=$(lessor lease acquire --vram 12G --pid $$) || exit\n"
                            "  …\n"
                            "  lessor lease release \"$id\"\n"
                            "\n"
                            "Exit status: 0 granted, 1 refused, 2 wrong use, 69 lessord is away, 124 the wait is over.";

const char lease_more[] = "  lessor lease acquire --vram 12G   ask, wait, print the id\n"
                          "  lessor lease show L17             how it is now\n"
                          "  lessor lease renew L17            heartbeat, for a lease with --ttl\n"
                          "  lessor lease release L17          give the memory back\n"
                          "\n"
                          "Each has --help.";

static int read_options(const struct verb *verb, int argc, char **argv, struct ask *ask, bool *ret_json)
{
        struct options o;
        struct error err = { 0 };

        if (ask_init(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        options_init(&o, verb, argc, argv);
        for (;;) {
                int what = options_next(&o);
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_END)
                        break;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words; to run a command there is `lessor run`");
                if (strcmp(option_name(&o, what), "json") == 0)
                        *ret_json = true;
                else if (ask_option(ask, option_name(&o, what), o.value, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        if (ask_check(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        if (!ask->has_size && !ask->exclusive)
                return verb_usage_error(verb, "how much? --vram 12G");
        if (ask->if_down == IF_DOWN_RUN)
                ask->if_down = IF_DOWN_FAIL; /* there is nothing to run: no lease is no lease */
        if (ask->pid > 0 && ask->ttl_ms > 0)
                return verb_usage_error(verb, "--pid and --ttl: it ends with a process or by its time, not both");
        if (ask->pid == 0)
                ask->pid = (uint64_t) getppid();
        return OBTAINED;
}

/* The script's own name: who called us, as far as /proc tells. */
static void name_consumer(struct ask *ask)
{
        enum { WORDS = 16 };
        char file[64], text[4096], shell[] = "shell", *words[WORDS + 1] = { 0 };
        (void) snprintf(file, sizeof(file), "/proc/%d/cmdline", (int) ask->pid);
        FILE *f = fopen(file, "re");
        size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
        if (f)
                (void) fclose(f);
        text[n] = '\0';
        size_t n_words = 0;
        for (size_t at = 0; at < n && n_words < WORDS; at += strlen(text + at) + 1)
                words[n_words++] = text + at;
        if (n_words == 0 || words[0][0] == '\0')
                words[0] = shell;
        if (words[0][0] == '-' && words[0][1] != '\0')
                words[0]++; /* a login shell */
        (void) consumer_of_command(words, ask->consumer);
}

static int print_lease(const struct verb *verb, const char *id)
{
        char path[64];
        json_t *lease = NULL;
        (void) snprintf(path, sizeof(path), "/api/leases/%s", id);
        int code = show_get(verb->name, path, &lease);
        if (code == LESSOR_EXIT_OK)
                show_json(lease);
        json_decref(lease);
        return code;
}

int verb_acquire_main(const struct verb *verb, int argc, char **argv)
{
        struct ask ask;
        struct obtain o;
        struct signals signals;
        bool json = false;

        int code = read_options(verb, argc, argv, &ask, &json);
        if (code != OBTAINED)
                return code;
        if (ask.consumer[0] == '\0')
                name_consumer(&ask);
        if (signals_init(&signals) < 0)
                return verb_usage_error(verb, "cannot watch signals");
        code = obtain_init(&o, &ask, &signals, verb->name);
        if (code == OBTAINED)
                code = obtain_lease(&o);
        obtain_fini(&o);
        if (code != OBTAINED)
                return code == LESSOR_EXIT_OWN ? LESSOR_EXIT_REFUSED : code;
        return json ? print_lease(verb, o.id) : printf("%s\n", o.id) > 0 ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
}

/* ---- show, renew, release ---- */

static int call_lease(const struct verb *verb, int argc, char **argv, const char *method, const char *what,
                      json_t **ret_lease, bool *ret_json, char *ret_id, size_t id_size)
{
        char path[64];
        int code = look_id_options(verb, argc, argv, ret_json, ret_id, id_size);
        if (code != LOOK_ON)
                return code;
        (void) snprintf(path, sizeof(path), "/api/leases/%s%s", ret_id, what);
        code = show_call(verb->name, method, path, NULL, ret_lease);
        return code == LESSOR_EXIT_OK ? LOOK_ON : code;
}

int verb_show_main(const struct verb *verb, int argc, char **argv)
{
        bool json = false;
        char id[LEASE_ID_TEXT_MAX];
        json_t *lease = NULL;
        int code = call_lease(verb, argc, argv, "GET", "", &lease, &json, id, sizeof(id));
        if (code != LOOK_ON)
                return code;
        if (json)
                show_json(lease);
        else
                look_lease(lease);
        json_decref(lease);
        return LESSOR_EXIT_OK;
}

static int change_lease(const struct verb *verb, int argc, char **argv, const char *method, const char *what)
{
        bool json = false;
        char id[LEASE_ID_TEXT_MAX];
        json_t *lease = NULL;
        int code = call_lease(verb, argc, argv, method, what, &lease, &json, id, sizeof(id));
        if (code != LOOK_ON)
                return code;
        if (json && lease)
                show_json(lease);
        json_decref(lease);
        return LESSOR_EXIT_OK;
}

int verb_renew_main(const struct verb *verb, int argc, char **argv)
{
        return change_lease(verb, argc, argv, "POST", "/renew");
}

int verb_release_main(const struct verb *verb, int argc, char **argv)
{
        return change_lease(verb, argc, argv, "DELETE", "");
}
