/* SPDX-License-Identifier: Apache-2.0 */
/* `run`: the published experiment, several policies side by side; `policies`: which there are. */
#include <inttypes.h>
#include <stdio.h>
#include <errno.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessor-sim/report.h"
#include "programs/lessor-sim/sim.h"

enum { NODES, TRACE, POLICY, AGAINST, SEEDS, POINTS, INFLATE, THREADS, HTML, CSV, JSON };
const struct option run_options[] = {
        [NODES] = { "nodes", "FILE", "nodes: sn,cpu_milli,memory_mib,gpu,model", .words = "@files" },
        [TRACE] = { "trace", "FILE", "tasks: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,…]",
                    .words = "@files" },
        [POLICY] = { "policy", "NAME", "one to be tried; may come several times (all there are)" },
        [AGAINST] = { "against", "NAME", "the one that others are held against (fgd, where it takes part)" },
        [SEEDS] = { "seeds", "N|A-B", "how many seeds, or from which to which (10)" },
        [POINTS] = { "points", "K,…", "where to look: when tasks for K % of the GPUs have arrived (90,100,130)" },
        [INFLATE] = { "inflate", "PERCENT", "add or remove tasks until they want so much of the GPUs (130)" },
        [THREADS] = { "threads", "N", "how many runs at once (one for each CPU)" },
        [HTML] = { "html", "FILE", "write a page of plots, too", .words = "@files" },
        [CSV] = { "csv", NULL, "print a table of every seed and point" },
        [JSON] = { "json", NULL, "print JSON" },
        { 0 },
};

const char run_more[] =
        "  lessor-sim run --nodes nodes.csv --trace tasks.csv\n"
        "  lessor-sim run --nodes nodes.csv --trace tasks.csv --policy fgd --policy best-fit --seeds 1-30 --json\n"
        "\n"
        "Tasks arrive one by one in an order drawn from the seed; each is placed at once or fails, and none leaves.\n"
        "A seed gives every policy the same arrivals, so policies are compared seed by seed: mean of the differences,\n"
        "and where it lies with 95 % confidence. The same bytes are printed whatever the number of threads.\n"
        "\n"
        "Exit status: 0 done, 1 a bad trace, 2 wrong use.";

const char policies_more[] = "  lessor-sim policies\n"
                             "\n"
                             "Exit status: 0 done, 2 wrong use.";

int sim_policies_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        size_t n = 0;
        const struct placement_policy *const *policies = placement_policies(&n);

        options_init(&o, verb, argc, argv);
        int what = options_next(&o);
        if (what == OPTIONS_HELP)
                return verb_print_help(verb);
        if (what != OPTIONS_END)
                return what == OPTIONS_WRONG ? SIM_EXIT_USAGE : verb_usage_error(verb, "it takes no words");
        for (size_t i = 0; i < n; i++)
                (void) printf("%-16s %s\n", policies[i]->name, policies[i]->good_at);
        return SIM_EXIT_OK;
}

const struct placement_policy *sim_policy(const struct options *o)
{
        enum { NAMES_MAX = 32, SHOWN_MAX = 64 };
        const char *names[NAMES_MAX + 1] = { 0 };
        char shown[SHOWN_MAX];
        size_t n = 0;
        const struct placement_policy *const *policies = placement_policies(&n);
        const struct placement_policy *found = placement_policy_find(o->value);

        if (found)
                return found;
        for (size_t i = 0; i < n && i < NAMES_MAX; i++)
                names[i] = policies[i]->name;
        const char *near = nearest_word(o->value, names);
        (void) text_escape(o->value, strlen(o->value), shown, sizeof(shown));
        if (near)
                (void) verb_usage_error(o->verb, "there is no policy \"%s\"; did you mean %s?", shown, near);
        else
                (void) verb_usage_error(o->verb, "there is no policy \"%s\"; `lessor-sim policies` lists them", shown);
        return NULL;
}

bool sim_seeds(const struct options *o, uint64_t *ret_first, size_t *ret_n)
{
        char from[24];
        const char *dash = strchr(o->value, '-');
        struct error err = { 0 };
        uint64_t first = 1, last = 0;
        int r;

        if (dash && dash != o->value) {
                (void) snprintf(from, sizeof(from), "%.*s", (int) (dash - o->value), o->value);
                r = parse_u64("--seeds, the first", from, 0, UINT32_MAX, &first, &err);
                if (r == 0)
                        r = parse_u64("--seeds, the last", dash + 1, first, first + CONTEST_SEEDS_MAX - 1, &last, &err);
        } else {
                r = parse_u64("--seeds", o->value, 1, CONTEST_SEEDS_MAX, &last, &err);
        }
        if (r < 0) {
                (void) verb_usage_error(o->verb, "%s", err.msg);
                return false;
        }
        *ret_first = first;
        *ret_n = (size_t) (last - first + 1);
        return true;
}

