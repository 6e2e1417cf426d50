/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What of the free GPU is of no use, which allocation alone hides. Nodes that are closed count like others: what is free there
 * is stranded as well, and whoever would not count it leaves them out of the cluster.
 */
#include "placement/cluster.h"

enum { STRANDED_EXACT_NODES = 5, STRANDED_EXACT_TASKS = 5 }; /* up to so many of both every way is tried */

struct stranded {
        int64_t free_milli;
        uint32_t partly_used;                 /* nodes with a GPU task and room on a GPU */
        uint32_t whole_free;                  /* GPUs with nothing on them */
        uint32_t unusable[NODE_GPUS_MAX + 1]; /* S_k: of those, on nodes with fewer than k of them */
};

void stranded_count(const struct cluster *cluster, struct stranded *stranded);

struct stranded_pending {
        int64_t milli; /* free, less the most that the waiting tasks can be given right now */
        bool exact; /* else: dealt out by falling size, each to the node that it leaves least on: perhaps less is stranded */
};

/*
 * @trial: a clone of @cluster to try it on (cluster_clone). @order: room for a number of each task. Tasks go where they fit,
 * each or not.
 */
struct stranded_pending stranded_for(const struct cluster *cluster, struct cluster *trial, const struct task *tasks,
                                     uint32_t n, uint32_t *order);
