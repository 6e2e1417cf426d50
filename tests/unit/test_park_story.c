/* SPDX-License-Identifier: Apache-2.0 */
/* Hours of a shared card, virtually: what people see of all the rules together. */
#include <stdio.h>
#include "scene_park.h"

#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)

static uint32_t draw(uint32_t *seed, uint32_t from, uint32_t to)
{
        *seed = *seed * 1664525 + 1013904223;
        return from + (*seed >> 8) % (to - from + 1);
}

static void begin(struct scene *s)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        scene_hands(s);
        s->sparse_checks = true;
}

static uint64_t chat_model(struct scene *s)
{
        uint64_t id = scene_request(s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = BOB, .named = COOPERATE });

        assert_runs(s, id);
        scene_uses(s, id, GiB(20));
        scene_says(s, id, PARK_CALL_BUSY, 0);
        return id;
}

static void chat_with_short_gaps_never_loses_its_model_to_a_filler(void **state)
{
        (void) state;
        struct scene s;
        uint32_t seed = 7;
        begin(&s);
        uint64_t chat = chat_model(&s);
        uint64_t f = scene_request(
                &s,
                (struct ask){ .bytes = GiB(10), .priority = 5, .uid = ALICE, .proven = CHECKPOINT, .filler = true });
        assert_waits(&s, f);
        while (scene_s(&s) < 3600) {
                scene_says(&s, chat, PARK_CALL_IDLE, 300);
                scene_tick_to_s(&s, scene_s(&s) + draw(&seed, 5, 120));
                scene_says(&s, chat, PARK_CALL_BUSY, 0);
                scene_tick_to_s(&s, scene_s(&s) + draw(&seed, 2, 20));
        }
        assert_runs(&s, chat);
        assert_waits(&s, f);
        assert_int_equal(scene_count(&s, 0, chat, ACTION_ASKED), 0);
        scene_end(&s);
}

static void chat_with_long_gaps_lends_the_card_and_the_next_turn_hardly_waits(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint64_t chat = chat_model(&s);
        uint64_t f = scene_request(
                &s,
                (struct ask){ .bytes = GiB(10), .priority = 5, .uid = ALICE, .consumer = "f", .proven = CHECKPOINT });
        for (unsigned turn = 0; turn < 5; turn++) {
                scene_says(&s, chat, PARK_CALL_IDLE, 300);
                scene_tick_to_s(&s, scene_s(&s) + 301);
                if (turn == 0) {
                        assert_state(&s, chat, LEASE_ASKING);
                        scene_yields(&s, chat);
                        scene_tick_to_s(&s, scene_s(&s) + 2);
                } else if (scene_lease(&s, chat)->state == LEASE_ASKING) {
                        scene_yields(&s, chat);
                        scene_tick_to_s(&s, scene_s(&s) + 2);
                }
                assert_state(&s, chat, LEASE_PARKED);
                assert_runs(&s, f);
                if (!scene_row(&s, scene_owner(&s, f), 0))
                        scene_uses(&s, f, GiB(10));
                scene_tick_to_s(&s, scene_s(&s) + 100);
                assert_runs(&s, f); /* nobody's work is stopped for a model that has nothing to do */
                uint64_t before_s = scene_s(&s);
                scene_says(&s, chat, PARK_CALL_BUSY, 0); /* the next turn */
                scene_tick_to_s(&s, before_s + 1);
                assert_state(&s, chat, LEASE_THAWING); /* parked within the second; now it loads */
                assert_state(&s, f, LEASE_PARKED);
                scene_activate(&s, chat, 0, 0);
                scene_uses(&s, chat, GiB(20));
                scene_tick_to_s(&s, scene_s(&s) + 200);
                assert_runs(&s, chat);
        }
        scene_end(&s);
}

static void filler_with_restart_never_keeps_a_service_out_for_two_minutes(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint64_t f = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .priority = 5, .uid = ALICE, .named = RESTART, .consumer = "f" });
        uint32_t root = scene_process_of(&s, ALICE, 0, scene_owner(&s, f), 0);
        scene_activate(&s, f, root, 0);
        scene_process_uses(&s, root, 0, GiB(20), ROW_USED_KNOWN | ROW_COMPUTE);
        for (unsigned i = 0; i < 4; i++) {
                uint64_t from_s = scene_s(&s);
                uint64_t p2 = scene_request(&s, (struct ask){ .bytes = GiB(14), .priority = 2, .uid = BOB });
                scene_tick_to_s(&s, from_s + 20); /* it ends as fast as it likes */
                scene_process_ends(&s, root);
                scene_says(&s, f, PARK_CALL_YIELDED, 0);
                scene_tick_to_s(&s, from_s + 22);
                assert_runs(&s, p2);
                scene_tick_to_s(&s, from_s + 60);
                scene_release(&s, p2);
                scene_tick_to_s(&s, from_s + 62);
                assert_state(&s, f, LEASE_THAWING);
                root = scene_process_of(&s, ALICE, 0, scene_owner(&s, f), 0);
                scene_activate(&s, f, root, 0);
                scene_process_uses(&s, root, 0, GiB(20), ROW_USED_KNOWN | ROW_COMPUTE);
                scene_tick_to_s(&s, from_s + 63);
                assert_runs(&s, f); /* back for a second, and the next one asks */
        }
        scene_end(&s);
}

/* I11. One after another, each with its end named, asked for before the last one ended. */
static void parked_work_returns_under_a_stream_of_more_important_requests(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint64_t p3 = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .uid = ALICE, .consumer = "t", .proven = CHECKPOINT });
        scene_uses(&s, p3, GiB(20));
        uint64_t last = 0, parked_at_s = 0, back_at_s = 0;
        for (uint64_t at_s = 60; at_s < 3 * 3600 && back_at_s == 0; at_s += 60) {
                scene_tick_to_s(&s, at_s);
                enum lease_state now = (enum lease_state) scene_lease(&s, p3)->state;
                if (now == LEASE_PARKED && parked_at_s == 0)
                        parked_at_s = at_s;
                if (now == LEASE_ACTIVE && parked_at_s != 0)
                        back_at_s = at_s;
                for (uint32_t i = 0; i < s.world->n_leases; i++) /* who is over time ends, as it said */
                        if (s.world->lease_ids[i] != 0 && s.world->leases[i].uid == BOB && s.world->leases[i].over_time)
                                scene_release(&s, s.world->leases[i].id);
                if (at_s % 240 == 0)
                        last = scene_request(
                                &s, (struct ask){ .bytes = GiB(14), .priority = 2, .slot_s = 300, .uid = BOB });
        }
        assert_int_not_equal(parked_at_s, 0);
        assert_int_not_equal(back_at_s, 0);
        assert_true(back_at_s - parked_at_s <= 1800 + 300 + 60);
        (void) last;
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(chat_with_short_gaps_never_loses_its_model_to_a_filler),
                cmocka_unit_test(chat_with_long_gaps_lends_the_card_and_the_next_turn_hardly_waits),
                cmocka_unit_test(filler_with_restart_never_keeps_a_service_out_for_two_minutes),
                cmocka_unit_test(parked_work_returns_under_a_stream_of_more_important_requests),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
