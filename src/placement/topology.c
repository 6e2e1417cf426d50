/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/topology.h"
#include <errno.h>

#define NS_PER_S UINT64_C(1000000000)
enum { NO_PARENT = UINT32_MAX };

static int read_level(struct topology *topology, uint32_t level, const uint32_t *of, struct arena *arena,
                      struct error *err)
{
        struct topology_level *l = &topology->levels[level];
        uint32_t n = topology->n_nodes;

        if (level == TOPOLOGY_NODE && !of)
                return 0;
        l->of = arena_take(arena, n, sizeof(*l->of));
        l->first = arena_take(arena, n, sizeof(*l->first));
        l->size = arena_take(arena, n, sizeof(*l->size));
        l->parent = arena_take(arena, n, sizeof(*l->parent));
        if (!l->of || !l->first || !l->size || !l->parent)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                if (of && of[i] >= n)
                        return error_set(err, EINVAL, "node %u: domain %u on level %u; it may be 0 to %u", i, of[i],
                                         level, n - 1);
                l->of[i] = of ? of[i] : 0;
                l->n = l->of[i] >= l->n ? l->of[i] + 1 : l->n;
                l->size[l->of[i]]++;
        }
        return 0;
}

/* A stable sort by the domain of each level, the lowest first: whoever shares a higher one stands together. */
static void line_up(struct topology *topology, uint32_t *other)
{
        uint32_t n = topology->n_nodes;

        for (uint32_t i = 0; i < n; i++)
                topology->nodes[i] = i;
        for (uint32_t level = 1; level <= topology->top; level++) {
                struct topology_level *l = &topology->levels[level];
                uint32_t at = 0;
                if (!l->of)
                        continue;
                for (uint32_t d = 0; d < l->n; d++) {
                        l->first[d] = at;
                        at += l->size[d];
                }
                for (uint32_t i = 0; i < n; i++)
                        other[l->first[l->of[topology->nodes[i]]]++] = topology->nodes[i];
                memcpy(topology->nodes, other, n * sizeof(*other));
        }
        for (uint32_t level = 1; level <= topology->top; level++) {
                struct topology_level *l = &topology->levels[level];
                for (uint32_t i = n; l->of && i-- > 0;)
                        l->first[l->of[topology->nodes[i]]] = i;
        }
}

static int find_parents(struct topology *topology, struct error *err)
{
        for (uint32_t level = 1; level < topology->top; level++) {
                struct topology_level *l = &topology->levels[level];
                if (!l->of)
                        continue;
                for (uint32_t d = 0; d < l->n; d++)
                        l->parent[d] = NO_PARENT;
                for (uint32_t i = 0; i < topology->n_nodes; i++) {
                        uint32_t *parent = &l->parent[l->of[i]], above = topology->levels[level + 1].of[i];
                        if (*parent != NO_PARENT && *parent != above)
                                return error_set(
                                        err, EINVAL,
                                        "node %u: its domain %u of level %u is in domain %u of level %u, and by "
                                        "another node in %u; each is in one",
                                        i, l->of[i], level, above, level + 1, *parent);
                        *parent = above;
                }
        }
        return 0;
}

int topology_init(struct topology *topology, uint32_t n_nodes, const uint32_t *const *domains, uint32_t n,
                  struct arena *arena, struct error *err)
{
        int r = 0;

        if (n + 1 > TOPOLOGY_LEVELS_MAX)
                return error_set(err, EINVAL, "%u levels are given; there may be %d", n, TOPOLOGY_LEVELS_MAX - 1);
        *topology = (struct topology){ .n_nodes = n_nodes, .top = n < 1 ? TOPOLOGY_NODE + 1 : n + 1 };
        topology->nodes = arena_take(arena, n_nodes, sizeof(*topology->nodes));
        uint32_t *other = arena_take(arena, n_nodes, sizeof(*other));
        for (uint32_t level = 1; level <= topology->top; level++) {
                int of_level = read_level(topology, level, level <= n ? domains[level - 1] : NULL, arena, err);
                r = r < 0 ? r : of_level;
        }
        if (r < 0)
                return r;
        if (!topology->nodes || !other)
                return -ENOMEM;
        line_up(topology, other);
        return find_parents(topology, err);
}

uint32_t topology_distance(const struct topology *topology, uint32_t a, uint32_t b)
{
        uint32_t level = TOPOLOGY_NODE;

        if (a == b)
                return level;
        while (!topology->levels[level].of || topology->levels[level].of[a] != topology->levels[level].of[b])
                level++;
        return level;
}

uint64_t allreduce_ns(uint64_t bytes, uint32_t ranks, uint64_t link_bytes_per_s)
{
        unsigned __int128 ns = (unsigned __int128) 2 * (ranks - 1) * bytes * NS_PER_S;

        return ranks < 2 ? 0 : (uint64_t) (ns / ranks / link_bytes_per_s);
}

uint64_t allreduce_nodes_ns(uint64_t bytes, uint32_t nodes, uint32_t gpus, uint64_t inside_bytes_per_s,
                            uint64_t between_bytes_per_s)
{
        return allreduce_ns(bytes, gpus, inside_bytes_per_s) + allreduce_ns(bytes / gpus, nodes, between_bytes_per_s);
}
