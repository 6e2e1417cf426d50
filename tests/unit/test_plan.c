/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is taken back for somebody, step by step: what is claimed of it meanwhile, and how it is undone. */
#include "scene_park.h"

#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)

static void begin(struct scene *s)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        scene_hands(s);
}

/* A filler that reserved so much and uses less; the dearer, the later it is taken. */
static uint64_t filler(struct scene *s, uint64_t bytes, uint64_t used_bytes, const char *consumer, uint64_t cost_s)
{
        uint64_t id = scene_request(
                s, (struct ask){
                           .bytes = bytes, .priority = 5, .uid = ALICE, .consumer = consumer, .proven = CHECKPOINT });

        assert_runs(s, id);
        scene_uses(s, id, used_bytes);
        scene_cost(s, ALICE, consumer, WAY_OUT_CHECKPOINT, cost_s, cost_s);
        return id;
}

static uint64_t ask_2(struct scene *s, uint64_t bytes)
{
        return scene_request(s, (struct ask){ .bytes = bytes, .priority = 2, .uid = BOB });
}

static uint64_t reserved_by(struct scene *s, uint64_t id)
{
        return world_holder_get(s->world, scene_lease(s, id)->holder)->reserved_bytes;
}

static uint64_t claimed(const struct scene *s)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < s->world->n_holders; i++)
                if (s->world->holders[i].kind == HOLDER_CLAIM)
                        sum += s->world->holders[i].reserved_bytes;
        return sum;
}

static void what_the_first_victim_had_is_claimed_while_the_second_is_on_its_way(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint64_t f1 = filler(&s, GiB(10), GiB(2), "1", 1), f2 = filler(&s, GiB(8), GiB(8), "2", 9);
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        scene_skip(&s, HAND_LOCK, 1);
        uint64_t p2 = ask_2(&s, GiB(20));
        scene_tick_to_s(&s, 2);
        assert_state(&s, f1, LEASE_PARKED);
        assert_state(&s, f2, LEASE_ASKING);
        assert_bytes(claimed(&s), GiB(16)); /* 6 that were free, 2 that it used, 8 that it never took */
        uint64_t comes = scene_request(&s, (struct ask){ .bytes = GiB(4), .uid = CAROL, .slot_s = 1 });
        assert_waits(&s, comes);
        scene_answers_late(&s, HAND_LOCK);
        scene_tick_to_s(&s, 4);
        assert_runs(&s, p2);
        scene_end(&s);
}

/* A plan is as good as a start: whoever became head of the device while it ran did not come before. */
static void whose_plan_failed_stands_before_who_became_head_meanwhile(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint64_t f = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .priority = 5, .uid = ALICE, .slot_s = 600, .named = CHECKPOINT });
        scene_uses(&s, f, GiB(20));
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        uint64_t first = ask_2(&s, GiB(16));
        assert_state(&s, f, LEASE_ASKING);
        scene_tick_to_s(&s, 1);
        uint64_t later = scene_request(&s, (struct ask){ .bytes = GiB(16), .priority = 2, .uid = CAROL });
        scene_tick_to_s(&s, 2);
        assert_true(scene_entry(&s, later)->is_head);
        scene_outcome(&s, scene_last(&s, f, ACTION_HAND), OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
        scene_tick_to_s(&s, 3);
        assert_waits(&s, first);
        scene_release(&s, f);
        scene_process_ends(&s, scene_owner(&s, f));
        scene_look(&s);
        scene_tick_to_s(&s, 5);
        assert_runs(&s, first);
        assert_waits(&s, later);
        scene_end(&s);
}

/* One look lacks a row, and the device counts its memory all the same: that is nothing that was given back, though it looks like
 * memory of somebody who cannot be read, and as if there were room for it. */
static void row_that_is_missing_once_takes_nothing_from_a_victims_promise(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(6), .priority = 2, .uid = CAROL, .managed = true });
        uint64_t f =
                scene_request(&s, (struct ask){ .bytes = GiB(14), .priority = 4, .uid = ALICE, .named = COOPERATE });
        scene_uses(&s, f, GiB(5));
        uint32_t other = scene_process(&s, 0, scene_owner(&s, f), 0);
        scene_process_uses(&s, other, 0, GiB(5), ROW_USED_KNOWN | ROW_COMPUTE);
        uint64_t p2 = ask_2(&s, GiB(12));
        assert_state(&s, f, LEASE_ASKING);
        scene_row(&s, other, 0)->bytes = 0;
        s.cards[0].hidden_bytes = GiB(5);
        scene_look(&s);
        assert_bytes(reserved_by(&s, f), GiB(14));
        s.cards[0].hidden_bytes = 0;
        scene_row(&s, other, 0)->bytes = GiB(1); /* that is something */
        scene_look(&s);
        assert_bytes(reserved_by(&s, f), GiB(10));
        assert_waits(&s, p2);
        scene_end(&s);
}

static void plan_that_failed_is_undone_from_its_last_step_on(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint64_t f1 = filler(&s, GiB(6), GiB(6), "1", 1), f2 = filler(&s, GiB(6), GiB(6), "2", 2);
        uint64_t f3 = filler(&s, GiB(6), GiB(6), "3", 9);
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        scene_skip(&s, HAND_LOCK, 2);
        uint64_t p2 = ask_2(&s, GiB(22));
        scene_tick_to_s(&s, 2);
        assert_state(&s, f1, LEASE_PARKED);
        assert_state(&s, f2, LEASE_PARKED);
        assert_state(&s, f3, LEASE_ASKING);
        struct action order = *scene_last(&s, f3, ACTION_HAND);
        scene_outcome(&s, &order, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
        scene_release(&s, p2);
        scene_tick_to_s(&s, 20);
        assert_runs(&s, f1);
        assert_runs(&s, f2);
        assert_true(scene_last(&s, f2, ACTION_THAWED)->id < scene_last(&s, f1, ACTION_THAWING)->id);
        scene_end(&s);
}

/* What was read before it was checkpointed shows nothing of that, little as it was. */
static void look_from_before_the_checkpoint_does_not_show_that_it_is_off(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint64_t f = filler(&s, GiB(20), MiB(40), "1", 1);
        scene_tick_to_s(&s, 1);
        s.eyes_closed = true;
        s.now_ms += 500;
        scene_says(&s, f, PARK_CALL_PARK, 0);
        assert_int_equal(scene_n_orders(&s, 0, HAND_STOP), 1);
        scene_tick_to_s(&s, 3);
        assert_state(&s, f, LEASE_ASKING);
        s.eyes_closed = false;
        scene_look(&s);
        assert_state(&s, f, LEASE_PARKED);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_the_first_victim_had_is_claimed_while_the_second_is_on_its_way),
                cmocka_unit_test(whose_plan_failed_stands_before_who_became_head_meanwhile),
                cmocka_unit_test(row_that_is_missing_once_takes_nothing_from_a_victims_promise),
                cmocka_unit_test(plan_that_failed_is_undone_from_its_last_step_on),
                cmocka_unit_test(look_from_before_the_checkpoint_does_not_show_that_it_is_off),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
