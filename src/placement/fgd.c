/* SPDX-License-Identifier: Apache-2.0 */
/*
 * [published] Fragmentation gradient descent (Weng and others, USENIX ATC 2023): where the node's fragment grows least. With
 * D = F_n before - F_n after in milli-GPU, the score is floor(100 / (1 + exp(-D / 1000))). The floor matters: near D = 0 one
 * step is about 40 milli-GPU wide, so that near ties end at the first node. It is kept exactly, by integers.
 */
#include "placement/fgd.h"
#include "placement/placer.h"

enum { HALF = 50, STEPS = 49, MILLIONTHS = 1000000 };

/* 1000 ln(s / (100 - s)) for s = 51 to 99, in millionths of a milli-GPU, rounded down: D above it scores s. */
static const int64_t steps[STEPS] = {
        40005334,   80042707,   120144311,  160342650,  200670695,  241162056,  281851152,  322773392,  363965377,
        405465108,  447312218,  489548225,  532216813,  575364144,  619039208,  663294217,  708185057,  753771802,
        800119300,  847297860,  895384047,  944461608,  994622575,  1045968555, 1098612288, 1152679509, 1208311205,
        1265666373, 1324925414, 1386294361, 1450010175, 1516347489, 1585627263, 1658228076, 1734601055, 1815289966,
        1900958761, 1992430164, 2090741096, 2197224577, 2313634929, 2442347035, 2586689344, 2751535313, 2944438979,
        3178053830, 3476098689, 3891820298, 4595119850,
};

int32_t fgd_score(int64_t gain, int64_t total)
{
        int64_t size = gain < 0 ? -gain : gain;
        int32_t low = 0, high = STEPS; /* steps that are passed */

        while (low < high) {
                int32_t mid = (low + high) / 2;
                if (size * MILLIONTHS > steps[mid] * total)
                        low = mid + 1;
                else
                        high = mid;
        }
        return gain < 0 ? HALF - 1 - low : HALF + low;
}

/* The first of the GPUs that score highest, and their score. */
static int32_t best(const struct placer *placer, const struct node *node, const struct task *task, unsigned *gpu)
{
        const struct fragment *fragment = &placer->fragment;
        int64_t gains[NODE_GPUS_MAX];
        int32_t highest = -1;

        *gpu = 0;
        fragment_gains(fragment, node, cluster_left(placer->cluster, node), task, gains);
        if (task_kind(task) != TASK_SHARING)
                return fgd_score(gains[0], fragment->total);
        for (unsigned i = 0; i < node->gpus; i++) {
                int32_t s = gains[i] == FRAGMENT_NO_GAIN ? -1 : fgd_score(gains[i], fragment->total);
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

const struct placement_policy policy_fgd = {
        .name = "fgd",
        .good_at = "GPUs shared in parts: what is left stays of use to the tasks that came before",
        .score = score,
        .gpu = gpu,
};
