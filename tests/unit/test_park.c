/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Off a device and back, step by step: the worked examples D1 … D8 and C14 of the rules, the defects that the field knew before, and
 * what goes wrong on the way.
 */
#include <stdio.h>
#include <string.h>
#include "arbiter/park.h"
#include "arbiter/reclaim.h"
#include "scene_park.h"

#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define KILL WAY_OUT_BIT(WAY_OUT_KILL)

static uint64_t works(struct scene *s, struct ask ask)
{
        uint64_t id = scene_request(s, ask);

        assert_runs(s, id);
        scene_uses(s, id, ask.bytes);
        scene_lease(s, id)->granted_ms -= HOURS(10);
        return id;
}

static uint64_t filler(struct scene *s, uint64_t bytes, const char *consumer)
{
        return works(s,
                     (struct ask){
                             .bytes = bytes, .priority = 5, .uid = ALICE, .consumer = consumer, .proven = CHECKPOINT });
}

static uint64_t ask_2(struct scene *s, uint64_t bytes)
{
        return scene_request(s, (struct ask){ .bytes = bytes, .priority = 2, .uid = BOB });
}

static uint64_t claimed(const struct scene *s)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < s->world->n_holders; i++)
                if (s->world->holders[i].kind == HOLDER_CLAIM)
                        sum += s->world->holders[i].reserved_bytes;
        return sum;
}

static uint64_t reserved_by(struct scene *s, uint64_t id)
{
        return world_holder_get(s->world, scene_lease(s, id)->holder)->reserved_bytes;
}

static uint32_t strikes(struct scene *s, uint64_t id, enum way_out_kind way)
{
        return scene_lease(s, id)->park.strikes[way];
}

static uint32_t pid_of(struct scene *s, uint64_t id)
{
        return scene_owner(s, id);
}

/* The card shows it only little by little, as cards do. */
static void shows(struct scene *s, uint64_t id, uint64_t bytes)
{
        scene_process_uses(s, pid_of(s, id), scene_lease(s, id)->device, bytes, ROW_USED_KNOWN | ROW_COMPUTE);
}

/* ---- the whole way ---- */

static void filler_gives_way_to_interactive_work_and_comes_back_by_itself(void **state)
{
        (void) state;
        struct scene s;
        char orders[32];
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f.py");
        size_t since = s.n_log;
        uint64_t urgent = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 1);
        assert_state(&s, f, LEASE_PARKED);
        assert_runs(&s, urgent);
        assert_rule(*scene_last(&s, urgent, ACTION_GRANTED), RULE_RECLAIMED);
        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "LCS");
        assert_bytes(s.world->ledger_charged_bytes, GiB(20));
        assert_bytes(scene_free(&s, card), GiB(10));
        assert_int_equal(scene_lease(&s, f)->park.for_lease_id, urgent);

        scene_uses(&s, urgent, GiB(14));
        scene_tick_to_s(&s, 30);
        assert_state(&s, f, LEASE_PARKED);
        scene_process_ends(&s, pid_of(&s, urgent));
        scene_release(&s, urgent);
        scene_tick_to_s(&s, 32);
        assert_runs(&s, f);
        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "LCSRU");
        assert_bytes(s.world->ledger_charged_bytes, 0);
        assert_bytes(reserved_by(&s, f), GiB(20));
        assert_bytes(scene_free(&s, card), GiB(4));
        scene_end(&s);
}

static void D1_reservation_shrinks_by_exactly_what_the_claim_gains(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_lies(&s, true); /* its memory goes little by little */
        uint64_t p2 = ask_2(&s, GiB(14));
        assert_bytes(claimed(&s), GiB(4));
        assert_bytes(scene_free(&s, card), 0);
        static const struct {
                uint64_t used, claim, reserved;
        } rows[] = { { GiB(20), GiB(4), GiB(20) }, { GiB(12), GiB(12), GiB(12) }, { GiB(11), GiB(13), GiB(11) } };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                shows(&s, f, rows[i].used);
                assert_bytes(claimed(&s), rows[i].claim);
                assert_bytes(reserved_by(&s, f), rows[i].reserved);
                assert_bytes(scene_free(&s, card), 0);
                uint64_t other = scene_request(&s, (struct ask){ .bytes = MiB(1), .no_wait = true, .priority = 2 });
                assert_int_equal(other, 0); /* nobody else gets a byte */
        }
        scene_process_vanishes(&s, pid_of(&s, f));
        assert_state(&s, f, LEASE_PARKED);
        assert_bytes(reserved_by(&s, f), 0);
        assert_runs(&s, p2);
        assert_bytes(claimed(&s), 0);
        assert_bytes(scene_free(&s, card), GiB(10));
        scene_end(&s);
}

static void D2_what_it_never_took_goes_to_the_claim_first(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_uses(&s, f, GiB(12));
        scene_next(&s, HAND_STOP, 1, OUTCOME_NONE, HAND_WHY_NONE); /* its memory is gone, and it is not parked yet */
        uint64_t p2 = ask_2(&s, GiB(22));
        scene_look(&s);
        assert_bytes(claimed(&s), GiB(16));
        assert_bytes(scene_free(&s, card), 0);
        assert_state(&s, f, LEASE_ASKING);
        scene_answers_late(&s, HAND_STOP);
        scene_tick_to_s(&s, 1);
        assert_state(&s, f, LEASE_PARKED);
        assert_runs(&s, p2);
        assert_bytes(scene_free(&s, card), GiB(2));
        scene_end(&s);
}

static void D4_a_return_needs_its_bytes_and_some_slack(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, TENTHS(2400)); /* one factor for all figures: 24 is 2400 */
        scene_hands(&s);
        scene_host(&s, TENTHS(9000), TENTHS(8000), false);
        s.config.ledger_cap_bytes = TENTHS(4000);
        s.config.over_use_bytes = TENTHS(1000);
        scene_config(&s);
        uint64_t f = filler(&s, TENTHS(2000), "f");
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 1);
        assert_state(&s, f, LEASE_PARKED);
        uint64_t slack = TENTHS(2400) / 1000 * 20;
        uint64_t in_the_way = works(&s, (struct ask){ .bytes = TENTHS(400) - slack + 1, .priority = 3 });
        scene_says(&s, f, PARK_CALL_THAW, 0);
        scene_tick_to_s(&s, 20);
        assert_state(&s, f, LEASE_PARKED);
        scene_process_ends(&s, pid_of(&s, in_the_way));
        scene_release(&s, in_the_way);
        (void) card;
        scene_tick_to_s(&s, 25);
        assert_runs(&s, f);
        scene_end(&s);
}

/* The field's second defect: 20.5 into 2.5, a thousand times, and each time it counted as a failure. */
static void D4_thaw_without_room_is_blocked_a_thousand_times_and_counts_for_nothing(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        uint64_t p2 = ask_2(&s, GiB(22));
        scene_tick_to_s(&s, 1);
        assert_runs(&s, p2);
        scene_uses(&s, p2, GiB(22));
        size_t since = s.n_log;
        scene_tick_to_s(&s, 1001);
        assert_state(&s, f, LEASE_PARKED);
        for (unsigned way = 0; way < WAY_OUT_N; way++)
                assert_int_equal(strikes(&s, f, (enum way_out_kind) way), 0);
        assert_int_equal(scene_n_orders(&s, since, HAND_RESTORE), 0);
        assert_int_equal(scene_count(&s, since, 0, ACTION_HAND), 0);
        scene_end(&s);
}

/* The first defect: a plan that was made anew each second undid the park it had just finished. */
static void F47_D5_twelve_plans_after_a_finished_park_change_nothing(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(12), "f");
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 1);
        assert_runs(&s, p2);
        scene_uses(&s, p2, GiB(6)); /* what it may still take stays its own */
        size_t since = s.n_log;
        scene_tick_to_s(&s, 13);
        assert_state(&s, f, LEASE_PARKED);
        assert_int_equal(scene_count(&s, since, 0, ACTION_HAND), 0);
        assert_int_equal(scene_count(&s, since, 0, ACTION_PLAN), 0);
        assert_bytes(s.world->ledger_charged_bytes, GiB(12));
        scene_end(&s);
}

