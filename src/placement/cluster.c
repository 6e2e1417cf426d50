/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/cluster.h"
#include <assert.h>
#include <errno.h>

enum { RING_MIN = 64 };

static uint32_t ring_size(size_t n_nodes)
{
        uint32_t size = RING_MIN;

        while (size < n_nodes / 2)
                size *= 2;
        return size;
}

static void carve(struct cluster *cluster, struct arena *arena, size_t n, size_t n_gpus)
{
        uint32_t ring = ring_size(n);

        cluster->nodes = arena_take(arena, n, sizeof(*cluster->nodes));
        cluster->left = arena_take(arena, n_gpus, sizeof(*cluster->left));
        cluster->tagged = arena_take(arena, n * NODE_TAGS, sizeof(*cluster->tagged));
        cluster->changed = arena_take(arena, ring, sizeof(*cluster->changed));
        cluster->ring_mask = ring - 1;
}

static size_t gpus_of(const struct node_spec *specs, size_t n)
{
        size_t gpus = 0;

        for (size_t i = 0; i < n; i++)
                gpus += specs[i].gpus;
        return gpus;
}

size_t cluster_bytes(const struct node_spec *specs, size_t n)
{
        struct arena arena = { 0 };
        struct cluster cluster;

        carve(&cluster, &arena, n, gpus_of(specs, n));
        return arena.used;
}

static int spec_check(const struct node_spec *spec, size_t i, struct error *err)
{
        if (spec->cpu_milli < 0 || spec->cpu_milli > NODE_CPU_MILLI_MAX)
                return error_set(err, EINVAL, "node %zu: cpu_milli is %d; it may be 0 to %d", i, spec->cpu_milli,
                                 NODE_CPU_MILLI_MAX);
        if (spec->mem_mib < 0 || spec->mem_mib > NODE_MEM_MIB_MAX)
                return error_set(err, EINVAL, "node %zu: mem_mib is %d; it may be 0 to %d", i, spec->mem_mib,
                                 NODE_MEM_MIB_MAX);
        if (spec->gpus > NODE_GPUS_MAX)
                return error_set(err, EINVAL, "node %zu: gpus is %u; it may be 0 to %d", i, spec->gpus, NODE_GPUS_MAX);
        if (spec->model >= NODE_MODELS_MAX && spec->model != NODE_NO_MODEL)
                return error_set(err, EINVAL, "node %zu: model is %u; it may be 0 to %d, or %d for none", i,
                                 spec->model, NODE_MODELS_MAX - 1, NODE_NO_MODEL);
        return 0;
}

static void node_init(struct cluster *cluster, struct node *node, const struct node_spec *spec)
{
        *node = (struct node){
                .cpu_milli = spec->cpu_milli,
                .mem_mib = spec->mem_mib,
                .cap_cpu_milli = spec->cpu_milli,
                .cap_mem_mib = spec->mem_mib,
                .model_bit = spec->model == NODE_NO_MODEL ? 0 : UINT64_C(1) << spec->model,
                .first = cluster->n_gpus,
                .free_milli = (uint16_t) (spec->gpus * MILLI_PER_GPU),
                .most_milli = spec->gpus ? MILLI_PER_GPU : 0,
                .gpus = (uint8_t) spec->gpus,
                .full = (uint8_t) spec->gpus,
                .model = spec->model,
        };
        for (unsigned i = 0; i < spec->gpus; i++)
                cluster->left[cluster->n_gpus++] = MILLI_PER_GPU;
        cluster->models |= node->model_bit;
        cluster->capacity_milli += node->free_milli;
        if (node->model_bit)
                cluster->model_milli[spec->model] += node->free_milli;
}

int cluster_init(struct cluster *cluster, const struct node_spec *specs, size_t n, void *memory, size_t bytes,
                 struct error *err)
{
        struct arena arena = { .memory = memory, .bytes = bytes };
        int r;

