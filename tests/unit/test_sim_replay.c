/* SPDX-License-Identifier: Apache-2.0 */
/* A trace played through time: who starts when, what is counted, and what a node's failure does. Examples of the cluster
 * reference by their numbers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "placement/backfill.h"
#include "programs/lessor-sim/draw.h"
#include "programs/lessor-sim/events.h"
#include "programs/lessor-sim/replay.h"
#include "cm.h"

enum { NODES_MAX = 16, JOBS_MAX = 512 };

static struct node_spec nodes[NODES_MAX];

static void cluster_of(size_t n, uint16_t gpus)
{
        for (size_t i = 0; i < n; i++)
                nodes[i] = (struct node_spec){ .cpu_milli = 1000, .mem_mib = 1, .gpus = gpus, .model = NODE_NO_MODEL };
}

static struct replay_job job_of(int64_t submit_s, int64_t duration_s, uint32_t gpus, uint32_t node_gpus)
{
        const struct trace_job job = { .submit_s = submit_s, .duration_s = duration_s, .gpus = gpus };
        return replay_job_of(&job, node_gpus);
}

static const struct replay_options plain = { .policy = &policy_best_fit, .seed = 1, .repair_s = 10 };

static struct replay_result replayed(size_t n_nodes, const struct replay_job *jobs, size_t n_jobs)
{
        struct replay_result r;
        struct error err = { 0 };

        if (replay_run(nodes, n_nodes, jobs, n_jobs, &plain, &r, &err) < 0)
                fail_msg("%s", err.msg);
        return r;
}

static void two_gangs_of_8_on_16_gpus_both_start_at_once(void **state) /* example 1 */
{
        const struct replay_job jobs[] = { job_of(0, 50, 8, 4), job_of(0, 50, 8, 4) };
        (void) state;

        cluster_of(4, 4);
        struct replay_result r = replayed(4, jobs, 2);
        assert_int_equal(r.records[0].start_s, 0);
        assert_int_equal(r.records[1].start_s, 0);
        replay_fini(&r);
}

static void second_gang_of_8_on_12_gpus_holds_nothing_while_it_waits(void **state) /* example 2 */
{
        const struct replay_job jobs[] = { job_of(0, 50, 8, 4), job_of(0, 50, 8, 4) };
        (void) state;

        cluster_of(3, 4);
        struct replay_result r = replayed(3, jobs, 2);
        assert_int_equal(r.records[0].start_s, 0);
        assert_int_equal(r.records[1].start_s, 50);
        assert_true(r.used == (__int128) 2 * 8000 * 50); /* 4 stayed free for 50 s, all 12 were never in use */
        assert_true(r.idle_while_waiting == (__int128) 4000 * 50 && r.stranded == 0);
        replay_fini(&r);
}

static void third_gang_of_8_starts_when_the_shorter_one_ends(void **state) /* example 3 */
{
        const struct replay_job jobs[] = { job_of(0, 50, 8, 8), job_of(0, 30, 8, 8), job_of(0, 10, 8, 8) };
        (void) state;

        cluster_of(2, 8);
        struct replay_result r = replayed(2, jobs, 3);
        assert_true(r.records[0].start_s == 0 && r.records[1].start_s == 0 && r.records[2].start_s == 30);
        assert_int_equal(r.last_s, 50);
        replay_fini(&r);
}

static void first_come_first_served_waits_for_the_head(void **state) /* example 4, the first half */
{
        const struct replay_job jobs[] = { job_of(0, 100, 10, 1), job_of(0, 100, 10, 1), job_of(0, 100, 6, 1),
                                           job_of(0, 101, 6, 1) };
        (void) state;

        cluster_of(16, 1);
        struct replay_result r = replayed(16, jobs, 4);
        assert_true(r.records[0].start_s == 0 && r.records[1].start_s == 100 && r.records[2].start_s == 100 &&
                    r.records[3].start_s == 200);
        replay_fini(&r);
}

