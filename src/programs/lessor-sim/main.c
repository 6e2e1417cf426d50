/* SPDX-License-Identifier: Apache-2.0 */
/* lessor-sim: judges a policy of placement on a trace, before anybody lives with it. One file a verb; here the choice between them. */
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessor-sim/sim.h"

enum { SHOWN_MAX = 64, VERBS_MAX = 16 };

const char verb_program[] = "lessor-sim";
const struct option no_options[] = { { 0 } };

const struct verb verbs[] = {
        { "run", "--nodes FILE --trace FILE [OPTION]…", "fill a cluster by several policies and compare them",
          run_options, run_more, false, sim_run_main },
        { "replay", "--jobs FILE|--trace FILE --nodes FILE|--cluster NxG [OPTION]…",
          "play a trace through time: waits, gangs, failures", replay_options, replay_more, false, sim_replay_main },
        { "reproduce", "--data DIR [OPTION]…", "the published runs again, beside the published figures",
          reproduce_options, reproduce_more, false, sim_reproduce_main },
        { "policies", "", "which policies there are, and what each is good at", no_options, policies_more, false,
          sim_policies_main },
        { "synth", "nodes|tasks|jobs [OPTION]…", "make up a trace, for who has none", synth_options, synth_more, false,
          sim_synth_main, .operands = "nodes|tasks|jobs" },
        { "fetch", "[--into DIR] openb", "where the published trace is; git brings it", fetch_options, fetch_more,
          false, sim_fetch_main, .operands = "openb" },
        { "check", "[--nodes FILE [--trace FILE]] [--jobs FILE] [--json]", "is this trace good, and what is in it?",
          check_options, check_more, false, sim_check_main },
        { "completion", "bash|zsh", "a script that completes these words in a shell", no_options, sim_completion_more,
          false, sim_completion_main, .operands = "bash|zsh" },
        { "help", "[VERB]", "this, or the help of a verb", no_options, NULL, false, sim_help_main,
          .operands = "@verbs" },
        { "version", "", "print the version", no_options, NULL, false, sim_version_main },
        { 0 },
};

int sim_fail(const struct verb *verb, const struct error *err)
{
        (void) fprintf(stderr, "%s %s: %s\n", verb_program, verb->name, err->msg);
        return SIM_EXIT_BAD;
}

bool sim_number(const struct options *o, int row, uint64_t min, uint64_t max, uint64_t *ret)
{
        char what[SHOWN_MAX];
        struct error err = { 0 };

        (void) snprintf(what, sizeof(what), "--%s", option_name(o, row));
        if (parse_u64(what, o->value, min, max, ret, &err) == 0)
                return true;
        (void) verb_usage_error(o->verb, "%s", err.msg);
        return false;
}

static void print_verbs(FILE *to)
{
        (void) fputs("lessor-sim - judge a policy of placement on a trace, before anybody lives with it\n\n"
                     "Verbs (each has --help):\n",
                     to);
        for (const struct verb *verb = verbs; verb->name; verb++)
                (void) fprintf(to, "  %-10s %s\n", verb->name, verb->brief);
        (void) fputs("\nExit status: 0 done · 1 a bad trace, or what was to be shown is not so · 2 wrong use.\n", to);
}

static int unknown_verb(const char *word)
{
        const char *names[VERBS_MAX + 1] = { 0 };
        char shown[SHOWN_MAX];
        size_t n = 0;

        for (const struct verb *verb = verbs; verb->name && n < VERBS_MAX; verb++)
                names[n++] = verb->name;
        const char *near = nearest_word(word, names);
        (void) fprintf(stderr, "lessor-sim: there is no verb \"%s\".",
                       text_escape(word, strlen(word), shown, sizeof(shown)));
        if (near)
                (void) fprintf(stderr, " Did you mean `lessor-sim %s`?", near);
        (void) fprintf(stderr, "\n`lessor-sim help` lists the verbs.\n");
        return SIM_EXIT_USAGE;
}

int sim_help_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;

        options_init(&o, verb, argc, argv);
        int what = options_next(&o);
        if (what == OPTIONS_HELP)
                return verb_print_help(verb);
        if (what == OPTIONS_WRONG)
                return SIM_EXIT_USAGE;
        if (what == OPTIONS_END) {
                print_verbs(stdout);
                return SIM_EXIT_OK;
        }
        const struct verb *about = verb_find(verbs, o.value);
        return about ? verb_print_help(about) : unknown_verb(o.value);
}

int sim_version_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;

        options_init(&o, verb, argc, argv);
        int what = options_next(&o);
        if (what == OPTIONS_HELP)
                return verb_print_help(verb);
        if (what != OPTIONS_END)
                return what == OPTIONS_WRONG ? SIM_EXIT_USAGE : verb_usage_error(verb, "it takes no words");
        (void) puts("lessor-sim " LESSOR_VERSION);
        return SIM_EXIT_OK;
}

int main(int argc, char **argv)
{
        if (argc < 2) {
                print_verbs(stdout);
                return SIM_EXIT_OK;
        }
        const char *word = argv[1];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
                word = "help";
        if (strcmp(word, "--version") == 0)
                word = "version";
        const struct verb *verb = verb_find(verbs, word);
        if (!verb)
                return unknown_verb(word);
        int code = verb->main(verb, argc - 1, argv + 1);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                (void) fprintf(stderr, "lessor-sim: writing to standard output failed\n");
                return code == 0 ? SIM_EXIT_BAD : code;
        }
        return code;
}
