/* SPDX-License-Identifier: Apache-2.0 */
/*
 * [published] The least CPU and GPU left over, as parts of 128 cores and 8 GPUs, half each:
 * floor(100 (1 - (cpu - t.cpu) / 2 MC - (free - q) / 2 MG)).
 */
#include "placement/placer.h"

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        int64_t cpu = node->cpu_milli - task->cpu_milli, gpu = node->free_milli - task_milli(task);
        int64_t over = PUBLISHED_CPU_MILLI / PUBLISHED_GPU_MILLI;

        (void) placer;
        return (int32_t) floor_div(100 * INT64_C(128000) - 50 * (cpu + over * gpu), PUBLISHED_CPU_MILLI);
}

const struct placement_policy policy_best_fit = {
        .name = "best-fit",
        .good_at = "leaving large gaps large, where tasks want much of one thing",
        .score = score,
        .gpu = gpu_best,
};
