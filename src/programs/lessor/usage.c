/* SPDX-License-Identifier: Apache-2.0 */
/* `usage`: who had how much for how long, by lessord or by a journal. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "api/told_json.h"
#include "arbiter/arbiter.h"
#include "base/clock.h"
#include "base/escape.h"
#include "programs/lessor/replay_find.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "store/account.h"

enum { BUSY_MS = 2000, ANSWER_MS = 60 * 1000, SHOWN_MAX = 400, NAME_COLUMNS = 24 };

#define MS_AN_HOUR 3600000.0
#define MIB_S_A_GIB_HOUR (1024.0 * 3600.0)

const struct option usage_options[] = {
        { "by", "WHAT", "user, or consumer: each program of a user", .words = "user|consumer" },
        { "since", "TIME", "from then on: 7d, 14:05, \"2026-11-30 14:05\"; else all that is kept" },
        { "journal", "FILE|DIR", "read this journal, and ask no lessord", .words = "@files" },
        { "csv", NULL, "comma-separated values, with a line of names" },
        { "json", NULL, "print one JSON object" },
        { 0 },
};

const char usage_more[] =
        "  lessor usage --since 7d\n"
        "  lessor usage --by consumer --csv > usage.csv\n"
        "\n"
        "From the journal: GPU-hours on a device, whatever its share of it; GiB-hours of what was promised; of that "
        "idle,\n"
        "by the word of its program; hours in the queue; GiB-hours parked. The first line says since when it is known: "
        "of\n"
        "a long history only the newest records are kept. You see the programs of others as one row a user; an\n"
        "administrator sees each. Where lessord is away its journal is read, if you may, up to its last record.\n"
        "\n"
        "Exit status: 0 done, 1 refused, 2 wrong use, 69 lessord is away, 125 the journal cannot be read.";

struct asking {
        const struct verb *verb;
        bool by_consumer, csv, json;
        uint64_t since_wall_ms;
        const char *journal;
};

static int failed(const struct error *err)
{
        char safe[sizeof(err->msg) + 64];

        (void) fprintf(stderr, "lessor usage: %s\n", text_escape(err->msg, strlen(err->msg), safe, sizeof(safe)));
        return LESSOR_EXIT_OWN;
}

/* ---- from a journal ---- */

static void step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

static const char *name_of(void *ctx, uint32_t uid)
{
        const struct passwd *user = getpwuid(uid);

        (void) ctx;
        return user ? user->pw_name : NULL;
}

static int read_journal(const struct asking *ask, const char *path, json_t **ret)
{
        const struct journal_options options = { .read_only = true, .busy_ms = BUSY_MS };
        const struct account_options since = { .since_wall_ms = ask->since_wall_ms };
        struct account account = { 0 };
        struct journal *journal = NULL;
        struct error err = { 0 };

        int r = journal_open(&journal, path, &options, &err);
        if (r == 0)
                r = account_read(journal, &since, step, NULL, &account, &err);
        journal_close(journal);
        if (r == 0 && !ask->by_consumer)
                account_fold_by_user(&account);
        if (r == 0)
                *ret = told_account(&account, ask->by_consumer, name_of, NULL);
        account_fini(&account);
        return r < 0 ? failed(&err) : *ret ? LESSOR_EXIT_OK : LESSOR_EXIT_OWN;
}

/* ---- for people and for programs ---- */

static double hours(const json_t *row, const char *key)
{
        return (double) json_amount_or(row, key, 0) / MS_AN_HOUR;
}

static double gib_hours(const json_t *row, const char *key)
{
        return (double) json_amount_or(row, key, 0) / MIB_S_A_GIB_HOUR;
}

/* "alice", "uid 1007", "everybody else": whose row there was no room for. */
static const char *who(const json_t *row, char *buf, size_t size)
{
        char uid[32];

        if (json_is_string(json_object_get(row, "user")))
                return show_field(row, "user", "", buf, size);
        if (!json_is_integer(json_object_get(row, "uid")))
                (void) snprintf(buf, size, "everybody else");
        else
                (void) snprintf(buf, size, "uid %s", show_field(row, "uid", "?", uid, sizeof(uid)));
        return buf;
}

