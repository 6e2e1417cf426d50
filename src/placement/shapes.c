/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/shapes.h"

static uint64_t hash(const struct task *task)
{
        uint64_t h = (uint64_t) (uint32_t) task->cpu_milli << 32 | (uint64_t) task->gpus << 16 | task->gpu_milli;

        h ^= task->models * UINT64_C(0x9e3779b97f4a7c15);
        h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
        return h ^ h >> 31;
}

static bool before(const struct shape *a, const struct shape *b)
{
        if (a->count != b->count)
                return a->count > b->count;
        if (a->task.cpu_milli != b->task.cpu_milli)
                return a->task.cpu_milli > b->task.cpu_milli;
        if (a->task.gpu_milli != b->task.gpu_milli)
                return a->task.gpu_milli > b->task.gpu_milli;
        if (a->task.gpus != b->task.gpus)
                return a->task.gpus > b->task.gpus;
        return a->task.models > b->task.models;
}

static void sink(struct shape *rows, size_t at, size_t n)
{
        for (size_t child; (child = 2 * at + 1) < n; at = child) {
                if (child + 1 < n && before(&rows[child], &rows[child + 1]))
                        child++;
                if (!before(&rows[at], &rows[child]))
                        return;
                struct shape swap = rows[at];
                rows[at] = rows[child];
                rows[child] = swap;
        }
}

/* A heap, whose root is what comes last: no two shapes are equal, so there is one order. */
static void sort(struct shape *rows, size_t n)
{
        for (size_t i = n / 2; i-- > 0;)
                sink(rows, i, n);
        for (size_t i = n; i-- > 1;) {
                struct shape swap = rows[0];
                rows[0] = rows[i];
                rows[i] = swap;
                sink(rows, 0, i);
        }
}

bool shapes_build(struct shapes *shapes, const struct task *tasks, size_t n, struct arena *arena)
{
        size_t slots = 16;

        while (slots < 2 * n)
                slots *= 2;
        *shapes = (struct shapes){ .rows = arena_take(arena, n, sizeof(struct shape)), .total_all = (int64_t) n };
        uint32_t *slot = arena_take(arena, slots, sizeof(*slot)); /* a row's number + 1 */
        if (!slot || !shapes->rows)
                return false;
        for (size_t i = 0; i < n; i++) {
                size_t at = hash(&tasks[i]) & (slots - 1);
                while (slot[at] && !task_same_shape(&shapes->rows[slot[at] - 1].task, &tasks[i]))
                        at = (at + 1) & (slots - 1);
                if (!slot[at]) {
                        shapes->rows[shapes->n_all].task = tasks[i];
                        shapes->rows[shapes->n_all].task.mem_mib = 0;
                        slot[at] = ++shapes->n_all;
                }
                shapes->rows[slot[at] - 1].count++;
        }
        sort(shapes->rows, shapes->n_all);
        while (shapes->n < shapes->n_all && shapes->n < SHAPES_MAX &&
               shapes->total * 100 < shapes->total_all * SHAPES_PERCENT)
                shapes->total += shapes->rows[shapes->n++].count;
        return true;
}
