/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worst fit: most whole GPUs, then most GPU, then most CPU in whole cores (4,095 at most count); on it the GPU with most left.
 */
#include "placement/placer.h"

enum { CORES_MAX = 4095, CORE_MILLI = 1000, FREE_BITS = 14, CORE_BITS = 12 };

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        int32_t cores = node->cpu_milli / CORE_MILLI;

        (void) placer, (void) task;
        cores = cores < CORES_MAX ? cores : CORES_MAX;
        return ((int32_t) node->full << FREE_BITS | node->free_milli) << CORE_BITS | cores;
}

static unsigned gpu(const struct placer *placer, const struct node *node, const struct task *task, uint64_t random)
{
        const uint16_t *left = cluster_left(placer->cluster, node);
        unsigned found = 0;

        (void) task, (void) random;
        for (unsigned i = 1; i < node->gpus; i++)
                if (left[i] > left[found])
                        found = i;
        return found;
}

const struct placement_policy policy_spread = {
        .name = "spread",
        .good_at =
                "evenness: work shares as little as can be, and one node takes little along when it dies; strands GPUs",
        .score = score,
        .gpu = gpu,
};