/* ---- what could not be tried, and what went wrong ---- */

static void D6_blocked_changes_no_counter_and_a_lock_that_times_out_is_undone(void **state)
{
        (void) state;
        struct scene s;
        char orders[32];
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_lease(&s, f)->park.strikes[WAY_OUT_COOPERATE] = 3;
        scene_next(&s, HAND_LOCK, 1, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
        size_t since = s.n_log;
        uint64_t p2 = ask_2(&s, GiB(14));
        assert_runs(&s, f);
        assert_waits(&s, p2);
        assert_int_equal(strikes(&s, f, WAY_OUT_COOPERATE), 3);
        assert_int_equal(strikes(&s, f, WAY_OUT_CHECKPOINT), 0);
        assert_bytes(reserved_by(&s, f), GiB(20));
        assert_bytes(s.world->ledger_charged_bytes, 0);
        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "L");
        scene_tick_to_s(&s, 29);
        assert_runs(&s, f); /* it is left alone for a while */
        scene_tick_to_s(&s, 32);
        assert_state(&s, f, LEASE_PARKED);
        assert_runs(&s, p2);
        (void) card;
        scene_end(&s);
}

static void F01_D6_failed_restore_is_final_and_nobody_is_signalled(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 1);
        assert_state(&s, f, LEASE_PARKED);
        scene_next(&s, HAND_RESTORE, 1, OUTCOME_FAILED, HAND_WHY_DRIVER);
        size_t since = s.n_log;
        scene_says(&s, f, PARK_CALL_THAW, 0);
        scene_tick_to_s(&s, 120);
        assert_state(&s, f, LEASE_STUCK);
        assert_int_equal(scene_n_orders(&s, since, HAND_RESTORE), 1);
        assert_int_equal(scene_count(&s, since, f, ACTION_HAND), 1);
        assert_int_equal(scene_count(&s, since, f, ACTION_STUCK), 1);
        scene_says(&s, f, PARK_CALL_FORGIVE, 0); /* nobody's word brings it back, and nobody is told that it did */
        assert_rule(s.answer, RULE_STUCK);
        scene_tick_to_s(&s, 240);
        assert_int_equal(scene_count(&s, since, f, ACTION_HAND), 1);
        scene_end(&s);
}

static void F02_checkpoint_that_does_not_return_leaves_it_stuck_and_its_late_answer_is_taken_up(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_next(&s, HAND_CHECKPOINT, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 100);
        assert_state(&s, f, LEASE_STUCK);
        assert_waits(&s, p2);
        assert_bytes(reserved_by(&s, f), GiB(20)); /* counted in full */
        scene_answers_late(&s, HAND_CHECKPOINT);
        scene_tick_to_s(&s, 102);
        assert_runs(&s, p2); /* its memory is free after all */
        assert_state(&s, f, LEASE_PARKED);
        scene_process_ends(&s, pid_of(&s, p2));
        scene_release(&s, p2);
        scene_tick_to_s(&s, 105);
        assert_runs(&s, f);
        scene_end(&s);
}

static void F05_tree_is_locked_whole_before_anybody_is_checkpointed_or_stopped(void **state)
{
        (void) state;
        struct scene s;
        char orders[32];
        for (int fails = 0; fails <= 1; fails++) {
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f = filler(&s, GiB(9), "f");
                scene_uses(&s, f, GiB(3));
                uint32_t two = scene_process_of(&s, ALICE, 0, pid_of(&s, f), 0);
                scene_process_uses(&s, two, card, GiB(3), ROW_USED_KNOWN | ROW_COMPUTE);
                uint32_t three = scene_process_of(&s, ALICE, 0, pid_of(&s, f), 0);
                scene_process_uses(&s, three, card, GiB(3), ROW_USED_KNOWN | ROW_COMPUTE);
                if (fails) {
                        scene_next(&s, HAND_LOCK, 1, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
                        scene_skip(&s, HAND_LOCK, 2);
                }
                size_t since = s.n_log;
                scene_says(&s, f, PARK_CALL_PARK, 0);
                scene_tick_to_s(&s, 1);
                assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), fails ? "LLLUU" : "LLLCCCSSS");
                assert_state(&s, f, fails ? LEASE_ACTIVE : LEASE_PARKED);
                assert_bytes(s.world->ledger_charged_bytes, fails ? 0 : GiB(9));
                if (!fails) {
                        scene_says(&s, f, PARK_CALL_THAW, 0);
                        scene_tick_to_s(&s, 3);
                        assert_runs(&s, f);
                        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "LLLCCCSSSRRRUUU");
                }
                scene_end(&s);
        }
}

static void F14_who_dies_on_the_way_is_released_once_and_not_touched_again(void **state)
{
        (void) state;
        static const enum hand_verb verbs[] = { HAND_LOCK, HAND_CHECKPOINT, HAND_STOP };
        for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f = filler(&s, GiB(20), "f");
                uint32_t pid = pid_of(&s, f);
                scene_next(&s, verbs[i], 1, OUTCOME_NONE, HAND_WHY_NONE);
                uint64_t p2 = ask_2(&s, GiB(14));
                assert_state(&s, f, LEASE_ASKING);
                scene_process_ends(&s, pid); /* in the middle of that call */
                size_t since = s.n_log;
                scene_owner_ended(&s, f);
                scene_tick_to_s(&s, 40);
                assert_gone(&s, f);
                assert_bytes(s.world->ledger_charged_bytes, 0);
                assert_runs(&s, p2);
                assert_int_equal(scene_count(&s, since, f, ACTION_HAND), 0);
                scene_end(&s);
        }
}

static void D6_cooperation_in_vain_is_a_strike_and_then_the_next_way_out(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE | CHECKPOINT });
        uint64_t p2 = ask_2(&s, GiB(14));
        assert_state(&s, f, LEASE_ASKING);
        assert_int_equal(scene_lease(&s, f)->park.way, WAY_OUT_COOPERATE);
        scene_tick_to_s(&s, 15);
        scene_says(&s, f, PARK_CALL_YIELDED, 0); /* and it gave nothing back */
        assert_waits(&s, p2);
        scene_tick_to_s(&s, 32);
        assert_int_equal(strikes(&s, f, WAY_OUT_COOPERATE), 1);
        assert_state(&s, f, LEASE_PARKED); /* by a checkpoint */
        assert_int_equal(scene_lease(&s, f)->park.way, WAY_OUT_CHECKPOINT);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void D6_five_strikes_in_a_row_and_that_way_out_is_not_used_until_a_person_says_so(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE });
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 3600);
        assert_runs(&s, f);
        assert_waits(&s, p2);
        assert_int_equal(strikes(&s, f, WAY_OUT_COOPERATE), 5);
        assert_int_equal(scene_count(&s, 0, f, ACTION_ASKED), 5);
        assert_int_equal(scene_count_rule(&s, 0, f, RULE_STRUCK_OUT), 1);
        scene_says(&s, f, PARK_CALL_FORGIVE, 0);
        scene_tick_to_s(&s, 3602);
        assert_state(&s, f, LEASE_ASKING);
        scene_yields(&s, f);
        scene_tick_to_s(&s, 3604);
        assert_state(&s, f, LEASE_PARKED);
        assert_int_equal(strikes(&s, f, WAY_OUT_COOPERATE), 0);
        assert_runs(&s, p2);
        scene_end(&s);
}

