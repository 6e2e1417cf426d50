/* SPDX-License-Identifier: Apache-2.0 */
/* [published] GPUs in use before idle ones, nodes in use before idle ones, small idle nodes before large ones. */
#include "placement/placer.h"

static int32_t at_least(int32_t a, int32_t b)
{
        return a > b ? a : b;
}

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        const uint16_t *left = cluster_left(placer->cluster, node);

        if (task->gpus == 0)
                return 0;
        if (node->full == node->gpus)
                return at_least(33 - node->gpus, node->gpus);
        if (task->gpu_milli == MILLI_PER_GPU)
                return at_least(50 - task->gpus, 33);
        /* the GPU with least left that will do */
        unsigned taken = left[gpu_best(placer, node, task, 0)];
        return taken == MILLI_PER_GPU ? 49 : at_least(100 - (int32_t) (taken * 100 / MILLI_PER_GPU) / 10, 50);
}

const struct placement_policy policy_gpu_packing = {
        .name = "gpu-packing",
        .good_at = "keeping whole GPUs and whole nodes free for those that want them whole",
        .score = score,
        .gpu = gpu_best,
};
