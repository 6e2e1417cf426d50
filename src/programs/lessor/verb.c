/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/verb.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "programs/lessor/ask.h"

enum { WORD_MAX = 48, HELP_COLUMN = 26 };

const struct option no_options[] = { { 0 } };
const struct option json_options[] = { { "json", NULL, "print JSON, as the API gives it" }, { 0 } };

#define LOOK_CODES "\n\nExit status: 0 done, 2 wrong use, 69 lessord is away."
#define LEASE_CODES "\n\nExit status: 0 done, 1 there is no such lease any more, 2 wrong use, 69 lessord is away."

static const char devices_more[] = "  lessor devices\n"
                                   "  lessor devices --json | jq '.[0].free_bytes'\n"
                                   "\n"
                                   "--json prints a list with one object a device; null means unknown, which is never "
                                   "0." LOOK_CODES;
static const char queue_more[] = "  lessor queue\n"
                                 "\n"
                                 "In its order: place, lease, priority, how much, how long it waited, whose, why it "
                                 "waits, and when it may start." LOOK_CODES;
static const char events_more[] = "  lessor events --follow\n"
                                  "  lessor events --lease L17\n"
                                  "\n"
                                  "--json prints one object a line. --follow goes on until Ctrl-C, also over a restart "
                                  "of lessord." LOOK_CODES;
static const char lease_show_more[] = "  lessor lease show L17\n"
                                      "  lessor lease show --json L17 | jq .used_bytes" LEASE_CODES;
static const char lease_renew_more[] = "  id=$(lessor lease acquire --vram 12G --ttl 60s)\n"
                                       "  lessor lease renew \"$id\"     at least every minute" LEASE_CODES;
static const char lease_release_more[] =
        "  lessor lease release L17\n"
        "\n"
        "A second release of the same lease says how it ended, and exits with 1." LEASE_CODES;

static const struct verb lease_verbs[] = {
        { "lease acquire", "--vram SIZE|--exclusive [OPTION]…", "ask for memory, wait, print the lease's id",
          acquire_options, acquire_more, false, verb_acquire_main, .shared = ask_options },
        { "lease show", "[--json] ID", "one lease as it is now", json_options, lease_show_more, false, verb_show_main,
          .operands = "@leases" },
        { "lease renew", "[--json] ID", "heartbeat: keep a lease with --ttl alive", json_options, lease_renew_more,
          false, verb_renew_main, .operands = "@leases" },
        { "lease release", "[--json] ID", "give the memory back", json_options, lease_release_more, false,
          verb_release_main, .operands = "@leases" },
        { 0 },
};

static const struct verb config_verbs[] = {
        { "config check", "[FILE]", "is this file good?", no_options, config_check_more, false, verb_config_check_main,
          .operands = "@files" },
        { "config show", "[--json]", "every key: what it is, and its default", json_options, config_show_more, false,
          verb_config_show_main },
        { 0 },
};

static const struct verb journal_verbs[] = {
        { "journal verify", "[--json] [FILE|DIR]", "is every row of it as it was written?", json_options,
          journal_verify_more, false, verb_journal_verify_main, .operands = "@files" },
        { 0 },
};

static const struct verb book_verbs[] = {
        { "book list", "[--json]", "what is booked, by whom, the next one first", json_options, book_list_more, false,
          verb_book_list_main },
        { "book cancel", "[--json] ID", "give a booking up", json_options, book_cancel_more, false,
          verb_book_cancel_main, .operands = "@leases" },
        { 0 },
};

