/* SPDX-License-Identifier: Apache-2.0 */
/* `reproduce`: the published runs, done again, held against what was published for them. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "programs/lessor-sim/contest_words.h"
#include "programs/lessor-sim/published.h"
#include "programs/lessor-sim/sim.h"

enum { DATA, ONLY, SEEDS, THREADS, JSON };
const struct option reproduce_options[] = {
        [DATA] = { "data", "DIR", "the openb traces and published_mean.csv, in DIR or DIR/openb", .words = "@files" },
        [ONLY] = { "only", "TRACE", "this trace; may come several times (all that figures were published for)" },
        [SEEDS] = { "seeds", "N|A-B", "how many seeds, or from which to which (42-51)" },
        [THREADS] = { "threads", "N", "how many runs at once (one for each CPU)" },
        [JSON] = { "json", NULL, "print JSON: cells of trace, policy, arrived_pct, mean, published, difference" },
        { 0 },
};

const char reproduce_more[] = "  lessor-sim reproduce --data ~/openb\n"
                              "  lessor-sim reproduce --data ~/openb --only default --seeds 2 --json\n"
                              "\n"
                              "Each trace, each published policy, ten seeds; the mean of what is allocated when tasks "
                              "for 100 % and 130 % of the\n"
                              "GPUs have arrived, beside the published mean. It is met within 0.5 points, for random "
                              "within 1.0. The seeds are\n"
                              "not the authors'. `lessor-sim fetch openb` says where the traces are.\n"
                              "\n"
                              "Exit status: 0 every mean is met, 1 one is not, or data cannot be read, 2 wrong use.";

static const uint32_t held_at[] = { 100, 130 };
enum { HELD = sizeof(held_at) / sizeof(held_at[0]), ONLY_MAX = 64 };

struct cell {
        bool known;
        struct stats ours;
        double published;
};

struct reproduction {
        const char *data;
        const char *only[ONLY_MAX];
        size_t n_only;
        uint64_t first_seed;
        size_t n_seeds;
        unsigned threads;
        bool json;
        char folder[PATH_MAX];
        struct published published;
        struct cell cells[PUBLISHED_TRACES_MAX][PUBLISHED_POLICIES][HELD];
        bool wanted[PUBLISHED_TRACES_MAX];
};

static bool is_met(const struct cell *cell, size_t policy)
{
        return cell->ours.n > 0 && fabs(cell->ours.mean - cell->published) <= published_policies[policy].tolerance;
}

static int path_in(const struct reproduction *r, char path[PATH_MAX], const char *name, const char *end,
                   struct error *err)
{
        int n = snprintf(path, PATH_MAX, "%s/%s%s", r->folder, name, end);
        return n > 0 && n < PATH_MAX ? 0 : error_set(err, ENAMETOOLONG, "the path of %s is too long", name);
}

static int find_folder(struct reproduction *r, struct error *err)
{
        char path[PATH_MAX];

        for (const char *under = "/openb"; under; under = under[0] ? "" : NULL) {
                if (snprintf(r->folder, sizeof(r->folder), "%s%s", r->data, under) >= (int) sizeof(r->folder))
                        return error_set(err, ENAMETOOLONG, "--data is too long");
                int k = path_in(r, path, "published_mean.csv", "", err);
                if (k < 0 || access(path, R_OK) == 0)
                        return k;
        }
        return error_set(err, ENOENT,
                         "there is no published_mean.csv in %s, nor in its folder openb; see `lessor-sim fetch openb`",
                         r->data);
}

static int choose(struct reproduction *r, struct error *err)
{
        for (size_t t = 0; t < r->published.n_traces; t++)
                r->wanted[t] = r->n_only == 0;
        for (size_t i = 0; i < r->n_only; i++) {
                size_t t = 0;
                while (t < r->published.n_traces && strcmp(r->published.traces[t], r->only[i]) != 0)
                        t++;
                if (t == r->published.n_traces)
                        return error_set(err, ENOENT, "nothing was published for a trace \"%s\"", r->only[i]);
                r->wanted[t] = true;
        }
        return 0;
}

static int do_trace(struct reproduction *r, size_t t, struct error *err)
{
        char path[PATH_MAX], words[96];
        struct trace trace = { 0 };
        struct contest contest = { .trace = &trace,
                                   .options = { .inflate_percent = 130 },
                                   .n_policies = PUBLISHED_POLICIES,
                                   .first_seed = r->first_seed,
                                   .n_seeds = r->n_seeds,
                                   .threads = r->threads,
                                   .progress = words };
        int k;

        (void) snprintf(words, sizeof(words), "lessor-sim reproduce: %s, %zu of %zu", r->published.traces[t], t + 1,
                        r->published.n_traces);
        for (size_t i = 0; i < PUBLISHED_POLICIES; i++)
                contest.policies[i] = placement_policy_find(published_policies[i].ours);
        k = path_in(r, path, "openb_node_list_gpu_node", ".csv", err);
        if (k == 0)
                k = trace_read_nodes(&trace, path, err);
        if (k == 0) {
                char name[sizeof("openb_pod_list_") + PUBLISHED_NAME_MAX];
                (void) snprintf(name, sizeof(name), "openb_pod_list_%s", r->published.traces[t]);
                k = path_in(r, path, name, ".csv", err);
        }
        if (k == 0)
                k = trace_read_tasks(&trace, path, err);
        if (k == 0)
                k = contest_run(&contest, err);
        for (size_t i = 0; k == 0 && i < PUBLISHED_POLICIES; i++)
                for (size_t h = 0; h < HELD; h++) {
                        const struct published_mean *mean =
                                published_find(&r->published, r->published.traces[t], i, held_at[h]);
                        if (mean)
                                r->cells[t][i][h] = (struct cell){
                                        .known = true,
                                        .ours = contest_stats(&contest, i, CONTEST_USED_PCT, held_at[h]),
                                        .published = mean->alloc_pct,
                                };
                }
        contest_fini(&contest);
        trace_fini(&trace);
        return k;
}

/* ---- words ---- */

