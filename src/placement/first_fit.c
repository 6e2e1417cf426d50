/* SPDX-License-Identifier: Apache-2.0 */
/* The first node in order, and on it the first GPU. */
#include "placement/placer.h"

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        (void) placer, (void) node, (void) task;
        return 0;
}

static unsigned gpu(const struct placer *placer, const struct node *node, const struct task *task, uint64_t random)
{
        const uint16_t *left = cluster_left(placer->cluster, node);
        unsigned i = 0;

        (void) random;
        while (left[i] < task->gpu_milli)
                i++;
        return i;
}

const struct placement_policy policy_first_fit = {
        .name = "first-fit",
        .good_at = "keeping the nodes at the end of the order empty; one that is easy to foresee",
        .score = score,
        .gpu = gpu,
};