const struct verb verbs[] = {
        { "run", "[OPTION]… [--] COMMAND [ARG]…", "wait for GPU memory, then run a command under the lease",
          run_options, run_more, true, verb_run_main, .shared = ask_options, .operands = "@command" },
        { "status", "[--watch [SECONDS]] [--json]", "devices, leases, queue and strangers at a glance", status_options,
          status_more, false, verb_status_main },
        { "devices", "[--json]", "what each device has, promised, used and free", json_options, devices_more, false,
          verb_devices_main },
        { "processes", "[--json]", "who has device memory, under which lease, and how that is known", json_options,
          processes_more, false, verb_processes_main },
        { "queue", "[--json]", "who waits, in which order, and for what", json_options, queue_more, false,
          verb_queue_main },
        { "events", "[--follow] [--lease ID] [--json]", "what happened, oldest first", events_options, events_more,
          false, verb_events_main },
        { "why", "[--journal FILE] [--json] LEASE|PID|EVENT", "what led to what: of a lease, a process or one event",
          why_options, why_more, false, verb_why_main, .operands = "@leases" },
        { "lease", "acquire|show|renew|release …", "leases for scripts: ask, look, keep alive, give back", no_options,
          lease_more, false, verb_group_main, .sub = lease_verbs },
        { "renice", "[--json] PRIORITY ID", "make a lease more or less important", change_options, renice_more, false,
          verb_renice_main, .operands = "urgent|interactive|normal|batch|filler @leases" },
        { "extend", "[--json] ID SPAN", "let a lease's time end later", change_options, extend_more, false,
          verb_extend_main, .operands = "@leases 10m|30m|1h|2h" },
        { "pin", "[--for SPAN] [--json] ID", "never take its memory back", pin_options, pin_more, false, verb_pin_main,
          .operands = "@leases" },
        { "unpin", "[--json] ID", "its memory may be taken back again", change_options, pin_more, false, verb_pin_main,
          .operands = "@leases" },
        { "adopt", "PID|--container NAME|--unit NAME [OPTION]…", "give a running program a lease", adopt_options,
          adopt_more, false, verb_adopt_main, .operands = "@strangers" },
        { "unadopt", "[--json] ID", "let an adopted program go", change_options, unadopt_more, false, verb_unadopt_main,
          .operands = "@leases" },
        { "plan", "[OPTION]… [[--] COMMAND [ARG]…]", "what `run` would get now, and why; asks for nothing",
          plan_options, plan_more, false, verb_plan_main, .shared = ask_options, .operands = "@command" },
        { "park", "[--for SPAN|--rehearse|--forgive] [--no-wait] [--json] ID",
          "take a lease off its device; thaw brings it back", park_options, park_more, false, verb_park_main,
          .operands = "@leases" },
        { "thaw", "[--no-wait] [--json] ID", "bring a parked lease back", thaw_options, thaw_more, false,
          verb_thaw_main, .operands = "@leases" },
        { "idle", "[--keep-alive SPAN] [--json] ID", "say that a lease has nothing to do", idle_options, idle_more,
          false, verb_idle_main, .operands = "@leases" },
        { "busy", "[--json] ID", "say that a lease is at work", change_options, idle_more, false, verb_idle_main,
          .operands = "@leases" },
        { "clear", "[--vram SIZE] [--for TIME] [OPTION]…", "make room for a program that lessor does not start",
          clear_options, clear_more, false, verb_clear_main },
        { "resume", "[ID]", "give back what clear keeps free", no_options, resume_more, false, verb_resume_main,
          .operands = "@leases" },
        { "book", "--at TIME --for SPAN --vram SIZE [OPTION]…", "have memory promised for a time to come; list, cancel",
          book_options, book_more, false, verb_book_main, .sub = book_verbs },
        { "enforce", "[on|off|warn|observe|status] [--yes] [--json]", "what becomes of processes without a lease",
          enforce_options, enforce_more, false, verb_enforce_main, .operands = "on|off|warn|observe|status" },
        { "approve", "[--for SPAN] [--here] [--json] PID…", "a program may have device memory without a lease",
          approve_options, approve_more, false, verb_approve_main, .operands = "@strangers" },
        { "approvals", "[--json]", "whose programs may", json_options, approvals_more, false, verb_approvals_main },
        { "unapprove", "[--json] ID…", "take an approval back", json_options, unapprove_more, false,
          verb_unapprove_main, .operands = "@approvals" },
        { "audit", "[--all] [--journal FILE] [--json] [PID]",
          "who has device memory without a lease, and who started it", audit_options, audit_more, false,
          verb_audit_main, .operands = "@strangers" },
        { "costs", "[--json]", "what it took to take memory back, measured", json_options, costs_more, false,
          verb_costs_main },
        { "limits", "[--user NAME] [--json]", "what you may have at once, and have", limits_options, limits_more, false,
          verb_limits_main },
        { "config", "check|show …", "lessord.conf as lessord reads it", no_options, config_more, false, verb_group_main,
          .sub = config_verbs },
        { "doctor", "[--prove] [--json]", "what works here, what does not, and the cure", doctor_options, doctor_more,
          false, verb_doctor_main },
        { "rescue", "[--list|--all|--thaw ID|PID] [OPTION]…", "bring back what is parked, without lessord",
          rescue_options, rescue_more, false, verb_rescue_main },
        { "replay", "[FILE|DIR] [--since TIME] [--with FILE]",
          "decide again what was decided, as it was or with another lessord.conf", replay_options, replay_more, false,
          verb_replay_main, .operands = "@files" },
        { "usage", "[--by user|consumer] [--since TIME] [--csv|--json]", "who had how much for how long", usage_options,
          usage_more, false, verb_usage_main },
        { "journal", "verify …", "the record of all that was decided: is it whole?", no_options, journal_more, false,
          verb_group_main, .sub = journal_verbs },
        { "completion", "bash|zsh", "a script that completes these words in a shell", no_options, completion_more,
          false, verb_completion_main, .operands = "bash|zsh" },
        { "help", "[VERB]", "this, or the help of a verb", no_options, NULL, false, verb_help_main,
          .operands = "@verbs" },
        { "version", "", "print the version", no_options, NULL, false, verb_version_main },
        { 0 },
};

