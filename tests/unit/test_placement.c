/* SPDX-License-Identifier: Apache-2.0 */
/* Which node, by each policy: the worked examples 5, 6 and 8 to 11 of cluster scheduling, and what else a policy promises. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cluster_scene.h"
#include "cm.h"
#include "placement/fgd.h"

static const struct node_spec small = { .cpu_milli = 64000, .mem_mib = 65536, .gpus = 8, .model = SCENE_MODEL };

static void example_5_best_fit_leaves_room_for_the_task_that_wants_a_node(void **state)
{
        (void) state;
        static const struct {
                const char *policy;
                int first, second;
        } rows[] = { { "first-fit", 0, -1 }, { "best-fit", 1, 0 } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct cluster_scene scene;
                cluster_scene_equal(&scene, 2, 8, rows[i].policy);
                struct task six = GPUS(6);
                cluster_take(&scene.cluster, &six, &(struct placement){ .node = 1, .gpus = 0x3f });
                row_check(rows[i].policy, scene_place(&scene, GPUS(2)) == rows[i].first);
                row_check(rows[i].policy, scene_place(&scene, GPUS(8)) == rows[i].second);
                row_check(rows[i].policy,
                          scene.cluster.capacity_milli - scene.cluster.used_milli == (rows[i].second < 0 ? 8000 : 0));
                cluster_scene_end(&scene);
        }
        rows_end();
}

static void example_6_spread_strands_every_gpu_that_best_fit_places(void **state)
{
        (void) state;
        static const struct {
                const char *policy;
                int placed;
                int64_t free_milli;
        } rows[] = { { "spread", 0, 24000 }, { "best-fit", 3, 0 } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct cluster_scene scene;
                int placed = 0;
                cluster_scene_equal(&scene, 4, 8, rows[i].policy);
                for (int t = 0; t < 4; t++)
                        row_check(rows[i].policy, scene_place(&scene, GPUS(2)) >= 0);
                for (int t = 0; t < 3; t++)
                        placed += scene_place(&scene, GPUS(8)) >= 0;
                row_check(rows[i].policy, placed == rows[i].placed);
                row_check(rows[i].policy,
                          scene.cluster.capacity_milli - scene.cluster.used_milli == rows[i].free_milli);
                cluster_scene_end(&scene);
        }
        rows_end();
}

/* Shapes of weight .5 (4 cores, half a GPU), .3 (8 cores, two GPUs), .2 (4 cores, no GPU): example 8's. */
static void past_of_example_8(struct task past[10])
{
        for (int i = 0; i < 10; i++)
                past[i] = i < 5   ? (struct task){ .cpu_milli = 4000, .gpus = 1, .gpu_milli = 500 }
                          : i < 8 ? (struct task){ .cpu_milli = 8000, .gpus = 2, .gpu_milli = 1000 }
                                  : (struct task){ .cpu_milli = 4000 };
}

static void example_8_scene(struct cluster_scene *scene, const char *policy, int32_t cpu_milli)
{
        struct node_spec spec = { .cpu_milli = 16000, .mem_mib = 65536, .gpus = 2, .model = SCENE_MODEL };
        struct task past[10];

        past_of_example_8(past);
        cluster_scene_init(scene, &spec, 1, policy, past, 10);
        scene_set_left(scene, 0, cpu_milli, (uint16_t[]){ 1000, 400 });
}

static void example_8_fragment_is_what_the_typical_tasks_cannot_use(void **state)
{
        (void) state;
        struct cluster_scene scene;

        example_8_scene(&scene, "fgd", 16000);
        assert_int_equal(scene.placer.shapes.n, 3);
        assert_int_equal(placer_fragment(&scene.placer), 900 * 10);
        cluster_scene_end(&scene);
        example_8_scene(&scene, "fgd", 3000);
        assert_int_equal(placer_fragment(&scene.placer), 1400 * 10);
        cluster_scene_end(&scene);
}

