/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small clusters for the tests of the placement room. */
#include <stddef.h>
#include <stdint.h>
#include "placement/placer.h"

enum { SCENE_NODES = 64, SCENE_MODEL = 0 };

struct cluster_scene {
        struct cluster cluster;
        struct placer placer;
        void *cluster_memory, *placer_memory;
};

/* Nodes as they are given; a policy by its name (NULL: no placer) with its past. */
void cluster_scene_init(struct cluster_scene *scene, const struct node_spec *specs, size_t n, const char *policy,
                        const struct task *past, size_t n_past);
/* @n equal nodes of 128 cores, 1 TiB and @gpus GPUs. */
void cluster_scene_equal(struct cluster_scene *scene, size_t n, unsigned gpus, const char *policy);
void cluster_scene_end(struct cluster_scene *scene);

/* The node it went to, or -1. */
int scene_place(struct cluster_scene *scene, struct task task);
/* Leaves exactly that on each GPU of a node that was empty, and as much CPU. */
void scene_set_left(struct cluster_scene *scene, uint32_t node, int32_t cpu_milli, const uint16_t *left);

#define GPUS(k) ((struct task){ .gpus = (k), .gpu_milli = MILLI_PER_GPU })
#define PART(d) ((struct task){ .gpus = 1, .gpu_milli = (d) })
