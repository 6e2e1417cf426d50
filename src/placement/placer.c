/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/placer.h"
#include <errno.h>

enum { RANDOM_TRIES = 16 };

static bool carve(struct placer *placer, const struct task *past, size_t n_past, uint32_t shapes_max,
                  struct arena *arena)
{
        bool shapes = shapes_build(&placer->shapes, past, n_past, arena);
        bool fragment = fragment_build(&placer->fragment, &placer->shapes, placer->cluster, arena);
        bool prices = prices_learn(&placer->prices, placer->cluster, &placer->shapes, arena);
        bool sum = fragment_sum_init(&placer->sum, placer->cluster, arena);

        return leaders_init(&placer->leaders, placer->cluster, shapes_max, arena) && sum && prices && fragment &&
               shapes;
}

size_t placer_bytes(const struct cluster *cluster, size_t n_past, uint32_t shapes_max)
{
        struct arena arena = { 0 };
        struct placer placer = { .cluster = (struct cluster *) (uintptr_t) cluster };

        carve(&placer, NULL, n_past, shapes_max, &arena);
        return arena.used;
}

int placer_init(struct placer *placer, const struct placement_policy *policy, struct cluster *cluster,
                const struct task *past, size_t n_past, uint32_t shapes_max, void *memory, size_t bytes,
                struct error *err)
{
        struct arena arena = { .memory = memory, .bytes = bytes };
        int r;

        for (size_t i = 0; i < n_past; i++) {
                r = task_check(&past[i], err);
                if (r < 0)
                        return error_wrap(err, r, "task %zu of the past", i);
        }
        *placer = (struct placer){ .policy = policy, .cluster = cluster };
        if (!carve(placer, past, n_past, shapes_max, &arena))
                return error_set(err, ENOMEM, "a placer for %u nodes and %zu tasks needs more than %zu bytes",
                                 cluster->n_nodes, n_past, bytes);
        return 0;
}

static uint64_t next(uint64_t *random)
{
        uint64_t z = (*random += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* Below @n, of 32 bits: what it is off from even is less than 2^-12 of it. */
static uint32_t below(uint64_t *random, uint32_t n)
{
        return (uint32_t) ((next(random) >> 32) * n >> 32);
}

/* Each node that fits as likely as another: drawn and kept where it fits; where few do, drawn among those. */
static int64_t random_node(const struct cluster *cluster, const struct task *task, uint64_t random)
{
        uint32_t fitting = 0, n = 0;

        for (int i = 0; i < RANDOM_TRIES; i++) {
                uint32_t drawn = below(&random, cluster->n_nodes);
                if (node_fits(&cluster->nodes[drawn], task))
                        return drawn;
        }
        for (uint32_t i = 0; i < cluster->n_nodes; i++)
                fitting += node_fits(&cluster->nodes[i], task);
        if (fitting == 0)
                return -1;
        for (uint32_t skip = below(&random, fitting);; n++)
                if (node_fits(&cluster->nodes[n], task) && skip-- == 0)
                        return n;
}

uint32_t placer_gpus(const struct placer *placer, uint32_t node, const struct task *task, uint64_t random)
{
        const struct node *at = &placer->cluster->nodes[node];

        if (task_kind(task) == TASK_SHARING)
                return UINT32_C(1) << placer->policy->gpu(placer, at, task, random);
        return node_lowest_full(cluster_left(placer->cluster, at), at, task->gpus);
}

bool placer_decide(struct placer *placer, const struct task *task, uint64_t random, struct placement *where)
{
        int64_t node = placer->policy->random_node ? random_node(placer->cluster, task, random)
                                                   : leaders_best(&placer->leaders, placer, task);

        if (node < 0)
                return false;
        *where = (struct placement){ .node = (uint32_t) node,
                                     .gpus = placer_gpus(placer, (uint32_t) node, task, ~random) };
        return true;
}

bool placer_place(struct placer *placer, const struct task *task, uint64_t random, struct placement *where)
{
        if (!placer_decide(placer, task, random, where))
                return false;
        cluster_take(placer->cluster, task, where);
        return true;
}

int64_t placer_fragment(struct placer *placer)
{
        return fragment_of_cluster(&placer->sum, &placer->fragment, placer->cluster);
}

double placer_fragment_milli(struct placer *placer)
{
        int64_t total = placer->fragment.total ? placer->fragment.total : 1;

        return (double) placer_fragment(placer) / (double) total;
}