static void example_9_fgd_takes_the_gpu_on_which_the_fragment_falls_most(void **state)
{
        (void) state;
        struct cluster_scene scene;
        struct task task = { .cpu_milli = 2000, .gpus = 1, .gpu_milli = 400 };
        int64_t gains[NODE_GPUS_MAX];
        struct placement where;

        example_8_scene(&scene, "fgd", 16000);
        fragment_gains(&scene.placer.fragment, &scene.cluster.nodes[0], scene.cluster.left, &task, gains);
        assert_int_equal(gains[0], 200 * 10);
        assert_int_equal(gains[1], 400 * 10);
        assert_int_equal(fgd_score(gains[0], 10), 54);
        assert_int_equal(fgd_score(gains[1], 10), 59);
        assert_true(placer_place(&scene.placer, &task, 0, &where));
        assert_int_equal(where.gpus, 1 << 1);
        assert_int_equal(placer_fragment(&scene.placer), 500 * 10);
        cluster_scene_end(&scene);
}

static void example_10_a_gain_counts_by_steps(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                int64_t milli;
                int32_t score;
        } rows[] = {
                { "10", 10, 50 },         { "30", 30, 50 },   { "45 is a step more", 45, 51 },
                { "-10", -10, 49 },       { "0", 0, 50 },     { "40.00 is not yet", 40, 50 },
                { "41", 41, 51 },         { "80", 80, 51 },   { "81", 81, 52 },
                { "-40", -40, 49 },       { "-41", -41, 48 }, { "a node of 8", 8000, 99 },
                { "and back", -8000, 0 }, { "400", 400, 59 },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                for (int64_t total = 1; total < 1000000; total *= 77)
                        row_check(rows[i].name, fgd_score(rows[i].milli * total, total) == rows[i].score);
        rows_end();
}

static void example_10_within_a_step_the_first_node_wins(void **state)
{
        (void) state;
        struct node_spec specs[2] = { small, small };
        struct task past[1] = { { .cpu_milli = 0, .gpus = 1, .gpu_milli = 500 } };
        struct cluster_scene scene;
        static const struct {
                const char *name;
                uint16_t
                        milli; /* of the task: its gain where only a fragment is left; where a whole GPU is, it has none */
                int node;
        } rows[] = { { "gains 0 and 30", 30, 0 }, { "gains 0 and 40", 40, 0 }, { "gains 0 and 45", 45, 1 } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                cluster_scene_init(&scene, specs, 2, "fgd", past, 1);
                scene_set_left(&scene, 0, 64000, (uint16_t[8]){ 1000 });
                scene_set_left(&scene, 1, 64000, (uint16_t[8]){ 400 });
                row_check(rows[i].name, scene_place(&scene, PART(rows[i].milli)) == rows[i].node);
                cluster_scene_end(&scene);
        }
        rows_end();
}

static int32_t scored(struct cluster_scene *scene, uint32_t node, struct task task)
{
        return scene->placer.policy->score(&scene->placer, &scene->cluster.nodes[node], &task);
}

static void example_11_published_scores(void **state)
{
        (void) state;
        struct node_spec specs[3] = { small, small, small };
        struct cluster_scene scene;
        struct task task = { .cpu_milli = 8000, .gpus = 1, .gpu_milli = 1000 };
        static const uint16_t three[8] = { 1000, 1000, 1000 },
                              third[8] = { 300, 1000, 1000, 1000, 1000, 1000, 1000, 1000 };

        cluster_scene_init(&scene, specs, 1, "best-fit", NULL, 0);
        scene_set_left(&scene, 0, 64000, three);
        assert_int_equal(scored(&scene, 0, task), 65);
        cluster_scene_end(&scene);
        cluster_scene_init(&scene, specs, 1, "dotprod", NULL, 0);
        scene_set_left(&scene, 0, 64000, three);
        assert_int_equal(scored(&scene, 0, task), 96);
        cluster_scene_end(&scene);

        specs[1].gpus = 2;
        cluster_scene_init(&scene, specs, 3, "gpu-packing", NULL, 0);
        scene_set_left(&scene, 2, 64000, third);
        assert_int_equal(scored(&scene, 0, task), 25);
        assert_int_equal(scored(&scene, 1, task), 31);
        assert_int_equal(scored(&scene, 2, PART(250)), 97);
        assert_int_equal(scored(&scene, 2, task), 49);
        cluster_scene_end(&scene);

        specs[1].gpus = 8;
        cluster_scene_init(&scene, specs, 1, "gpu-clustering", NULL, 0);
        scene_set_left(&scene, 0, 64000, (uint16_t[8]){ 500, 500, 500, 500, 1000, 1000, 1000, 1000 });
        assert_int_equal(scored(&scene, 0, PART(100)), 81);
        cluster_scene_end(&scene);
}

