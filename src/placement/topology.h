/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How near to each other nodes are: a tree of domains. Level 1 is what NVLink joins (a node, or a rack of them where islands
 * are given), 2 a leaf switch, 3 a block under one spine, and so on; the top level is one domain with all nodes. The nodes of a
 * domain stand side by side in nodes[], in the order of the cluster.
 */
#include "placement/cluster.h"

enum { TOPOLOGY_LEVELS_MAX = 5, TOPOLOGY_NODE = 1 };

struct topology_level {
        uint32_t n;       /* domains */
        uint32_t *of;     /* of each node; NULL on level 1: each node is its own */
        uint32_t *first;  /* of each domain in nodes[] */
        uint32_t *size;   /* its nodes */
        uint32_t *parent; /* on the level above; not on the top level */
};

struct topology {
        uint32_t top; /* the level of the whole */
        uint32_t n_nodes;
        uint32_t *nodes;
        struct topology_level levels[TOPOLOGY_LEVELS_MAX + 1]; /* from 1 on */
};

/*
 * @domains[i]: the domain of each node on level i + 1, any numbers below the count of nodes; @domains[0] may be NULL: nodes
 * are the islands. @n levels are given (0: there is nothing between a node and the whole). -EINVAL: a domain has two parents, a
 * number is too large; -ENOMEM, also where the arena only counts.
 */
int topology_init(struct topology *topology, uint32_t n_nodes, const uint32_t *const *domains, uint32_t n,
                  struct arena *arena, struct error *err);

/* The lowest level on which both are in one domain. */
uint32_t topology_distance(const struct topology *topology, uint32_t a, uint32_t b);

/* Time of an all-reduce of so many bytes: a ring of @ranks whose slowest link carries so many bytes a second. */
uint64_t allreduce_ns(uint64_t bytes, uint32_t ranks, uint64_t link_bytes_per_s);
/* Inside each of @nodes first, by their own links, then between them, each GPU with a card of its own. */
uint64_t allreduce_nodes_ns(uint64_t bytes, uint32_t nodes, uint32_t gpus, uint64_t inside_bytes_per_s,
                            uint64_t between_bytes_per_s);
