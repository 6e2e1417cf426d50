/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Several policies on one trace, with the same seeds: what the runs of fill.h come to. */
#include "programs/lessor-sim/fill.h"
#include "programs/lessor-sim/stats.h"

enum { CONTEST_POLICIES_MAX = 32, CONTEST_SEEDS_MAX = 1000 };

struct contest {
        const struct trace *trace;
        struct fill_options options;
        const struct placement_policy *policies[CONTEST_POLICIES_MAX];
        size_t n_policies;
        uint64_t first_seed;
        size_t n_seeds;
        unsigned threads;
        const char *progress;        /* of batch.h */
        struct fill_result *results; /* [policy][seed] */
};

enum contest_figure {
        CONTEST_USED_PCT,
        CONTEST_FRAGMENT_PCT,
        CONTEST_FRAGMENT_OF_IDLE_PCT,
};

/* Fills ->results, which contest_fini() frees. */
int contest_run(struct contest *contest, struct error *err);
void contest_fini(struct contest *contest);

static inline const struct fill_result *contest_result(const struct contest *contest, size_t policy, size_t seed)
{
        return &contest->results[policy * contest->n_seeds + seed];
}

/* Over the seeds in which anything arrived at that point. */
struct stats contest_stats(const struct contest *contest, size_t policy, enum contest_figure figure, size_t point);
/* By how much @policy has more allocated than @other, seed by seed. */
struct stats contest_above(const struct contest *contest, size_t policy, size_t other, size_t point);
/* The number of a policy of the contest by its name; n_policies: it takes no part. */
size_t contest_find(const struct contest *contest, const char *name);
