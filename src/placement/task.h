/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What one task wants of a node of a cluster: CPU, memory, GPUs or a part of one, of models that it can use. */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum {
        MILLI_PER_GPU = 1000,
        NODE_GPUS_MAX = 16,           /* GPUs of one node */
        NODE_MODELS_MAX = 64,         /* models of a cluster: a bit each */
        NODE_CPU_MILLI_MAX = 1 << 26, /* 67,108 cores */
        NODE_MEM_MIB_MAX = 1 << 28,   /* 256 TiB */
};

struct task {
        int32_t cpu_milli; /* 1000 = one core */
        int32_t mem_mib;
        uint64_t models;    /* a bit per model that will do; 0 = any */
        uint16_t gpus;      /* k */
        uint16_t gpu_milli; /* d, of each: 1000 = all of it; less only where gpus = 1 */
};

enum task_kind { TASK_CPU_ONLY, TASK_SHARING, TASK_EXCLUSIVE };

static inline enum task_kind task_kind(const struct task *task)
{
        if (task->gpus == 0)
                return TASK_CPU_ONLY;
        return task->gpu_milli < MILLI_PER_GPU ? TASK_SHARING : TASK_EXCLUSIVE;
}

/* q: GPU in all. */
static inline int32_t task_milli(const struct task *task)
{
        return task->gpus * task->gpu_milli;
}

/* The same for whoever decides by CPU and GPU alone, as typical tasks are told apart: memory is left out. */
static inline bool task_same_shape(const struct task *a, const struct task *b)
{
        return a->cpu_milli == b->cpu_milli && a->gpus == b->gpus && a->gpu_milli == b->gpu_milli &&
               a->models == b->models;
}

/* 0, or -EINVAL with the field, what it is, and what it may be. */
int task_check(const struct task *task, struct error *err);