bool sim_points(const struct options *o, struct shown_points *points)
{
        struct error err = { 0 };
        const char *at = o->value;

        points->n = 0;
        for (;;) {
                char word[16];
                uint64_t pct = 0;
                size_t n = strcspn(at, ",");
                (void) snprintf(word, sizeof(word), "%.*s", (int) (n < sizeof(word) ? n : sizeof(word)), at);
                if (points->n == sizeof(points->pct) / sizeof(points->pct[0]))
                        (void) error_set(&err, EINVAL, "--points: at most 16 of them");
                else if (parse_u64("--points", word, 0, FILL_PERCENT_MAX, &pct, &err) == 0)
                        points->pct[points->n++] = (uint32_t) pct;
                if (err.code != 0) {
                        (void) verb_usage_error(o->verb, "%s", err.msg);
                        return false;
                }
                if (at[n] == '\0')
                        return true;
                at += n + 1;
        }
}

struct asked {
        struct contest contest;
        struct shown_points points;
        const char *nodes, *trace, *html_path;
        const struct placement_policy *against;
        bool csv, json;
};

static int parse(struct asked *a, const struct verb *verb, int argc, char **argv)
{
        const struct placement_policy *policy;
        struct contest *c = &a->contest;
        struct options o;
        uint64_t n = 0;
        bool good = true;
        int row;

        options_init(&o, verb, argc, argv);
        while ((row = options_next(&o)) != OPTIONS_END) {
                switch (row) {
                case NODES:
                        a->nodes = o.value;
                        break;
                case TRACE:
                        a->trace = o.value;
                        break;
                case POLICY:
                        policy = sim_policy(&o);
                        good = policy != NULL;
                        if (policy && contest_find(c, policy->name) == c->n_policies &&
                            c->n_policies < CONTEST_POLICIES_MAX)
                                c->policies[c->n_policies++] = policy;
                        break;
                case AGAINST:
                        a->against = sim_policy(&o);
                        good = a->against != NULL;
                        break;
                case SEEDS:
                        good = sim_seeds(&o, &c->first_seed, &c->n_seeds);
                        break;
                case POINTS:
                        good = sim_points(&o, &a->points);
                        break;
                case INFLATE:
                        good = sim_number(&o, row, 1, FILL_PERCENT_MAX, &n);
                        c->options.inflate_percent = (uint32_t) n;
                        break;
                case THREADS:
                        good = sim_number(&o, row, 1, 256, &n);
                        c->threads = (unsigned) n;
                        break;
                case HTML:
                        a->html_path = o.value;
                        break;
                case CSV:
                        a->csv = true;
                        break;
                case JSON:
                        a->json = true;
                        break;
                case OPTIONS_HELP:
                        return OPTIONS_HELP;
                case OPTIONS_OPERAND:
                        (void) verb_usage_error(verb, "files are named by --nodes and --trace");
                        return OPTIONS_WRONG;
                default:
                        return OPTIONS_WRONG;
                }
                if (!good)
                        return OPTIONS_WRONG;
        }
        return 0;
}

/* All there are, where none was named; and whom they are held against. */
static size_t settle(struct asked *a)
{
        struct contest *c = &a->contest;
        size_t n = 0;
        const struct placement_policy *const *all = placement_policies(&n);

        if (c->n_policies == 0)
                for (size_t i = 0; i < n && i < CONTEST_POLICIES_MAX; i++)
                        c->policies[c->n_policies++] = all[i];
        return contest_find(c, a->against ? a->against->name : "fgd");
}

static int print(const struct asked *a, const struct verb *verb, size_t base)
{
        struct error err = { 0 };

        if (a->html_path && report_contest(a->html_path, &a->contest, &a->points, base, &err) < 0)
                return sim_fail(verb, &err);
        if (a->json) {
                json_t *all = contest_json(&a->contest, &a->points, base);
                int r = json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(8));
                (void) putchar('\n');
                json_decref(all);
                return r == 0 ? SIM_EXIT_OK : SIM_EXIT_BAD;
        }
        if (a->csv)
                contest_csv(stdout, &a->contest);
        else
                contest_print(stdout, &a->contest, &a->points, base);
        return SIM_EXIT_OK;
}

int sim_run_main(const struct verb *verb, int argc, char **argv)
{
        struct trace trace = { 0 };
        struct error err = { 0 };
        struct asked a = { .contest = { .trace = &trace,
                                        .options = { .inflate_percent = 130 },
                                        .first_seed = 1,
                                        .n_seeds = 10,
                                        .progress = "lessor-sim run" },
                           .points = { .pct = { 90, 100, 130 }, .n = 3 } };
        int r = parse(&a, verb, argc, argv);

        if (r == OPTIONS_HELP)
                return verb_print_help(verb);
        if (r != 0)
                return SIM_EXIT_USAGE;
        if (!a.nodes || !a.trace)
                return verb_usage_error(verb, "on what? --nodes FILE --trace FILE (lessor-sim synth makes some up)");
        if (a.csv && a.json)
                return verb_usage_error(verb, "--csv or --json, not both");
        size_t base = settle(&a);
        if (a.against && base == a.contest.n_policies)
                return verb_usage_error(verb, "--against %s: it takes no part; name it by --policy too",
                                        a.against->name);
        r = trace_read_nodes(&trace, a.nodes, &err);
        if (r == 0)
                r = trace_read_tasks(&trace, a.trace, &err);
        if (r == 0)
                r = contest_run(&a.contest, &err);
        r = r < 0 ? sim_fail(verb, &err) : print(&a, verb, base);
        contest_fini(&a.contest);
        trace_fini(&trace);
        return r;
}
