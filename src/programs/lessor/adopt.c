/* SPDX-License-Identifier: Apache-2.0 */
/* `adopt`, `unadopt`: a lease over what runs already, found by its pid, its container or its unit; and letting it go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/escape.h"
#include "base/number.h"
#include "model/lease.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/capture.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { PID_MAX = 4194304, ASK_OTHERS_MS = 10 * 1000, SHOWN_MAX = 128, LINE_MAX_SHOWN = 400 };

const struct option adopt_options[] = {
        { "container", "NAME", "the main process of this container (docker or podman), and all that runs in it" },
        { "unit", "NAME", "the main process of this systemd unit, and all that runs in it" },
        { "vram", "SIZE", "how much it may use: 1500M, 12G (default: what it uses now)" },
        { "priority", "N|NAME", "1 urgent, 2 interactive, 3 normal, 4 batch, 5 filler (default 3)", 0,
          "urgent|interactive|normal|batch|filler" },
        { "for", "TIME", "how long it will be needed: 90s, 2h; lets others plan", 0, "10m|30m|1h|2h|8h" },
        { "device", "UUID", "where it uses several devices: which one", 0, "@devices" },
        { "name", "TEXT", "shown in `lessor status`" },
        { "consumer", "NAME", "the name its costs are remembered by (default: the program's)" },
        { "yield-by", "WAYS", "how its memory may be taken back: checkpoint, kill; of a unit or container also restart",
          0, "cooperate|checkpoint|release|restart|kill" },
        { "managed", NULL, "it uses managed memory, which hides from the driver's list" },
        { "kill-at-end", NULL, "when its time (--for) is over it is ended: SIGTERM, later SIGKILL" },
        { "json", NULL, "print the whole lease instead of its id" },
        { 0 },
};

const char adopt_more[] =
        "  lessor adopt 4711\n"
        "  lessor adopt --unit chat.service --vram 20G --name chat\n"
        "  lessor adopt --container images --priority batch\n"
        "\n"
        "For a program that takes memory without asking (a stranger in `lessor status`): from now on it has a lease, "
        "and "
        "what it\n"
        "uses counts under that. The program is not touched and does not notice. Prints the lease's id; the lease ends "
        "with the\n"
        "process, or by `lessor unadopt`. Your own processes only; an administrator may adopt anybody's.\n"
        "\n"
        "Exit status: 0 done, 1 refused or not found, 2 wrong use, 69 lessord is away.";

const char unadopt_more[] = "  lessor unadopt L17\n"
                            "\n"
                            "The lease ends; the program goes on as it is, and is a stranger again.\n"
                            "\n"
                            "Exit status: 0 done, 1 refused, 2 wrong use, 69 lessord is away.";

struct target {
        const char *pid, *container, *unit; /* as typed; one of them */
};

/* ---- who is meant ---- */

static int cannot_ask(const struct verb *verb, const char *what, const char *said, const char *cure)
{
        (void) fprintf(stderr, "lessor %s: %s: %s\n%s\n", verb->name, what, said, cure);
        return LESSOR_EXIT_REFUSED;
}

/* The number behind @key ("Pid=", "") on a line of its own; 0 = none. */
static uint64_t number_in(const char *text, const char *key)
{
        size_t n = strlen(key);
        for (;;) {
                size_t end = strcspn(text, "\n");
                char word[24];
                uint64_t value;
                if (strncmp(text, key, n) == 0 && end > n && end - n < sizeof(word)) {
                        (void) snprintf(word, sizeof(word), "%.*s", (int) (end - n), text + n);
                        if (parse_u64("pid", word, 1, PID_MAX, &value, NULL) == 0)
                                return value;
                }
                if (text[end] == '\0')
                        return 0;
                text += end + 1;
        }
}

