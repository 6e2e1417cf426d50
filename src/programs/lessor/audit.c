/* SPDX-License-Identifier: Apache-2.0 */
/* `audit`: who has device memory without a lease, and who had; by lessord or by a journal. */
#include "programs/lessor/audit.h"
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include "api/audit_json.h"
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessor/replay_find.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "store/audited.h"

enum { BUSY_MS = 2000, ANSWER_MS = 60 * 1000, SHOWN_MAX = 400 };

const struct option audit_options[] = {
        { "all", NULL, "also those that are gone" },
        { "journal", "FILE|DIR", "read this journal, and ask no lessord", .words = "@files" },
        { "json", NULL, "print one JSON object" },
        { 0 },
};

const char audit_more[] =
        "  lessor audit                          who has device memory and no lease, and who started it\n"
        "  lessor audit 3120                     one process, also one that is gone or has a lease; P3120 is the same\n"
        "  lessor audit --all                    all that the journal has, the newest first\n"
        "  lessor audit --journal /srv/copy 3120 from a journal, without lessord\n"
        "\n"
        "Who started whom from the top down, with how each step is known; ~ is who was gone by then. Below it what it "
        "runs,\n"
        "as it was at first sight; what looks like a secret on its command line is made of asterisks. Of one process "
        "also "
        "how\n"
        "much it had each hour, and which leases were told that it is in their way. Its user and administrators see "
        "all "
        "of\n"
        "it, others who, how much and since when. Where lessord is away its journal is read, if you may.\n"
        "\n"
        "Exit status: 0 done, 1 nothing is known of it, 2 wrong use, 69 lessord is away, 125 the journal cannot be "
        "read.";

struct asking {
        const struct verb *verb;
        uint32_t pid; /* 0 = whoever */
        bool all, json;
        const char *journal;
        json_t *body; /* what was found so far */
};

static int failed(const struct error *err)
{
        char safe[sizeof(err->msg) + 64];

        (void) fprintf(stderr, "lessor audit: %s\n", text_escape(err->msg, strlen(err->msg), safe, sizeof(safe)));
        return LESSOR_EXIT_OWN;
}

/* Behind what was found before; takes @page over. The id to go on from; 0 = that was all. */
static uint64_t add_page(struct asking *ask, json_t *page)
{
        uint64_t next = json_amount_or(page, "next", 0);

        if (!ask->body) {
                ask->body = page;
        } else {
                (void) json_array_extend(json_object_get(ask->body, "audits"), json_object_get(page, "audits"));
                json_decref(page);
        }
        (void) json_object_set_new(ask->body, "next", json_null());
        return next;
}

/* ---- from a journal ---- */

static const char *name_of(void *ctx, uint32_t uid)
{
        const struct passwd *user = getpwuid(uid);

        (void) ctx;
        return user ? user->pw_name : NULL;
}

static int read_pages(struct asking *ask, struct journal *journal)
{
        const struct told_audit_host host = { .name = name_of };
        struct audited_look look = { .pid = ask->pid };

        do {
                struct error err = { 0 };
                struct audited audited;
                int r = audited_read(journal, &look, &audited, &err);
                json_t *page = r == 0 ? told_audited(&audited, &host) : NULL;
                audited_fini(&audited);
                if (!page)
                        return r < 0 ? failed(&err) : LESSOR_EXIT_OWN;
                look.before_id = add_page(ask, page);
        } while (look.before_id != 0);
        return LESSOR_EXIT_OK;
}

static int read_journal(struct asking *ask, const char *path)
{
        const struct journal_options options = { .read_only = true, .busy_ms = BUSY_MS };
        struct journal *journal = NULL;
        struct error err = { 0 };

        if (journal_open(&journal, path, &options, &err) < 0)
                return failed(&err);
        int code = read_pages(ask, journal);
        journal_close(journal);
        return code;
}

/* ---- from lessord ---- */

