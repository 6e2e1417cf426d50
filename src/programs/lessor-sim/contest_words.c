/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/contest_words.h"
#include <inttypes.h>
#include <math.h>

const char contest_seeds_note[] =
        "these are not the seeds of the published runs, whose random numbers are another program's: "
        "means are to be compared, not runs";

static void print_above(FILE *to, const struct contest *c, size_t policy, size_t base, size_t point)
{
        struct stats above = contest_above(c, policy, base, point);
        double half = stats_half_width(&above);

        if (base >= c->n_policies || policy == base)
                (void) fprintf(to, "  %22s", "");
        else if (isinf(half))
                (void) fprintf(to, "  %+6.2f (one seed)     ", above.mean);
        else
                (void) fprintf(to, "  %+6.2f [%+6.2f %+6.2f]", above.mean, above.mean - half, above.mean + half);
}

static void print_point(FILE *to, const struct contest *c, size_t base, size_t point)
{
        (void) fprintf(to, "\nwhen tasks for %zu %% of the GPUs have arrived\n", point);
        (void) fprintf(to, "  %-16s %10s %6s  %-22s %10s %9s\n", "policy", "allocated", "sd",
                       base < c->n_policies ? "above it, 95 % [from to]" : "", "fragment", "of idle");
        for (size_t i = 0; i < c->n_policies; i++) {
                struct stats used = contest_stats(c, i, CONTEST_USED_PCT, point);
                struct stats fragment = contest_stats(c, i, CONTEST_FRAGMENT_PCT, point);
                struct stats of_idle = contest_stats(c, i, CONTEST_FRAGMENT_OF_IDLE_PCT, point);
                if (used.n == 0) {
                        (void) fprintf(to, "  %-16s so much never arrived\n", c->policies[i]->name);
                        continue;
                }
                (void) fprintf(to, "  %-16s %8.2f %% %6.2f", c->policies[i]->name, used.mean, used.sd);
                print_above(to, c, i, base, point);
                (void) fprintf(to, " %8.2f %% %7.2f %%\n", fragment.mean, of_idle.mean);
        }
}

/* What is left at the end, means over the seeds. */
static void print_end(FILE *to, const struct contest *c)
{
        (void) fprintf(to, "\nat the end: free GPUs; of them on nodes with fewer than so many whole ones free; nodes "
                           "in part used\n");
        (void) fprintf(to, "  %-16s %8s", "policy", "free");
        for (size_t k = 0; k < FILL_STRANDED_SIZES; k++)
                (void) fprintf(to, "      <%" PRIu32, fill_stranded_gpus[k]);
        (void) fprintf(to, " %9s %9s\n", "nodes", "failed");
        for (size_t i = 0; i < c->n_policies; i++) {
                double free_gpus = 0, nodes = 0, failed = 0, stranded[FILL_STRANDED_SIZES] = { 0 };
                for (size_t seed = 0; seed < c->n_seeds; seed++) {
                        const struct fill_result *r = contest_result(c, i, seed);
                        free_gpus += (double) r->free_milli / MILLI_PER_GPU / (double) c->n_seeds;
                        nodes += (double) r->partly_used_nodes / (double) c->n_seeds;
                        failed += (double) r->failed / (double) c->n_seeds;
                        for (size_t k = 0; k < FILL_STRANDED_SIZES; k++)
                                stranded[k] += (double) r->stranded_milli[k] / MILLI_PER_GPU / (double) c->n_seeds;
                }
                (void) fprintf(to, "  %-16s %8.1f", c->policies[i]->name, free_gpus);
                for (size_t k = 0; k < FILL_STRANDED_SIZES; k++)
                        (void) fprintf(to, " %7.1f", stranded[k]);
                (void) fprintf(to, " %9.1f %9.1f\n", nodes, failed);
        }
}

void contest_print(FILE *to, const struct contest *c, const struct shown_points *points, size_t base)
{
        (void) fprintf(to, "%zu nodes with %.0f GPUs, %zu tasks; seeds %" PRIu64 " to %" PRIu64 "\n", c->trace->n_nodes,
                       (double) c->trace->capacity_milli / MILLI_PER_GPU, c->trace->n_tasks, c->first_seed,
                       c->first_seed + c->n_seeds - 1);
        (void) fprintf(to, "(%s)\n", contest_seeds_note);
        if (base < c->n_policies)
                (void) fprintf(to, "\"it\" is %s: differences seed by seed, in points\n", c->policies[base]->name);
        for (size_t i = 0; i < points->n; i++)
                print_point(to, c, base, points->pct[i]);
        print_end(to, c);
}

/* ---- JSON ---- */