/* Nodes a and b have as many GPUs; a's CPU is left over, b's is just what its GPUs need. */
static void ours_takes_cpu_from_where_no_gpu_needs_it(void **state)
{
        (void) state;
        struct node_spec specs[2] = { { .cpu_milli = 80000, .mem_mib = 65536, .gpus = 8, .model = 0 },
                                      { .cpu_milli = 128000, .mem_mib = 65536, .gpus = 2, .model = 1 } };
        struct task past[8];
        struct cluster_scene scene;

        for (int i = 0; i < 8; i++)
                past[i] = (struct task){ .cpu_milli = 10000, .gpus = 1, .gpu_milli = 1000 };
        cluster_scene_init(&scene, specs, 2, "ours", past, 8);
        assert_int_equal(scene.placer.prices.cpu_milli_per_gpu, 10000);
        assert_int_equal(scene_place(&scene, (struct task){ .cpu_milli = 10000 }), 1);
        cluster_scene_end(&scene);
        cluster_scene_init(&scene, specs, 2, "first-fit", past, 8);
        assert_int_equal(scene_place(&scene, (struct task){ .cpu_milli = 10000 }), 0);
        cluster_scene_end(&scene);
}

/* Half of the past insists on nodes that the other half can do without: by their model, or by how much they want at once. */
static void ours_leaves_nodes_to_tasks_that_have_no_others(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct task insists;
        } rows[] = {
                { "a model", { .cpu_milli = 8000, .models = 1, .gpus = 1, .gpu_milli = 1000 } },
                { "a node of eight beside 100 cores", { .cpu_milli = 100000, .gpus = 8, .gpu_milli = 1000 } },
        };
        struct node_spec specs[2] = { { .cpu_milli = 128000, .mem_mib = 65536, .gpus = 8, .model = 0 },
                                      { .cpu_milli = 64000, .mem_mib = 65536, .gpus = 8, .model = 1 } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct task past[8], any = { .cpu_milli = 8000, .gpus = 1, .gpu_milli = 1000 };
                struct cluster_scene scene;
                for (int t = 0; t < 8; t++)
                        past[t] = t % 2 ? rows[i].insists : any;
                cluster_scene_init(&scene, specs, 2, "ours", past, 8);
                for (int t = 0; t < 8; t++)
                        row_check(rows[i].name, scene_place(&scene, any) == 1);
                row_check(rows[i].name, scene_place(&scene, rows[i].insists) == 0);
                cluster_scene_end(&scene);
        }
        rows_end();
}

/* Tasks without a GPU that want all CPU there is make what comes beside a GPU scarce. */
static void ours_counts_all_cpu_where_it_is_short(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                int32_t cpu_only;
                int64_t beside_a_gpu;
        } rows[] = { { "none", 0, 8000 },
                     { "half is left", 32000, 8000 },
                     { "95 % is wanted", 57600, 8000 },
                     { "halfway to all of it", 60800, 11800 },
                     { "all of it", 64000, 16000 },
                     { "more than there is", 100000, 20500 } };
        struct node_spec spec = { .cpu_milli = 128000, .mem_mib = 65536, .gpus = 8, .model = 0 };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct task past[9] = { { .cpu_milli = rows[i].cpu_only } };
                struct cluster_scene scene;
                for (int t = 1; t < 9; t++)
                        past[t] = (struct task){ .cpu_milli = 8000, .gpus = 1, .gpu_milli = 1000 };
                cluster_scene_init(&scene, &spec, 1, "ours", past, 9);
                row_check(rows[i].name, scene.placer.prices.cpu_milli_per_gpu == rows[i].beside_a_gpu);
                if (scene.placer.prices.cpu_milli_per_gpu != rows[i].beside_a_gpu)
                        print_message("# %lld\n", (long long) scene.placer.prices.cpu_milli_per_gpu);
                cluster_scene_end(&scene);
        }
        rows_end();
}

