/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which node scores highest for a shape of task, without asking all of them each time: the scores of the shapes asked for
 * lately are kept, with the best of each block of nodes, and only nodes that changed since are asked again.
 */
#include "placement/policy.h"

enum {
        LEADERS_BLOCK = 64, /* nodes */
        LEADERS_SHAPES_MAX = 1024,
};
#define SCORE_NONE INT32_MIN /* of a node that the task does not fit */

struct leaders_shape {
        struct task task; /* of memory 0 */
        uint64_t seen;    /* changes of the cluster + 1; 0: never looked */
        uint64_t asked;   /* when last, in questions */
        int32_t *score;   /* of each node */
        int32_t *best;    /* of each block */
};

struct leaders {
        uint32_t n_shapes, shapes_max;
        uint64_t questions;
        struct leaders_shape *shapes;
        uint16_t *slots; /* by hash: a shape's number + 1 */
        uint32_t slots_mask;
};

/* Keeps at most @shapes_max shapes. False: the arena was too small, or only counts. */
bool leaders_init(struct leaders *leaders, const struct cluster *cluster, uint32_t shapes_max, struct arena *arena);
/* The node, or -1: none fits. */
int64_t leaders_best(struct leaders *leaders, const struct placer *placer, const struct task *task);