/* LESSOR_EXIT_AWAY, without words: *ret_r says why. */
static int ask_lessord(struct asking *ask, struct client *client, int *ret_r)
{
        uint64_t before = 0;

        do {
                struct client_answer answer;
                char path[96], more[40] = "";
                if (before != 0)
                        (void) snprintf(more, sizeof(more), "&before=%" PRIu64, before);
                if (ask->pid != 0)
                        (void) snprintf(path, sizeof(path), "/api/audit?pid=%" PRIu32 "%s", ask->pid, more);
                else
                        (void) snprintf(path, sizeof(path), "/api/audit?all=%s%s", ask->all ? "true" : "false", more);
                *ret_r = client_call(client, "GET", path, NULL, ANSWER_MS, &answer, NULL);
                if (*ret_r < 0)
                        return LESSOR_EXIT_AWAY;
                if (answer.status != 200 || !json_is_object(answer.body)) {
                        show_problem(ask->verb->name, &answer);
                        client_answer_fini(&answer);
                        return LESSOR_EXIT_REFUSED;
                }
                before = add_page(ask, answer.body);
        } while (before != 0);
        return LESSOR_EXIT_OK;
}

/* ---- the whole ---- */

static int find(struct asking *ask)
{
        char path[PATH_MAX], shown[SHOWN_MAX];
        struct client client;
        struct error err = { 0 };
        int r = 0;

        if (ask->journal)
                return replay_find_journal(ask->journal, path, sizeof(path), &err) < 0 ? failed(&err)
                                                                                       : read_journal(ask, path);
        client_init(&client);
        int code = ask_lessord(ask, &client, &r);
        if (code != LESSOR_EXIT_AWAY)
                return code;
        if (!client_is_away(r) || replay_find_journal(NULL, path, sizeof(path), &err) < 0)
                return show_away(ask->verb->name, &client, r);
        (void) fprintf(stderr, "lessor audit: lessord is away; read from its journal, %s\n",
                       text_escape(path, strlen(path), shown, sizeof(shown)));
        return read_journal(ask, path);
}

/* "3120", "P3120" */
static int pid_parse(const char *word, uint32_t *ret, struct error *err)
{
        uint64_t pid;

        if ((word[0] == 'P' || word[0] == 'p') && word[1] >= '0' && word[1] <= '9')
                word++;
        int r = parse_u64("a process", word, 1, INT32_MAX, &pid, err);
        if (r == 0)
                *ret = (uint32_t) pid;
        return r;
}

static int read_words(int argc, char **argv, struct asking *ask)
{
        struct error err = { 0 };
        struct options o;

        options_init(&o, ask->verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(ask->verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND) {
                        if (ask->pid != 0)
                                return verb_usage_error(ask->verb, "one process at a time");
                        if (pid_parse(o.value, &ask->pid, &err) < 0)
                                return verb_usage_error(ask->verb, "%s", err.msg);
                } else if (strcmp(option_name(&o, what), "all") == 0) {
                        ask->all = true;
                } else if (strcmp(option_name(&o, what), "journal") == 0) {
                        ask->journal = o.value;
                } else {
                        ask->json = true;
                }
        }
        if (ask->all && ask->pid != 0)
                return verb_usage_error(ask->verb, "--all or one process, not both");
        return -1;
}

static int nothing_known(const struct asking *ask)
{
        (void) fprintf(stderr,
                       "lessor audit: the journal has no record of process %" PRIu32 "; `lessor why P%" PRIu32
                       "` tells what it saw of it\n",
                       ask->pid, ask->pid);
        return LESSOR_EXIT_REFUSED;
}

int verb_audit_main(const struct verb *verb, int argc, char **argv)
{
        struct asking ask = { .verb = verb };

        int code = read_words(argc, argv, &ask);
        if (code >= 0)
                return code;
        code = find(&ask);
        if (code == LESSOR_EXIT_OK && ask.pid != 0 && json_array_size(json_object_get(ask.body, "audits")) == 0)
                code = nothing_known(&ask);
        else if (code == LESSOR_EXIT_OK && ask.json)
                show_json(ask.body);
        else if (code == LESSOR_EXIT_OK)
                audit_print(ask.body);
        json_decref(ask.body);
        return code;
}
