/* SPDX-License-Identifier: Apache-2.0 */
/* Moving work to make room: the worked examples 24 and 25 of cluster scheduling. */
#include <stdlib.h>
#include "cluster_scene.h"
#include "cm.h"
#include "placement/defrag.h"
#include "placement/move.h"

enum { JOBS = 8, GANG = 8 };
#define GB UINT64_C(1000000000)

static void example_24_cost_of_parking_moving_and_ending(void **state)
{
        (void) state;
        const struct move_rates *rates = &move_rates_default;

        assert_int_equal(move_loss_gpu_ms(rates, 1, 40 * GB, false), 4700);
        assert_int_equal(move_loss_gpu_ms(rates, 1, 40 * GB, true), 7900);
        assert_int_equal(move_loss_gpu_ms(rates, 4, 40 * GB, false), 4 * 4700);
        /* park rather than lose ten minutes, end rather than park what is two seconds old */
        assert_int_equal(move_kill_loss_gpu_ms(1, 600000, 0), 600000);
        assert_int_equal(move_kill_loss_gpu_ms(1, 2000, 1000), 3000);
        assert_true(move_kill_loss_gpu_ms(1, 2000, 1000) < move_loss_gpu_ms(rates, 1, 40 * GB, false));
}

/* Two nodes of eight with four jobs of one GPU each. */
struct two_nodes {
        struct cluster_scene scene;
        struct topology topology;
        struct defrag defrag;
        void *memory;
        struct gang_role one, eight;
        struct gang single, waiting;
        struct gang_member at[JOBS], to[JOBS], members[GANG];
        struct defrag_job jobs[JOBS];
};

static void begin(struct two_nodes *t)
{
        struct arena arena = { 0 };

        *t = (struct two_nodes){ .one = { .task = GPUS(1), .count = 1 }, .eight = { .task = GPUS(8), .count = 1 } };
        t->single = (struct gang){ .roles = &t->one, .n_roles = 1 };
        t->waiting = (struct gang){ .roles = &t->eight, .n_roles = 1 };
        cluster_scene_equal(&t->scene, 2, 8, NULL);
        for (int round = 0; round < 2; round++) {
                (void) topology_init(&t->topology, 2, NULL, 0, &arena, NULL);
                (void) defrag_init(&t->defrag, &t->scene.cluster, &t->topology, JOBS, &arena);
                if (round == 0)
                        arena = (struct arena){ .bytes = arena.used, .memory = t->memory = malloc(arena.used) };
        }
        assert_int_equal(arena.used, arena.bytes);
        for (uint32_t i = 0; i < JOBS; i++) {
                t->at[i].where = (struct placement){ .node = i / 4, .gpus = 1U << i % 4 };
                cluster_take(&t->scene.cluster, &t->one.task, &t->at[i].where);
                t->jobs[i] =
                        (struct defrag_job){ .gang = &t->single,
                                             .members = &t->at[i],
                                             .n = 1,
                                             .loss_gpu_ms = move_loss_gpu_ms(&move_rates_default, 1, 40 * GB, true),
                                             .movable = true,
                                             .to = &t->to[i] };
        }
}

static void end(struct two_nodes *t)
{
        cluster_scene_end(&t->scene);
        free(t->memory);
}

static void example_25_moves_are_made_where_they_are_worth_it(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t saved_ms;
                bool moves;
        } rows[] = { { "ten minutes", 600000, true },
                     { "five seconds", 5000, false },
                     { "5.925 s", 5925, false },
                     { "5.926 s", 5926, true } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct two_nodes t;
                uint64_t loss_gpu_ms;
                unsigned moves = 0;
                begin(&t);
                row_check(rows[i].name, defrag_plan(&t.defrag, &t.waiting, t.members, rows[i].saved_ms, t.jobs, JOBS,
                                                    &loss_gpu_ms) == rows[i].moves);
                row_check(rows[i].name, loss_gpu_ms == 31600);
                for (uint32_t j = 0; j < JOBS; j++)
                        moves += t.jobs[j].moves;
                row_check(rows[i].name, moves == (rows[i].moves ? 4 : 0));
                row_check(rows[i].name, t.scene.cluster.used_milli == JOBS * MILLI_PER_GPU);
                end(&t);
        }
        rows_end();
}

