/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong elsewhere when memory was taken back, by number: F09, F30, F37, F38, F51, F65 … F67. */
#include <stdio.h>
#include "arbiter/reclaim.h"
#include "scene_park.h"

#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)

static void begin(struct scene *s, uint64_t bytes)
{
        scene_begin(s);
        (void) scene_device(s, bytes);
        scene_hands(s);
}

static uint64_t works(struct scene *s, struct ask ask)
{
        uint64_t id = scene_request(s, ask);

        assert_runs(s, id);
        scene_uses(s, id, ask.bytes);
        scene_lease(s, id)->granted_ms -= HOURS(10);
        return id;
}

static uint64_t filler(struct scene *s, uint64_t bytes, const char *consumer, uint64_t cost_s)
{
        uint64_t id = works(
                s, (struct ask){
                           .bytes = bytes, .priority = 5, .uid = ALICE, .consumer = consumer, .proven = CHECKPOINT });

        scene_cost(s, ALICE, consumer, WAY_OUT_CHECKPOINT, cost_s, cost_s);
        return id;
}

static uint64_t ask_2(struct scene *s, uint64_t bytes)
{
        return scene_request(s, (struct ask){ .bytes = bytes, .priority = 2, .uid = BOB });
}

static void shows(struct scene *s, uint64_t id, uint64_t bytes)
{
        scene_process_uses(s, scene_owner(s, id), 0, bytes, ROW_USED_KNOWN | ROW_COMPUTE);
}

static void F09_parked_process_that_is_still_listed_is_no_stranger_and_frees_what_was_measured(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, MiB(24000));
        uint64_t f = filler(&s, MiB(8000), "f", 1);
        scene_lies(&s, true);
        scene_says(&s, f, PARK_CALL_PARK, 0);
        shows(&s, f, MiB(40)); /* its context, and its descriptors are open */
        scene_tick_to_s(&s, 1);
        assert_state(&s, f, LEASE_PARKED);
        assert_bytes(scene_free(&s, 0), MiB(24000 - 40));
        scene_tick_to_s(&s, 120);
        assert_int_equal(scene_count(&s, 0, 0, ACTION_STRANGER), 0);
        assert_int_equal(scene_n_orders(&s, 0, HAND_SIGNAL), 0);
        scene_end(&s);
}

static void F30_what_stayed_after_a_release_is_not_counted_on_the_next_time(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, MiB(8200));
        uint64_t app = works(&s, (struct ask){ .bytes = MiB(8000), .priority = 4, .uid = ALICE, .named = COOPERATE });
        uint64_t first = ask_2(&s, MiB(6000));
        assert_state(&s, app, LEASE_ASKING);
        shows(&s, app, MiB(1000));
        scene_says(&s, app, PARK_CALL_YIELDED, 0);
        scene_tick_to_s(&s, 1);
        assert_runs(&s, first);
        scene_release(&s, first);
        scene_tick_to_s(&s, 2);
        assert_state(&s, app, LEASE_THAWING);
        scene_activate(&s, app, 0, 0);
        shows(&s, app, MiB(8000));
        scene_tick_to_s(&s, 400);
        assert_runs(&s, app);
        uint64_t too_much = ask_2(&s, MiB(7800)); /* 200 are free, and 7000 would come back */
        scene_tick_to_s(&s, 500);
        assert_runs(&s, app);
        assert_waits(&s, too_much);
        scene_release(&s, too_much);
        uint64_t enough = ask_2(&s, MiB(7200));
        assert_state(&s, app, LEASE_ASKING);
        (void) enough;
        scene_end(&s);
}

static void F37_what_is_free_already_is_not_waited_for_and_others_growth_is_seen(void **state)
{
        (void) state;
        for (unsigned needs_more = 0; needs_more <= 1; needs_more++) {
                struct scene s;
                begin(&s, GiB(24));
                uint64_t f = filler(&s, GiB(9), "f", 1);
                uint64_t at_once = ask_2(&s, GiB(11));
                assert_runs(&s, at_once); /* nobody was asked for anything */
                assert_int_equal(scene_count(&s, 0, 0, ACTION_ASKED), 0);
                scene_release(&s, at_once);

                scene_lies(&s, true);
                uint64_t p2 = ask_2(&s, needs_more ? GiB(22) : GiB(20));
                assert_state(&s, f, LEASE_ASKING);
                (void) scene_stranger(&s, 0, GiB(3)); /* takes some of it meanwhile */
                scene_process_vanishes(&s, scene_owner(&s, f));
                scene_tick_to_s(&s, scene_s(&s) + 2);
                assert_state(&s, p2, needs_more ? LEASE_QUEUED : LEASE_ACTIVE);
                if (needs_more) /* by its own figure it was gone; what is free is what the card says */
                        assert_int_equal(scene_count_rule(&s, 0, p2, RULE_PLAN_FAILED), 1);
                scene_end(&s);
        }
}

