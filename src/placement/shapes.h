/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The typical tasks of the past: which shapes of task came, how often, and the few that make up nearly all of them (Weng and
 * others, "Beware of Fragmentation", USENIX ATC 2023, section 3). Tasks are told apart by CPU, GPUs, part of one, and models.
 */
#include "placement/arena.h"
#include "placement/task.h"

enum {
        SHAPES_PERCENT = 95, /* of all tasks, made up by the shapes that are kept */
        SHAPES_MAX = 512,    /* kept at most */
};

struct shape {
        struct task task; /* of memory 0 */
        int64_t count;
};

struct shapes {
        uint32_t n;     /* kept: the most frequent first, then larger CPU, part, GPUs, models */
        uint32_t n_all; /* distinct ones that came */
        int64_t total;  /* tasks of the kept ones: weight of a shape = its count / total */
        int64_t total_all;
        struct shape *rows; /* all n_all */
};

/* With an arena that only counts: how much it takes at most. False: not enough memory. */
bool shapes_build(struct shapes *shapes, const struct task *tasks, size_t n, struct arena *arena);
