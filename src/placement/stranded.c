/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/stranded.h"

void stranded_count(const struct cluster *cluster, struct stranded *stranded)
{
        *stranded = (struct stranded){ .free_milli = cluster->capacity_milli - cluster->used_milli };
        for (uint32_t n = 0; n < cluster->n_nodes; n++) {
                const struct node *node = &cluster->nodes[n];
                stranded->whole_free += node->full;
                stranded->partly_used += node->free_milli > 0 && node->free_milli < node->gpus * MILLI_PER_GPU;
                for (unsigned k = node->full + 1U; k <= NODE_GPUS_MAX; k++)
                        stranded->unusable[k] += node->full;
        }
}

/* The most milli that tasks @at and later can be given, every way tried. */
static int64_t most_for(struct cluster *trial, const struct task *tasks, uint32_t at, uint32_t n)
{
        int64_t most;

        if (at == n)
                return 0;
        most = most_for(trial, tasks, at + 1, n);
        for (uint32_t i = 0; i < trial->n_nodes; i++) {
                const struct node *node = &trial->nodes[i];
                if (!node_fits(node, &tasks[at]))
                        continue;
                for (unsigned gpu = 0; gpu < node->gpus || gpu == 0; gpu++) {
                        struct placement where = { .node = i };
                        bool sharing = task_kind(&tasks[at]) == TASK_SHARING;
                        if (sharing && cluster_left(trial, node)[gpu] < tasks[at].gpu_milli)
                                continue;
                        where.gpus = sharing ? UINT32_C(1) << gpu : node_gpus(trial, node, &tasks[at]);
                        cluster_take(trial, &tasks[at], &where);
                        int64_t with = task_milli(&tasks[at]) + most_for(trial, tasks, at + 1, n);
                        cluster_give(trial, &tasks[at], &where);
                        most = with > most ? with : most;
                        if (!sharing)
                                break;
                }
        }
        return most;
}

static bool smaller(const struct task *tasks, uint32_t a, uint32_t b)
{
        int32_t qa = task_milli(&tasks[a]), qb = task_milli(&tasks[b]);

        return qa != qb ? qa < qb : a > b;
}

static void sink(const struct task *tasks, uint32_t *order, uint32_t at, uint32_t n)
{
        for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
                if (child + 1 < n && smaller(tasks, order[child + 1], order[child]))
                        child++;
                if (!smaller(tasks, order[child], order[at]))
                        return;
                uint32_t swap = order[at];
                order[at] = order[child];
                order[child] = swap;
        }
}

/* By falling size, those alike as given: a heap, whose root is what comes last. */
static void by_size(const struct task *tasks, uint32_t *order, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                order[i] = i;
        for (uint32_t i = n / 2; i-- > 0;)
                sink(tasks, order, i, n);
        for (uint32_t i = n; i-- > 1;) {
                uint32_t swap = order[0];
                order[0] = order[i];
                order[i] = swap;
                sink(tasks, order, 0, i);
        }
}

static int64_t largest_first(struct cluster *trial, const struct task *tasks, uint32_t n, const uint32_t *order)
{
        int64_t given = 0;

        for (uint32_t t = 0; t < n; t++) {
                const struct task *task = &tasks[order[t]];
                int64_t best = -1;
                for (uint32_t i = 0; i < trial->n_nodes && task->gpus > 0; i++)
                        if (node_fits(&trial->nodes[i], task) &&
                            (best < 0 || trial->nodes[i].free_milli < trial->nodes[best].free_milli))
                                best = i;
                if (best < 0)
                        continue;
                struct placement where = { .node = (uint32_t) best,
                                           .gpus = node_gpus(trial, &trial->nodes[best], task) };
                cluster_take(trial, task, &where);
                given += task_milli(task);
        }
        return given;
}

struct stranded_pending stranded_for(const struct cluster *cluster, struct cluster *trial, const struct task *tasks,
                                     uint32_t n, uint32_t *order)
{
        bool exact = cluster->n_nodes <= STRANDED_EXACT_NODES && n <= STRANDED_EXACT_TASKS;
        int64_t free_milli = cluster->capacity_milli - cluster->used_milli, given;

        cluster_copy(trial, cluster);
        by_size(tasks, order, n);
        given = exact ? most_for(trial, tasks, 0, n) : largest_first(trial, tasks, n, order);
        return (struct stranded_pending){ .milli = free_milli - given, .exact = exact };
}