/* Off and back, as it had promised: the strikes before that were not in a row with those that follow. */
static void D6_promise_that_is_kept_takes_back_the_strikes_before_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE });
        uint64_t p2 = ask_2(&s, GiB(14));
        while (strikes(&s, f, WAY_OUT_COOPERATE) < 4) {
                assert_true(scene_s(&s) < 3600);
                scene_tick_to_s(&s, scene_s(&s) + 1);
        }
        while (scene_lease(&s, f)->state != LEASE_ASKING) {
                assert_true(scene_s(&s) < 3600);
                scene_tick_to_s(&s, scene_s(&s) + 1);
        }
        scene_yields(&s, f);
        scene_tick_to_s(&s, scene_s(&s) + 2);
        assert_state(&s, f, LEASE_PARKED);
        assert_runs(&s, p2);
        assert_int_equal(strikes(&s, f, WAY_OUT_COOPERATE), 4); /* it may still take its memory again */
        scene_release(&s, p2);
        scene_tick_to_s(&s, scene_s(&s) + 2);
        scene_activate(&s, f, 0, 0);
        assert_runs(&s, f);
        assert_int_equal(strikes(&s, f, WAY_OUT_COOPERATE), 0);
        scene_end(&s);
}

static void C14_step_that_fails_ends_the_plan_and_what_it_parked_comes_back(void **state)
{
        (void) state;
        for (int with_third = 0; with_third <= 1; with_third++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f1 = filler(&s, GiB(6), "1"), f2 = filler(&s, GiB(6), "2"), f3 = 0;
                scene_cost(&s, ALICE, "1", WAY_OUT_CHECKPOINT, 1, 1);
                scene_cost(&s, ALICE, "2", WAY_OUT_CHECKPOINT, 9, 9);
                if (with_third) {
                        f3 = works(&s, (struct ask){ .bytes = GiB(6), .priority = 4, .named = COOPERATE });
                        scene_says(&s, f3, PARK_CALL_IDLE, 0);
                        scene_tick_to_s(&s, 200);
                }
                (void) works(&s, (struct ask){ .bytes = with_third ? GiB(2) : GiB(8) });
                scene_next(&s, HAND_LOCK, 1, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
                scene_skip(&s, HAND_LOCK, 1);
                uint64_t p2 = ask_2(&s, GiB(16));
                scene_tick_to_s(&s, scene_s(&s) + 2);
                assert_int_equal(strikes(&s, f2, WAY_OUT_CHECKPOINT), 0);
                assert_int_equal(scene_count_rule(&s, 0, p2, RULE_PLAN_FAILED), 1);
                if (with_third) {
                        assert_state(&s, f1, LEASE_PARKED); /* for the new plan */
                        assert_state(&s, f3, LEASE_ASKING);
                        assert_runs(&s, f2);
                        scene_yields(&s, f3);
                        scene_tick_to_s(&s, 205);
                        assert_runs(&s, p2);
                } else {
                        assert_runs(&s, f1);
                        assert_runs(&s, f2);
                        assert_waits(&s, p2);
                        assert_bytes(scene_lease(&s, f1)->park.returned_ms, 0); /* no immunity by that */
                        assert_bytes(scene_lease(&s, f1)->park.n_returns, 0);
                        assert_bytes(scene_free(&s, card), GiB(4));
                }
                scene_end(&s);
        }
}

static void D7_seventh_return_within_the_hour_waits_and_so_does_one_beside_a_growing_stranger(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_tick_to_s(&s, 10);
        struct park *k = &scene_lease(&s, f)->park;
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 11);
        for (uint64_t i = 0; i < 6; i++)
                k->returns_ms[i] = SCENE_START_MS + SECONDS(i);
        k->n_returns = 6;
        scene_release(&s, p2);
        scene_tick_to_s(&s, 3599);
        assert_state(&s, f, LEASE_PARKED);
        scene_tick_to_s(&s, 3601);
        assert_runs(&s, f);

        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 3700);
        assert_state(&s, f, LEASE_PARKED);
        (void) scene_stranger(&s, card, GiB(1));
        k->n_returns = 0;
        scene_says(&s, f, PARK_CALL_THAW, 0);
        assert_state(&s, f, LEASE_PARKED); /* somebody grew just now */
        scene_tick_to_s(&s, 3701);
        assert_state(&s, f, LEASE_PARKED);
        scene_tick_to_s(&s, 3703);
        assert_runs(&s, f);
        scene_end(&s);
}

static void D8_over_time_it_ranks_as_a_filler_and_goes_only_by_a_way_out_it_has(void **state)
{
        (void) state;
        for (int named = 0; named <= 1; named++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t a = works(
                        &s, (struct ask){ .bytes = GiB(20), .slot_s = 7200, .named = named ? RESTART : (uint8_t) 0 });
                uint64_t p4 = scene_request(&s, (struct ask){ .bytes = GiB(10), .priority = 4, .wait_s = 90000 });
                scene_tick_to_s(&s, 7199);
                assert_runs(&s, a);
                assert_waits(&s, p4);
                scene_tick_to_s(&s, 7201);
                assert_state(&s, a, named ? LEASE_ASKING : LEASE_ACTIVE);
                scene_end(&s);
        }
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t a = works(&s, (struct ask){ .bytes = GiB(20), .slot_s = 7200, .named = RESTART });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(10), .priority = 5 });
        scene_tick_to_s(&s, 7210);
        assert_runs(&s, a); /* a filler never takes from work */
        scene_end(&s);
}

/* ---- restart ---- */

static void filler_with_restart_is_ended_by_its_client_and_started_again(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t f = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 5, .filler = true });
        uint32_t root = scene_process(&s, 0, pid_of(&s, f), 0);
        scene_activate(&s, f, root, 0);
        scene_process_uses(&s, root, 0, GiB(20), ROW_USED_KNOWN | ROW_COMPUTE);
        uint64_t p2 = ask_2(&s, GiB(14));
        assert_state(&s, f, LEASE_ASKING);
        assert_int_equal(scene_lease(&s, f)->park.way, WAY_OUT_RESTART);
        scene_process_ends(&s, root);
        assert_waits(&s, p2); /* its client has not said so, and may be starting another */
        assert_bytes(claimed(&s), GiB(14));
        scene_says(&s, f, PARK_CALL_YIELDED, 0);
        scene_tick_to_s(&s, 1);
        assert_state(&s, f, LEASE_PARKED);
        assert_runs(&s, p2);
        assert_bytes(s.world->ledger_charged_bytes, 0);

        scene_release(&s, p2);
        scene_tick_to_s(&s, 3);
        assert_state(&s, f, LEASE_THAWING);
        uint32_t again = scene_process(&s, 0, pid_of(&s, f), 0);
        scene_activate(&s, f, again, 0);
        assert_runs(&s, f);
        assert_bytes(reserved_by(&s, f), GiB(20));
        scene_end(&s);
}

/* ---- persons ---- */

static void park_by_a_person_holds_until_the_person_ends_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 5000);
        assert_state(&s, f, LEASE_PARKED);
        scene_says(&s, f, PARK_CALL_THAW, 0);
        scene_tick_to_s(&s, 5002);
        assert_runs(&s, f);
        scene_says(&s, f, PARK_CALL_PARK, 60);
        scene_tick_to_s(&s, 5061);
        assert_state(&s, f, LEASE_PARKED);
        scene_tick_to_s(&s, 5065);
        assert_runs(&s, f);
        scene_end(&s);
}

static void S02_parking_what_is_somebody_elses_is_refused_and_told(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_says_as(&s, f, PARK_CALL_PARK, 0, BOB);
        assert_kind(s.answer, ACTION_REFUSED);
        assert_rule(s.answer, RULE_NOT_OWNER);
        assert_int_equal(s.answer.uid, BOB);
        assert_runs(&s, f);
        scene_end(&s);
}

