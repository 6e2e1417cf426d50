/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/placer.h"

static const struct placement_policy *const policies[] = {
        &policy_first_fit,   &policy_best_fit,       &policy_spread, &policy_random, &policy_dotprod,
        &policy_gpu_packing, &policy_gpu_clustering, &policy_fgd,    &policy_priced,
};

const struct placement_policy *const *placement_policies(size_t *n)
{
        *n = sizeof(policies) / sizeof(policies[0]);
        return policies;
}

const struct placement_policy *placement_policy_find(const char *name)
{
        for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
                if (strcmp(policies[i]->name, name) == 0)
                        return policies[i];
        return NULL;
}

unsigned gpu_best(const struct placer *placer, const struct node *node, const struct task *task, uint64_t random)
{
        const uint16_t *left = cluster_left(placer->cluster, node);
        unsigned found = NODE_GPUS_MAX;

        (void) random;
        for (unsigned i = 0; i < node->gpus; i++)
                if (left[i] >= task->gpu_milli && (found == NODE_GPUS_MAX || left[i] < left[found]))
                        found = i;
        return found;
}