static void plan_can_be_carried_out(void **state)
{
        (void) state;
        struct two_nodes t;
        uint64_t loss_gpu_ms;

        begin(&t);
        assert_true(defrag_plan(&t.defrag, &t.waiting, t.members, 600000, t.jobs, JOBS, &loss_gpu_ms));
        for (uint32_t j = 0; j < JOBS; j++)
                if (t.jobs[j].moves)
                        cluster_give(&t.scene.cluster, &t.one.task, &t.at[j].where);
        cluster_take(&t.scene.cluster, &t.eight.task, &t.members[0].where);
        for (uint32_t j = 0; j < JOBS; j++)
                if (t.jobs[j].moves)
                        cluster_take(&t.scene.cluster, &t.one.task, &t.to[j].where);
        assert_int_equal(t.scene.cluster.used_milli, t.scene.cluster.capacity_milli);
        end(&t);
}

static void nobody_moves_who_must_not_or_has_nowhere_to_go(void **state)
{
        (void) state;
        struct two_nodes t;
        uint64_t loss_gpu_ms;
        struct task one = GPUS(1);

        /* one on each node is pinned */
        begin(&t);
        t.jobs[0].movable = t.jobs[4].movable = false;
        assert_false(defrag_plan(&t.defrag, &t.waiting, t.members, 600000, t.jobs, JOBS, &loss_gpu_ms));
        assert_true(loss_gpu_ms == UINT64_MAX);
        /* on one only: the other's move */
        t.jobs[4].movable = true;
        assert_true(defrag_plan(&t.defrag, &t.waiting, t.members, 600000, t.jobs, JOBS, &loss_gpu_ms));
        for (uint32_t j = 0; j < JOBS; j++)
                assert_int_equal(t.jobs[j].moves, j >= 4);
        assert_int_equal(t.members[0].where.node, 1);
        end(&t);
        /* one GPU more is in use: seven places for eight */
        begin(&t);
        cluster_take(&t.scene.cluster, &one, &(struct placement){ .node = 0, .gpus = 1U << 7 });
        cluster_take(&t.scene.cluster, &one, &(struct placement){ .node = 1, .gpus = 1U << 7 });
        assert_false(defrag_plan(&t.defrag, &t.waiting, t.members, 600000, t.jobs, JOBS, &loss_gpu_ms));
        assert_true(loss_gpu_ms == UINT64_MAX);
        end(&t);
}

/* One of a job's two has started: what moves is that one, and nothing is written beyond it. */
static void job_that_started_with_fewer_moves_as_it_is(void **state)
{
        (void) state;
        struct two_nodes t;
        struct gang_role pair = { .task = GPUS(1), .count = 2 };
        struct gang elastic = { .roles = &pair, .n_roles = 1, .min = 1 };
        uint64_t loss_gpu_ms;

        begin(&t);
        for (uint32_t j = 0; j < JOBS; j++)
                t.jobs[j].gang = &elastic;
        assert_true(defrag_plan(&t.defrag, &t.waiting, t.members, 600000, t.jobs, JOBS, &loss_gpu_ms));
        assert_int_equal(loss_gpu_ms, 31600);
        end(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(example_24_cost_of_parking_moving_and_ending),
                cmocka_unit_test(example_25_moves_are_made_where_they_are_worth_it),
                cmocka_unit_test(plan_can_be_carried_out),
                cmocka_unit_test(job_that_started_with_fewer_moves_as_it_is),
                cmocka_unit_test(nobody_moves_who_must_not_or_has_nowhere_to_go),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
