/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two things that fragmentation does not see, priced by the tasks of the past:
 *  - GPUs whose node has too little CPU left for the tasks that would come with them;
 *  - GPUs of a kind of node that many tasks cannot do without, taken by tasks that could run elsewhere. What a task cannot do
 *    without is more than the models it names: eight GPUs beside 120 cores are found on few nodes, whatever their model.
 */
#include "placement/cluster.h"
#include "placement/shapes.h"

enum {
        PRICE_UNIT = 1000, /* prices are in thousandths */
        /* Of all CPU, wanted by the time all GPUs are: from here on CPU is short, wholly so where all of it is wanted. */
        CPU_SHORT_FROM = 950,
        CPU_SHORT_WHOLLY = 1000,
        NODE_KINDS_MAX = 1024, /* of different CPU, GPUs and model; nodes of further kinds have no price */
        KIND_WEIGHT = 1500,    /* tried over 17 published traces: 1,000 to 2,000 are about as good */
};

struct prices {
        int64_t cpu_milli_per_gpu; /* what a GPU needs beside it; 0: CPU has no price */
        int32_t *of_node;          /* what a milli-GPU costs there, in thousandths of one */
};

/* By all @shapes, not only the typical ones. False: the arena was too small, or only counts. */
bool prices_learn(struct prices *prices, const struct cluster *cluster, const struct shapes *shapes,
                  struct arena *arena);

/* Milli-GPU that are free beyond what the free CPU can go with. */
int64_t prices_stranded(const struct prices *prices, int64_t free_milli, int64_t cpu_milli);
/* What @task costs on that node, in thousandths of a milli-GPU. */
int64_t prices_of(const struct prices *prices, const struct cluster *cluster, const struct node *node,
                  const struct task *task);
