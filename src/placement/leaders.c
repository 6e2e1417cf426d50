/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/leaders.h"
#include "placement/placer.h"

static uint32_t blocks(const struct cluster *cluster)
{
        return (cluster->n_nodes + LEADERS_BLOCK - 1) / LEADERS_BLOCK;
}

bool leaders_init(struct leaders *leaders, const struct cluster *cluster, uint32_t shapes_max, struct arena *arena)
{
        uint32_t slots = 4;

        if (shapes_max < 1)
                shapes_max = 1;
        if (shapes_max > LEADERS_SHAPES_MAX)
                shapes_max = LEADERS_SHAPES_MAX;
        while (slots < 4 * shapes_max)
                slots *= 2;
        *leaders = (struct leaders){ .shapes_max = shapes_max, .slots_mask = slots - 1 };
        leaders->shapes = arena_take(arena, shapes_max, sizeof(*leaders->shapes));
        leaders->slots = arena_take(arena, slots, sizeof(*leaders->slots));
        int32_t *score = arena_take(arena, (size_t) shapes_max * blocks(cluster) * LEADERS_BLOCK, sizeof(*score));
        int32_t *best = arena_take(arena, (size_t) shapes_max * blocks(cluster), sizeof(*best));
        if (!leaders->shapes || !leaders->slots || !score || !best)
                return false;
        for (uint32_t s = 0; s < shapes_max; s++) {
                leaders->shapes[s].score = score + (size_t) s * blocks(cluster) * LEADERS_BLOCK;
                leaders->shapes[s].best = best + (size_t) s * blocks(cluster);
        }
        return true;
}

static uint32_t slot_of(const struct leaders *leaders, const struct task *task)
{
        uint64_t h = (uint64_t) (uint32_t) task->cpu_milli << 32 | (uint64_t) task->gpus << 16 | task->gpu_milli;

        h = (h ^ task->models * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
        return (uint32_t) (h >> 40) & leaders->slots_mask;
}

/* The slot that has @task, or the empty one where it would stand. */
static uint32_t slot_for(const struct leaders *leaders, const struct task *task)
{
        uint32_t at = slot_of(leaders, task);

        while (leaders->slots[at] && !task_same_shape(&leaders->shapes[leaders->slots[at] - 1].task, task))
                at = (at + 1) & leaders->slots_mask;
        return at;
}

/* The one not asked for for longest makes room. */
static uint32_t oldest_leaves(struct leaders *leaders)
{
        uint32_t oldest = 0;

        for (uint32_t s = 1; s < leaders->n_shapes; s++)
                if (leaders->shapes[s].asked < leaders->shapes[oldest].asked)
                        oldest = s;
        memset(leaders->slots, 0, (leaders->slots_mask + 1) * sizeof(*leaders->slots));
        for (uint32_t s = 0; s < leaders->n_shapes; s++)
                if (s != oldest)
                        leaders->slots[slot_for(leaders, &leaders->shapes[s].task)] = (uint16_t) (s + 1);
        return oldest;
}

static struct leaders_shape *shape_of(struct leaders *leaders, const struct task *task)
{
        uint32_t at = slot_for(leaders, task), s;

        if (leaders->slots[at])
                return &leaders->shapes[leaders->slots[at] - 1];
        if (leaders->n_shapes < leaders->shapes_max) {
                s = leaders->n_shapes++;
        } else {
                s = oldest_leaves(leaders);
                at = slot_for(leaders, task);
        }
        leaders->slots[at] = (uint16_t) (s + 1);
        leaders->shapes[s].task = *task;
        leaders->shapes[s].task.mem_mib = 0;
        leaders->shapes[s].seen = 0;
        return &leaders->shapes[s];
}

static int32_t score_of(const struct placer *placer, const struct task *task, uint32_t n)
{
        const struct node *node = &placer->cluster->nodes[n];

        return node_fits_but_memory(node, task) ? placer->policy->score(placer, node, task) : SCORE_NONE;
}

static int32_t best_of_block(const int32_t *score)
{
        int32_t best = SCORE_NONE;

        for (uint32_t i = 0; i < LEADERS_BLOCK; i++)
                best = score[i] > best ? score[i] : best;
        return best;
}

static void look_at_all(struct leaders_shape *shape, const struct placer *placer)
{
        uint32_t n = placer->cluster->n_nodes, all = blocks(placer->cluster) * LEADERS_BLOCK;

        for (uint32_t i = 0; i < n; i++)
                shape->score[i] = score_of(placer, &shape->task, i);
        for (uint32_t i = n; i < all; i++)
                shape->score[i] = SCORE_NONE;
        for (uint32_t b = 0; b < all / LEADERS_BLOCK; b++)
                shape->best[b] = best_of_block(shape->score + (size_t) b * LEADERS_BLOCK);
}

static void look_again(struct leaders_shape *shape, const struct placer *placer, uint32_t n)
{
        int32_t was = shape->score[n], now = score_of(placer, &shape->task, n);
        int32_t *best = &shape->best[n / LEADERS_BLOCK];

        if (was == now)
                return;
        shape->score[n] = now;
        if (now >= *best)
                *best = now;
        else if (was == *best)
                *best = best_of_block(shape->score + n / LEADERS_BLOCK * LEADERS_BLOCK);
}

static void catch_up(struct leaders_shape *shape, const struct placer *placer)
{
        const struct cluster *cluster = placer->cluster;

        if (shape->seen == 0 || cluster->n_changes + 1 - shape->seen > cluster->ring_mask)
                look_at_all(shape, placer);
        else
                for (uint64_t i = shape->seen - 1; i < cluster->n_changes; i++)
                        look_again(shape, placer, cluster->changed[i & cluster->ring_mask]);
        shape->seen = cluster->n_changes + 1;
}

/* The best node that also has the memory: only where the best of all has not. */
static int64_t best_with_memory(const struct leaders_shape *shape, const struct placer *placer, const struct task *task)
{
        const struct cluster *cluster = placer->cluster;
        int64_t found = -1;

        for (uint32_t n = 0; n < cluster->n_nodes; n++)
                if (shape->score[n] != SCORE_NONE && cluster->nodes[n].mem_mib >= task->mem_mib &&
                    (found < 0 || shape->score[n] > shape->score[found]))
                        found = n;
        return found;
}

int64_t leaders_best(struct leaders *leaders, const struct placer *placer, const struct task *task)
{
        struct leaders_shape *shape = shape_of(leaders, task);
        uint32_t n = blocks(placer->cluster), block = 0;

        catch_up(shape, placer);
        shape->asked = ++leaders->questions;
        for (uint32_t b = 1; b < n; b++)
                if (shape->best[b] > shape->best[block])
                        block = b;
        if (shape->best[block] == SCORE_NONE)
                return -1;
        uint32_t node = block * LEADERS_BLOCK;
        while (shape->score[node] != shape->best[block])
                node++;
        return placer->cluster->nodes[node].mem_mib >= task->mem_mib ? node : best_with_memory(shape, placer, task);
}