static void F38_two_equal_readings_of_a_process_that_is_still_exiting_settle_nothing(void **state)
{
        (void) state;
        static const uint64_t latencies_s[] = { 1, 5, 12 };
        for (size_t i = 0; i < 3; i++) {
                struct scene s;
                begin(&s, GiB(24));
                uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .priority = 5, .uid = ALICE, .named = RESTART });
                uint64_t p2 = ask_2(&s, GiB(14));
                scene_says(&s, f, PARK_CALL_YIELDED, 0); /* its command was ended, and takes its time to go */
                scene_tick_to_s(&s, latencies_s[i]);
                assert_state(&s, f, LEASE_ASKING);
                assert_waits(&s, p2);
                scene_process_ends(&s, scene_owner(&s, f));
                scene_tick_to_s(&s, latencies_s[i] + 1);
                assert_state(&s, f, LEASE_PARKED);
                assert_runs(&s, p2);
                scene_end(&s);
        }
}

static void F51_need_is_read_again_before_each_step(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint64_t f1 = filler(&s, GiB(6), "1", 1), f2 = filler(&s, GiB(6), "2", 9);
        uint64_t other = works(&s, (struct ask){ .bytes = GiB(12) });
        scene_next(&s, HAND_STOP, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t p2 = ask_2(&s, GiB(12));
        assert_state(&s, f1, LEASE_ASKING);
        scene_process_ends(&s, scene_owner(&s, other));
        scene_release(&s, other); /* gives it all that it needs */
        scene_answers_late(&s, HAND_STOP);
        scene_tick_to_s(&s, 5);
        assert_runs(&s, p2);
        assert_runs(&s, f2); /* nobody touched it */
        assert_int_equal(scene_count(&s, 0, f2, ACTION_ASKED), 0);
        scene_end(&s);
}

static uint8_t member_of(struct scene *s, uint64_t lease_id)
{
        for (uint32_t i = 0; i < s->world->n_processes; i++)
                if (s->world->processes[i].identity.pid == scene_owner(s, lease_id))
                        return s->world->processes[i].member;
        return MEMBER_RUNNING;
}

static void stop_that_was_lost_is_ordered_again_and_not_given_up(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint64_t f = filler(&s, GiB(20), "f", 1);
        scene_next(&s, HAND_STOP, 1, OUTCOME_BLOCKED, HAND_WHY_LOST); /* the hands were killed before they did it */
        uint64_t p2 = ask_2(&s, GiB(14));
        assert_state(&s, f, LEASE_ASKING);
        scene_tick_to_s(&s, 2);
        assert_state(&s, f, LEASE_PARKED);
        assert_int_equal(member_of(&s, f), MEMBER_STOPPED);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void process_that_can_never_be_stopped_keeps_nobody_waiting_for_good(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint64_t f = filler(&s, GiB(20), "f", 1);
        scene_next(&s, HAND_STOP, 1000, OUTCOME_BLOCKED, HAND_WHY_RATE);
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 30);
        assert_state(&s, f, LEASE_PARKED);
        assert_int_equal(member_of(&s, f), MEMBER_CHECKPOINTED);
        assert_runs(&s, p2);
        scene_end(&s);
}

/* It was taken for over when it was back, and ended before its time: kill_at_end, and half of its slot left. */
static void slot_stands_still_while_its_lease_is_stuck_on_its_way_back(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint64_t f =
                works(&s, (struct ask){ .bytes = GiB(20), .slot_s = 600, .kill_at_end = true, .proven = CHECKPOINT });
        scene_tick_to_s(&s, 100);
        scene_says(&s, f, PARK_CALL_PARK, 400);
        scene_next(&s, HAND_UNLOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        scene_tick_to_s(&s, 900);
        assert_state(&s, f, LEASE_STUCK);
        assert_int_equal(scene_count_rule(&s, 0, f, RULE_SLOT_OVER), 0);
        scene_answers_late(&s, HAND_UNLOCK);
        scene_tick_to_s(&s, 905);
        assert_runs(&s, f);
        assert_false(scene_lease(&s, f)->over_time);
        assert_int_equal(scene_n_orders(&s, 0, HAND_SIGNAL), 0);
        uint64_t left_ms = scene_lease(&s, f)->slot_end_ms - s.now_ms;
        assert_true(left_ms > SECONDS(490) && left_ms <= SECONDS(501));
        scene_end(&s);
}

/* Who broke its promise and was then taken off by another way out: all of that time is none of its slot. */
static void slot_stands_still_from_the_first_park_on_where_a_promise_was_broken(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20),
                                             .slot_s = 600,
                                             .named = COOPERATE | CHECKPOINT,
                                             .proven = COOPERATE | CHECKPOINT });
        scene_tick_to_s(&s, 100);
        scene_says(&s, f, PARK_CALL_PARK, 1000);
        scene_yields(&s, f);
        scene_tick_to_s(&s, 102);
        assert_state(&s, f, LEASE_PARKED);
        scene_tick_to_s(&s, 400);
        scene_uses(&s, f, GiB(20));
        scene_tick_to_s(&s, 410);
        assert_state(&s, f, LEASE_PARKED);
        assert_int_equal(scene_lease(&s, f)->park.way, WAY_OUT_CHECKPOINT);
        scene_tick_to_s(&s, 1200);
        assert_runs(&s, f);
        uint64_t left_ms = scene_lease(&s, f)->slot_end_ms - s.now_ms;
        assert_true(left_ms > SECONDS(390) && left_ms <= SECONDS(402));
        scene_end(&s);
}