const struct verb *verb_find(const struct verb *table, const char *name)
{
        for (const struct verb *verb = table; verb->name; verb++)
                if (strcmp(verb->name, name) == 0)
                        return verb;
        return NULL;
}

const struct option *verb_option(const struct verb *verb, int row)
{
        for (const struct option *option = verb->shared; option && option->name; option++, row--)
                if (row == 0)
                        return option;
        for (const struct option *option = verb->options; option->name; option++, row--)
                if (row == 0)
                        return option;
        return NULL;
}

/* ---- similar words ---- */

/* Changes that turn one into the other; neighbours swapped count as one. */
static size_t distance(const char *a, const char *b)
{
        size_t rows[3][WORD_MAX + 1];
        size_t n = strlen(a), m = strlen(b);
        if (n > WORD_MAX || m > WORD_MAX)
                return SIZE_MAX;
        for (size_t j = 0; j <= m; j++)
                rows[0][j] = j;
        for (size_t i = 1; i <= n; i++) {
                size_t *above2 = rows[(i + 1) % 3], *above = rows[(i + 2) % 3], *row = rows[i % 3];
                row[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
                        if (above[j] + 1 < best)
                                best = above[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
                                best = above2[j - 2] + 1;
                        row[j] = best;
                }
                /* rows rotate: i % 3 is this one, then above, then above2 */
        }
        return rows[n % 3][m];
}

const char *nearest_word(const char *word, const char *const *names)
{
        const char *best = NULL;
        size_t best_distance = SIZE_MAX;
        size_t n = strlen(word);

        for (; *names; names++) {
                size_t d = distance(word, *names);
                if (n >= 2 && strncmp(word, *names, n) == 0)
                        d = 1; /* the beginning of it */
                if (d < best_distance) {
                        best_distance = d;
                        best = *names;
                }
        }
        return best_distance <= (n <= 4 ? 2U : 3U) && best_distance < n ? best : NULL;
}

/* ---- help ---- */

int verb_print_help(const struct verb *verb)
{
        (void) printf("lessor %s - %s\n\nusage: lessor %s %s\n\n", verb->name, verb->brief, verb->name, verb->synopsis);
        const struct option *row;
        for (int i = 0; (row = verb_option(verb, i)) != NULL; i++) {
                char left[64];
                (void) snprintf(left, sizeof(left), "--%s%s%s%s%.1s", row->name, row->value ? " " : "",
                                row->value ? row->value : "", row->letter ? ", -" : "", &row->letter);
                if (strlen(left) < HELP_COLUMN)
                        (void) printf("  %-*s %s\n", HELP_COLUMN, left, row->help);
                else
                        (void) printf("  %s\n  %-*s %s\n", left, HELP_COLUMN, "", row->help);
        }
        (void) printf("  %-*s %s\n", HELP_COLUMN, "--help", "this text");
        if (verb->more)
                (void) printf("\n%s\n", verb->more);
        return LESSOR_EXIT_OK;
}

int verb_usage_error(const struct verb *verb, const char *fmt, ...)
{
        va_list args;
        (void) fprintf(stderr, "lessor %s: ", verb->name);
        va_start(args, fmt);
        (void) vfprintf(stderr, fmt, args);
        va_end(args);
        (void) fprintf(stderr, "\nSee `lessor %s --help`.\n", verb->name);
        return verb->own_codes ? LESSOR_EXIT_OWN : LESSOR_EXIT_USAGE;
}

/* ---- reading options ---- */

void options_init(struct options *o, const struct verb *verb, int argc, char **argv)
{
        *o = (struct options){ .verb = verb, .argc = argc, .argv = argv, .at = 1 };
}

static int unknown_option(const struct options *o, const char *word)
{
        enum { ROWS_MAX_HERE = 48 };
        const char *names[ROWS_MAX_HERE + 1] = { 0 };
        char plain[WORD_MAX + 1], shown[WORD_MAX];
        size_t n = 0;

        for (const struct option *row; n < ROWS_MAX_HERE && (row = verb_option(o->verb, (int) n)) != NULL;)
                names[n++] = row->name;
        (void) snprintf(plain, sizeof(plain), "%.*s", (int) strcspn(word + strspn(word, "-"), "="),
                        word + strspn(word, "-"));
        const char *near = nearest_word(plain, names);
        (void) text_escape(word, strcspn(word, "="), shown, sizeof(shown));
        if (near)
                (void) verb_usage_error(o->verb, "there is no option %s; did you mean --%s?", shown, near);
        else
                (void) verb_usage_error(o->verb, "there is no option %s", shown);
        return OPTIONS_WRONG;
}

/* How a word that may be left away is told from what follows: by its first letter. */
static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static int long_option(struct options *o, const char *word)
{
        const char *name = word + 2;
        size_t n = strcspn(name, "=");

        if (n == 4 && strncmp(name, "help", n) == 0)
                return OPTIONS_HELP;
        const struct option *option;
        for (int row = 0; (option = verb_option(o->verb, row)) != NULL; row++) {
                if (strlen(option->name) != n || strncmp(option->name, name, n) != 0)
                        continue;
                o->value = name[n] == '=' ? name + n + 1 : NULL;
                if (o->value && !option->value) {
                        (void) verb_usage_error(o->verb, "--%s takes no value", option->name);
                        return OPTIONS_WRONG;
                }
                if (option->value && option->value[0] == '[') {
                        if (!o->value && o->at < o->argc && is_digit(o->argv[o->at][0]))
                                o->value = o->argv[o->at++];
                        return row;
                }
                if (option->value && !o->value) {
                        if (o->at >= o->argc) {
                                (void) verb_usage_error(o->verb, "--%s needs a value: --%s %s", option->name,
                                                        option->name, option->value);
                                return OPTIONS_WRONG;
                        }
                        o->value = o->argv[o->at++];
                }
                return row;
        }
        return unknown_option(o, word);
}

/* Of an option that takes no value; letters are not joined ("-qv"). -1 = there is none such. */
static int row_of_letter(const struct options *o, const char *word)
{
        const struct option *option;
        for (int row = 0; (option = verb_option(o->verb, row)) != NULL; row++)
                if (option->letter != 0 && option->letter == word[1] && word[2] == '\0')
                        return row;
        return -1;
}

int options_next(struct options *o)
{
        o->value = NULL;
        if (o->at >= o->argc)
                return OPTIONS_END;
        const char *word = o->argv[o->at];
        bool is_option = !o->only_operands && word[0] == '-' && word[1] != '\0';
        if (!is_option && o->operands_end_it)
                return OPTIONS_END;
        o->at++;
        if (!is_option) {
                o->value = word;
                return OPTIONS_OPERAND;
        }
        if (strcmp(word, "--") == 0) {
                o->only_operands = true;
                return options_next(o);
        }
        if (strcmp(word, "-h") == 0)
                return OPTIONS_HELP;
        if (word[1] == '-')
                return long_option(o, word);
        int row = row_of_letter(o, word);
        return row >= 0 ? row : unknown_option(o, word);
}

const char *option_name(const struct options *o, int row)
{
        const struct option *option = row >= 0 ? verb_option(o->verb, row) : NULL;
        return option ? option->name : "";
}