static void head_that_no_node_has_room_for_strands_what_is_free(void **state)
{
        const struct replay_job jobs[] = { job_of(0, 100, 6, 8), job_of(0, 100, 6, 8), job_of(1, 10, 4, 8) };
        (void) state;

        cluster_of(2, 8);
        struct replay_result r = replayed(2, jobs, 3); /* 2 and 2 are free, and 4 on one node are wanted */
        assert_int_equal(r.records[2].start_s, 100);
        assert_true(r.stranded == (__int128) 4000 * 99);
        replay_fini(&r);
}

static void end_and_arrival_at_one_second_meet(void **state)
{
        const struct replay_job jobs[] = { job_of(0, 10, 8, 8), job_of(10, 10, 8, 8) };
        (void) state;

        cluster_of(1, 8);
        struct replay_result r = replayed(1, jobs, 2);
        assert_int_equal(r.records[1].start_s, 10);
        assert_int_equal(r.most_waiting, 1);
        assert_true(r.idle_while_waiting == 0);
        replay_fini(&r);
}

static void job_that_no_empty_cluster_has_room_for_is_set_aside_and_holds_up_nobody(void **state)
{
        const struct replay_job jobs[] = { job_of(0, 10, 17, 8), job_of(0, 10, 16, 8) };
        (void) state;

        cluster_of(2, 8);
        struct replay_result r = replayed(2, jobs, 2);
        assert_int_equal(r.records[0].fate, REPLAY_NEVER);
        assert_int_equal(r.records[0].start_s, -1);
        assert_int_equal(r.records[1].start_s, 0);
        assert_true(r.never == 1 && r.ended == 1);
        replay_fini(&r);
}

static void job_larger_than_a_node_is_whole_nodes_and_the_rest(void **state)
{
        struct replay_job job = job_of(0, 1, 20, 8), small = job_of(0, 1, 3, 8), even = job_of(0, 1, 16, 8);
        (void) state;

        assert_true(job.parts == 2 && job.part.gpus == 8 && job.has_rest && job.rest.gpus == 4 &&
                    replay_job_milli(&job) == 20000);
        assert_true(small.parts == 1 && small.part.gpus == 3 && !small.has_rest);
        assert_true(even.parts == 2 && !even.has_rest && replay_job_parts(&even) == 2);
}

/* ---- backfill ---- */