struct verdict {
        size_t cells, met;
        double sum, most; /* of |difference| */
        size_t most_trace, most_policy, most_at;
};

static struct verdict judge(const struct reproduction *r)
{
        struct verdict v = { 0 };

        for (size_t t = 0; t < r->published.n_traces; t++)
                for (size_t i = 0; i < PUBLISHED_POLICIES; i++)
                        for (size_t h = 0; h < HELD; h++) {
                                const struct cell *cell = &r->cells[t][i][h];
                                if (!cell->known)
                                        continue;
                                double off = fabs(cell->ours.mean - cell->published);
                                v.cells++;
                                v.met += is_met(cell, i);
                                v.sum += off;
                                if (off > v.most) {
                                        v.most = off;
                                        v.most_trace = t;
                                        v.most_policy = i;
                                        v.most_at = h;
                                }
                        }
        return v;
}

static void print_table(const struct reproduction *r, const struct verdict *v)
{
        for (size_t h = 0; h < HELD; h++) {
                (void) printf("%s%% of the GPUs that are allocated when tasks for %" PRIu32
                              " %% have arrived: here / published; ! where it is not met\n\n| trace |",
                              h == 0 ? "" : "\n", held_at[h]);
                for (size_t i = 0; i < PUBLISHED_POLICIES; i++)
                        (void) printf(" %s |", published_policies[i].ours);
                (void) printf("\n|---|---|---|---|---|---|---|\n");
                for (size_t t = 0; t < r->published.n_traces; t++) {
                        if (!r->wanted[t])
                                continue;
                        (void) printf("| %s |", r->published.traces[t]);
                        for (size_t i = 0; i < PUBLISHED_POLICIES; i++) {
                                const struct cell *cell = &r->cells[t][i][h];
                                if (cell->known)
                                        (void) printf(" %.2f / %.2f%s |", cell->ours.mean, cell->published,
                                                      is_met(cell, i) ? "" : " !");
                                else
                                        (void) printf(" ? |");
                        }
                        (void) putchar('\n');
                }
        }
        (void) printf("\n%zu of %zu means are met, with seeds %" PRIu64 " to %" PRIu64
                      "; on the average they are %.2f points off, at most %.2f (%s, %s at %" PRIu32 " %%)\n(%s)\n",
                      v->met, v->cells, r->first_seed, r->first_seed + r->n_seeds - 1,
                      v->cells == 0 ? 0.0 : v->sum / (double) v->cells, v->most, r->published.traces[v->most_trace],
                      published_policies[v->most_policy].ours, held_at[v->most_at], contest_seeds_note);
}