static void tie_ends_at_the_first_node_of_the_order(void **state)
{
        (void) state;
        size_t n;
        const struct placement_policy *const *all = placement_policies(&n);
        int rows_failed = 0;

        for (size_t i = 0; i < n; i++) {
                struct cluster_scene scene;
                if (all[i]->random_node)
                        continue;
                cluster_scene_equal(&scene, 5, 4, all[i]->name);
                row_check(all[i]->name, scene_place(&scene, GPUS(4)) == 0);
                row_check(all[i]->name, scene_place(&scene, GPUS(4)) == 1);
                cluster_scene_end(&scene);
        }
        rows_end();
}

static void node_without_the_memory_gives_way_to_the_next_best(void **state)
{
        (void) state;
        struct node_spec specs[3] = { small, small, small };
        struct cluster_scene scene;
        struct task large = GPUS(2);

        specs[0].mem_mib = 100;
        specs[1].gpus = 4;
        large.mem_mib = 200;
        cluster_scene_init(&scene, specs, 3, "best-fit", NULL, 0);
        assert_int_equal(scene_place(&scene, large), 1);
        assert_int_equal(scene_place(&scene, GPUS(2)), 1);
        assert_int_equal(scene_place(&scene, large), 2);
        large.mem_mib = 65536;
        assert_int_equal(scene_place(&scene, large), -1);
        cluster_scene_end(&scene);
}

static void closed_node_takes_nothing_new_and_keeps_what_it_has(void **state)
{
        (void) state;
        struct cluster_scene scene;

        cluster_scene_equal(&scene, 2, 8, "best-fit");
        assert_int_equal(scene_place(&scene, GPUS(1)), 0);
        cluster_close(&scene.cluster, 0, true);
        assert_int_equal(scene_place(&scene, GPUS(1)), 1);
        assert_int_equal(scene.cluster.nodes[0].free_milli, 7000);
        cluster_close(&scene.cluster, 0, false);
        assert_int_equal(scene_place(&scene, GPUS(7)), 0);
        cluster_scene_end(&scene);
}

static void task_that_is_none_is_refused_by_its_field(void **state)
{
        (void) state;
        static const struct {
                const char *name, *words;
                struct task task;
        } rows[] = {
                { "parts of several", "gpu_milli is 500 with 2 GPUs", { .gpus = 2, .gpu_milli = 500 } },
                { "none of one", "gpu_milli is 0", { .gpus = 1 } },
                { "part of none", "gpu_milli is 5 without a GPU", { .gpu_milli = 5 } },
                { "more than all", "gpu_milli is 1001", { .gpus = 1, .gpu_milli = 1001 } },
                { "too many", "gpus is 17", { .gpus = 17, .gpu_milli = 1000 } },
                { "less than no CPU", "cpu_milli is -1", { .cpu_milli = -1 } },
                { "less than no memory", "mem_mib is -1", { .mem_mib = -1 } },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct error err = { 0 };
                row_check(rows[i].name, task_check(&rows[i].task, &err) == -EINVAL);
                row_check(rows[i].name, strstr(err.msg, rows[i].words));
        }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(example_5_best_fit_leaves_room_for_the_task_that_wants_a_node),
                cmocka_unit_test(example_6_spread_strands_every_gpu_that_best_fit_places),
                cmocka_unit_test(example_8_fragment_is_what_the_typical_tasks_cannot_use),
                cmocka_unit_test(example_9_fgd_takes_the_gpu_on_which_the_fragment_falls_most),
                cmocka_unit_test(example_10_a_gain_counts_by_steps),
                cmocka_unit_test(example_10_within_a_step_the_first_node_wins),
                cmocka_unit_test(example_11_published_scores),
                cmocka_unit_test(ours_takes_cpu_from_where_no_gpu_needs_it),
                cmocka_unit_test(ours_leaves_nodes_to_tasks_that_have_no_others),
                cmocka_unit_test(ours_counts_all_cpu_where_it_is_short),
                cmocka_unit_test(tie_ends_at_the_first_node_of_the_order),
                cmocka_unit_test(node_without_the_memory_gives_way_to_the_next_best),
                cmocka_unit_test(closed_node_takes_nothing_new_and_keeps_what_it_has),
                cmocka_unit_test(task_that_is_none_is_refused_by_its_field),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
