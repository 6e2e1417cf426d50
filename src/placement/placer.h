/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A policy at work on a cluster: what it knows of the past, and what it keeps so that a decision asks only nodes that changed.
 * All in memory of the caller, taken once. Chance is an input. The same cluster, past, tasks and chance give the same
 * placements; several placers may look at one cluster.
 */
#include "placement/fragment.h"
#include "placement/leaders.h"
#include "placement/policy.h"
#include "placement/prices.h"
#include "placement/shapes.h"

struct placer {
        const struct placement_policy *policy;
        struct cluster *cluster;
        struct shapes shapes;
        struct fragment fragment;
        struct fragment_sum sum;
        struct prices prices;
        struct leaders leaders;
};

enum { PLACER_SHAPES = 512 }; /* kept by default: 4 bytes for each node and shape */

/* Memory for placer_init, at most. @shapes_max: of leaders_init. */
size_t placer_bytes(const struct cluster *cluster, size_t n_past, uint32_t shapes_max);
/* @past: the tasks by which typical ones are known (n_past ≥ 0). 0; -EINVAL: a task is not one; -ENOMEM. */
int placer_init(struct placer *placer, const struct placement_policy *policy, struct cluster *cluster,
                const struct task *past, size_t n_past, uint32_t shapes_max, void *memory, size_t bytes,
                struct error *err);

/* Where @task would go; changes nothing. @random: anything, of which policies with chance take theirs. False: nowhere. */
bool placer_decide(struct placer *placer, const struct task *task, uint64_t random, struct placement *where);
/* And takes it. Given back by cluster_give(). */
bool placer_place(struct placer *placer, const struct task *task, uint64_t random, struct placement *where);
/* Which GPUs of a node that it fits. */
uint32_t placer_gpus(const struct placer *placer, uint32_t node, const struct task *task, uint64_t random);

/* F of the cluster in milli-GPU, and as milli-GPU × placer->fragment.total, exact. */
double placer_fragment_milli(struct placer *placer);
int64_t placer_fragment(struct placer *placer);