        if (n == 0 || n > CLUSTER_NODES_MAX)
                return error_set(err, EINVAL, "a cluster has 1 to %d nodes, not %zu", CLUSTER_NODES_MAX, n);
        for (size_t i = 0; i < n; i++) {
                r = spec_check(&specs[i], i, err);
                if (r < 0)
                        return r;
        }
        *cluster = (struct cluster){ 0 };
        carve(cluster, &arena, n, gpus_of(specs, n));
        if (arena_full(&arena))
                return error_set(err, ENOMEM, "a cluster of %zu nodes needs %zu bytes, not %zu", n, arena.used, bytes);
        for (size_t i = 0; i < n; i++)
                node_init(cluster, &cluster->nodes[i], &specs[i]);
        cluster->n_nodes = (uint32_t) n;
        return 0;
}

uint32_t node_lowest_full(const uint16_t *left, const struct node *node, unsigned k)
{
        uint32_t found = 0;

        for (unsigned i = 0; i < node->gpus && k > 0; i++)
                if (left[i] == MILLI_PER_GPU) {
                        found |= UINT32_C(1) << i;
                        k--;
                }
        return found;
}

uint32_t node_gpus(const struct cluster *cluster, const struct node *node, const struct task *task)
{
        const uint16_t *left = cluster_left(cluster, node);
        unsigned best = NODE_GPUS_MAX;

        if (task_kind(task) != TASK_SHARING)
                return node_lowest_full(left, node, task->gpus);
        for (unsigned i = 0; i < node->gpus; i++)
                if (left[i] >= task->gpu_milli && (best == NODE_GPUS_MAX || left[i] < left[best]))
                        best = i;
        return UINT32_C(1) << best;
}

static void note_change(struct cluster *cluster, uint32_t node)
{
        cluster->changed[cluster->n_changes++ & cluster->ring_mask] = node;
}

static void summarise(struct cluster *cluster, struct node *node)
{
        const uint16_t *left = cluster_left(cluster, node);
        unsigned full = 0, free = 0, most = 0;

        for (unsigned i = 0; i < node->gpus; i++) {
                free += left[i];
                full += left[i] == MILLI_PER_GPU;
                most = left[i] > most ? left[i] : most;
        }
        node->free_milli = (uint16_t) free;
        node->most_milli = (uint16_t) most;
        node->full = (uint8_t) full;
}

static void tag(struct cluster *cluster, const struct task *task, uint32_t at, int by)
{
        unsigned of = task_kind(task) == TASK_SHARING ? TAG_SHARING : task->gpus;
        uint16_t *count;

        if (task->gpus == 0 || !cluster->tagged)
                return;
        count = &cluster->tagged[at * NODE_TAGS + of];
        *count = (uint16_t) (*count + by);
        if (*count)
                cluster->nodes[at].tags |= UINT32_C(1) << of;
        else
                cluster->nodes[at].tags &= ~(UINT32_C(1) << of);
}

/* @by: 1 takes, -1 gives back. */
static void move(struct cluster *cluster, const struct task *task, const struct placement *where, int by)
{
        struct node *node = &cluster->nodes[where->node];
        uint16_t *left = cluster->left + node->first;
        unsigned n = 0;

        node->cpu_milli -= by * task->cpu_milli;
        node->mem_mib -= by * task->mem_mib;
        for (uint32_t gpus = where->gpus; gpus; gpus &= gpus - 1, n++) {
                unsigned i = (unsigned) __builtin_ctz(gpus);
                int now = left[i] - by * task->gpu_milli;
                assert(i < node->gpus && now >= 0 && now <= MILLI_PER_GPU);
                left[i] = (uint16_t) now;
        }
        assert(n == task->gpus && node->cpu_milli >= 0 && node->mem_mib >= 0);
        assert(node->cpu_milli <= node->cap_cpu_milli && node->mem_mib <= node->cap_mem_mib);
        summarise(cluster, node);
        tag(cluster, task, where->node, by);
        cluster->used_milli += (int64_t) by * task_milli(task);
        note_change(cluster, where->node);
}

void cluster_take(struct cluster *cluster, const struct task *task, const struct placement *where)
{
        assert(where->node < cluster->n_nodes);
        move(cluster, task, where, 1);
}

void cluster_give(struct cluster *cluster, const struct task *task, const struct placement *where)
{
        assert(where->node < cluster->n_nodes);
        move(cluster, task, where, -1);
}

