/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ours: where the fragment grows least (fgd.c), less what the task costs there (prices.h): floor((D - price) / 40 milli-GPU).
 * Like the published score it counts by steps, so that near ties end at the first node.
 */
#include "placement/placer.h"

enum { STEP_MILLI = 40, SCORE_MOST = 1 << 30 };

static int32_t steps_of(const struct fragment *fragment, int64_t gain, int64_t price)
{
        int64_t total = fragment->total ? fragment->total : 1;
        int64_t s = floor_div(gain * PRICE_UNIT - price * total, total * STEP_MILLI * PRICE_UNIT);

        return s > SCORE_MOST ? SCORE_MOST : s < -SCORE_MOST ? -SCORE_MOST : (int32_t) s;
}

/* The first of the GPUs that score highest, and their score. */
static int32_t best(const struct placer *placer, const struct node *node, const struct task *task, unsigned *gpu)
{
        int64_t gains[NODE_GPUS_MAX], price = prices_of(&placer->prices, placer->cluster, node, task);
        int32_t highest = INT32_MIN;

        *gpu = 0;
        fragment_gains(&placer->fragment, node, cluster_left(placer->cluster, node), task, gains);
        if (task_kind(task) != TASK_SHARING)
                return steps_of(&placer->fragment, gains[0], price);
        for (unsigned i = 0; i < node->gpus; i++) {
                if (gains[i] == FRAGMENT_NO_GAIN)
                        continue;
                int32_t s = steps_of(&placer->fragment, gains[i], price);
                if (s > highest) {
                        highest = s;
                        *gpu = i;
                }
        }
        return highest;
}

static int32_t score(const struct placer *placer, const struct node *node, const struct task *task)
{
        unsigned gpu;

        return best(placer, node, task, &gpu);
}

static unsigned gpu(const struct placer *placer, const struct node *node, const struct task *task, uint64_t random)
{
        unsigned found;

        (void) random;
        (void) best(placer, node, task, &found);
        return found;
}

const struct placement_policy policy_priced = {
        .name = "ours",
        .good_at = "clusters in which CPU or one kind of node runs out before the GPUs do",
        .score = score,
        .gpu = gpu,
};
