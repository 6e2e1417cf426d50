/* SPDX-License-Identifier: Apache-2.0 */
/* `enforce`, `approve`, `approvals`, `unapprove`: what becomes of processes with device memory and no lease. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { CELL_MAX = 160, NAME_COLUMNS = 16, PIDS_MAX = 64, SHOWN_MAX = 64 };

#define CODES "\n\nExit status: 0 done, 1 refused, 2 wrong use, 69 lessord is away."

const struct option enforce_options[] = {
        { "yes", NULL, "do not ask", 'y', NULL },
        { "json", NULL, "print JSON, as the API gives it" },
        { 0 },
};
const struct option approve_options[] = {
        { "for", "SPAN", "for so long; then its owner is warned for a day", 0, "8h|1d|7d|30d" },
        { "here", NULL, "only in the unit or container where it runs now" },
        { "json", NULL, "print the approval" },
        { 0 },
};

const char enforce_more[] =
        "  lessor enforce             what it does, and whom it judged within the last day\n"
        "  lessor enforce warn        owners of processes without a lease are told\n"
        "  lessor enforce on          and those processes are ended: notice, SIGTERM, a grace, SIGKILL\n"
        "  lessor enforce off         back to observing\n"
        "\n"
        "A new installation observes: it says what it would do, and does nothing. `on` shows that first, and asks.\n"
        "Never touched: display servers, sshd, lessor, what draws a screen, what has little memory or is approved\n"
        "(`lessor approve`), and whoever cannot be seen whole. While the driver or the books are in doubt nobody "
        "is." CODES;
const char approve_more[] = "  lessor approve 4711\n"
                            "  lessor approve 4711 --for 8h\n"
                            "\n"
                            "The program that process runs may have device memory without a lease, as that user: the "
                            "file, and of an\n"
                            "interpreter that script alone, or that very command line (-c, -m). A name counts for "
                            "nothing. Where the script\n"
                            "cannot be seen: --here, or `lessor adopt`. `lessor approvals` lists them." CODES;
const char approvals_more[] = "  lessor approvals\n"
                              "\n"
                              "Yours; an administrator sees all." CODES;
const char unapprove_more[] = "  lessor unapprove A3\n"
                              "\n"
                              "Takes it back at once; one that ran out (--for) warns for a day instead." CODES;

/* ---- enforce ---- */

static const char *cell(const json_t *object, const char *key, size_t columns, char buf[CELL_MAX])
{
        char text[CELL_MAX];

        return show_cut(show_field(object, key, "-", text, sizeof(text)), columns, true, buf, CELL_MAX);
}

static void print_audit(const json_t *audit)
{
        char pid[CELL_MAX], name[CELL_MAX], user[CELL_MAX], verdict[CELL_MAX], why[CELL_MAX], since[CELL_MAX],
                bytes[SIZE_TEXT_MAX];

        (void) printf("  %s %s %s %9s  %s %s %s\n", cell(audit, "pid", 8, pid), cell(audit, "comm", NAME_COLUMNS, name),
                      cell(audit, "user", 10, user), show_bytes(audit, "used_bytes", bytes),
                      cell(audit, "verdict", 10, verdict), cell(audit, "why", 18, why),
                      cell(audit, "audited", 24, since));
}

static size_t print_audits(const json_t *list, bool only_would)
{
        json_t *audit;
        size_t i, n = 0;

        json_array_foreach(list, i, audit)
        {
                if (only_would && !json_is_true(json_object_get(audit, "would_end")) &&
                    json_is_null(json_object_get(audit, "warned")))
                        continue;
                if (n++ == 0)
                        (void) printf("  %s%-8s %-*s %-10s %9s  %-10s %-18s %s%s\n", show_colour(SHOW_DIM), "pid",
                                      NAME_COLUMNS, "program", "user", "has", "verdict", "why", "since",
                                      show_colour(SHOW_PLAIN));
                print_audit(audit);
        }
        return n;
}

static void print_enforce(const json_t *body)
{
        char mode[CELL_MAX], user[CELL_MAX], since[CELL_MAX], doubt[CELL_MAX], n[CELL_MAX];

        (void) printf("mode       %s", show_field(body, "mode", "?", mode, sizeof(mode)));
        if (json_is_string(json_object_get(body, "since")))
                (void) printf(", since %s, by %s", show_field(body, "since", "?", since, sizeof(since)),
                              show_field(body, "by_user", "?", user, sizeof(user)));
        (void) printf("\napprovals  %s\n", show_field(body, "approvals", "?", n, sizeof(n)));
        if (strcmp(show_field(body, "doubt", "none", doubt, sizeof(doubt)), "none") != 0)
                (void) printf("%sin doubt   %s%s\n", show_colour(SHOW_YELLOW), doubt, show_colour(SHOW_PLAIN));
        (void) printf("\nwithin the last day, without a lease:\n");
        if (print_audits(json_object_get(body, "last_day"), false) == 0)
                (void) printf("  nobody\n");
}