static void rehearsal_proves_and_what_is_proven_needs_no_word_next_time(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t a = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .uid = ALICE, .consumer = "x.py" });
        scene_says(&s, a, PARK_CALL_PARK, 0);
        assert_rule(s.answer, RULE_CANNOT_PARK);
        assert_int_equal(s.answer.why.limit, RECLAIM_NO_WAY_OUT);
        scene_says(&s, a, PARK_CALL_REHEARSE, 0);
        scene_tick_to_s(&s, 3);
        assert_runs(&s, a);
        scene_process_ends(&s, pid_of(&s, a));
        scene_release(&s, a);
        scene_tick_to_s(&s, 10);
        uint64_t b = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .uid = ALICE, .consumer = "x.py" });
        uint64_t other =
                scene_request(&s, (struct ask){ .bytes = GiB(2), .priority = 4, .uid = BOB, .consumer = "x.py" });
        assert_int_equal(scene_lease(&s, other)->ways.proven, 0); /* of ALICE's program nothing is known to BOB */
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 12);
        assert_state(&s, b, LEASE_PARKED);
        assert_runs(&s, p2);
        scene_end(&s);
}

/* ---- the ledger ---- */

static void parked_memory_is_credited_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(12), "f");
        uint64_t p2 = ask_2(&s, GiB(20));
        scene_tick_to_s(&s, 1);
        assert_runs(&s, p2);
        assert_bytes(scene_free(&s, card), GiB(4)); /* not 12 more than there is */
        scene_uses(&s, p2, GiB(20));
        assert_bytes(scene_free(&s, card), GiB(4));
        (void) f;
        scene_end(&s);
}

static void ledger_swap_does_not_deadlock(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t x = works(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE, .consumer = "x", .proven = CHECKPOINT });
        uint64_t y = scene_request(&s, (struct ask){ .bytes = GiB(14),
                                                     .priority = 2,
                                                     .slot_s = 600,
                                                     .uid = BOB,
                                                     .consumer = "y",
                                                     .proven = CHECKPOINT });
        scene_tick_to_s(&s, 1);
        assert_runs(&s, y);
        scene_uses(&s, y, GiB(14));
        assert_state(&s, x, LEASE_PARKED); /* 20 of 32: 14 more are too many */
        scene_tick_to_s(&s, 640);          /* y is over time, and x wants back */
        assert_runs(&s, x);
        assert_state(&s, y, LEASE_PARKED);
        scene_end(&s);
}

/* ---- cycles ---- */

static void F04_many_cycles_in_a_row_succeed_and_nobody_stopped_is_probed(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        s.sparse_checks = true;
        uint64_t f = filler(&s, GiB(20), "f");
        for (unsigned i = 1; i <= 643; i++) {
                scene_says(&s, f, PARK_CALL_REHEARSE, 0);
                scene_tick_to_s(&s, 3 * (uint64_t) i);
                assert_runs(&s, f);
        }
        assert_int_equal(scene_count(&s, 0, f, ACTION_PARKED), 643);
        assert_int_equal(scene_count(&s, 0, f, ACTION_THAWED), 643);
        assert_bytes(s.world->ledger_charged_bytes, 0);
        scene_end(&s);
}

static void F11_what_is_parked_comes_back_to_an_empty_card_at_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t ids[3];
        for (unsigned i = 0; i < 3; i++)
                ids[i] = filler(&s, GiB(8), i == 0 ? "a" : i == 1 ? "b" : "c");
        uint64_t p2 = ask_2(&s, GiB(23));
        scene_tick_to_s(&s, 4);
        assert_runs(&s, p2);
        scene_tick_to_s(&s, 300);
        scene_release(&s, p2);
        scene_tick_to_s(&s, 302);
        unsigned n = 0;
        for (unsigned i = 0; i < 3; i++)
                n += scene_lease(&s, ids[i])->state == LEASE_ACTIVE;
        assert_true(n >= 2);
        scene_end(&s);
}

static void F12_time_parked_is_not_charged_to_its_slot(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .slot_s = 600, .proven = CHECKPOINT });
        scene_tick_to_s(&s, 100);
        scene_says(&s, f, PARK_CALL_PARK, 3600);
        scene_tick_to_s(&s, 101);
        scene_tick_to_s(&s, 3705);
        assert_runs(&s, f);
        uint64_t left_ms = scene_lease(&s, f)->slot_end_ms - s.now_ms;
        assert_true(left_ms > SECONDS(490) && left_ms <= SECONDS(501));
        scene_end(&s);
}

static void release_of_what_is_parked_is_refused_for_nobody_could_bring_it_back(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 1);
        scene_release(&s, f);
        assert_rule(s.answer, RULE_IS_PARKED);
        assert_state(&s, f, LEASE_PARKED);
        scene_owner_ended(&s, f); /* who waited for it is gone: it stays parked, and ends as an orphan later */
        assert_state(&s, f, LEASE_PARKED);
        scene_process_ends(&s, pid_of(&s, f));
        scene_tick_to_s(&s, 3);
        assert_gone(&s, f);
        assert_bytes(s.world->ledger_charged_bytes, 0);
        scene_end(&s);
}

static void lost_books_take_up_what_a_record_knows(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t before = filler(&s, GiB(20), "f");
        uint32_t pid = pid_of(&s, before);
        struct identity who = scene_lease(&s, before)->binding.owner;
        scene_says(&s, before, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 1);
        /* The same machine, and books that never heard of it. */
        struct scene fresh;
        scene_begin(&fresh);
        (void) scene_device(&fresh, GiB(24));
        fresh.hands = s.hands;
        scene_host(&fresh, GiB(64), GiB(50), false);
        struct input input = { .kind = INPUT_RECORD };
        input.record = (struct park_record){
                .process = who, .uid = ALICE, .member = MEMBER_STOPPED, .bytes = GiB(20), .host_bytes = GiB(20)
        };
        (void) snprintf(input.record.uuid, sizeof(input.record.uuid), "%s", scene_uuid(&fresh, card));
        scene_step(&fresh, &input);
        assert_bytes(fresh.world->n_leases, 1);
        uint64_t id = fresh.world->leases[0].id;
        scene_tick_to_s(&fresh, 3);
        assert_runs(&fresh, id);
        assert_bytes(fresh.world->ledger_charged_bytes, 0);
        assert_non_null(scene_row(&fresh, pid, card));
        scene_end(&fresh);
        scene_end(&s);
}

/* ---- held in place ---- */

static void filler_is_held_in_place_while_somebody_more_important_says_it_works(void **state)
{
        (void) state;
        struct scene s;
        char orders[32];
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        s.config.hold_in_place = true;
        scene_config(&s);
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(8), "f");
        uint64_t chat = works(&s, (struct ask){ .bytes = GiB(10), .priority = 2, .uid = BOB });
        scene_tick_to_s(&s, 10);
        assert_runs(&s, f); /* nobody knows when the other works */
        size_t since = s.n_log;
        scene_says(&s, chat, PARK_CALL_BUSY, 0);
        assert_state(&s, f, LEASE_HELD);
        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "H");
        scene_tick_to_s(&s, 60);
        assert_state(&s, f, LEASE_HELD);
        assert_bytes(reserved_by(&s, f), GiB(8)); /* its memory is kept */
        assert_bytes(scene_free(&s, card), GiB(6));
        scene_says(&s, chat, PARK_CALL_IDLE, 300);
        scene_tick_to_s(&s, 61);
        assert_state(&s, f, LEASE_HELD);
        scene_tick_to_s(&s, 63);
        assert_runs(&s, f);
        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "HU");
        assert_bytes(scene_lease(&s, f)->park.n_returns, 0);

        scene_says(&s, chat, PARK_CALL_BUSY, 0);
        assert_state(&s, f, LEASE_HELD);
        uint64_t p1 = scene_request(&s, (struct ask){ .bytes = GiB(12), .priority = 2, .uid = CAROL });
        scene_tick_to_s(&s, 67); /* its memory is wanted: let go, and then parked */
        assert_state(&s, f, LEASE_PARKED);
        assert_runs(&s, p1);
        scene_end(&s);
}

