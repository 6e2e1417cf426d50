/* SPDX-License-Identifier: Apache-2.0 */
/*
 * [published] The smallest dot product of what the node has free and what the task wants, as parts of 128 cores and 8 GPUs:
 * floor(100 (1 - (cpu t.cpu / MC^2 + free q / MG^2) / 2)).
 */
#include "placement/placer.h"

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        int64_t square = INT64_C(1) * PUBLISHED_CPU_MILLI * PUBLISHED_CPU_MILLI;
        int64_t over = PUBLISHED_CPU_MILLI / PUBLISHED_GPU_MILLI;
        int64_t product =
                (int64_t) node->cpu_milli * task->cpu_milli + over * over * node->free_milli * task_milli(task);

        (void) placer;
        return (int32_t) floor_div(100 * square - 50 * product, square);
}

const struct placement_policy policy_dotprod = {
        .name = "dotprod",
        .good_at = "little: a published rule to compare with",
        .score = score,
        .gpu = gpu_best,
};