/* What it would have done, then the question. LOOK_ON: go on. */
static int confirm(const struct verb *verb, bool yes)
{
        json_t *body = NULL;
        char answer[8] = "";

        int code = show_get(verb->name, "/api/enforce", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        (void) fprintf(stdout, "within the last day this would have ended, after a notice and a grace each:\n");
        if (print_audits(json_object_get(body, "last_day"), true) == 0)
                (void) printf("  nobody\n");
        json_decref(body);
        if (yes)
                return LOOK_ON;
        if (!isatty(STDIN_FILENO))
                return verb_usage_error(verb, "nobody is there to be asked; say --yes if that is what you want");
        (void) printf("switch it on? [y/N] ");
        (void) fflush(stdout);
        if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y')) {
                (void) printf("nothing was changed\n");
                return LESSOR_EXIT_REFUSED;
        }
        return LOOK_ON;
}

static int set_mode(const struct verb *verb, const char *mode, bool json)
{
        json_t *body = json_pack("{s:s}", "mode", mode), *answer = NULL;
        char now[CELL_MAX];

        int code = show_call(verb->name, "POST", "/api/enforce", body, &answer);
        json_decref(body);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (json)
                show_json(answer);
        else
                (void) printf("mode %s\n", show_field(answer, "mode", "?", now, sizeof(now)));
        json_decref(answer);
        return LESSOR_EXIT_OK;
}

static int show_enforce(const struct verb *verb, bool json)
{
        json_t *body = NULL;

        int code = show_get(verb->name, "/api/enforce", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (json)
                show_json(body);
        else
                print_enforce(body);
        json_decref(body);
        return LESSOR_EXIT_OK;
}

int verb_enforce_main(const struct verb *verb, int argc, char **argv)
{
        static const char *const words[][2] = { { "on", "enforce" },
                                                { "off", "observe" },
                                                { "warn", "warn" },
                                                { "observe", "observe" },
                                                { "enforce", "enforce" } };
        const char *word = "status", *mode = NULL;
        bool yes = false, json = false;
        char shown[SHOWN_MAX];
        struct options o;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        word = o.value;
                else if (strcmp(option_name(&o, what), "yes") == 0)
                        yes = true;
                else
                        json = true;
        }
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (strcmp(word, words[i][0]) == 0)
                        mode = words[i][1];
        if (!mode && strcmp(word, "status") != 0)
                return verb_usage_error(verb, "\"%s\" is none of on, off, warn, observe, status",
                                        text_escape(word, strlen(word), shown, sizeof(shown)));
        if (!mode)
                return show_enforce(verb, json);
        if (strcmp(mode, "enforce") == 0 && !(yes && json)) {
                int code = confirm(verb, yes);
                if (code != LOOK_ON)
                        return code;
        }
        return set_mode(verb, mode, json);
}

/* ---- approvals ---- */

/* What of the program is meant, behind its name. */
static const char *of_what(const json_t *approval)
{
        static const char *const words[][2] = {
                { "script", "with that script alone" },
                { "command", "with that command line alone" },
                { "unknown", "with any script" },
        };
        char runs[CELL_MAX];

        (void) show_field(approval, "runs", "", runs, sizeof(runs));
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (strcmp(runs, words[i][0]) == 0)
                        return words[i][1];
        return "";
}

static void print_approval(const json_t *a)
{
        char id[CELL_MAX], name[CELL_MAX], user[CELL_MAX], until[CELL_MAX], by[CELL_MAX];

        (void) printf("  %s %s %s %s %s %s%s%s\n", cell(a, "id", 6, id), cell(a, "comm", NAME_COLUMNS, name),
                      cell(a, "user", 10, user),
                      show_cut(show_field(a, "until", "for good", until, sizeof(until)), 24, true, by, sizeof(by)),
                      cell(a, "by_user", 10, until), of_what(a),
                      json_is_true(json_object_get(a, "here")) ? " in one place" : "",
                      json_is_true(json_object_get(a, "lapsed")) ? " lapsed: warned for a day" : "");
}