static void backfilled(const struct replay_job *jobs, size_t n_jobs, size_t n_nodes, uint32_t depth, int64_t *starts)
{
        const struct replay_options o = { .depth = depth, .seed = 1, .repair_s = 10 };
        struct replay_result r;
        struct error err = { 0 };

        if (replay_run(nodes, n_nodes, jobs, n_jobs, &o, &r, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(r.ended, n_jobs);
        for (size_t i = 0; i < n_jobs; i++)
                starts[i] = r.records[i].start_s;
        replay_fini(&r);
}

static void easy_and_conservative_let_the_third_pass_the_second(void **state) /* example 4 */
{
        const struct replay_job jobs[] = { job_of(0, 100, 10, 1), job_of(0, 100, 10, 1), job_of(0, 100, 6, 1),
                                           job_of(0, 101, 6, 1) };
        int64_t starts[4];
        (void) state;

        cluster_of(16, 1);
        backfilled(jobs, 4, 16, BACKFILL_FCFS, starts);
        assert_true(starts[0] == 0 && starts[1] == 100 && starts[2] == 100 && starts[3] == 200);
        backfilled(jobs, 4, 16, BACKFILL_EASY, starts);
        assert_true(starts[0] == 0 && starts[1] == 100 && starts[2] == 0 && starts[3] == 100);
        backfilled(jobs, 4, 16, BACKFILL_CONSERVATIVE, starts);
        assert_true(starts[0] == 0 && starts[1] == 100 && starts[2] == 0 && starts[3] == 100);
}

static void estimate_that_is_too_long_keeps_a_job_from_passing(void **state)
{
        struct replay_job jobs[] = { job_of(0, 100, 10, 1), job_of(0, 100, 10, 1), job_of(0, 100, 6, 1) };
        int64_t starts[3];
        (void) state;

        cluster_of(16, 1);
        backfilled(jobs, 3, 16, BACKFILL_EASY, starts);
        assert_int_equal(starts[2], 0);
        jobs[2].estimate_s = 200; /* beside the second one from 100 on: 10 + 6 fit */
        backfilled(jobs, 3, 16, BACKFILL_EASY, starts);
        assert_int_equal(starts[2], 0);
        jobs[1] = job_of(0, 100, 12, 1); /* 12 + 6 do not */
        backfilled(jobs, 3, 16, BACKFILL_EASY, starts);
        assert_int_equal(starts[2], 200);
        jobs[2].estimate_s = 100;
        backfilled(jobs, 3, 16, BACKFILL_EASY, starts);
        assert_int_equal(starts[2], 0);
}

/* ---- failures ---- */

static void job_on_a_node_that_fails_begins_anew_and_ends_later(void **state)
{
        const struct replay_job jobs[] = { job_of(0, 1000, 8, 8) };
        struct replay_options o = plain;
        struct replay_result r;
        (void) state;

        cluster_of(1, 8);
        o.fail_each_s = 900; /* 1 to 1800 s after each repair: one in two is too soon */
        assert_int_equal(replay_run(nodes, 1, jobs, 1, &o, &r, NULL), 0);
        assert_int_equal(r.records[0].fate, REPLAY_ENDED);
        assert_true(r.restarts > 0 && r.records[0].restarts == r.restarts && r.restarts <= r.node_failures);
        assert_int_equal(r.records[0].first_start_s, 0); /* its wait ended then */
        assert_int_equal(r.records[0].end_s, r.records[0].start_s + 1000);
        assert_true(r.used == r.wasted + (__int128) 8000 * 1000);
        replay_fini(&r);
}

static void job_that_takes_longer_than_its_node_lasts_is_given_up(void **state)
{
        const struct replay_job jobs[] = { job_of(0, 1000, 8, 8), job_of(1, 1, 1, 8) };
        struct replay_options o = plain;
        struct replay_result r;
        (void) state;

        cluster_of(1, 8);
        o.fail_each_s = 400; /* 1 to 800 s */
        assert_int_equal(replay_run(nodes, 1, jobs, 2, &o, &r, NULL), 0);
        assert_int_equal(r.records[0].fate, REPLAY_GIVEN_UP);
        assert_int_equal(r.records[0].restarts, REPLAY_RESTARTS_MAX);
        assert_int_equal(r.records[1].fate, REPLAY_ENDED);
        assert_true(r.given_up == 1 && r.used == r.wasted + (__int128) 1000 * 1);
        replay_fini(&r);
}

static size_t made(struct replay_job *jobs, uint64_t seed, uint32_t node_gpus)
{
        struct draw d = draw_of(seed, 99);
        size_t n = 1 + (size_t) draw_below(&d, JOBS_MAX);
        int64_t at_s = 0;

        for (size_t i = 0; i < n; i++) {
                at_s += (int64_t) draw_below(&d, 20);
                jobs[i] = job_of(at_s, 1 + (int64_t) draw_below(&d, 200), 1 + (uint32_t) draw_below(&d, 20), node_gpus);
        }
        return n;
}

static void whatever_happens_every_job_ends_once_in_the_order_they_came(void **state)
{
        static struct replay_job jobs[JOBS_MAX];
        int rows_failed = 0;
        (void) state;

        for (uint64_t seed = 0; seed < 52; seed++) {
                char name[24];
                struct replay_options o = plain;
                struct replay_result r;
                struct error err = { 0 };
                size_t n = made(jobs, seed, 4);
                __int128 work = 0;
                cluster_of(6, 4);
                o.seed = seed;
                o.policy = seed % 3 == 0 ? &policy_random : seed % 3 == 1 ? &policy_fgd : &policy_spread;
                if (seed >= 40) {
                        n = n < 50 ? n : 50;
                        o.policy = NULL;
                        o.depth = seed % 3 == 0 ? BACKFILL_FCFS : seed % 3 == 1 ? BACKFILL_EASY : BACKFILL_CONSERVATIVE;
                }
                o.fail_each_s = seed % 2 == 0 ? 5000 : 0;
                (void) snprintf(name, sizeof(name), "seed %d", (int) seed);
                if (replay_run(nodes, 6, jobs, n, &o, &r, &err) < 0)
                        fail_msg("%s: %s", name, err.msg);
                row_check(name, r.ended == n && r.never == 0);
                for (size_t i = 0; i < n; i++) {
                        work += (__int128) replay_job_milli(&jobs[i]) * jobs[i].duration_s;
                        row_check(name, r.records[i].first_start_s >= jobs[i].submit_s);
                        row_check(name, r.records[i].end_s == r.records[i].start_s + jobs[i].duration_s);
                        row_check(name, o.fail_each_s > 0 || o.depth > 0 || i == 0 ||
                                                r.records[i].start_s >= r.records[i - 1].start_s);
                }
                row_check(name, r.used == work + r.wasted); /* nothing is counted twice or lost */
                row_check(name, r.stranded <= r.idle_while_waiting && r.n_buckets <= REPLAY_BUCKETS);
                replay_fini(&r);
        }
        rows_end();
}

static void events_come_by_time_then_ends_before_nodes_then_by_number(void **state)
{
        const struct event given[] = { { 5, EVENT_NODE_FAILS, 1, 0 }, { 5, EVENT_END, 9, 0 },
                                       { 4, EVENT_NODE_FAILS, 7, 0 }, { 5, EVENT_NODE_BACK, 2, 0 },
                                       { 5, EVENT_END, 3, 1 },        { 5, EVENT_END, 3, 0 } };
        const uint32_t ids[] = { 7, 3, 3, 9, 2, 1 };
        struct events events = { 0 };
        (void) state;

        for (size_t i = 0; i < 6; i++)
                assert_int_equal(events_add(&events, given[i], NULL), 0);
        for (size_t i = 0; i < 6; i++) {
                assert_int_equal(events_first(&events)->id, ids[i]);
                assert_true(i != 1 || events_first(&events)->generation == 0);
                events_take(&events);
        }
        assert_null(events_first(&events));
        events_fini(&events);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(two_gangs_of_8_on_16_gpus_both_start_at_once),
                cmocka_unit_test(second_gang_of_8_on_12_gpus_holds_nothing_while_it_waits),
                cmocka_unit_test(third_gang_of_8_starts_when_the_shorter_one_ends),
                cmocka_unit_test(first_come_first_served_waits_for_the_head),
                cmocka_unit_test(head_that_no_node_has_room_for_strands_what_is_free),
                cmocka_unit_test(end_and_arrival_at_one_second_meet),
                cmocka_unit_test(job_that_no_empty_cluster_has_room_for_is_set_aside_and_holds_up_nobody),
                cmocka_unit_test(job_larger_than_a_node_is_whole_nodes_and_the_rest),
                cmocka_unit_test(easy_and_conservative_let_the_third_pass_the_second),
                cmocka_unit_test(estimate_that_is_too_long_keeps_a_job_from_passing),
                cmocka_unit_test(job_on_a_node_that_fails_begins_anew_and_ends_later),
                cmocka_unit_test(job_that_takes_longer_than_its_node_lasts_is_given_up),
                cmocka_unit_test(whatever_happens_every_job_ends_once_in_the_order_they_came),
                cmocka_unit_test(events_come_by_time_then_ends_before_nodes_then_by_number),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
