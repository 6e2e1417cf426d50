/* SPDX-License-Identifier: Apache-2.0 */
/* [published] Like to like: tasks that share with those that share, tasks for k GPUs with those for k; then the fuller node. */
#include "placement/placer.h"

enum { FULLER = 25, NO_TASK = 25, AMONG_OTHERS = 50, ONLY_THOSE = 75 };

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        uint32_t tag = UINT32_C(1) << (task_kind(task) == TASK_SHARING ? TAG_SHARING : task->gpus);
        int32_t fuller = FULLER * (PUBLISHED_GPU_MILLI - node->free_milli) / PUBLISHED_GPU_MILLI;

        (void) placer;
        if (task->gpus == 0)
                return 0;
        if (node->tags & tag)
                return fuller + (node->tags == tag ? ONLY_THOSE : AMONG_OTHERS);
        return node->tags ? fuller : fuller + NO_TASK;
}

const struct placement_policy policy_gpu_clustering = {
        .name = "gpu-clustering",
        .good_at = "keeping tasks that share a GPU off the nodes of those that want several",
        .score = score,
        .gpu = gpu_best,
};