void cluster_close(struct cluster *cluster, uint32_t node, bool closed)
{
        assert(node < cluster->n_nodes);
        cluster->nodes[node].closed = closed;
        note_change(cluster, node);
}

bool cluster_clone(struct cluster *clone, const struct cluster *of, struct arena *arena)
{
        *clone = *of;
        clone->tagged = NULL;
        clone->nodes = arena_take(arena, of->n_nodes, sizeof(*clone->nodes));
        clone->left = arena_take(arena, of->n_gpus, sizeof(*clone->left));
        clone->changed = arena_take(arena, (size_t) of->ring_mask + 1, sizeof(*clone->changed));
        return clone->nodes && clone->left && clone->changed;
}

void cluster_copy(struct cluster *clone, const struct cluster *of)
{
        memcpy(clone->nodes, of->nodes, of->n_nodes * sizeof(*clone->nodes));
        memcpy(clone->left, of->left, of->n_gpus * sizeof(*clone->left));
        clone->used_milli = of->used_milli;
}

static void fall(uint16_t *left, unsigned n)
{
        for (unsigned i = 1; i < n; i++)
                for (unsigned at = i; at > 0 && left[at - 1] < left[at]; at--) {
                        uint16_t swap = left[at];
                        left[at] = left[at - 1];
                        left[at - 1] = swap;
                }
}

void cluster_least(struct cluster *least, const struct cluster *other, uint32_t n)
{
        struct node *node = &least->nodes[n];
        const struct node *beside = &other->nodes[n];
        uint16_t *left = least->left + node->first, theirs[NODE_GPUS_MAX];

        memcpy(theirs, cluster_left(other, beside), node->gpus * sizeof(*theirs));
        fall(theirs, node->gpus);
        fall(left, node->gpus);
        for (unsigned i = 0; i < node->gpus; i++) {
                uint16_t both = left[i] < theirs[i] ? left[i] : theirs[i];
                least->used_milli += left[i] - both;
                left[i] = both;
        }
        node->cpu_milli = node->cpu_milli < beside->cpu_milli ? node->cpu_milli : beside->cpu_milli;
        node->mem_mib = node->mem_mib < beside->mem_mib ? node->mem_mib : beside->mem_mib;
        summarise(least, node);
}

int cluster_check(const struct cluster *cluster, struct error *err)
{
        int64_t free = 0;

        for (uint32_t n = 0; n < cluster->n_nodes; n++) {
                const struct node *node = &cluster->nodes[n];
                const uint16_t *left = cluster_left(cluster, node);
                unsigned sum = 0, full = 0, most = 0;
                for (unsigned i = 0; i < node->gpus; i++) {
                        if (left[i] > MILLI_PER_GPU)
                                return error_set(err, EBADE, "node %u: GPU %u has %u milli left", n, i, left[i]);
                        sum += left[i];
                        full += left[i] == MILLI_PER_GPU;
                        most = left[i] > most ? left[i] : most;
                }
                if (sum != node->free_milli || full != node->full || most != node->most_milli)
                        return error_set(err, EBADE, "node %u: its sums are not those of its GPUs", n);
                if (node->cpu_milli < 0 || node->cpu_milli > node->cap_cpu_milli || node->mem_mib < 0 ||
                    node->mem_mib > node->cap_mem_mib)
                        return error_set(err, EBADE, "node %u: %d milli-CPU and %d MiB are free of %d and %d", n,
                                         node->cpu_milli, node->mem_mib, node->cap_cpu_milli, node->cap_mem_mib);
                for (unsigned t = 0; cluster->tagged && t < NODE_TAGS; t++)
                        if ((cluster->tagged[n * NODE_TAGS + t] != 0) != (node->tags >> t & 1))
                                return error_set(err, EBADE, "node %u: its tags are not those of its tasks", n);
                free += sum;
        }
        if (free + cluster->used_milli != cluster->capacity_milli)
                return error_set(err, EBADE, "%lld milli are free and %lld used of %lld", (long long) free,
                                 (long long) cluster->used_milli, (long long) cluster->capacity_milli);
        return 0;
}
