/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of a node's free GPU a typical task could not use (Weng and others, USENIX ATC 2023). For one shape m, F_n(m) is all
 * of it where m cannot run there (it wants no GPU, another model, more CPU, more GPUs), else what is left on GPUs too small for
 * m; F_n is the mean over the shapes by their weight. Memory plays no part. Figures are milli-GPU times the sum of the
 * weights, so that they are exact: fragment.total of them is one milli-GPU.
 *
 * F_n is had without walking the shapes: those for one GPU or a part add up GPU by GPU, those for several depend on how many
 * are whole; both only through the shapes that find their CPU, which is a row of a table for each model.
 */
#include "placement/cluster.h"
#include "placement/shapes.h"

enum { FRAGMENT_CPU_STEPS = 256 };

struct fragment_row {         /* of one model, and as much CPU as there is */
        const int32_t *part;  /* weight of the shapes for one GPU that a GPU of this class will do for */
        const int32_t *whole; /* weight of the shapes for several that so many whole ones will do for */
};

struct fragment {
        int64_t total;
        uint32_t n_cpu, n_part;
        int32_t *cpu; /* what the shapes want, each once, rising */
        uint16_t cpu_start[FRAGMENT_CPU_STEPS + 1];
        uint8_t cpu_shift;
        uint16_t part_class[MILLI_PER_GPU + 1];  /* how many of the parts wanted fit into what is left */
        uint16_t model_row[NODE_MODELS_MAX + 1]; /* which table; the last: a node without a model */
        int32_t *part, *whole;                   /* [table][CPU class][part class], [table][CPU class][GPUs] */
};

/* By the typical ones of @shapes, for the nodes of @cluster. False: the arena was too small, or only counts. */
bool fragment_build(struct fragment *fragment, const struct shapes *shapes, const struct cluster *cluster,
                    struct arena *arena);

/* F_n(m) in milli-GPU, by its definition. */
int32_t fragment_for_shape(const struct node *node, const uint16_t *left, const struct task *shape);
/* F_n × total. */
int64_t fragment_of_node(const struct fragment *fragment, const struct node *node, const uint16_t *left);

/* Of a GPU that a task cannot have. */
#define FRAGMENT_NO_GAIN INT64_MIN
/*
 * F_n before − F_n after, × total, for each way to put @task there, which it fits: by GPU for a part of one
 * (FRAGMENT_NO_GAIN where it has no room); else one way, in gains[0].
 */
void fragment_gains(const struct fragment *fragment, const struct node *node, const uint16_t *left,
                    const struct task *task, int64_t gains[NODE_GPUS_MAX]);

/* The sum of F_n over a cluster, kept while the cluster changes. */
struct fragment_sum {
        int64_t *of_node;
        int64_t sum;
        uint64_t seen; /* changes of the cluster */
};

bool fragment_sum_init(struct fragment_sum *sum, const struct cluster *cluster, struct arena *arena);
/* × total. */
int64_t fragment_of_cluster(struct fragment_sum *sum, const struct fragment *fragment, const struct cluster *cluster);