static void nobody_is_held_for_who_works_on_after_his_slot(void **state)
{
        (void) state;
        struct scene s;
        char orders[32];
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        s.config.hold_in_place = true;
        scene_config(&s);
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(8), "f");
        uint64_t chat = works(&s, (struct ask){ .bytes = GiB(10), .priority = 2, .slot_s = 60, .uid = BOB });
        scene_says(&s, chat, PARK_CALL_BUSY, 0);
        scene_tick_to_s(&s, 50);
        assert_state(&s, f, LEASE_HELD);
        scene_tick_to_s(&s, 120); /* a filler like the other */
        assert_true(scene_lease(&s, chat)->over_time);
        assert_runs(&s, f);
        assert_string_equal(scene_orders(&s, 0, orders, sizeof(orders)), "HU");
        scene_end(&s);
}

/* In one tick a slot is over, which makes a filler to be held for who works; and who was parked until then wants his device. */
static void nobody_is_held_for_who_is_asked_for_his_memory_in_that_moment(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        s.config.hold_in_place = true;
        scene_config(&s);
        scene_hands(&s);
        uint64_t big = works(&s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = CAROL, .named = CHECKPOINT });
        scene_says_as(&s, big, PARK_CALL_PARK, 600, CAROL);
        scene_tick_to_s(&s, 1);
        uint64_t over = works(&s, (struct ask){ .bytes = GiB(2), .slot_s = 599, .named = CHECKPOINT });
        uint64_t train = works(&s, (struct ask){ .bytes = GiB(18), .priority = 4, .uid = BOB, .named = CHECKPOINT });
        scene_says_as(&s, train, PARK_CALL_BUSY, 0, BOB);
        scene_tick_to_s(&s, 599);
        assert_runs(&s, over);
        assert_runs(&s, train);
        assert_state(&s, big, LEASE_PARKED);
        scene_wait_to_s(&s, 600);
        scene_look(&s);
        scene_tick(&s);
        assert_true(scene_lease(&s, over)->over_time);
        assert_state(&s, train, LEASE_PARKED);
        scene_tick_to_s(&s, 605);
        assert_runs(&s, big);
        assert_runs(&s, over);
        assert_int_equal(scene_n_orders(&s, 0, HAND_HOLD), 0);
        scene_end(&s);
}

/* It broke its promise once, was parked by the next way out and came back: that is over. A hold that cannot be is no park. */
static void filler_that_broke_a_promise_before_and_cannot_be_held_goes_on(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        s.config.hold_in_place = true;
        scene_config(&s);
        scene_hands(&s);
        uint64_t chat = works(&s, (struct ask){ .bytes = GiB(4), .priority = 2, .uid = BOB });
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(18), .priority = 5, .named = COOPERATE | CHECKPOINT });
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_yields(&s, f);
        scene_tick_to_s(&s, 2);
        assert_runs(&s, p2);
        shows(&s, f, GiB(18));
        scene_tick_to_s(&s, 60);
        assert_true(scene_lease(&s, f)->park.broke_promise);
        scene_release(&s, p2);
        scene_tick_to_s(&s, 90);
        assert_runs(&s, f);
        scene_next(&s, HAND_HOLD, 1, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
        scene_says(&s, chat, PARK_CALL_BUSY, 0);
        scene_tick_to_s(&s, 92);
        assert_int_equal(scene_n_orders(&s, 0, HAND_HOLD), 1);
        assert_runs(&s, f);
        scene_end(&s);
}

static void released_while_it_gives_way_and_its_context_is_still_there(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE });
        uint64_t p2 = ask_2(&s, GiB(14));
        assert_state(&s, f, LEASE_ASKING);
        s.eyes_closed = true;
        scene_says(&s, f, PARK_CALL_YIELDED, 0);
        scene_release(&s, f);
        s.eyes_closed = false;
        shows(&s, f, MiB(300)); /* its context goes last */
        scene_tick_to_s(&s, 3);
        scene_process_ends(&s, world_process_find(s.world, s.rows[0].identity)->identity.pid);
        scene_tick_to_s(&s, 5);
        assert_gone(&s, f);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void lock_that_is_never_answered_does_not_hold_up_everybody(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        (void) filler(&s, GiB(12), "f");
        (void) filler(&s, GiB(12), "g");
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t p2 = ask_2(&s, GiB(12));
        scene_tick_to_s(&s, 300);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void stop_that_is_never_answered(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        (void) filler(&s, GiB(20), "f");
        scene_next(&s, HAND_STOP, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t p2 = ask_2(&s, GiB(12));
        scene_tick_to_s(&s, 300);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void unlock_that_is_never_answered(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 2);
        scene_next(&s, HAND_UNLOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        scene_says(&s, f, PARK_CALL_THAW, 0);
        scene_tick_to_s(&s, 3000);
        assert_state(&s, f, LEASE_STUCK);
        scene_end(&s);
}

static void second_member_finds_no_room_for_a_minute(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(6), "f");
        scene_uses(&s, f, GiB(3));
        uint32_t two = scene_process_of(&s, ALICE, 0, pid_of(&s, f), 0);
        scene_process_uses(&s, two, card, GiB(3), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 1);
        assert_state(&s, f, LEASE_PARKED);
        scene_next(&s, HAND_RESTORE, 60, OUTCOME_BLOCKED, HAND_WHY_HEADROOM);
        scene_skip(&s, HAND_RESTORE, 1);
        scene_says(&s, f, PARK_CALL_THAW, 0);
        scene_tick_to_s(&s, 400);
        assert_runs(&s, f);
        scene_end(&s);
}

static void what_is_answered_late_or_never_leaves_nobody_between_two_states(void **state)
{
        (void) state;
        static const enum hand_why whys[] = { HAND_WHY_LOST, HAND_WHY_AWAY, HAND_WHY_MEMORY, HAND_WHY_STATE };
        static const enum hand_verb verbs[] = { HAND_LOCK, HAND_CHECKPOINT };
        for (size_t i = 0; i < 8; i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f = filler(&s, GiB(20), "f");
                scene_next(&s, verbs[i % 2], 1, OUTCOME_NONE, HAND_WHY_NONE);
                scene_says(&s, f, PARK_CALL_PARK, 0);
                scene_tick_to_s(&s, 100);
                assert_state(&s, f, LEASE_STUCK);
                struct action order = *scene_last(&s, f, ACTION_HAND);
                assert_int_equal(order.hand, verbs[i % 2]);
                scene_outcome(&s, &order, OUTCOME_BLOCKED, whys[i / 2]);
                scene_tick_to_s(&s, 200);
                assert_runs(&s, f); /* nothing was done to it, and it is locked no more */
                assert_int_equal(world_process_find(s.world, order.process)->member, MEMBER_RUNNING);
                scene_end(&s);
        }
        for (int late = 0; late <= 1; late++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f = filler(&s, GiB(20), "f");
                scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
                scene_says(&s, f, PARK_CALL_PARK, 0);
                scene_tick_to_s(&s, 100);
                assert_state(&s, f, LEASE_STUCK);
                scene_answers_late(&s, HAND_LOCK);
                scene_tick_to_s(&s, 102);
                assert_state(&s, f, LEASE_PARKED);
                scene_next(&s, HAND_RESTORE, 1, OUTCOME_NONE, HAND_WHY_NONE);
                scene_says(&s, f, PARK_CALL_THAW, 0);
                scene_tick_to_s(&s, 200);
                assert_state(&s, f, LEASE_STUCK);
                struct action order = *scene_last(&s, f, ACTION_HAND);
                if (late)
                        scene_answers_late(&s, HAND_RESTORE);
                else
                        scene_outcome(&s, &order, OUTCOME_BLOCKED, HAND_WHY_HEADROOM);
                scene_tick_to_s(&s, 210);
                assert_runs(&s, f);
                scene_end(&s);
        }
}

static void what_stays_of_it_there_does_not_park_it_again_and_again(void **state)
{
        (void) state;
        for (int cooperates = 0; cooperates <= 1; cooperates++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f = works(
                        &s,
                        (struct ask){ .bytes = GiB(20), .priority = 5, .named = cooperates ? COOPERATE : CHECKPOINT });
                scene_lies(&s, true); /* what a checkpoint leaves there is shown below */
                uint64_t p2 = ask_2(&s, GiB(24));
                for (unsigned t = 1; t < 600; t++) {
                        struct lease *lease = scene_lease(&s, f);
                        if (lease->state == LEASE_ASKING && lease->park.step == PARK_SETTLING) {
                                shows(&s, f, MiB(30));
                        } else if (lease->state == LEASE_ASKING && lease->park.step == PARK_ASKING) {
                                shows(&s, f, MiB(300));
                                scene_says(&s, f, PARK_CALL_YIELDED, 0);
                        } else if (cooperates && lease->state == LEASE_THAWING) {
                                shows(&s, f, GiB(20));
                                scene_activate(&s, f, 0, 0);
                        } else if (lease->state == LEASE_ACTIVE) {
                                struct scene_row *row = scene_row(&s, pid_of(&s, f), 0);
                                if (row->bytes != GiB(20))
                                        shows(&s, f, GiB(20));
                        }
                        scene_tick_to_s(&s, t);
                }
                assert_true(scene_count_rule(&s, 0, f, RULE_PARKED) <= 2);
                assert_runs(&s, f);
                assert_waits(&s, p2); /* so much is never there beside f's program */
                scene_end(&s);
        }
}

static void parked_already_and_then_by_a_person_it_stays(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 2);
        scene_says(&s, f, PARK_CALL_PARK, 0);
        assert_kind(s.answer, ACTION_CHANGED);
        scene_release(&s, p2);
        scene_tick_to_s(&s, 10);
        assert_state(&s, f, LEASE_PARKED);
        scene_end(&s);
}

/* Between two steps of a plan somebody leaves: with what the first gave that is enough. */
static void one_whose_memory_is_not_needed_any_more_when_its_turn_comes_is_left_alone(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f1 = filler(&s, GiB(6), "1"), f2 = filler(&s, GiB(6), "2");
        scene_cost(&s, ALICE, "1", WAY_OUT_CHECKPOINT, 1, 1);
        scene_cost(&s, ALICE, "2", WAY_OUT_CHECKPOINT, 9, 9);
        uint64_t leaves = works(&s, (struct ask){ .bytes = GiB(8), .priority = 2, .uid = CAROL });
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t p2 = ask_2(&s, GiB(16));
        assert_state(&s, f1, LEASE_ASKING);
        scene_process_ends(&s, scene_owner(&s, leaves));
        scene_release(&s, leaves);
        scene_look(&s);
        assert_gone(&s, leaves);
        assert_waits(&s, p2);
        scene_answers_late(&s, HAND_LOCK);
        scene_tick_to_s(&s, 2);
        assert_state(&s, f1, LEASE_PARKED);
        assert_runs(&s, p2);
        assert_runs(&s, f2);
        assert_int_equal(scene_count(&s, 0, f2, ACTION_ASKED), 0);
        scene_end(&s);
}

static void idle_one_that_is_at_work_again_before_its_turn_is_left_alone(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(10), "f");
        uint64_t a = works(&s, (struct ask){ .bytes = GiB(10), .priority = 3, .named = CHECKPOINT });
        scene_says(&s, a, PARK_CALL_IDLE, 0);
        scene_tick_to_s(&s, 100);
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(22), .priority = 3, .uid = BOB });
        assert_state(&s, f, LEASE_ASKING);
        scene_says(&s, a, PARK_CALL_BUSY, 0);
        scene_answers_late(&s, HAND_LOCK);
        scene_tick_to_s(&s, 103);
        assert_runs(&s, a);
        scene_end(&s);
}

