/* SPDX-License-Identifier: Apache-2.0 */
/* `synth`: a made-up trace, on standard output. */
#include <stdio.h>
#include <string.h>
#include "programs/lessor-sim/sim.h"
#include "programs/lessor-sim/synth.h"

enum { SEED, COUNT_OF, NAMED, GAP };
const struct option synth_options[] = {
        [SEED] = { "seed", "N", "which of many (1)" },
        [COUNT_OF] = { "count", "N", "how many rows (nodes: 1213, tasks: 8152, jobs: 82247)" },
        [NAMED] = { "named", "PERCENT", "how many of the tasks with GPUs name the models they may have (33)" },
        [GAP] = { "gap", "SECONDS", "mean time between two arrivals (114)" },
        { 0 },
};

const char synth_more[] =
        "  lessor-sim synth nodes --count 100 > nodes.csv\n"
        "  lessor-sim synth tasks --count 700 > tasks.csv\n"
        "  lessor-sim synth jobs --seed 7 > jobs.csv\n"
        "\n"
        "nodes and tasks have the columns of the openb trace, jobs those of the philly trace, and about\n"
        "their proportions: lessor-sim(1) states the distributions. The same seed makes the same bytes.\n"
        "\n"
        "Exit status: 0 done, 1 it could not be written, 2 wrong use.";

static const struct kind {
        const char *name;
        uint64_t count;
        void (*make)(FILE *to, const struct synth_options *o);
} kinds[] = { { "nodes", 1213, synth_nodes }, { "tasks", 8152, synth_tasks }, { "jobs", 82247, synth_jobs }, { 0 } };

static const struct kind *find_kind(const char *name)
{
        for (const struct kind *kind = kinds; kind->name; kind++)
                if (strcmp(kind->name, name) == 0)
                        return kind;
        return NULL;
}

int sim_synth_main(const struct verb *verb, int argc, char **argv)
{
        struct synth_options s = { .seed = 1, .named_percent = 33, .gap_s = 114 };
        const struct kind *kind = NULL;
        struct options o;
        uint64_t n = 0;
        bool good = true;
        int row;

        options_init(&o, verb, argc, argv);
        while ((row = options_next(&o)) != OPTIONS_END) {
                switch (row) {
                case SEED:
                        good = sim_number(&o, row, 0, UINT64_MAX, &s.seed);
                        break;
                case COUNT_OF:
                        good = sim_number(&o, row, 1, UINT64_C(1) << 40, &s.count);
                        break;
                case NAMED:
                        good = sim_number(&o, row, 0, 100, &n);
                        s.named_percent = (uint32_t) n;
                        break;
                case GAP:
                        good = sim_number(&o, row, 0, 1000000, &n);
                        s.gap_s = (uint32_t) n;
                        break;
                case OPTIONS_HELP:
                        return verb_print_help(verb);
                case OPTIONS_OPERAND:
                        if (kind)
                                return verb_usage_error(verb, "one at a time: nodes, tasks or jobs");
                        kind = find_kind(o.value);
                        good = kind != NULL;
                        if (!good)
                                (void) verb_usage_error(verb, "what it makes is nodes, tasks or jobs");
                        break;
                default:
                        return SIM_EXIT_USAGE;
                }
                if (!good)
                        return SIM_EXIT_USAGE;
        }
        if (!kind)
                return verb_usage_error(verb, "which? nodes, tasks or jobs");
        if (s.count == 0)
                s.count = kind->count;
        kind->make(stdout, &s);
        return SIM_EXIT_OK;
}
