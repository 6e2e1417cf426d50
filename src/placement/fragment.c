/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/fragment.h"

enum { WHOLE_CLASSES = NODE_GPUS_MAX + 1 };

/* Puts @value into the rising @rows, once. */
static uint32_t insert(int32_t *rows, uint32_t n, int32_t value)
{
        uint32_t at = n;

        while (at > 0 && rows[at - 1] > value)
                at--;
        if (at > 0 && rows[at - 1] == value)
                return n;
        memmove(rows + at + 1, rows + at, (n - at) * sizeof(*rows));
        rows[at] = value;
        return n + 1;
}

static uint32_t cpu_class(const struct fragment *fragment, int32_t cpu_milli)
{
        uint32_t step = (uint32_t) cpu_milli >> fragment->cpu_shift;
        uint32_t class = fragment->cpu_start[step < FRAGMENT_CPU_STEPS ? step : FRAGMENT_CPU_STEPS];

        while (class < fragment->n_cpu && fragment->cpu[class] <= cpu_milli)
                class ++;
        return class;
}

static void index_cpu(struct fragment *fragment)
{
        uint32_t class = 0;

        while (fragment->n_cpu > 0 && fragment->cpu[fragment->n_cpu - 1] >> fragment->cpu_shift >= FRAGMENT_CPU_STEPS)
                fragment->cpu_shift++;
        for (uint32_t step = 0; step <= FRAGMENT_CPU_STEPS; step++) {
                while (class < fragment->n_cpu && fragment->cpu[class] <= (int32_t) (step << fragment->cpu_shift))
                        class ++;
                fragment->cpu_start[step] = (uint16_t) class;
        }
}

static void index_parts(struct fragment *fragment, const struct shapes *shapes)
{
        bool wanted[MILLI_PER_GPU + 1] = { false };

        for (uint32_t m = 0; m < shapes->n; m++)
                if (shapes->rows[m].task.gpus == 1)
                        wanted[shapes->rows[m].task.gpu_milli] = true;
        for (int x = 0; x <= MILLI_PER_GPU; x++) {
                fragment->n_part += wanted[x];
                fragment->part_class[x] = (uint16_t) fragment->n_part;
        }
}

static void fill_table(struct fragment *fragment, const struct shapes *shapes, uint32_t table, uint64_t model_bit)
{
        for (uint32_t c = 0; c <= fragment->n_cpu; c++) {
                uint32_t row = table * (fragment->n_cpu + 1) + c;
                int32_t *part = fragment->part + (size_t) row * (fragment->n_part + 1);
                int32_t *whole = fragment->whole + (size_t) row * WHOLE_CLASSES;
                for (uint32_t m = 0; m < shapes->n; m++) {
                        const struct task *task = &shapes->rows[m].task;
                        int32_t weight = (int32_t) shapes->rows[m].count;
                        if (task->gpus == 0 || (task->models && !(task->models & model_bit)) ||
                            cpu_class(fragment, task->cpu_milli) > c)
                                continue;
                        if (task->gpus == 1)
                                for (uint32_t p = fragment->part_class[task->gpu_milli]; p <= fragment->n_part; p++)
                                        part[p] += weight;
                        else
                                for (uint32_t k = task->gpus; k < WHOLE_CLASSES; k++)
                                        whole[k] += weight;
                }
        }
}

bool fragment_build(struct fragment *fragment, const struct shapes *shapes, const struct cluster *cluster,
                    struct arena *arena)
{
        uint32_t tables = 1;
        uint64_t bit_of[NODE_MODELS_MAX + 1] = { 0 };

        *fragment = (struct fragment){ .total = shapes->total };
        for (uint32_t model = 0; model < NODE_MODELS_MAX; model++)
                if (cluster->models >> model & 1) {
                        bit_of[tables] = UINT64_C(1) << model;
                        fragment->model_row[model] = (uint16_t) tables++;
                }
        fragment->cpu = arena_take(arena, arena->memory ? shapes->n + 1 : SHAPES_MAX + 1, sizeof(*fragment->cpu));
        if (!fragment->cpu) { /* no shapes are known where memory is only counted: the most there can be */
                size_t rows = (size_t) tables * (SHAPES_MAX + 1);
                arena_take(arena, rows * (SHAPES_MAX + 1 + WHOLE_CLASSES), sizeof(int32_t));
                return false;
        }
        for (uint32_t m = 0; m < shapes->n; m++)
                if (shapes->rows[m].task.gpus > 0)
                        fragment->n_cpu = insert(fragment->cpu, fragment->n_cpu, shapes->rows[m].task.cpu_milli);
        index_cpu(fragment);
        index_parts(fragment, shapes);
        size_t rows = (size_t) tables * (fragment->n_cpu + 1);
        fragment->part = arena_take(arena, rows * (fragment->n_part + 1), sizeof(*fragment->part));
        fragment->whole = arena_take(arena, rows * WHOLE_CLASSES, sizeof(*fragment->whole));
        if (!fragment->part || !fragment->whole)
                return false;
        for (uint32_t table = 0; table < tables; table++)
                fill_table(fragment, shapes, table, bit_of[table]);
        return true;
}