static void one_that_is_pinned_before_its_turn_is_left_alone(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(10), "f");
        uint64_t a = works(&s, (struct ask){ .bytes = GiB(10), .priority = 4, .named = CHECKPOINT });
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(22), .priority = 3, .uid = BOB });
        assert_state(&s, f, LEASE_ASKING);
        scene_change(&s, a, (struct change){ .what = CHANGE_PIN, .pin_ms = SECONDS(3600) });
        assert_kind(s.answer, ACTION_CHANGED);
        scene_answers_late(&s, HAND_LOCK);
        scene_tick_to_s(&s, 103);
        assert_runs(&s, a);
        scene_end(&s);
}

static void other_card_becomes_free_while_a_plan_hangs(void **state)
{
        (void) state;
        for (int lost = 0; lost < 2; lost++) {
                struct scene s;
                scene_begin(&s);
                uint32_t c0 = scene_device(&s, GiB(24));
                (void) scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f = works(&s, (struct ask){ .bytes = GiB(20),
                                                     .priority = 5,
                                                     .consumer = "f",
                                                     .uid = ALICE,
                                                     .proven = CHECKPOINT,
                                                     .uuid = scene_uuid(&s, c0) });
                uint64_t b = works(&s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = ALICE });
                scene_next(&s, HAND_CHECKPOINT, 1, OUTCOME_NONE, HAND_WHY_NONE);
                uint64_t p2 = ask_2(&s, GiB(14));
                assert_state(&s, f, LEASE_ASKING);
                if (lost)
                        scene_device_health(&s, c0, DEVICE_LOST);
                scene_process_ends(&s, pid_of(&s, b));
                scene_release(&s, b);
                scene_tick_to_s(&s, 10);
                assert_runs(&s, p2);
                scene_end(&s);
        }
}

static void killed_heartbeat_lease_ends(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 5, .named = KILL, .ttl_s = 100000 });
        uint32_t root = scene_process(&s, 0, pid_of(&s, f), 0);
        scene_activate(&s, f, root, 0);
        scene_process_uses(&s, root, card, GiB(20), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_lease(&s, f)->granted_ms -= HOURS(10);
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 3);
        assert_state(&s, f, LEASE_ASKING);
        scene_process_ends(&s, root);
        scene_tick_to_s(&s, 1000);
        assert_gone(&s, f);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void F51_kill_is_called_off_when_who_it_was_for_has_left(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 5, .named = KILL });
        uint32_t root = scene_process(&s, 0, pid_of(&s, f), 0);
        scene_activate(&s, f, root, 0);
        scene_process_uses(&s, root, card, GiB(20), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_lease(&s, f)->granted_ms -= HOURS(10);
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 3);
        assert_state(&s, f, LEASE_ASKING);
        assert_int_equal(scene_n_orders(&s, 0, HAND_SIGNAL), 1); /* SIGTERM */
        scene_release(&s, p2);
        scene_tick_to_s(&s, 500);
        assert_runs(&s, f);
        assert_int_equal(scene_n_orders(&s, 0, HAND_SIGNAL), 1);
        assert_bytes(reserved_by(&s, f), GiB(20));
        p2 = ask_2(&s, GiB(14)); /* the next one begins anew, with its grace */
        scene_tick_to_s(&s, 503);
        assert_state(&s, f, LEASE_ASKING);
        assert_int_equal(scene_n_orders(&s, 0, HAND_SIGNAL), 2);
        scene_end(&s);
}

static void unkillable_that_dies_at_last_is_gone(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 5, .named = KILL });
        uint32_t root = scene_process(&s, 0, pid_of(&s, f), 0);
        scene_activate(&s, f, root, 0);
        scene_process_uses(&s, root, card, GiB(20), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_lease(&s, f)->granted_ms -= HOURS(10);
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 3);
        scene_owner_ended(&s, f);
        scene_tick_to_s(&s, 500);
        scene_process_ends(&s, root);
        scene_tick_to_s(&s, 600);
        assert_gone(&s, f);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void cooperative_one_without_its_owner_comes_back_or_ends(void **state)
{
        (void) state;
        for (int dies = 0; dies < 2; dies++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                scene_hands(&s);
                uint64_t f = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE });
                uint32_t root = scene_process(&s, 0, pid_of(&s, f), 0);
                scene_activate(&s, f, root, 0);
                scene_process_uses(&s, root, card, GiB(20), ROW_USED_KNOWN | ROW_COMPUTE);
                uint64_t p2 = ask_2(&s, GiB(14));
                assert_state(&s, f, LEASE_ASKING);
                scene_process_uses(&s, root, card, MiB(300), ROW_USED_KNOWN | ROW_COMPUTE);
                scene_says(&s, f, PARK_CALL_YIELDED, 0);
                scene_tick_to_s(&s, 2);
                assert_state(&s, f, LEASE_PARKED);
                assert_runs(&s, p2);
                scene_owner_ended(&s, f);
                scene_release(&s, p2);
                scene_tick_to_s(&s, 100);
                if (dies)
                        scene_process_ends(&s, root);
                scene_tick_to_s(&s, 2000);
                assert_string_equal(scene_state(&s, f), dies ? "gone" : "orphaned");
                scene_end(&s);
        }
}

