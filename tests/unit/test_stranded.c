/* SPDX-License-Identifier: Apache-2.0 */
/* What of the free GPU is of no use: the worked examples 5 to 7 of cluster scheduling. */
#include <stdlib.h>
#include "cluster_scene.h"
#include "cm.h"
#include "placement/stranded.h"

enum { TASKS = 16 };

/* Nodes of 8 GPUs with so many whole ones free. */
static void begin(struct cluster_scene *scene, size_t n, const uint16_t *free)
{
        cluster_scene_equal(scene, n, 8, NULL);
        for (uint32_t i = 0; i < n; i++) {
                struct task task = GPUS((uint16_t) (8 - free[i]));
                if (task.gpus > 0)
                        cluster_take(&scene->cluster, &task,
                                     &(struct placement){ .node = i, .gpus = (1U << task.gpus) - 1 });
        }
}

static struct stranded_pending pending(const struct cluster_scene *scene, const struct task *tasks, uint32_t n)
{
        struct arena arena = { 0 };
        struct cluster trial;
        struct stranded_pending found;
        uint32_t order[TASKS];
        void *memory;

        (void) cluster_clone(&trial, &scene->cluster, &arena);
        memory = malloc(arena.used);
        arena = (struct arena){ .memory = memory, .bytes = arena.used };
        assert_true(cluster_clone(&trial, &scene->cluster, &arena));
        assert_in_range(n, 0, TASKS);
        found = stranded_for(&scene->cluster, &trial, tasks, n, order);
        free(memory);
        return found;
}

static void examples_5_6_free_gpus_that_no_task_of_a_size_can_use(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                size_t n;
                uint16_t free[4];
                unsigned k;
                uint32_t unusable, partly_used;
        } rows[] = {
                { "5: six and two", 2, { 6, 2 }, 8, 8, 2 },
                { "5: of two", 2, { 6, 2 }, 2, 0, 2 },
                { "5: of three", 2, { 6, 2 }, 3, 2, 2 },
                { "6: spread", 4, { 6, 6, 6, 6 }, 8, 24, 4 },
                { "6: best fit", 4, { 0, 8, 8, 8 }, 8, 0, 0 },
                { "7: four each", 4, { 4, 4, 4, 4 }, 8, 16, 4 },
                { "7: four each, of four", 4, { 4, 4, 4, 4 }, 4, 0, 4 },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct cluster_scene scene;
                struct stranded found;
                begin(&scene, rows[i].n, rows[i].free);
                stranded_count(&scene.cluster, &found);
                row_check(rows[i].name, found.unusable[rows[i].k] == rows[i].unusable);
                row_check(rows[i].name, found.partly_used == rows[i].partly_used);
                row_check(rows[i].name, found.free_milli == found.whole_free * MILLI_PER_GPU);
                cluster_scene_end(&scene);
        }
        rows_end();
}

static void examples_6_7_what_waiting_tasks_leave_unused(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint16_t free[4], tasks[4];
                uint32_t n;
                int64_t gpus;
        } rows[] = {
                { "6: three that want a node", { 6, 6, 6, 6 }, { 8, 8, 8 }, 3, 24 },
                { "7: one that wants a node", { 4, 4, 4, 4 }, { 8 }, 1, 16 },
                { "7: and one for four", { 4, 4, 4, 4 }, { 8, 4 }, 2, 12 },
                { "nobody", { 4, 4, 4, 4 }, { 0 }, 0, 16 },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct cluster_scene scene;
                struct task tasks[4] = { { 0 } };
                for (uint32_t t = 0; t < rows[i].n; t++)
                        tasks[t] = GPUS(rows[i].tasks[t]);
                begin(&scene, 4, rows[i].free);
                struct stranded_pending found = pending(&scene, tasks, rows[i].n);
                row_check(rows[i].name, found.exact && found.milli == rows[i].gpus * MILLI_PER_GPU);
                cluster_scene_end(&scene);
        }
        rows_end();
}

/* 5 + 4 + 2 of a node of 8 with room for 6: largest first gives 5, the best is 4 + 2. With more nodes it says that it did not look. */
static void few_tasks_are_tried_every_way_and_many_largest_first(void **state)
{
        (void) state;
        struct cluster_scene scene;
        struct task tasks[3] = { GPUS(5), GPUS(4), GPUS(2) };

        begin(&scene, 1, (uint16_t[]){ 6 });
        struct stranded_pending found = pending(&scene, tasks, 3);
        assert_true(found.exact);
        assert_int_equal(found.milli, 0);
        cluster_scene_end(&scene);
        begin(&scene, 6, (uint16_t[]){ 6, 0, 0, 0, 0, 0 });
        found = pending(&scene, tasks, 3);
        assert_false(found.exact);
        assert_int_equal(found.milli, MILLI_PER_GPU);
        cluster_scene_end(&scene);
}

static void parts_are_tried_on_every_gpu(void **state)
{
        (void) state;
        struct cluster_scene scene;
        struct task tasks[2] = { PART(400), PART(600) };

        /* left 600 and 400: the first must not take of the one that the second needs */
        cluster_scene_equal(&scene, 1, 2, NULL);
        scene_set_left(&scene, 0, 128000, (uint16_t[]){ 600, 400 });
        struct stranded_pending found = pending(&scene, tasks, 2);
        assert_true(found.exact);
        assert_int_equal(found.milli, 0);
        cluster_scene_end(&scene);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(examples_5_6_free_gpus_that_no_task_of_a_size_can_use),
                cmocka_unit_test(examples_6_7_what_waiting_tasks_leave_unused),
                cmocka_unit_test(few_tasks_are_tried_every_way_and_many_largest_first),
                cmocka_unit_test(parts_are_tried_on_every_gpu),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