static json_t *stats_json(const struct stats *s)
{
        return json_pack("{s:f s:f s:f s:f}", "mean", s->mean, "sd", s->sd, "min", s->least, "max", s->most);
}

static json_t *above_json(const struct contest *c, size_t policy, size_t base, size_t point)
{
        struct stats above = contest_above(c, policy, base, point);
        double half = stats_half_width(&above);

        if (above.n < 2)
                return json_pack("{s:s s:f s:n s:n}", "policy", c->policies[base]->name, "mean", above.mean, "low",
                                 "high");
        return json_pack("{s:s s:f s:f s:f}", "policy", c->policies[base]->name, "mean", above.mean, "low",
                         above.mean - half, "high", above.mean + half);
}

static json_t *point_json(const struct contest *c, size_t policy, size_t base, size_t point)
{
        struct stats used = contest_stats(c, policy, CONTEST_USED_PCT, point);
        struct stats fragment = contest_stats(c, policy, CONTEST_FRAGMENT_PCT, point);
        struct stats of_idle = contest_stats(c, policy, CONTEST_FRAGMENT_OF_IDLE_PCT, point);
        json_t *all = json_pack("{s:I s:I}", "arrived_pct", (json_int_t) point, "n", (json_int_t) used.n);

        if (used.n == 0)
                return all;
        (void) json_object_set_new(all, "alloc_pct", stats_json(&used));
        (void) json_object_set_new(all, "unallocated_pct", json_real(100.0 - used.mean));
        (void) json_object_set_new(all, "frag_pct_of_capacity", stats_json(&fragment));
        (void) json_object_set_new(all, "frag_pct_of_idle", stats_json(&of_idle));
        if (base < c->n_policies && base != policy)
                (void) json_object_set_new(all, "above", above_json(c, policy, base, point));
        return all;
}

static json_t *end_json(const struct contest *c, size_t policy)
{
        json_t *runs = json_array();

        for (size_t seed = 0; seed < c->n_seeds; seed++) {
                const struct fill_result *r = contest_result(c, policy, seed);
                json_t *stranded = json_object();
                for (size_t k = 0; k < FILL_STRANDED_SIZES; k++) {
                        char name[16];
                        (void) snprintf(name, sizeof(name), "%" PRIu32, fill_stranded_gpus[k]);
                        (void) json_object_set_new(stranded, name, json_integer(r->stranded_milli[k]));
                }
                (void) json_array_append_new(
                        runs, json_pack("{s:I s:I s:I s:I s:o s:I}", "seed", (json_int_t) (c->first_seed + seed),
                                        "placed", (json_int_t) r->placed, "failed", (json_int_t) r->failed,
                                        "free_milli", (json_int_t) r->free_milli, "stranded_milli", stranded,
                                        "partly_used_nodes", (json_int_t) r->partly_used_nodes));
        }
        return runs;
}

json_t *contest_json(const struct contest *c, const struct shown_points *points, size_t base)
{
        json_t *policies = json_array();

        for (size_t i = 0; i < c->n_policies; i++) {
                json_t *shown = json_array();
                for (size_t k = 0; k < points->n; k++)
                        (void) json_array_append_new(shown, point_json(c, i, base, points->pct[k]));
                (void) json_array_append_new(policies, json_pack("{s:s s:o s:o}", "name", c->policies[i]->name,
                                                                 "points", shown, "runs", end_json(c, i)));
        }
        return json_pack("{s:I s:I s:I s:I s:I s:I s:s s:o}", "nodes", (json_int_t) c->trace->n_nodes, "capacity_milli",
                         (json_int_t) c->trace->capacity_milli, "tasks", (json_int_t) c->trace->n_tasks,
                         "inflate_percent", (json_int_t) c->options.inflate_percent, "first_seed",
                         (json_int_t) c->first_seed, "seeds", (json_int_t) c->n_seeds, "note", contest_seeds_note,
                         "policies", policies);
}

void contest_csv(FILE *to, const struct contest *c)
{
        (void) fputs("policy,seed,arrived_pct,alloc_pct,frag_pct_of_capacity,frag_pct_of_idle\n", to);
        for (size_t i = 0; i < c->n_policies; i++)
                for (size_t seed = 0; seed < c->n_seeds; seed++)
                        for (size_t k = 0; k < FILL_POINTS; k++) {
                                const struct fill_point *p = &contest_result(c, i, seed)->points[k];
                                if (p->arrivals > 0)
                                        (void) fprintf(to, "%s,%" PRIu64 ",%zu,%.4f,%.4f,%.4f\n", c->policies[i]->name,
                                                       c->first_seed + seed, k, p->used_pct, p->fragment_pct,
                                                       p->fragment_of_idle_pct);
                        }
}