static void half_given_back_and_granted_is_not_promised_twice(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE });
        uint64_t p2 = ask_2(&s, GiB(20));
        assert_state(&s, f, LEASE_ASKING);
        shows(&s, f, GiB(8)); /* some of it, and no word */
        scene_release(&s, p2);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(14), .priority = 3 });
        scene_tick_to_s(&s, 60);
        assert_true(scene_reserved(&s, 0) <= GiB(24));
        scene_end(&s);
}

static void host_memory_that_was_just_taken_is_not_counted_on_again(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(48));
        scene_hands(&s);
        s.config.ledger_cap_bytes = GiB(64);
        scene_config(&s);
        scene_host(&s, GiB(64), GiB(30), false);
        uint64_t f = filler(&s, GiB(20), "f"), g = filler(&s, GiB(20), "g");
        (void) ask_2(&s, GiB(28));
        scene_tick_to_s(&s, 1);
        (void) ask_2(&s, GiB(20));
        scene_tick_to_s(&s, 2);
        assert_true((scene_lease(&s, f)->state == LEASE_PARKED) + (scene_lease(&s, g)->state == LEASE_PARKED) == 1);
        scene_end(&s);
}

static void undone_one_comes_back_though_the_other_cannot(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f1 = filler(&s, GiB(4), "1"), f2 = filler(&s, GiB(12), "2"), f3 = filler(&s, GiB(6), "3");
        scene_cost(&s, ALICE, "1", WAY_OUT_CHECKPOINT, 1, 1);
        scene_cost(&s, ALICE, "2", WAY_OUT_CHECKPOINT, 2, 2);
        scene_cost(&s, ALICE, "3", WAY_OUT_CHECKPOINT, 9, 9);
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        scene_skip(&s, HAND_LOCK, 2);
        uint64_t p2 = ask_2(&s, GiB(22));
        scene_tick_to_s(&s, 2);
        assert_state(&s, f1, LEASE_PARKED);
        assert_state(&s, f2, LEASE_PARKED);
        assert_state(&s, f3, LEASE_ASKING);
        struct action order = *scene_last(&s, f3, ACTION_HAND);
        (void) scene_stranger(&s, card, GiB(12));
        scene_outcome(&s, &order, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
        scene_release(&s, p2);
        scene_tick_to_s(&s, 20);
        assert_runs(&s, f1);
        scene_end(&s);
}

static void victim_that_cannot_be_locked_does_not_make_the_other_go_back_and_forth(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f1 = filler(&s, GiB(10), "1"), f2 = filler(&s, GiB(10), "2");
        scene_cost(&s, ALICE, "1", WAY_OUT_CHECKPOINT, 1, 1);
        scene_cost(&s, ALICE, "2", WAY_OUT_CHECKPOINT, 9, 9);
        uint64_t p2 = 0;
        (void) p2;
        for (unsigned t = 0; t < 3600; t++) {
                scene_next(&s, HAND_LOCK, 1, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
                if (scene_lease(&s, f1)->state == LEASE_ACTIVE && scene_lease(&s, f2)->park.not_before_ms <= s.now_ms)
                        scene_skip(&s, HAND_LOCK, 1);
                if (t == 0)
                        p2 = ask_2(&s, GiB(20));
                scene_tick_to_s(&s, t + 1);
        }
        assert_true(scene_count_rule(&s, 0, f1, RULE_PARKED) <= 12);
        scene_end(&s);
}

static void survivors_work_again_once_the_failed_one_is_dead(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(6), "f");
        scene_uses(&s, f, GiB(3));
        uint32_t two = scene_process_of(&s, ALICE, 0, pid_of(&s, f), 0);
        scene_process_uses(&s, two, card, GiB(3), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_next(&s, HAND_CHECKPOINT, 1, OUTCOME_FAILED, HAND_WHY_DRIVER);
        scene_skip(&s, HAND_CHECKPOINT, 1);
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 5);
        assert_state(&s, f, LEASE_STUCK);
        scene_process_ends(&s, two);
        scene_tick_to_s(&s, 10);
        assert_runs(&s, f);
        scene_end(&s);
}

static void slot_extended_while_parked(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .slot_s = 600, .proven = CHECKPOINT });
        scene_tick_to_s(&s, 100);
        scene_says(&s, f, PARK_CALL_PARK, 3600);
        scene_tick_to_s(&s, 3000);
        assert_state(&s, f, LEASE_PARKED);
        scene_change(&s, f, (struct change){ .what = CHANGE_EXTEND, .slot_ms = SECONDS(600) });
        assert_kind(s.answer, ACTION_CHANGED);
        scene_tick_to_s(&s, 3710);
        assert_runs(&s, f);
        uint64_t left_ms = scene_lease(&s, f)->slot_end_ms - s.now_ms;
        assert_true(left_ms > SECONDS(1080) && left_ms <= SECONDS(1101));
        scene_end(&s);
}

static void rehearsal_gives_its_place_to_nobody_who_came_later(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t a = works(&s, (struct ask){ .bytes = GiB(20), .priority = 3, .uid = ALICE, .consumer = "x.py" });
        scene_tick_to_s(&s, 1);
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 3, .uid = ALICE });
        assert_waits(&s, b);
        scene_says(&s, a, PARK_CALL_REHEARSE, 0);
        scene_tick_to_s(&s, 5);
        assert_runs(&s, a);
        scene_end(&s);
}

static void slow_drain_of_a_victim_does_not_hold_the_plan_for_ever(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(11), "f");
        (void) filler(&s, GiB(11), "g");
        scene_cost(&s, ALICE, "f", WAY_OUT_CHECKPOINT, 1, 1);
        scene_cost(&s, ALICE, "g", WAY_OUT_CHECKPOINT, 9, 9);
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t p2 = ask_2(&s, GiB(12));
        assert_state(&s, f, LEASE_ASKING);
        struct input input = { .kind = INPUT_PROCESS_ENDED };
        input.process_ended = scene_row(&s, pid_of(&s, f), 0)->identity;
        scene_step(&s, &input); /* and the driver lists it for ever */
        scene_owner_ended(&s, f);
        scene_tick_to_s(&s, 600);
        assert_runs(&s, p2);
        scene_end(&s);
}

static void hands_that_are_away_for_an_hour_do_not_fill_the_journal(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = filler(&s, GiB(20), "f");
        scene_says(&s, f, PARK_CALL_PARK, 0);
        scene_tick_to_s(&s, 2);
        scene_next(&s, HAND_RESTORE, 100000, OUTCOME_BLOCKED, HAND_WHY_AWAY);
        scene_says(&s, f, PARK_CALL_THAW, 0);
        size_t since = s.n_log;
        scene_tick_to_s(&s, 3602);
        assert_true(scene_n_orders(&s, since, HAND_RESTORE) < 1000);
        scene_end(&s);
}

static void broken_promise_is_followed_by_the_next_way_out(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE | CHECKPOINT });
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_yields(&s, f);
        scene_tick_to_s(&s, 2);
        assert_runs(&s, p2);
        shows(&s, f, GiB(20));
        scene_tick_to_s(&s, 60);
        assert_true(scene_n_orders(&s, 0, HAND_LOCK) >= 1);
        scene_end(&s);
}