static int pid_of_container(const struct verb *verb, const char *name, uint64_t *ret_pid)
{
        static const char *const engines[] = { "docker", "podman" };
        char said[LINE_MAX_SHOWN] = "", shown[SHOWN_MAX];

        (void) text_escape(name, strlen(name), shown, sizeof(shown));
        for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
                const char *argv[] = { engines[i],       "inspect", "--type", "container", "--format",
                                       "{{.State.Pid}}", "--",      name,     NULL };
                struct capture c;
                struct error err = { 0 };
                int r = capture_run(argv, ASK_OTHERS_MS, &c, &err);
                *ret_pid = r == 0 && c.exit_status == 0 ? number_in(strbuf_text(&c.out), "") : 0;
                bool answered = r == 0 && c.exit_status == 0;
                if (r < 0 && r != -ENOENT)
                        (void) snprintf(said, sizeof(said), "%s", err.msg);
                else if (r == 0 && !answered)
                        (void) capture_line(&c.err, said, sizeof(said));
                capture_fini(&c);
                if (*ret_pid > 0)
                        return LOOK_ON;
                if (answered)
                        return cannot_ask(verb, shown, "this container does not run",
                                          "Cure: start it, and adopt it then.");
        }
        if (said[0] == '\0')
                return cannot_ask(verb, shown, "there is neither docker nor podman in PATH to ask for it",
                                  "Cure: name the process instead: `lessor adopt PID`; `lessor status` shows it.");
        return cannot_ask(verb, shown, said,
                          "Cure: `docker ps` or `podman ps` lists the names; or name the process: `lessor adopt PID`.");
}

/* One of the two managers. 0: *ret_pid (0 = the unit does not run). Negative: @said tells why. */
static int ask_systemd(const char *name, bool own, uint64_t *ret_pid, char *said, size_t said_size)
{
        const char *argv[] = { "systemctl",
                               own ? "--user" : "--system",
                               "--no-ask-password",
                               "show",
                               "--property=MainPID,LoadState",
                               "--",
                               name,
                               NULL };
        struct capture c;
        struct error err = { 0 };
        int r = capture_run(argv, ASK_OTHERS_MS, &c, &err);

        *ret_pid = 0;
        if (r == 0 && c.exit_status != 0) {
                r = -EIO;
                (void) capture_line(&c.err, said, said_size);
        } else if (r < 0) {
                (void) snprintf(said, said_size, "%s", err.msg);
        } else if (!strstr(strbuf_text(&c.out), "LoadState=loaded")) {
                r = -ESRCH;
                (void) snprintf(said, said_size, "there is no such unit");
        } else {
                *ret_pid = number_in(strbuf_text(&c.out), "MainPID=");
        }
        capture_fini(&c);
        return r;
}

/* The person's own units first, then the system's. */
static int pid_of_unit(const struct verb *verb, const char *name, uint64_t *ret_pid)
{
        char said[LINE_MAX_SHOWN] = "", shown[SHOWN_MAX];

        (void) text_escape(name, strlen(name), shown, sizeof(shown));
        int r = -ESRCH;
        if (geteuid() != 0)
                r = ask_systemd(name, true, ret_pid, said, sizeof(said));
        if (r < 0 || *ret_pid == 0) {
                int system = ask_systemd(name, false, ret_pid, said, sizeof(said));
                r = system == 0 ? 0 : r;
                if (system < 0 && system != -ESRCH)
                        r = system;
        }
        if (r == 0 && *ret_pid > 0)
                return LOOK_ON;
        if (r == 0)
                return cannot_ask(verb, shown, "this unit has no main process now",
                                  "Cure: start it, and adopt it then.");
        if (r == -ENOENT)
                return cannot_ask(verb, shown, "there is no systemctl in PATH to ask for it",
                                  "Cure: name the process instead: `lessor adopt PID`; `lessor status` shows it.");
        return cannot_ask(verb, shown, said,
                          "Cure: `systemctl list-units --type=service` lists the names; or name the process: `lessor "
                          "adopt PID`.");
}

