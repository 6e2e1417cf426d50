/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/contest.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "programs/lessor-sim/batch.h"

static int one_run(void *context, size_t piece, struct error *err)
{
        struct contest *c = context;
        size_t policy = piece / c->n_seeds, seed = piece % c->n_seeds;

        return fill_run(c->trace, &c->options, c->policies[policy], c->first_seed + seed, &c->results[piece], err);
}

int contest_run(struct contest *contest, struct error *err)
{
        size_t n = contest->n_policies * contest->n_seeds;
        const struct batch batch = {
                .n = n, .threads = contest->threads, .work = one_run, .context = contest, .progress = contest->progress
        };

        contest->results = calloc(n, sizeof(*contest->results));
        if (!contest->results)
                return error_errno(err, ENOMEM, "%zu runs", n);
        return batch_run(&batch, err);
}

void contest_fini(struct contest *contest)
{
        free(contest->results);
        contest->results = NULL;
}

static double figure_of(const struct fill_point *point, enum contest_figure figure)
{
        switch (figure) {
        case CONTEST_USED_PCT:
                return point->used_pct;
        case CONTEST_FRAGMENT_PCT:
                return point->fragment_pct;
        case CONTEST_FRAGMENT_OF_IDLE_PCT:
        default:
                return point->fragment_of_idle_pct;
        }
}

struct stats contest_stats(const struct contest *contest, size_t policy, enum contest_figure figure, size_t point)
{
        double values[CONTEST_SEEDS_MAX];
        size_t n = 0;

        for (size_t seed = 0; seed < contest->n_seeds; seed++) {
                const struct fill_point *p = &contest_result(contest, policy, seed)->points[point];
                if (p->arrivals > 0)
                        values[n++] = figure_of(p, figure);
        }
        return stats_of(values, n);
}

struct stats contest_above(const struct contest *contest, size_t policy, size_t other, size_t point)
{
        double values[CONTEST_SEEDS_MAX];
        size_t n = 0;

        for (size_t seed = 0; seed < contest->n_seeds; seed++) {
                const struct fill_point *p = &contest_result(contest, policy, seed)->points[point];
                const struct fill_point *q = &contest_result(contest, other, seed)->points[point];
                if (p->arrivals > 0 && q->arrivals > 0)
                        values[n++] = p->used_pct - q->used_pct;
        }
        return stats_of(values, n);
}

size_t contest_find(const struct contest *contest, const char *name)
{
        size_t i = 0;

        while (i < contest->n_policies && strcmp(contest->policies[i]->name, name) != 0)
                i++;
        return i;
}