static struct fragment_row row_of(const struct fragment *fragment, const struct node *node, int32_t cpu_milli)
{
        uint32_t model = node->model < NODE_MODELS_MAX ? node->model : NODE_MODELS_MAX;
        size_t row = fragment->model_row[model] * (fragment->n_cpu + 1) + cpu_class(fragment, cpu_milli);

        return (struct fragment_row){ .part = fragment->part + row * (fragment->n_part + 1),
                                      .whole = fragment->whole + row * WHOLE_CLASSES };
}

/* What the shapes for one GPU could use of one. */
static int64_t used_of_gpu(const struct fragment *fragment, struct fragment_row row, int32_t left)
{
        return (int64_t) left * row.part[fragment->part_class[left]];
}

static int64_t used_of_gpus(const struct fragment *fragment, struct fragment_row row, const struct node *node,
                            const uint16_t *left)
{
        int64_t used = 0;

        for (unsigned i = 0; i < node->gpus; i++)
                used += used_of_gpu(fragment, row, left[i]);
        return used;
}

static int64_t used_of_whole(struct fragment_row row, int full)
{
        return (int64_t) full * MILLI_PER_GPU * row.whole[full];
}

int32_t fragment_for_shape(const struct node *node, const uint16_t *left, const struct task *shape)
{
        int32_t small = 0;
        unsigned fitting = 0;

        for (unsigned i = 0; i < node->gpus; i++) {
                fitting += left[i] >= shape->gpu_milli;
                small += left[i] < shape->gpu_milli ? left[i] : 0;
        }
        if (shape->gpus == 0 || node->cpu_milli < shape->cpu_milli || fitting < shape->gpus ||
            (shape->models && !(shape->models & node->model_bit)))
                return node->free_milli;
        return small;
}

int64_t fragment_of_node(const struct fragment *fragment, const struct node *node, const uint16_t *left)
{
        struct fragment_row row = row_of(fragment, node, node->cpu_milli);

        return node->free_milli * fragment->total - used_of_gpus(fragment, row, node, left) -
               used_of_whole(row, node->full);
}

void fragment_gains(const struct fragment *fragment, const struct node *node, const uint16_t *left,
                    const struct task *task, int64_t gains[NODE_GPUS_MAX])
{
        struct fragment_row now = row_of(fragment, node, node->cpu_milli);
        struct fragment_row then = row_of(fragment, node, node->cpu_milli - task->cpu_milli);
        int64_t used = used_of_gpus(fragment, now, node, left) + used_of_whole(now, node->full);
        int64_t kept = then.part == now.part ? used - used_of_whole(now, node->full)
                                             : used_of_gpus(fragment, then, node, left);
        /* with as much taken of what is free, and so much less of it used by the typical ones */
        int64_t taken = task_milli(task) * fragment->total;

        if (task_kind(task) != TASK_SHARING) {
                gains[0] = taken - used + kept -
                           task->gpus * used_of_gpu(fragment, then, MILLI_PER_GPU) * (task->gpus > 0) +
                           used_of_whole(then, node->full - task->gpus);
                return;
        }
        for (unsigned i = 0; i < node->gpus; i++) {
                if (left[i] < task->gpu_milli) {
                        gains[i] = FRAGMENT_NO_GAIN;
                        continue;
                }
                gains[i] = taken - used + kept - used_of_gpu(fragment, then, left[i]) +
                           used_of_gpu(fragment, then, left[i] - task->gpu_milli) +
                           used_of_whole(then, node->full - (left[i] == MILLI_PER_GPU));
        }
}

bool fragment_sum_init(struct fragment_sum *sum, const struct cluster *cluster, struct arena *arena)
{
        *sum = (struct fragment_sum){ .of_node = arena_take(arena, cluster->n_nodes, sizeof(*sum->of_node)) };
        return sum->of_node;
}

static void look_again(struct fragment_sum *sum, const struct fragment *fragment, const struct cluster *cluster,
                       uint32_t n)
{
        const struct node *node = &cluster->nodes[n];
        int64_t now = fragment_of_node(fragment, node, cluster_left(cluster, node));

        sum->sum += now - sum->of_node[n];
        sum->of_node[n] = now;
}

int64_t fragment_of_cluster(struct fragment_sum *sum, const struct fragment *fragment, const struct cluster *cluster)
{
        uint64_t missed = cluster->n_changes + 1 - sum->seen; /* nothing seen yet: one more than ever happened */

        if (sum->seen == 0 || missed > cluster->ring_mask)
                for (uint32_t n = 0; n < cluster->n_nodes; n++)
                        look_again(sum, fragment, cluster, n);
        else
                for (uint64_t i = sum->seen - 1; i < cluster->n_changes; i++)
                        look_again(sum, fragment, cluster, cluster->changed[i & cluster->ring_mask]);
        sum->seen = cluster->n_changes + 1;
        return sum->sum;
}