static int print_json(const struct reproduction *r, const struct verdict *v)
{
        json_t *cells = json_array();

        for (size_t t = 0; t < r->published.n_traces; t++)
                for (size_t i = 0; i < PUBLISHED_POLICIES; i++)
                        for (size_t h = 0; h < HELD; h++) {
                                const struct cell *cell = &r->cells[t][i][h];
                                if (cell->known)
                                        (void) json_array_append_new(
                                                cells,
                                                json_pack("{s:s s:s s:I s:f s:f s:f s:f s:b}", "trace",
                                                          r->published.traces[t], "policy",
                                                          published_policies[i].theirs, "arrived_pct",
                                                          (json_int_t) held_at[h], "mean", cell->ours.mean, "sd",
                                                          cell->ours.sd, "published", cell->published, "difference",
                                                          cell->ours.mean - cell->published, "met", is_met(cell, i)));
                        }
        json_t *all =
                json_pack("{s:o s:I s:I s:f s:f s:I s:I s:s}", "cells", cells, "n", (json_int_t) v->cells, "met",
                          (json_int_t) v->met, "mean_difference", v->cells == 0 ? 0.0 : v->sum / (double) v->cells,
                          "most_difference", v->most, "first_seed", (json_int_t) r->first_seed, "seeds",
                          (json_int_t) r->n_seeds, "note", contest_seeds_note);
        int k = json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(8));
        (void) putchar('\n');
        json_decref(all);
        return k;
}

static int parse(struct reproduction *r, const struct verb *verb, int argc, char **argv)
{
        struct options o;
        uint64_t n = 0;
        bool good = true;
        int row;

        options_init(&o, verb, argc, argv);
        while ((row = options_next(&o)) != OPTIONS_END) {
                switch (row) {
                case DATA:
                        r->data = o.value;
                        break;
                case ONLY:
                        if (r->n_only < ONLY_MAX)
                                r->only[r->n_only++] = o.value;
                        break;
                case SEEDS:
                        good = sim_seeds(&o, &r->first_seed, &r->n_seeds);
                        break;
                case THREADS:
                        good = sim_number(&o, row, 1, 256, &n);
                        r->threads = (unsigned) n;
                        break;
                case JSON:
                        r->json = true;
                        break;
                case OPTIONS_HELP:
                        return OPTIONS_HELP;
                case OPTIONS_OPERAND:
                        (void) verb_usage_error(verb, "the data are named by --data");
                        return OPTIONS_WRONG;
                default:
                        return OPTIONS_WRONG;
                }
                if (!good)
                        return OPTIONS_WRONG;
        }
        return 0;
}

int sim_reproduce_main(const struct verb *verb, int argc, char **argv)
{
        static struct reproduction r = { .first_seed = 42, .n_seeds = 10 };
        struct error err = { 0 };
        char path[PATH_MAX];
        int k = parse(&r, verb, argc, argv);

        if (k == OPTIONS_HELP)
                return verb_print_help(verb);
        if (k != 0)
                return SIM_EXIT_USAGE;
        if (!r.data)
                return verb_usage_error(verb, "of what? --data DIR");
        k = find_folder(&r, &err);
        if (k == 0)
                k = path_in(&r, path, "published_mean.csv", "", &err);
        if (k == 0)
                k = published_read(&r.published, path, &err);
        if (k == 0)
                k = choose(&r, &err);
        for (size_t t = 0; k == 0 && t < r.published.n_traces; t++)
                if (r.wanted[t])
                        k = do_trace(&r, t, &err);
        if (k < 0) {
                published_fini(&r.published);
                return sim_fail(verb, &err);
        }
        const struct verdict v = judge(&r);
        if (r.json)
                k = print_json(&r, &v);
        else
                print_table(&r, &v);
        published_fini(&r.published);
        return k == 0 && v.cells > 0 && v.met == v.cells ? SIM_EXIT_OK : SIM_EXIT_BAD;
}
