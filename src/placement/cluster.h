/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is free on the nodes of a cluster: integers only, in memory that the caller owns, as large as cluster_bytes() says.
 * The order in which the nodes were given is the order in which ties end. Taking and giving back are exact opposites, so a
 * trial is undone by giving back what it took. Each change is noted in a ring, so that whoever keeps figures of nodes
 * (leaders.h, fragment.h) looks again only at those that changed.
 */
#include "placement/arena.h"
#include "placement/task.h"

enum {
        CLUSTER_NODES_MAX = 1 << 20,
        NODE_NO_MODEL = 255,
        TAG_SHARING = 0, /* a node's tag for tasks that share a GPU; for those with k whole ones it is k */
        NODE_TAGS = NODE_GPUS_MAX + 1,
};

struct node_spec { /* a node with nothing on it */
        int32_t cpu_milli, mem_mib;
        uint16_t gpus;
        uint8_t model; /* 0 to 63, or NODE_NO_MODEL */
};

struct node { /* what is free now, and what follows from it */
        int32_t cpu_milli, mem_mib;
        int32_t cap_cpu_milli, cap_mem_mib;
        uint64_t model_bit;  /* 0: no model */
        uint32_t first;      /* of its GPUs in cluster->left */
        uint32_t tags;       /* bits: kinds of GPU task that are on it */
        uint16_t free_milli; /* of all its GPUs together */
        uint16_t most_milli; /* of the GPU with most left */
        uint8_t gpus, full;  /* GPUs; those with nothing on them */
        uint8_t model;
        bool closed; /* takes nothing new */
};

struct placement { /* where a task is */
        uint32_t node;
        uint32_t gpus; /* a bit per GPU of the node */
};

struct cluster {
        uint32_t n_nodes, n_gpus;
        struct node *nodes;
        uint16_t *left;     /* milli, of each GPU */
        uint16_t *tagged;   /* NODE_TAGS a node: tasks of each tag; NULL: none are kept */
        uint32_t *changed;  /* ring: numbers of nodes, the newest at (n_changes - 1) & ring_mask */
        uint64_t n_changes; /* ever */
        uint32_t ring_mask;
        uint64_t models;        /* bits: those that some node has */
        int64_t capacity_milli; /* GPU */
        int64_t used_milli;
        int64_t model_milli[NODE_MODELS_MAX]; /* capacity of each model */
};

size_t cluster_bytes(const struct node_spec *specs, size_t n);
/* 0; -EINVAL names the node and the field; -ENOMEM: @memory is too small. */
int cluster_init(struct cluster *cluster, const struct node_spec *specs, size_t n, void *memory, size_t bytes,
                 struct error *err);

static inline const uint16_t *cluster_left(const struct cluster *cluster, const struct node *node)
{
        return cluster->left + node->first;
}

/* Would @task fit there, memory apart. */
static inline bool node_fits_but_memory(const struct node *node, const struct task *task)
{
        if (node->cpu_milli < task->cpu_milli || node->closed)
                return false;
        if (task->gpus == 0)
                return true;
        if (task->models && !(task->models & node->model_bit))
                return false;
        return task->gpu_milli == MILLI_PER_GPU ? node->full >= task->gpus : node->most_milli >= task->gpu_milli;
}

static inline bool node_fits(const struct node *node, const struct task *task)
{
        return node->mem_mib >= task->mem_mib && node_fits_but_memory(node, task);
}

/* The @k lowest GPUs with nothing on them, as bits; the node has that many. */
uint32_t node_lowest_full(const uint16_t *left, const struct node *node, unsigned k);

/* Where a task goes on a node that it fits, whoever asks: the lowest whole GPUs; for a part the GPU with least left. */
uint32_t node_gpus(const struct cluster *cluster, const struct node *node, const struct task *task);

/* Whoever takes has asked node_fits(), and that the GPUs have room: it is asserted. Undone by giving the same back. */
void cluster_take(struct cluster *cluster, const struct task *task, const struct placement *where);
void cluster_give(struct cluster *cluster, const struct task *task, const struct placement *where);
/* A node that is closed keeps what is on it and takes nothing new. */
void cluster_close(struct cluster *cluster, uint32_t node, bool closed);

/*
 * Another cluster to try things on, without tags: as large as its model, and as that is now once it is copied. False: the arena
 * was too small, or only counts.
 */
bool cluster_clone(struct cluster *clone, const struct cluster *of, struct arena *arena);
void cluster_copy(struct cluster *clone, const struct cluster *of);
/* Leaves of a node only what is free in both; which of its GPUs that is counts for nothing. */
void cluster_least(struct cluster *least, const struct cluster *other, uint32_t node);

/* What must hold whatever happened. 0, or -EBADE with what does not. */
int cluster_check(const struct cluster *cluster, struct error *err);
