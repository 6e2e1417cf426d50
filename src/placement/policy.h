/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which node a task goes to, as a figure for each node that it fits: the highest wins, ties end at the first node of the
 * cluster; then which GPU, for a part of one. Whoever wants whole GPUs gets the lowest numbered ones.
 */
#include "placement/cluster.h"

struct placer;

struct placement_policy {
        const char *name;    /* as a person writes it */
        const char *good_at; /* one line */
        bool random_node;    /* any that fits, by chance: score is not asked */
        /* Of a node that @task fits. Depends on the node, the task and the placer's tables alone. Not INT32_MIN. */
        int32_t (*score)(const struct placer *placer, const struct node *node, const struct task *task);
        /* Which GPU for a part of one; some GPU has room. */
        unsigned (*gpu)(const struct placer *placer, const struct node *node, const struct task *task, uint64_t random);
};

extern const struct placement_policy policy_first_fit, policy_best_fit, policy_spread, policy_random, policy_dotprod,
        policy_gpu_packing, policy_gpu_clustering, policy_fgd, policy_priced;

/* All there are, in the order to show them in. */
const struct placement_policy *const *placement_policies(size_t *n);
/* NULL: there is none of that name. */
const struct placement_policy *placement_policy_find(const char *name);

/* GPU rules that several share. */
unsigned gpu_best(const struct placer *placer, const struct node *node, const struct task *task, uint64_t random);

/* Rounded down, also below 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
        return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The constants of the published scores: 128 cores and 8 GPUs, whatever the node has. */
enum { PUBLISHED_CPU_MILLI = 128000, PUBLISHED_GPU_MILLI = 8000 };