int verb_approvals_main(const struct verb *verb, int argc, char **argv)
{
        bool json = false;
        json_t *body = NULL, *approval;
        size_t i;

        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        code = show_get(verb->name, "/api/approvals", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        const json_t *list = json_object_get(body, "approvals");
        if (json) {
                show_json(list);
        } else if (json_array_size(list) == 0) {
                (void) printf("nothing is approved\n");
        } else {
                (void) printf("  %s%-6s %-*s %-10s %-24s %-10s%s\n", show_colour(SHOW_DIM), "id", NAME_COLUMNS,
                              "program", "of", "until", "by", show_colour(SHOW_PLAIN));
                json_array_foreach(list, i, approval) print_approval(approval);
        }
        json_decref(body);
        return LESSOR_EXIT_OK;
}

struct typed {
        const char *words[PIDS_MAX];
        size_t n_words;
        const char *span;
        bool here, json;
};

/* LOOK_ON, or the exit code. */
static int read_words(const struct verb *verb, int argc, char **argv, struct typed *ret)
{
        struct options o;

        *ret = (struct typed){ 0 };
        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND) {
                        if (ret->n_words == PIDS_MAX)
                                return verb_usage_error(verb, "%d at a time", PIDS_MAX);
                        ret->words[ret->n_words++] = o.value;
                } else if (strcmp(option_name(&o, what), "json") == 0) {
                        ret->json = true;
                } else if (strcmp(option_name(&o, what), "here") == 0) {
                        ret->here = true;
                } else {
                        ret->span = o.value;
                }
        }
        if (ret->n_words == 0)
                return verb_usage_error(verb, "something is missing: lessor %s %s", verb->name, verb->synopsis);
        return LOOK_ON;
}

static int approve_one(const struct verb *verb, const struct typed *typed, uint64_t pid, uint64_t for_ms)
{
        json_t *body = json_pack("{s:I}", "pid", (json_int_t) pid), *answer = NULL;
        char id[CELL_MAX], name[CELL_MAX];

        if (body && for_ms != 0)
                (void) json_object_set_new(body, "for_ms", json_integer((json_int_t) for_ms));
        if (body && typed->here)
                (void) json_object_set_new(body, "here", json_true());
        int code = show_call(verb->name, "POST", "/api/approve", body, &answer);
        json_decref(body);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (typed->json)
                show_json(answer);
        else
                (void) printf("%s: %s may stay without a lease%s%s%s\n", show_field(answer, "id", "?", id, sizeof(id)),
                              show_field(answer, "comm", "?", name, sizeof(name)), of_what(answer)[0] ? ", " : "",
                              of_what(answer),
                              json_is_true(json_object_get(answer, "here")) ? ", in that unit or container" : "");
        json_decref(answer);
        return LESSOR_EXIT_OK;
}

int verb_approve_main(const struct verb *verb, int argc, char **argv)
{
        uint64_t pids[PIDS_MAX], for_ms = 0;
        struct typed typed;
        struct error err = { 0 };

        int code = read_words(verb, argc, argv, &typed);
        if (code != LOOK_ON)
                return code;
        if (typed.span && duration_parse("--for", typed.span, &for_ms, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        for (size_t i = 0; i < typed.n_words; i++)
                if (parse_u64("PID", typed.words[i], 1, UINT32_MAX, &pids[i], &err) < 0)
                        return verb_usage_error(verb, "%s; `lessor status` shows who has memory", err.msg);
        for (size_t i = 0; i < typed.n_words; i++) {
                code = approve_one(verb, &typed, pids[i], for_ms);
                if (code != LESSOR_EXIT_OK)
                        return code;
        }
        return LESSOR_EXIT_OK;
}

int verb_unapprove_main(const struct verb *verb, int argc, char **argv)
{
        struct typed typed;

        int code = read_words(verb, argc, argv, &typed);
        for (size_t i = 0; code == LOOK_ON && i < typed.n_words; i++) {
                char shown[SHOWN_MAX];
                uint64_t id;
                if (typed.words[i][0] != 'A' || parse_u64("ID", typed.words[i] + 1, 1, INT64_MAX, &id, NULL) < 0)
                        return verb_usage_error(
                                verb, "\"%s\" is no approval: an id is A and a number (`lessor approvals`)",
                                text_escape(typed.words[i], strlen(typed.words[i]), shown, sizeof(shown)));
        }
        for (size_t i = 0; code == LOOK_ON && i < typed.n_words; i++) {
                json_t *body = json_pack("{s:s}", "approval", typed.words[i]), *answer = NULL;
                int r = show_call(verb->name, "POST", "/api/unapprove", body, &answer);
                json_decref(body);
                if (r != LESSOR_EXIT_OK)
                        return r;
                if (typed.json)
                        show_json(json_object_get(answer, "approvals"));
                else
                        (void) printf("%s is taken back\n", typed.words[i]);
                json_decref(answer);
        }
        return code == LOOK_ON ? LESSOR_EXIT_OK : code;
}