static void F65_who_fits_elsewhere_does_not_wait_for_one_whose_memory_is_being_taken_back(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint32_t second = scene_device(&s, GiB(24));
        uint64_t f = filler(&s, GiB(20), "f", 1);
        uint32_t card = scene_lease(&s, f)->device;
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t low = scene_request(
                &s, (struct ask){ .bytes = GiB(14), .priority = 3, .uid = CAROL, .uuid = scene_uuid(&s, card) });
        assert_state(&s, f, LEASE_ASKING);
        uint64_t high = ask_2(&s, GiB(10));
        assert_runs(&s, high);
        assert_int_not_equal(scene_lease(&s, high)->device, card);
        (void) second;
        uint64_t peer = scene_request(&s, (struct ask){ .bytes = GiB(2), .priority = 3, .uuid = scene_uuid(&s, card) });
        assert_waits(&s, peer); /* what is there already is kept for it */
        scene_answers_late(&s, HAND_LOCK);
        scene_tick_to_s(&s, 2);
        assert_runs(&s, low);
        scene_end(&s);
}

static void F66_share_that_is_free_already_is_nobody_elses_until_the_rest_arrives(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint64_t a = filler(&s, GiB(10), "a", 1), b = filler(&s, GiB(10), "b", 9);
        scene_next(&s, HAND_CHECKPOINT, 1, OUTCOME_NONE, HAND_WHY_NONE);
        scene_skip(&s, HAND_CHECKPOINT, 1);
        uint64_t p2 = ask_2(&s, GiB(22));
        for (uint64_t at_s = 1; at_s <= 9; at_s++) {
                scene_tick_to_s(&s, at_s);
                assert_state(&s, a, LEASE_PARKED);
                assert_state(&s, b, LEASE_ASKING);
                assert_bytes(scene_free(&s, 0), 0);
                assert_int_equal(scene_request(&s, (struct ask){ .bytes = MiB(1), .priority = 2, .no_wait = true }), 0);
        }
        scene_answers_late(&s, HAND_CHECKPOINT);
        scene_tick_to_s(&s, 11);
        assert_runs(&s, p2);
        assert_int_equal(scene_count(&s, 0, 0, ACTION_PARKED), 2);
        scene_end(&s);
}

static void F67_nobody_is_taken_from_for_what_can_never_suffice(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, GiB(24));
        uint64_t f1 = filler(&s, GiB(6), "1", 1), f2 = filler(&s, GiB(6), "2", 1);
        uint64_t firm = works(&s, (struct ask){ .bytes = GiB(8) });
        uint64_t p2 = ask_2(&s, GiB(20)); /* 4 free and 12 that could come back */
        scene_tick_to_s(&s, 600);
        assert_waits(&s, p2);
        assert_runs(&s, f1);
        assert_runs(&s, f2);
        assert_int_equal(scene_count(&s, 0, 0, ACTION_ASKED), 0);
        const struct action *told = scene_last(&s, p2, ACTION_QUEUED);
        bool named = false;
        for (uint32_t i = 0; i < told->why.n_blockers && i < BLOCKERS_MAX; i++)
                named = named ||
                        (told->why.blockers[i].lease_id == firm && told->why.blockers[i].no == RECLAIM_NO_WAY_OUT);
        assert_true(named);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F09_parked_process_that_is_still_listed_is_no_stranger_and_frees_what_was_measured),
                cmocka_unit_test(F30_what_stayed_after_a_release_is_not_counted_on_the_next_time),
                cmocka_unit_test(F37_what_is_free_already_is_not_waited_for_and_others_growth_is_seen),
                cmocka_unit_test(F38_two_equal_readings_of_a_process_that_is_still_exiting_settle_nothing),
                cmocka_unit_test(F51_need_is_read_again_before_each_step),
                cmocka_unit_test(stop_that_was_lost_is_ordered_again_and_not_given_up),
                cmocka_unit_test(process_that_can_never_be_stopped_keeps_nobody_waiting_for_good),
                cmocka_unit_test(slot_stands_still_while_its_lease_is_stuck_on_its_way_back),
                cmocka_unit_test(slot_stands_still_from_the_first_park_on_where_a_promise_was_broken),
                cmocka_unit_test(F65_who_fits_elsewhere_does_not_wait_for_one_whose_memory_is_being_taken_back),
                cmocka_unit_test(F66_share_that_is_free_already_is_nobody_elses_until_the_rest_arrives),
                cmocka_unit_test(F67_nobody_is_taken_from_for_what_can_never_suffice),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