/* Who broke a promise and cannot be checkpointed stays beside whoever has the device alone: nobody let it in. */
static void broken_promise_beside_an_exclusive_one_ends_stuck(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        uint64_t f = works(&s, (struct ask){ .bytes = GiB(4), .priority = 4, .named = COOPERATE | CHECKPOINT });
        uint64_t x = scene_request(&s, (struct ask){ .priority = 2, .exclusive = true, .slot_s = 600, .uid = BOB });
        scene_yields(&s, f);
        scene_tick_to_s(&s, 2);
        assert_runs(&s, x);
        scene_next(&s, HAND_CHECKPOINT, 1, OUTCOME_FAILED, HAND_WHY_DRIVER);
        shows(&s, f, GiB(4));
        scene_tick_to_s(&s, 60);
        assert_state(&s, f, LEASE_STUCK);
        assert_runs(&s, x);
        scene_end(&s);
}

/* Host memory grows by more than was on the device, and nobody can be given more than all of that. */
static void who_had_all_of_a_device_comes_back_to_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        s.world->devices[card].driver_own_known = false;
        s.cards[card].hidden_bytes = MiB(500); /* the driver's own */
        scene_look(&s);
        scene_hands(&s);
        scene_overhead(&s, 20);
        uint64_t f = filler(&s, GiB(24) - MiB(500), "f");
        uint64_t p2 = ask_2(&s, GiB(14));
        scene_tick_to_s(&s, 3);
        assert_runs(&s, p2);
        assert_state(&s, f, LEASE_PARKED);
        scene_release(&s, p2);
        scene_tick_to_s(&s, 130);
        assert_runs(&s, f);
        scene_end(&s);
}

static void small_one_beside_an_exclusive_filler_that_leaves_room(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        uint32_t x = scene_graphics(&s, card, MiB(900));
        uint64_t f = scene_request(&s, (struct ask){ .bytes = GiB(10),
                                                     .exclusive = true,
                                                     .priority = 5,
                                                     .uid = ALICE,
                                                     .consumer = "f",
                                                     .proven = CHECKPOINT });
        assert_runs(&s, f);
        scene_uses(&s, f, GiB(20));
        scene_process_ends(&s, x); /* a display is switched off: 1 GiB is free, and nobody's */
        uint64_t p2 = ask_2(&s, MiB(500));
        scene_tick_to_s(&s, 3);
        assert_runs(&s, p2);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(filler_gives_way_to_interactive_work_and_comes_back_by_itself),
                cmocka_unit_test(D1_reservation_shrinks_by_exactly_what_the_claim_gains),
                cmocka_unit_test(D2_what_it_never_took_goes_to_the_claim_first),
                cmocka_unit_test(D4_a_return_needs_its_bytes_and_some_slack),
                cmocka_unit_test(D4_thaw_without_room_is_blocked_a_thousand_times_and_counts_for_nothing),
                cmocka_unit_test(F47_D5_twelve_plans_after_a_finished_park_change_nothing),
                cmocka_unit_test(D6_blocked_changes_no_counter_and_a_lock_that_times_out_is_undone),
                cmocka_unit_test(F01_D6_failed_restore_is_final_and_nobody_is_signalled),
                cmocka_unit_test(F02_checkpoint_that_does_not_return_leaves_it_stuck_and_its_late_answer_is_taken_up),
                cmocka_unit_test(F05_tree_is_locked_whole_before_anybody_is_checkpointed_or_stopped),
                cmocka_unit_test(F14_who_dies_on_the_way_is_released_once_and_not_touched_again),
                cmocka_unit_test(D6_cooperation_in_vain_is_a_strike_and_then_the_next_way_out),
                cmocka_unit_test(D6_five_strikes_in_a_row_and_that_way_out_is_not_used_until_a_person_says_so),
                cmocka_unit_test(D6_promise_that_is_kept_takes_back_the_strikes_before_it),
                cmocka_unit_test(C14_step_that_fails_ends_the_plan_and_what_it_parked_comes_back),
                cmocka_unit_test(D7_seventh_return_within_the_hour_waits_and_so_does_one_beside_a_growing_stranger),
                cmocka_unit_test(D8_over_time_it_ranks_as_a_filler_and_goes_only_by_a_way_out_it_has),
                cmocka_unit_test(filler_with_restart_is_ended_by_its_client_and_started_again),
                cmocka_unit_test(park_by_a_person_holds_until_the_person_ends_it),
                cmocka_unit_test(S02_parking_what_is_somebody_elses_is_refused_and_told),
                cmocka_unit_test(rehearsal_proves_and_what_is_proven_needs_no_word_next_time),
                cmocka_unit_test(parked_memory_is_credited_once),
                cmocka_unit_test(ledger_swap_does_not_deadlock),
                cmocka_unit_test(F04_many_cycles_in_a_row_succeed_and_nobody_stopped_is_probed),
                cmocka_unit_test(F11_what_is_parked_comes_back_to_an_empty_card_at_once),
                cmocka_unit_test(F12_time_parked_is_not_charged_to_its_slot),
                cmocka_unit_test(release_of_what_is_parked_is_refused_for_nobody_could_bring_it_back),
                cmocka_unit_test(lost_books_take_up_what_a_record_knows),
                cmocka_unit_test(filler_that_broke_a_promise_before_and_cannot_be_held_goes_on),
                cmocka_unit_test(filler_is_held_in_place_while_somebody_more_important_says_it_works),
                cmocka_unit_test(nobody_is_held_for_who_works_on_after_his_slot),
                cmocka_unit_test(nobody_is_held_for_who_is_asked_for_his_memory_in_that_moment),
                cmocka_unit_test(released_while_it_gives_way_and_its_context_is_still_there),
                cmocka_unit_test(lock_that_is_never_answered_does_not_hold_up_everybody),
                cmocka_unit_test(stop_that_is_never_answered),
                cmocka_unit_test(unlock_that_is_never_answered),
                cmocka_unit_test(second_member_finds_no_room_for_a_minute),
                cmocka_unit_test(what_is_answered_late_or_never_leaves_nobody_between_two_states),
                cmocka_unit_test(what_stays_of_it_there_does_not_park_it_again_and_again),
                cmocka_unit_test(parked_already_and_then_by_a_person_it_stays),
                cmocka_unit_test(one_whose_memory_is_not_needed_any_more_when_its_turn_comes_is_left_alone),
                cmocka_unit_test(idle_one_that_is_at_work_again_before_its_turn_is_left_alone),
                cmocka_unit_test(one_that_is_pinned_before_its_turn_is_left_alone),
                cmocka_unit_test(other_card_becomes_free_while_a_plan_hangs),
                cmocka_unit_test(killed_heartbeat_lease_ends),
                cmocka_unit_test(F51_kill_is_called_off_when_who_it_was_for_has_left),
                cmocka_unit_test(unkillable_that_dies_at_last_is_gone),
                cmocka_unit_test(cooperative_one_without_its_owner_comes_back_or_ends),
                cmocka_unit_test(half_given_back_and_granted_is_not_promised_twice),
                cmocka_unit_test(host_memory_that_was_just_taken_is_not_counted_on_again),
                cmocka_unit_test(undone_one_comes_back_though_the_other_cannot),
                cmocka_unit_test(victim_that_cannot_be_locked_does_not_make_the_other_go_back_and_forth),
                cmocka_unit_test(survivors_work_again_once_the_failed_one_is_dead),
                cmocka_unit_test(slot_extended_while_parked),
                cmocka_unit_test(rehearsal_gives_its_place_to_nobody_who_came_later),
                cmocka_unit_test(slow_drain_of_a_victim_does_not_hold_the_plan_for_ever),
                cmocka_unit_test(hands_that_are_away_for_an_hour_do_not_fill_the_journal),
                cmocka_unit_test(broken_promise_is_followed_by_the_next_way_out),
                cmocka_unit_test(broken_promise_beside_an_exclusive_one_ends_stuck),
                cmocka_unit_test(who_had_all_of_a_device_comes_back_to_it),
                cmocka_unit_test(small_one_beside_an_exclusive_filler_that_leaves_room),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
