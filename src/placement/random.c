/* SPDX-License-Identifier: Apache-2.0 */
/* [published] Any node that fits, and on it any GPU that does. */
#include "placement/placer.h"

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        (void) placer, (void) node, (void) task;
        return 0;
}

static unsigned gpu(const struct placer *placer, const struct node *node, const struct task *task, uint64_t random)
{
        const uint16_t *left = cluster_left(placer->cluster, node);
        unsigned fitting = 0, i = 0;

        for (unsigned g = 0; g < node->gpus; g++)
                fitting += left[g] >= task->gpu_milli;
        random = (random ^ random >> 31) * UINT64_C(0x9e3779b97f4a7c15);
        for (uint64_t skip = (random >> 32) * fitting >> 32;; i++)
                if (left[i] >= task->gpu_milli && skip-- == 0)
                        return i;
}

const struct placement_policy policy_random = {
        .name = "random",
        .good_at = "a measure for the others",
        .random_node = true,
        .score = score,
        .gpu = gpu,
};