static int find_pid(const struct verb *verb, const struct target *target, uint64_t *ret_pid)
{
        struct error err = { 0 };
        if (target->container)
                return pid_of_container(verb, target->container, ret_pid);
        if (target->unit)
                return pid_of_unit(verb, target->unit, ret_pid);
        if (parse_u64("PID", target->pid, 1, PID_MAX, ret_pid, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        return LOOK_ON;
}

/* ---- adopt ---- */

static int read_adopt(const struct verb *verb, int argc, char **argv, struct ask *ask, struct target *target,
                      bool *ret_json)
{
        struct options o;
        struct error err = { 0 };
        size_t n = 0;

        if (ask_init(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                const char *name = option_name(&o, what);
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                n += what == OPTIONS_OPERAND || strcmp(name, "container") == 0 || strcmp(name, "unit") == 0;
                if (what == OPTIONS_OPERAND)
                        target->pid = o.value;
                else if (strcmp(name, "container") == 0)
                        target->container = o.value;
                else if (strcmp(name, "unit") == 0)
                        target->unit = o.value;
                else if (strcmp(name, "json") == 0)
                        *ret_json = true;
                else if (ask_option(ask, name, o.value, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        if (n == 0)
                return verb_usage_error(verb, "which process? lessor adopt PID; `lessor status` shows the strangers");
        if (n > 1)
                return verb_usage_error(verb, "one process, container or unit at a time");
        ask->size_from_use = true;
        return LOOK_ON;
}

static void tell_adopted(const struct lessor_lease *lease, uint64_t pid, bool json)
{
        char size[SIZE_TEXT_MAX], device[SHOWN_MAX];
        const char *uuid = lessor_lease_device(lease);
        if (json) {
                json_t *whole = json_loads(lessor_lease_json((struct lessor_lease *) (uintptr_t) lease), 0, NULL);
                show_json(whole);
                json_decref(whole);
                return;
        }
        (void) printf("%s\n", lessor_lease_id(lease));
        (void) fflush(stdout);
        (void) fprintf(stderr, "lessor adopt: pid %d has lease %s now: %s on %s\n", (int) pid, lessor_lease_id(lease),
                       size_text(lessor_lease_bytes(lease), size),
                       text_escape(uuid, strlen(uuid), device, sizeof(device)));
}

int verb_adopt_main(const struct verb *verb, int argc, char **argv)
{
        struct ask ask;
        struct target target = { 0 };
        struct lessor *l = NULL;
        struct lessor_request *request = NULL;
        struct lessor_lease *lease = NULL;
        struct lessor_error *error = NULL;
        bool json = false;
        uint64_t pid = 0;

        int code = read_adopt(verb, argc, argv, &ask, &target, &json);
        if (code == LOOK_ON)
                code = find_pid(verb, &target, &pid);
        if (code != LOOK_ON)
                return code;
        code = LESSOR_EXIT_OK;
        bool whole = target.container || target.unit;
        if (lessor_open(&l, NULL, &error) < 0 || lessor_set_if_down(l, LESSOR_IF_DOWN_FAIL, 0) < 0 ||
            ask_request(&ask, 0, &request) < 0 || lessor_adopt(l, request, (int) pid, whole, &lease, &error) < 0)
                code = show_failure(verb->name, error);
        else
                tell_adopted(lease, pid, json);
        lessor_error_free(error);
        lessor_lease_free(lease);
        lessor_request_free(request);
        lessor_close(l);
        return code;
}

/* ---- unadopt ---- */

int verb_unadopt_main(const struct verb *verb, int argc, char **argv)
{
        char id[LEASE_ID_TEXT_MAX], path[64];
        json_t *lease = NULL, *after = NULL;
        bool json = false;

        int code = look_id_options(verb, argc, argv, &json, id, sizeof(id));
        if (code != LOOK_ON)
                return code;
        (void) snprintf(path, sizeof(path), "/api/leases/%s", id);
        code = show_get(verb->name, path, &lease);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (!json_is_true(json_object_get(lease, "adopted"))) {
                json_decref(lease);
                (void) fprintf(stderr,
                               "lessor %s: %s was not adopted: it was asked for, and ends with its command.\n"
                               "To give its memory back now: `lessor lease release %s`\n",
                               verb->name, id, id);
                return LESSOR_EXIT_REFUSED;
        }
        json_decref(lease);
        code = show_call(verb->name, "DELETE", path, NULL, &after);
        if (code == LESSOR_EXIT_OK && json && after)
                show_json(after);
        json_decref(after);
        return code;
}