static void print_row(const json_t *row, bool by_consumer)
{
        char user[SHOW_TEXT_MAX], name[4 * NAME_COLUMNS + 4], consumer[SHOW_TEXT_MAX], program[4 * NAME_COLUMNS + 4];

        (void) printf("%s ", show_cut(who(row, user, sizeof(user)), NAME_COLUMNS, true, name, sizeof(name)));
        if (by_consumer)
                (void) printf("%s ", show_cut(show_field(row, "consumer", "-", consumer, sizeof(consumer)),
                                              NAME_COLUMNS, true, program, sizeof(program)));
        (void) printf("%6" PRIu64 " %10.2f %10.2f %10.2f %10.2f %10.2f\n", json_amount_or(row, "leases", 0),
                      hours(row, "held_ms"), gib_hours(row, "held_mib_s"), gib_hours(row, "idle_mib_s"),
                      hours(row, "waited_ms"), gib_hours(row, "parked_mib_s"));
}

static void print_table(const json_t *body, bool by_consumer)
{
        char from[48], until[48], words[SHOW_TEXT_MAX];
        size_t i;
        json_t *row;

        (void) printf("from %s to %s\n", show_field(body, "from", "?", from, sizeof(from)),
                      show_field(body, "until", "?", until, sizeof(until)));
        (void) printf("%s%-24s %s%6s %10s %10s %10s %10s %10s%s\n", show_colour(SHOW_BOLD), "USER",
                      by_consumer ? "CONSUMER                 " : "", "LEASES", "GPU-HOURS", "GIB-HOURS", "IDLE-GIB-H",
                      "WAITED-H", "PARKD-GIBH", show_colour(SHOW_PLAIN));
        json_array_foreach(json_object_get(body, "rows"), i, row) print_row(row, by_consumer);
        if (json_amount_or(body, "damages", 0) > 0)
                (void) printf("%snot all of it: %s%s\n", show_colour(SHOW_RED),
                              show_field(body, "damage", "the journal is damaged", words, sizeof(words)),
                              show_colour(SHOW_PLAIN));
        if (json_is_string(json_object_get(body, "core")))
                (void) printf("in part recorded by lessor %s, and counted as this one decides\n",
                              show_field(body, "core", "?", words, sizeof(words)));
}

/* RFC 4180; what a spreadsheet would take for a formula is text. */
static void print_cell(const char *text)
{
        (void) fputc('"', stdout);
        if (strchr("=+-@\t\r", text[0]) && text[0] != '\0')
                (void) fputc('\'', stdout);
        for (; *text != '\0'; text++)
                (void) fputs(*text == '"' ? "\"\"" : (char[2]){ *text, '\0' }, stdout);
        (void) fputs("\",", stdout);
}

static void print_csv(const json_t *body, bool by_consumer)
{
        static const char *const whats[] = { "held", "idle", "waited", "parked" };
        char text[SHOW_TEXT_MAX];
        size_t i;
        json_t *row;

        (void) printf("uid,user,%sleases", by_consumer ? "consumer," : "");
        for (size_t what = 0; what < sizeof(whats) / sizeof(whats[0]); what++)
                (void) printf(",%s_hours,%s_gib_hours", whats[what], whats[what]);
        (void) fputs("\r\n", stdout);
        json_array_foreach(json_object_get(body, "rows"), i, row)
        {
                (void) printf("%s,", show_field(row, "uid", "", text, sizeof(text)));
                print_cell(show_field(row, "user", "", text, sizeof(text)));
                if (by_consumer)
                        print_cell(show_field(row, "consumer", "", text, sizeof(text)));
                (void) printf("%" PRIu64, json_amount_or(row, "leases", 0));
                for (size_t what = 0; what < sizeof(whats) / sizeof(whats[0]); what++) {
                        char ms[32], mib_s[32];
                        (void) snprintf(ms, sizeof(ms), "%s_ms", whats[what]);
                        (void) snprintf(mib_s, sizeof(mib_s), "%s_mib_s", whats[what]);
                        (void) printf(",%.6f,%.6f", hours(row, ms), gib_hours(row, mib_s));
                }
                (void) fputs("\r\n", stdout);
        }
}

/* ---- the whole ---- */

static int ask_lessord(const struct asking *ask, struct client *client, int *ret_r, json_t **ret)
{
        time_t seconds = (time_t) (ask->since_wall_ms / 1000);
        struct client_answer answer;
        char path[128], since[48] = "";
        struct tm tm;

        if (seconds != 0 && gmtime_r(&seconds, &tm))
                (void) strftime(since, sizeof(since), "&since=%Y-%m-%dT%H:%M:%SZ", &tm);
        (void) snprintf(path, sizeof(path), "/api/usage?by=%s%s", ask->by_consumer ? "consumer" : "user", since);
        *ret_r = client_call(client, "GET", path, NULL, ANSWER_MS, &answer, NULL);
        if (*ret_r < 0)
                return LESSOR_EXIT_AWAY;
        if (answer.status == 200 && json_is_object(answer.body)) {
                *ret = answer.body;
                return LESSOR_EXIT_OK;
        }
        show_problem(ask->verb->name, &answer);
        client_answer_fini(&answer);
        return LESSOR_EXIT_REFUSED;
}

static int find(const struct asking *ask, json_t **ret)
{
        char path[PATH_MAX], shown[SHOWN_MAX];
        struct client client;
        struct error err = { 0 };
        int r = 0;

        if (ask->journal)
                return replay_find_journal(ask->journal, path, sizeof(path), &err) < 0 ? failed(&err)
                                                                                       : read_journal(ask, path, ret);
        client_init(&client);
        int code = ask_lessord(ask, &client, &r, ret);
        if (code != LESSOR_EXIT_AWAY)
                return code;
        if (!client_is_away(r) || replay_find_journal(NULL, path, sizeof(path), &err) < 0)
                return show_away(ask->verb->name, &client, r);
        (void) fprintf(stderr, "lessor usage: lessord is away; read from its journal, %s\n",
                       text_escape(path, strlen(path), shown, sizeof(shown)));
        return read_journal(ask, path, ret);
}

static int read_words(const struct verb *verb, int argc, char **argv, struct asking *ask, const char **ret_since)
{
        struct options o;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words; did you mean --since or --journal?");
                const char *name = option_name(&o, what);
                if (strcmp(name, "by") == 0) {
                        ask->by_consumer = strcmp(o.value, "consumer") == 0;
                        if (!ask->by_consumer && strcmp(o.value, "user") != 0)
                                return verb_usage_error(verb, "--by: user or consumer");
                } else if (strcmp(name, "since") == 0) {
                        *ret_since = o.value;
                } else if (strcmp(name, "journal") == 0) {
                        ask->journal = o.value;
                } else if (strcmp(name, "csv") == 0) {
                        ask->csv = true;
                } else {
                        ask->json = true;
                }
        }
        if (ask->csv && ask->json)
                return verb_usage_error(verb, "--csv or --json, not both");
        return -1;
}

int verb_usage_main(const struct verb *verb, int argc, char **argv)
{
        struct asking ask = { .verb = verb };
        struct walk_since since = { 0 };
        struct error err = { 0 };
        const char *text = NULL;
        json_t *body = NULL;

        int code = read_words(verb, argc, argv, &ask, &text);
        if (code >= 0)
                return code;
        if (text && replay_parse_since(text, clock_now_wall_ms(), &since, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        if (text && since.kind == WALK_SINCE_EVENT)
                return verb_usage_error(verb, "--since: a time ago (7d) or a moment (\"2026-11-30 14:05\")");
        ask.since_wall_ms = since.value;
        code = find(&ask, &body);
        if (code == LESSOR_EXIT_OK && ask.json)
                show_json(body);
        else if (code == LESSOR_EXIT_OK && ask.csv)
                print_csv(body, ask.by_consumer);
        else if (code == LESSOR_EXIT_OK)
                print_table(body, ask.by_consumer);
        json_decref(body);
        return code;
}
