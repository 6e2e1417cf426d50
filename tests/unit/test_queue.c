/* SPDX-License-Identifier: Apache-2.0 */
/* The queue (design 4.2): the worked examples B1 … B12 by number, and what else was promised about waiting. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "arbiter/rank.h"
#include "scene.h"

#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
enum { NO_LIMIT = 0 };

/* ---- B1, B2: rank by priority and time ---- */

/* The device is full until @waited_s, then it is empty: the rank with which what waited is granted. */
static uint8_t rank_after(uint8_t priority, uint64_t waited_s)
{
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
        uint64_t x = scene_request(
                &s, (struct ask){
                            .bytes = GiB(24), .priority = priority, .admin = true, .slot_s = 3600, .named = RESTART });
        assert_runs(&s, a);
        assert_waits(&s, x);
        scene_tick_to_s(&s, waited_s);
        scene_release(&s, a);
        assert_runs(&s, x);
        assert_int_equal(scene_lease(&s, x)->priority, priority);
        assert_bytes(scene_lease(&s, x)->waited_ms, SECONDS(waited_s));
        uint8_t rank = scene_lease(&s, x)->kept_rank;
        scene_end(&s);
        return rank;
}

static void B1_rank_gains_one_level_per_600_s_and_stops_at_2(void **state)
{
        (void) state;
        static const struct {
                uint8_t priority;
                uint64_t waited_s;
                uint8_t rank;
        } rows[] = {
                { 3, 0, 3 },    { 3, 599, 3 },  { 3, 600, 2 },  { 3, 1200, 2 }, { 4, 599, 4 },
                { 4, 600, 3 },  { 4, 1199, 3 }, { 4, 1200, 2 }, { 4, 9000, 2 }, { 2, 0, 2 },
                { 2, 3600, 2 }, { 5, 3600, 5 }, { 1, 0, 1 },    { 1, 3600, 1 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# P%u after %" PRIu64 " s\n", rows[i].priority, rows[i].waited_s);
                assert_int_equal(rank_after(rows[i].priority, rows[i].waited_s), rows[i].rank);
        }
}

/* Who is granted first, second, third when the full device is emptied again and again; every one wants all of it. */
static void assert_order(struct scene *s, uint64_t running, const uint64_t *ids, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                scene_release(s, running);
                for (size_t k = 0; k < n; k++)
                        assert_string_equal(scene_state(s, ids[k]), k < i ? "gone" : k == i ? "active" : "queued");
                running = ids[i];
        }
}

static void B2_order_of_fresh_and_aged_entries_of_equal_usage(void **state)
{
        (void) state;
        static const struct {
                uint64_t waited_s;
                bool p2_before_p3;
        } rows[] = { { 1, true }, { 599, true }, { 600, false }, { 601, false } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
                uint64_t p3 = scene_request(&s, (struct ask){ .bytes = GiB(24), .priority = 3 });
                scene_tick_to_s(&s, rows[i].waited_s);
                uint64_t p2 = scene_request(&s, (struct ask){ .bytes = GiB(24), .priority = 2 });
                assert_int_equal(s.answer.why.place, rows[i].p2_before_p3 ? 1 : 2);
                uint64_t p1 = scene_request(
                        &s,
                        (struct ask){ .bytes = GiB(24), .priority = 1, .admin = true, .slot_s = 60, .named = RESTART });
                assert_int_equal(s.answer.why.place, 1);
                assert_int_equal(s.answer.why.n_waiting, 3);
                const uint64_t young[] = { p1, p2, p3 }, aged[] = { p1, p3, p2 };
                assert_order(&s, a, rows[i].p2_before_p3 ? young : aged, 3);
                scene_end(&s);
        }
}

/*
 * A holds 16 until @slot_s (0 = without an end), free 8. A head of @head_bytes waits. Returns the head's id.
 */
static uint64_t behind_a(struct scene *s, uint64_t slot_s, uint64_t head_bytes, uint8_t head_priority, uint64_t *ret_a)
{
        uint64_t a = scene_request(s, (struct ask){ .bytes = GiB(16), .slot_s = slot_s });
        assert_runs(s, a);
        uint64_t head = scene_request(s, (struct ask){ .bytes = head_bytes, .priority = head_priority });
        assert_waits(s, head);
        if (ret_a)
                *ret_a = a;
        return head;
}

static uint64_t ask_6(struct scene *s, uint8_t priority, uint64_t limit_s)
{
        return scene_request(s, (struct ask){ .bytes = GiB(6), .priority = priority, .slot_s = limit_s });
}

static void B2_fresh_P2_and_P1_pass_a_P3_until_it_has_waited_600_s(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t waited_s;
                uint8_t head, asker;
                bool passes;
        } rows[] = {
                { "P2 passes a P3 that waited 1 s", 1, 3, 2, true },
                { "P2 passes a P3 that waited 599 s", 599, 3, 2, true },
                { "P2 does not pass a P3 that waited 600 s", 600, 3, 2, false },
                { "P2 does not pass a P3 that waited 601 s", 601, 3, 2, false },
                { "P3 never passes a P3", 1, 3, 3, false },
                { "P3 passes a fresh P4", 1, 4, 3, true },
                { "P3 does not pass a P4 that waited 600 s", 600, 4, 3, false },
                { "P1 passes a P3 that waited 1 s", 1, 3, 1, true },
                { "P1 passes a P3 that waited 601 s", 601, 3, 1, true },
                { "P1 passes a P2", 1, 2, 1, true },
                { "P1 passes a P5 that waited an hour", 3600, 5, 1, true },
                { "P4 passes a P5 that waited an hour", 3600, 5, 4, true },
                { "P5 never passes a P5", 3600, 5, 5, false },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t head = behind_a(&s, 20000, GiB(20), rows[i].head, NULL);
                scene_tick_to_s(&s, rows[i].waited_s);
                /* No limit that would end in time: the slot of the P1, which has to have one, ends after the head's start. */
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(6),
                                                             .priority = rows[i].asker,
                                                             .admin = true,
                                                             .slot_s = rows[i].asker == 1 ? 40000 : NO_LIMIT,
                                                             .kill_at_end = rows[i].asker == 1 });
                assert_string_equal(scene_state(&s, x), rows[i].passes ? "active" : "queued");
                if (rows[i].passes) {
                        assert_rule(s.answer, RULE_PASSES_HEAD);
                        assert_false(scene_lease(&s, x)->backfilled);
                } else {
                        assert_rule(s.answer, RULE_BEHIND_HEAD);
                        assert_bytes(s.answer.why.head_lease_id, head);
                }
                assert_waits(&s, head);
                scene_end(&s);
        }
}

static void B2_P5_that_waited_an_hour_stands_behind_a_fresh_P4(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
        uint64_t p5 = scene_request(&s, (struct ask){ .bytes = GiB(24), .priority = 5 });
        scene_tick_to_s(&s, 3600);
        uint64_t p4 = scene_request(&s, (struct ask){ .bytes = GiB(24), .priority = 4 });
        uint64_t p1 = scene_request(
                &s, (struct ask){ .bytes = GiB(24), .priority = 1, .admin = true, .slot_s = 60, .named = RESTART });
        const uint64_t order[] = { p1, p4, p5 };
        assert_order(&s, a, order, 3);
        scene_end(&s);
}

/* A holder keeps the rank of its grant for 30 min, or its slot if shorter, then its base; over time it is a filler. */
static void B1_holder_keeps_the_rank_of_its_grant_for_a_while(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t slot_s, held_s;
                bool over_time;
                unsigned rank;
        } rows[] = {
                { "at once", 0, 0, false, 2 },
                { "1799 s", 0, 1799, false, 2 },
                { "1800 s", 0, 1800, false, 3 },
                { "slot of 600 s, 599 s", 600, 599, false, 2 },
                { "slot of 600 s, over", 600, 600, true, 5 },
                { "slot of 2 h, 1800 s", 7200, 1800, false, 3 },
                { "slot of 2 h, over", 7200, 7200, true, 5 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(24), .slot_s = rows[i].slot_s });
                scene_tick_to_s(&s, 700);
                scene_release(&s, a);
                assert_runs(&s, x);
                scene_tick_to_s(&s, 700 + rows[i].held_s);
                assert_int_equal(scene_lease(&s, x)->over_time, rows[i].over_time);
                assert_int_equal(lease_rank(&s.config, scene_lease(&s, x), s.now_ms), rows[i].rank);
                scene_end(&s);
        }
}

/* ---- B3, B4: usage ---- */

enum { MUCH = 100000000 }; /* MiB·s: three GPU-hours of 9 GiB; what a scene uses on the way is little beside it */

static void fifty_of_alice_one_of_bob(struct scene *s, uint64_t a_slot_s, uint64_t *ret_a, uint64_t alices[50],
                                      uint64_t *ret_bob)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        *ret_a = scene_request(s, (struct ask){ .uid = CAROL, .bytes = GiB(24), .slot_s = a_slot_s });
        scene_usage(s, ALICE, MUCH);
        for (uint64_t i = 0; i < 50; i++) {
                scene_tick_to_s(s, i);
                alices[i] = scene_request(s, (struct ask){ .uid = ALICE, .bytes = GiB(24) });
        }
        scene_tick_to_s(s, 60);
        *ret_bob = scene_request(s, (struct ask){ .uid = BOB, .bytes = GiB(24) });
}

static void B3_one_request_beside_a_heavy_users_fifty_comes_first(void **state)
{
        (void) state;
        struct scene s;
        uint64_t a, alices[50], bob;
        fifty_of_alice_one_of_bob(&s, NO_LIMIT, &a, alices, &bob);
        assert_int_equal(s.answer.why.place, 1);
        assert_int_equal(s.answer.why.n_waiting, 51);
        scene_tick_to_s(&s, 70);
        const uint64_t order[] = { bob, alices[0], alices[1], alices[2] };
        assert_order(&s, a, order, 4);
        scene_end(&s);
}

static void B3_head_with_a_finite_start_stays_head(void **state)
{
        (void) state;
        struct scene s;
        uint64_t a, alices[50], bob;
        fifty_of_alice_one_of_bob(&s, 1000, &a, alices, &bob);
        assert_int_equal(s.answer.why.place, 2);
        assert_bytes(s.answer.why.head_lease_id, alices[0]);
        scene_tick_to_s(&s, 70);
        const uint64_t order[] = { alices[0], bob, alices[1] };
        assert_order(&s, a, order, 3);
        scene_end(&s);
}

static void B3_usage_counts_half_after_one_day(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t after_s, bobs;
                bool bob_first;
        } rows[] = {
                { "100 beside 99, at once", 0, MUCH / 100 * 99, true },
                { "100 of a day ago beside 51", 24 * 3600, MUCH / 100 * 51, false },
                { "100 of a day ago beside 49", 24 * 3600, MUCH / 100 * 49, true },
                { "100 of two days ago beside 26", 48 * 3600, MUCH / 100 * 26, false },
                { "100 of two days ago beside 24", 48 * 3600, MUCH / 100 * 24, true },
                { "100 of half a day ago beside 72", 12 * 3600, MUCH / 100 * 72, false },
                { "100 of half a day ago beside 69", 12 * 3600, MUCH / 100 * 69, true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                scene_usage(&s, ALICE, MUCH);
                s.now_ms += SECONDS(rows[i].after_s);
                scene_usage(&s, BOB, rows[i].bobs);
                scene_tick(&s);
                uint64_t a = scene_request(&s, (struct ask){ .uid = CAROL, .bytes = GiB(24) });
                uint64_t alice = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(24) });
                uint64_t bob = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(24) });
                const uint64_t by_usage[] = { bob, alice }, by_arrival[] = { alice, bob };
                assert_order(&s, a, rows[i].bob_first ? by_usage : by_arrival, 2);
                scene_end(&s);
        }
}

/* Not only a number put there: what somebody held is what he used, and not held is not used. */
static void B3_usage_is_what_was_held_and_for_how_long(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(12) });
        uint64_t b = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(6) });
        scene_tick_to_s(&s, 100); /* alice 1200, bob 600 GiB·s */
        scene_release(&s, a);
        scene_tick_to_s(&s, 250); /* alice 1200, bob 1500 */
        uint64_t c = scene_request(&s, (struct ask){ .uid = CAROL, .bytes = GiB(18) });
        uint64_t bob = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(18) });
        uint64_t alice = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(18) });
        assert_runs(&s, b);
        const uint64_t order[] = { alice, bob };
        assert_order(&s, c, order, 2);
        scene_end(&s);
}

/* 10 GiB for 1000 s are 10,240,000 MiB·s; what decays meanwhile is less than a hundredth. */
static void B3_usage_is_held_memory_times_time(void **state)
{
        (void) state;
        static const struct {
                uint64_t bobs;
                bool bob_first;
        } rows[] = { { 10100000, true }, { 10300000, false } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t held = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(10) });
                scene_tick_to_s(&s, 1000);
                scene_release(&s, held);
                scene_usage(&s, BOB, rows[i].bobs);
                uint64_t a = scene_request(&s, (struct ask){ .uid = CAROL, .bytes = GiB(24) });
                uint64_t alice = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(24) });
                uint64_t bob = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(24) });
                const uint64_t by_usage[] = { bob, alice }, by_arrival[] = { alice, bob };
                assert_order(&s, a, rows[i].bob_first ? by_usage : by_arrival, 2);
                scene_end(&s);
        }
}

static void B4_usage_is_set_aside_for_what_waited_30_minutes(void **state)
{
        (void) state;
        static const struct {
                uint64_t at_s;
                bool old_first;
        } rows[] = { { 700, false }, { 1799, false }, { 1800, true }, { 1801, true } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %" PRIu64 " s\n", rows[i].at_s);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .uid = CAROL, .bytes = GiB(24) });
                scene_usage(&s, ALICE, MUCH);
                uint64_t old = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(24), .priority = 3 });
                scene_tick_to_s(&s, 700);
                uint64_t fresh = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(24), .priority = 2 });
                assert_int_equal(s.answer.why.place, 1);
                scene_tick_to_s(&s, rows[i].at_s);
                const uint64_t light[] = { fresh, old }, arrived[] = { old, fresh };
                assert_order(&s, a, rows[i].old_first ? arrived : light, 2);
                scene_end(&s);
        }
}

static void B4_time_on_hold_is_not_waiting(void **state)
{
        (void) state;
        static const struct {
                uint64_t at_s;
                uint8_t rank;
        } rows[] = { { 700, 3 }, { 1099, 3 }, { 1100, 2 } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(24) });
                scene_tick_to_s(&s, 100);
                scene_hold(&s, x);
                scene_tick_to_s(&s, 600);
                scene_unhold(&s, x);
                scene_tick_to_s(&s, rows[i].at_s);
                scene_release(&s, a);
                assert_runs(&s, x);
                assert_int_equal(scene_lease(&s, x)->kept_rank, rows[i].rank);
                scene_end(&s);
        }
}

/* "An aged P3 of a heavy user is not passed for ever by light users' P2": a fresh one every minute. */
static void B4_stream_of_light_users_P2_does_not_starve_a_heavy_users_P3(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t running = scene_request(&s, (struct ask){ .uid = CAROL, .bytes = GiB(24) });
        scene_usage(&s, ALICE, MUCH);
        uint64_t old = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(24) });
        for (uint32_t minute = 1; minute <= 40; minute++) {
                scene_tick_to_s(&s, 60 * minute);
                uint64_t fresh =
                        scene_request(&s, (struct ask){ .uid = 2000 + minute, .bytes = GiB(24), .priority = 2 });
                scene_release(&s, running);
                if (strcmp(scene_state(&s, old), "active") == 0) {
                        assert_int_equal(minute, 30);
                        scene_end(&s);
                        return;
                }
                assert_runs(&s, fresh);
                running = fresh;
        }
        fail_msg("it still waits after 40 minutes");
}

/* ---- B5 … B9: backfill ---- */

static void B5_small_work_that_ends_before_the_heads_start_goes_first(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t limit_s;
                bool starts;
        } rows[] = { { "limit 500 s", 500, true },
                     { "limit 600 s", 600, true },
                     { "limit 601 s", 601, false },
                     { "no limit", NO_LIMIT, false } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t head = behind_a(&s, 600, GiB(20), 3, NULL);
                assert_rule(s.answer, RULE_NO_ROOM);
                assert_bytes(s.answer.why.start_ms, SCENE_START_MS + SECONDS(600));
                assert_bytes(s.answer.why.need_bytes, GiB(20));
                assert_int_equal(s.answer.why.place, 1);
                uint64_t x = ask_6(&s, 3, rows[i].limit_s);
                assert_string_equal(scene_state(&s, x), rows[i].starts ? "active" : "queued");
                assert_rule(s.answer, rows[i].starts ? RULE_ENDS_IN_TIME : RULE_BEHIND_HEAD);
                assert_bytes(s.answer.why.head_lease_id, head);
                assert_bytes(scene_entry(&s, head)->start_ms, SCENE_START_MS + SECONDS(600));
                if (rows[i].starts)
                        assert_true(scene_lease(&s, x)->backfilled);
                else
                        assert_int_equal(s.answer.why.place, 2);
                assert_true(scene_reserved(&s, 0) <= GiB(24));
                scene_end(&s);
        }
}

/* The promise to the head is kept: at its start everybody who had to leave has left, and it runs. */
static void B5_head_starts_at_its_computed_start(void **state)
{
        (void) state;
        struct scene s;
        uint64_t a;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t head = behind_a(&s, 600, GiB(20), 3, &a);
        uint64_t x = ask_6(&s, 3, 500);
        uint64_t y = ask_6(&s, 3, NO_LIMIT);
        scene_tick_to_s(&s, 500);
        scene_release(&s, x);
        assert_waits(&s, head);
        assert_waits(&s, y);
        scene_tick_to_s(&s, 599);
        scene_release(&s, a);
        assert_runs(&s, head);
        assert_rule(*scene_last(&s, head, ACTION_GRANTED), RULE_FITS);
        assert_waits(&s, y); /* 4 are left */
        scene_end(&s);
}

/* A slot that passed without a way out is no end (4.2, D8): the start becomes unknown, and the head claims nothing. */
static void B5_start_becomes_unknown_when_the_slot_passes_without_a_way_out(void **state)
{
        (void) state;
        for (int with_way_out = 0; with_way_out <= 1; with_way_out++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t a = scene_request(
                        &s,
                        (struct ask){ .bytes = GiB(16), .slot_s = 600, .named = with_way_out ? RESTART : (uint8_t) 0 });
                uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20) });
                uint64_t x = ask_6(&s, 3, NO_LIMIT);
                scene_tick_to_s(&s, 599);
                assert_waits(&s, x);
                assert_bytes(scene_free(&s, card), 0);
                scene_tick_to_s(&s, 600);
                assert_state(&s, a, with_way_out ? LEASE_ASKING : LEASE_ACTIVE); /* its memory is demanded */
                assert_waits(&s, head);
                if (with_way_out) {
                        assert_waits(&s, x);
                } else {
                        assert_bytes(scene_entry(&s, head)->start_ms, 0);
                        assert_null(scene_head_claim(&s, card));
                        assert_runs(&s, x);
                }
                scene_end(&s);
        }
}

static void B6_small_work_beside_which_the_head_fits_at_its_start_goes_first(void **state)
{
        (void) state;
        static const struct {
                uint64_t head_gib;
                bool y_starts;
        } rows[] = { { 16, true }, { 17, false } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t head = behind_a(&s, 600, GiB(rows[i].head_gib), 3, NULL);
                uint64_t x = ask_6(&s, 3, NO_LIMIT);
                assert_runs(&s, x);
                assert_rule(s.answer, RULE_FITS_BESIDE);
                uint64_t y = scene_request(&s, (struct ask){ .bytes = GiB(2) });
                assert_string_equal(scene_state(&s, y), rows[i].y_starts ? "active" : "queued");
                assert_rule(s.answer, rows[i].y_starts ? RULE_FITS_BESIDE : RULE_BEHIND_HEAD);
                assert_bytes(scene_entry(&s, head)->start_ms, SCENE_START_MS + SECONDS(600));
                scene_end(&s);
        }
}

/* The same when several are looked at in one step: what the first takes beside the head is gone for the second. */
static void B6_small_work_that_waited_for_a_look_shares_what_is_beside_the_head(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600 });
        s.eyes_closed = true;
        s.now_ms += 2000;
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(17) });
        uint64_t x = ask_6(&s, 3, NO_LIMIT);
        uint64_t y = scene_request(&s, (struct ask){ .bytes = GiB(2) });
        assert_waits(&s, x);
        assert_waits(&s, y);
        scene_reading(&s, card, s.now_ms, 0, true);
        assert_waits(&s, head);
        assert_runs(&s, x);
        assert_waits(&s, y);
        scene_end(&s);
}

static void B7_reclaimable_small_work_goes_first_where_the_ledger_has_room(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint8_t named, proven;
                uint64_t charged_gib;
                bool starts;
                enum rule rule;
        } rows[] = {
                { "restart named", RESTART, 0, 0, true, RULE_RECLAIMABLE },
                { "restart named, the ledger is full", RESTART, 0, 32, true, RULE_RECLAIMABLE },
                { "checkpoint proven, charged 20", 0, CHECKPOINT, 20, true, RULE_LEDGER_SET_ASIDE },
                { "checkpoint proven, charged 26: exactly what is left", 0, CHECKPOINT, 26, true,
                  RULE_LEDGER_SET_ASIDE },
                { "checkpoint proven, charged 28", 0, CHECKPOINT, 28, false, RULE_BEHIND_HEAD },
                { "checkpoint named needs no proof, charged 20", CHECKPOINT, 0, 20, true, RULE_LEDGER_SET_ASIDE },
                { "checkpoint named, charged 28", CHECKPOINT, 0, 28, false, RULE_BEHIND_HEAD },
                { "restart after checkpoint, charged 28", RESTART, CHECKPOINT, 28, true, RULE_RECLAIMABLE },
                { "neither proven nor named", 0, 0, 0, false, RULE_BEHIND_HEAD },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t head = behind_a(&s, 600, GiB(20), 3, NULL);
                scene_ledger(&s, GiB(rows[i].charged_gib));
                uint64_t x = scene_request(
                        &s, (struct ask){ .bytes = GiB(6), .named = rows[i].named, .proven = rows[i].proven });
                assert_string_equal(scene_state(&s, x), rows[i].starts ? "active" : "queued");
                assert_rule(s.answer, rows[i].rule);
                if (rows[i].starts) {
                        struct lease *lease = scene_lease(&s, x);
                        assert_true(lease->backfilled);
                        assert_bytes(lease->ledger_set_aside_bytes, rows[i].rule == RULE_LEDGER_SET_ASIDE ? GiB(6) : 0);
                        assert_ptr_equal(world_entry_get(s.world, lease->backfill_for), scene_entry(&s, head));
                }
                scene_end(&s);
        }
}

static void B7_room_set_aside_in_the_ledger_is_gone_for_the_next(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t head = behind_a(&s, 600, GiB(22), 3, NULL);
        scene_ledger(&s, GiB(26));
        uint64_t first = scene_request(&s, (struct ask){ .bytes = GiB(4), .proven = CHECKPOINT });
        uint64_t second = scene_request(&s, (struct ask){ .bytes = GiB(4), .proven = CHECKPOINT });
        assert_runs(&s, first);
        assert_waits(&s, second);
        assert_waits(&s, head);
        /* The first one leaves: what was set aside for it is there again. */
        scene_release(&s, first);
        assert_runs(&s, second);
        scene_end(&s);
}

static void B8_ledger_must_hold_the_parked_head_and_who_goes_ahead_of_it(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint8_t named, proven;
                bool starts;
        } rows[] = {
                { "only a proven checkpoint", 0, CHECKPOINT, false },
                { "restart named", RESTART, 0, true },
                { "restart after checkpoint", RESTART, CHECKPOINT, true },
                { "nothing", 0, 0, false },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8), .slot_s = 600 });
                uint64_t parked = scene_parked(&s, card, GiB(20), GiB(20));
                scene_tick(&s);
                scene_look(&s);
                assert_runs(&s, a);
                assert_state(&s, parked, LEASE_PARKED);
                uint64_t x = scene_request(
                        &s, (struct ask){ .bytes = GiB(14), .named = rows[i].named, .proven = rows[i].proven });
                assert_string_equal(scene_state(&s, x), rows[i].starts ? "active" : "queued");
                assert_bytes(s.answer.why.head_lease_id, parked);
                assert_rule(s.answer, rows[i].starts ? RULE_RECLAIMABLE : RULE_BEHIND_HEAD);
                scene_end(&s);
        }
}

static void B9_what_the_head_claimed_is_lent_to_backfill_and_to_who_passes(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint8_t priority;
                uint64_t limit_s;
                bool starts;
                enum rule rule;
        } rows[] = {
                { "P3, limit 500 s", 3, 500, true, RULE_ENDS_IN_TIME },
                { "P3, no limit", 3, NO_LIMIT, false, RULE_BEHIND_HEAD },
                { "P2", 2, NO_LIMIT, true, RULE_PASSES_HEAD },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t head = behind_a(&s, 600, GiB(20), 3, NULL);
                assert_non_null(scene_head_claim(&s, card));
                assert_bytes(scene_head_claim(&s, card)->reserved_bytes, GiB(8));
                assert_bytes(scene_free(&s, card), 0);
                uint64_t x = ask_6(&s, rows[i].priority, rows[i].limit_s);
                assert_string_equal(scene_state(&s, x), rows[i].starts ? "active" : "queued");
                assert_rule(s.answer, rows[i].rule);
                if (rows[i].rule == RULE_PASSES_HEAD) {
                        /* What passed has no end, so the head has no start in sight any more: it claims nothing. */
                        assert_bytes(scene_entry(&s, head)->start_ms, 0);
                        assert_null(scene_head_claim(&s, card));
                        assert_bytes(scene_free(&s, card), GiB(2));
                } else {
                        assert_bytes(scene_free(&s, card), 0);
                        assert_bytes(scene_reserved(&s, card), GiB(24));
                        assert_bytes(scene_head_claim(&s, card)->reserved_bytes, rows[i].starts ? GiB(2) : GiB(8));
                }
                /* What was lent comes back to the head, not to whoever asks next. */
                if (rows[i].starts) {
                        assert_true(s.answer.why.free_bytes + s.answer.why.lent_bytes >= GiB(6));
                        scene_release(&s, x);
                        assert_bytes(scene_head_claim(&s, card)->reserved_bytes, GiB(8));
                }
                assert_waits(&s, head);
                scene_end(&s);
        }
}

static void B9_a_plans_claim_is_never_lent(void **state)
{
        (void) state;
        for (int row = 0; row < 3; row++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600 });
                (void) scene_claim(&s, card, CLAIM_PLAN, GiB(8));
                uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20) });
                assert_runs(&s, a);
                assert_waits(&s, head);
                assert_bytes(scene_free(&s, card), 0);
                uint64_t x = ask_6(&s, row == 2 ? 2 : 3, row == 0 ? 500 : NO_LIMIT);
                assert_waits(&s, x);
                assert_bytes(scene_reserved(&s, card), GiB(24));
                scene_end(&s);
        }
}

/* A loan does not outlast its head: the claim goes with it (I10). */
static void B9_claim_ends_with_its_head(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t head = behind_a(&s, 600, GiB(20), 3, NULL);
        uint64_t x = ask_6(&s, 3, NO_LIMIT);
        assert_waits(&s, x);
        scene_release(&s, head);
        assert_gone(&s, head);
        assert_null(scene_head_claim(&s, card));
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), GiB(2));
        scene_end(&s);
}

/* ---- B10: a head without a finite start ---- */

static void B10_head_without_a_start_blocks_from_30_minutes_for_as_long_as_it_had_waited(void **state)
{
        (void) state;
        static const struct {
                uint64_t at_s;
                uint8_t named;
                bool starts;
        } rows[] = {
                { 0, 0, true },     { 600, 0, true },   { 1740, 0, true },       { 1799, 0, true },
                { 1800, 0, false }, { 2100, 0, false }, { 2100, RESTART, true }, { 3540, 0, false },
                { 3599, 0, false }, { 3600, 0, true },  { 3660, 0, true },       { 7200, 0, true },
        };

        for (int untold = 0; untold <= 1; untold++) /* also when the tick of that second has not come yet */
                for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                        print_message("# at %" PRIu64 " s%s%s\n", rows[i].at_s, rows[i].named ? ", restart named" : "",
                                      untold ? ", before its tick" : "");
                        struct scene s;
                        scene_begin(&s);
                        (void) scene_device(&s, GiB(24));
                        uint64_t head = behind_a(&s, NO_LIMIT, GiB(20), 3, NULL);
                        assert_bytes(s.answer.why.start_ms, 0);
                        if (untold)
                                scene_wait_to_s(&s, rows[i].at_s);
                        else
                                scene_tick_to_s(&s, rows[i].at_s);
                        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(6), .named = rows[i].named });
                        assert_string_equal(scene_state(&s, x), rows[i].starts ? "active" : "queued");
                        if (!rows[i].starts)
                                assert_rule(s.answer, RULE_HEAD_BLOCKS);
                        assert_waits(&s, head);
                        scene_end(&s);
                }
}

static void B10_blocking_and_stepping_aside_are_told_once_and_let_the_blocked_in(void **state)
{
        (void) state;
        struct scene s;
        uint64_t a;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t head = behind_a(&s, NO_LIMIT, GiB(20), 3, &a);
        scene_tick_to_s(&s, 1799);
        assert_null(scene_head_claim(&s, card)); /* claims nothing until it has waited 30 min */
        assert_int_equal(scene_count_rule(&s, 0, head, RULE_BLOCKING_BEGAN), 0);
        scene_tick_to_s(&s, 1800);
        assert_int_equal(scene_count_rule(&s, 0, head, RULE_BLOCKING_BEGAN), 1);
        uint64_t x = ask_6(&s, 3, NO_LIMIT);
        assert_waits(&s, x);
        scene_tick_to_s(&s, 3599);
        assert_waits(&s, x);
        assert_int_equal(scene_count_rule(&s, 0, head, RULE_STEPPED_ASIDE), 0);
        scene_tick_to_s(&s, 3600);
        assert_runs(&s, x); /* nobody asked again */
        scene_tick_to_s(&s, 8000);
        assert_int_equal(scene_count_rule(&s, 0, head, RULE_BLOCKING_BEGAN), 1);
        assert_int_equal(scene_count_rule(&s, 0, head, RULE_STEPPED_ASIDE), 1);
        /* It keeps its rank: when there is room, it is the first. */
        uint64_t y = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_release(&s, x);
        scene_release(&s, a);
        assert_runs(&s, head);
        assert_waits(&s, y);
        scene_end(&s);
}

static void B10_entry_that_becomes_head_late_blocks_as_long_again_and_12_h_at_most(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t head_from_s, until_s;
        } rows[] = {
                { "head after 3 h blocks until it has waited 6 h", 3 * 3600, 6 * 3600 },
                { "head after 13 h blocks for 12 h", 13 * 3600, 25 * 3600 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                /* Until its slot ends, a head with a finite start stands before it; then that one leaves. */
                (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = rows[i].head_from_s + 3600 });
                (void) scene_request(&s, (struct ask){ .bytes = GiB(2) });
                uint64_t before = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 2 });
                uint64_t late = scene_request(&s, (struct ask){ .bytes = GiB(23) });
                scene_tick_to_s(&s, rows[i].head_from_s);
                scene_release(&s, before);
                assert_gone(&s, before);
                uint64_t x = ask_6(&s, 3, NO_LIMIT);
                assert_waits(&s, x);
                assert_rule(s.answer, RULE_HEAD_BLOCKS);
                assert_bytes(s.answer.why.head_lease_id, late);
                scene_tick_to_s(&s, rows[i].until_s - 1);
                assert_waits(&s, x);
                scene_tick_to_s(&s, rows[i].until_s);
                assert_runs(&s, x);
                assert_waits(&s, late);
                scene_end(&s);
        }
}

/* Blocking keeps new work out that cannot be had back; what is more important by the margin passes as ever. */
static void B10_blocking_head_is_passed_by_what_outranks_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) behind_a(&s, NO_LIMIT, GiB(20), 3, NULL);
        scene_tick_to_s(&s, 2000); /* it ranks as 2 by now */
        uint64_t p2 = ask_6(&s, 2, NO_LIMIT);
        assert_waits(&s, p2);
        uint64_t p1 = scene_request(
                &s, (struct ask){ .bytes = GiB(6), .priority = 1, .admin = true, .slot_s = 4000, .named = RESTART });
        assert_runs(&s, p1);
        scene_end(&s);
}

/* ---- B11, B12: what never fits, and who may ask ---- */

static void lay_B11(struct scene *s, uint32_t *ret_card)
{
        struct config config;
        memset(&config, 0, sizeof(config));
        config_defaults(&config);
        config.display_bytes = TENTHS(10);
        scene_begin_with(s, &config);
        s->cards[0].hidden_bytes = TENTHS(4); /* with no process listed: the driver's own */
        uint32_t card = scene_device(s, TENTHS(240));
        (void) scene_graphics(s, card, TENTHS(6));
        (void) scene_stranger(s, card, TENTHS(100));
        struct ways_out release = { .named = WAY_OUT_BIT(WAY_OUT_RELEASE) };
        release.floor_bytes[WAY_OUT_RELEASE] = TENTHS(5);
        (void) scene_tenant(s, card, TENTHS(50), &release);
        (void) scene_tenant(s, card, TENTHS(20), NULL);
        assert_bytes(s->world->devices[card].driver_own_bytes, TENTHS(4));
        *ret_card = card;
}

static const struct blocker *blocker_of(const struct reason *why, enum blocker_kind kind, uint64_t bytes)
{
        for (uint32_t i = 0; i < why->n_blockers && i < BLOCKERS_MAX; i++)
                if (why->blockers[i].kind == kind && why->blockers[i].bytes == bytes)
                        return &why->blockers[i];
        return NULL;
}

static void B11_request_above_the_ceiling_fails_at_once_and_names_it(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        lay_B11(&s, &card);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = TENTHS(202) }), 0);
        assert_kind(s.answer, ACTION_REFUSED);
        assert_rule(s.answer, RULE_NEVER_FITS);
        assert_bytes(s.answer.why.ceiling_bytes, TENTHS(201));
        assert_bytes(s.answer.why.need_bytes, TENTHS(202));
        assert_int_equal(s.answer.why.n_blockers, 4);
        assert_non_null(blocker_of(&s.answer.why, BLOCKER_DRIVER, TENTHS(4)));
        assert_non_null(blocker_of(&s.answer.why, BLOCKER_DISPLAY, TENTHS(10)));
        assert_non_null(blocker_of(&s.answer.why, BLOCKER_TENANT, TENTHS(5)));
        assert_non_null(blocker_of(&s.answer.why, BLOCKER_TENANT, TENTHS(20)));
        for (uint32_t i = 1; i < s.answer.why.n_blockers; i++)
                assert_true(s.answer.why.blockers[i - 1].bytes >= s.answer.why.blockers[i].bytes);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = TENTHS(201) + 1 }), 0);

        uint64_t fits_some_day = scene_request(&s, (struct ask){ .bytes = TENTHS(200) });
        assert_waits(&s, fits_some_day);
        uint64_t exactly = scene_request(&s, (struct ask){ .bytes = TENTHS(201) });
        assert_waits(&s, exactly);
        uint64_t all = scene_request(&s, (struct ask){ .percent_milli = 100000 });
        assert_waits(&s, all);
        assert_bytes(scene_lease(&s, all)->bytes, TENTHS(201));
        uint64_t half = scene_request(&s, (struct ask){ .percent_milli = 50000 });
        assert_bytes(scene_lease(&s, half)->bytes, TENTHS(201) / 2);
        scene_end(&s);
}

static void B11_parked_work_above_the_ceiling_waits_and_never_fails(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        lay_B11(&s, &card);
        uint64_t parked = scene_parked(&s, card, TENTHS(210), TENTHS(210));
        for (int i = 0; i < 100; i++)
                scene_tick(&s);
        assert_state(&s, parked, LEASE_PARKED);
        assert_non_null(scene_entry(&s, parked));
        assert_int_equal(scene_count(&s, 0, parked, ACTION_REFUSED) + scene_count(&s, 0, parked, ACTION_ENDED), 0);
        scene_end(&s);
}

static void B11_pin_without_an_end_lowers_the_ceiling_one_with_an_end_does_not(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t end_s;
                uint64_t ceiling;
        } rows[] = { { "without an end", 0, TENTHS(171) }, { "with an end", 1000, TENTHS(201) } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                uint32_t card;
                lay_B11(&s, &card);
                uint64_t lease = scene_request(&s, (struct ask){ .bytes = TENTHS(30) });
                assert_runs(&s, lease);
                scene_pin(&s, lease, rows[i].end_s);
                assert_int_equal(scene_request(&s, (struct ask){ .bytes = rows[i].ceiling + 1 }), 0);
                assert_rule(s.answer, RULE_NEVER_FITS);
                assert_bytes(s.answer.why.ceiling_bytes, rows[i].ceiling);
                assert_true((blocker_of(&s.answer.why, BLOCKER_PINNED, TENTHS(30)) != NULL) == (rows[i].end_s == 0));
                assert_waits(&s, scene_request(&s, (struct ask){ .bytes = rows[i].ceiling }));
                scene_end(&s);
        }
}

static void B12_priorities_above_a_callers_ceiling_are_refused_not_clamped(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct ask ask;
                enum rule refused; /* RULE_NONE: accepted */
        } rows[] = {
                { "P1 by a user", { .priority = 1, .slot_s = 600, .named = RESTART }, RULE_PRIORITY_CEILING },
                { "P1 by an administrator, neither slot nor way out",
                  { .priority = 1, .admin = true },
                  RULE_URGENT_NEEDS_SLOT },
                { "P1, a slot alone", { .priority = 1, .admin = true, .slot_s = 600 }, RULE_URGENT_NEEDS_SLOT },
                { "P1, a way out alone", { .priority = 1, .admin = true, .named = RESTART }, RULE_URGENT_NEEDS_SLOT },
                { "P1, kill at end alone",
                  { .priority = 1, .admin = true, .kill_at_end = true },
                  RULE_URGENT_NEEDS_SLOT },
                { "P1, both", { .priority = 1, .admin = true, .slot_s = 600, .named = RESTART }, RULE_NONE },
                { "P1, slot and kill at end",
                  { .priority = 1, .admin = true, .slot_s = 600, .kill_at_end = true },
                  RULE_NONE },
                { "P2 by a user", { .priority = 2 }, RULE_NONE },
                { "P5 by a user", { .priority = 5 }, RULE_NONE },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                struct ask ask = rows[i].ask;
                ask.bytes = GiB(1);
                uint64_t x = scene_request(&s, ask);
                if (rows[i].refused == RULE_NONE) {
                        assert_runs(&s, x);
                        assert_int_equal(scene_lease(&s, x)->priority, ask.priority);
                } else {
                        assert_int_equal(x, 0);
                        assert_rule(s.answer, rows[i].refused);
                        assert_int_equal(s.world->n_entries, 0);
                }
                if (rows[i].refused == RULE_PRIORITY_CEILING)
                        assert_int_equal(s.answer.why.limit, 2);
                scene_end(&s);
        }
}

static void B12_F40_tenant_without_a_way_out_lowers_the_ceiling_until_it_leaves(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, MiB(15750));
        struct holder *tenant = scene_tenant(&s, card, MiB(820), NULL);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = MiB(14950) }), 0);
        assert_rule(s.answer, RULE_NEVER_FITS);
        assert_bytes(s.answer.why.ceiling_bytes, MiB(14930));
        assert_non_null(blocker_of(&s.answer.why, BLOCKER_TENANT, MiB(820)));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = MiB(14930) });
        assert_runs(&s, x);
        scene_release(&s, x);
        scene_tenant_leaves(&s, tenant); /* that blocker exits: an identical new request is accepted */
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = MiB(14950) }));
        scene_end(&s);
}

/* ---- more than one device ---- */

static void two_devices_head_of_one_does_not_keep_work_from_the_other(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600, .uuid = scene_uuid(&s, first) });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 300, .uuid = scene_uuid(&s, second) });
        assert_int_equal(scene_lease(&s, a)->device, first);
        assert_int_equal(scene_lease(&s, b)->device, second);
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        assert_waits(&s, head);
        assert_bytes(s.answer.why.start_ms, SCENE_START_MS + SECONDS(300)); /* the earlier of the two */
        assert_int_equal(scene_entry(&s, head)->head_device, second);
        uint64_t named = scene_request(&s, (struct ask){ .bytes = GiB(6), .uuid = scene_uuid(&s, second) });
        assert_waits(&s, named);
        uint64_t any = scene_request(&s, (struct ask){ .bytes = GiB(6) });
        assert_runs(&s, any);
        assert_int_equal(scene_lease(&s, any)->device, first);
        scene_end(&s);
}

static void two_devices_each_has_a_head_of_its_own(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600, .uuid = scene_uuid(&s, first) });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600, .uuid = scene_uuid(&s, second) });
        uint64_t one = scene_request(&s, (struct ask){ .bytes = GiB(20), .uuid = scene_uuid(&s, first) });
        uint64_t two = scene_request(&s, (struct ask){ .bytes = GiB(20), .uuid = scene_uuid(&s, second) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(6), .uuid = scene_uuid(&s, second) });
        assert_waits(&s, x);
        scene_release(&s, b);
        assert_runs(&s, two);
        assert_waits(&s, one);
        scene_release(&s, a);
        assert_runs(&s, one);
        scene_end(&s);
}

/* To be head of one device is no privilege on another: there, the older head comes first. */
static void two_devices_head_of_one_does_not_jump_the_head_of_the_other(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t stays_s; /* slot of what stays on the second device */
        } rows[] = { { "a head that blocks", NO_LIMIT }, { "a head with a finite start", 20000 } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
                (void) scene_request(&s,
                                     (struct ask){ .bytes = GiB(16), .slot_s = 10000, .uuid = scene_uuid(&s, first) });
                uint64_t leaves = scene_request(&s, (struct ask){ .bytes = GiB(8), .uuid = scene_uuid(&s, second) });
                (void) scene_request(
                        &s, (struct ask){ .bytes = GiB(8), .slot_s = rows[i].stays_s, .uuid = scene_uuid(&s, second) });
                uint64_t old = scene_request(&s, (struct ask){ .bytes = GiB(20), .uuid = scene_uuid(&s, second) });
                scene_tick_to_s(&s, 1900);
                uint64_t young = scene_request(&s, (struct ask){ .bytes = GiB(12) });
                assert_waits(&s, young);
                assert_int_equal(scene_entry(&s, young)->head_device, first);
                assert_true(scene_entry(&s, young)->start_ms != 0);
                scene_release(&s, leaves); /* 16 free on the second: enough for the young one, not for the old */
                assert_waits(&s, old);
                assert_waits(&s, young);
                scene_end(&s);
        }
}

/* Too large for a device for ever, so no reason to keep others from it: not as its head, not after 30 minutes. */
static void two_devices_entry_is_no_head_where_it_can_never_fit(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t large = scene_device(&s, GiB(24)), small = scene_device(&s, GiB(10));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        assert_int_equal(scene_lease(&s, a)->device, large);
        uint64_t first = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t second = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        assert_waits(&s, first);
        assert_waits(&s, second);
        scene_tick_to_s(&s, 2000);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(6), .uuid = scene_uuid(&s, small) });
        assert_runs(&s, x);
        assert_rule(s.answer, RULE_FITS);
        scene_end(&s);
}

static void request_for_a_device_that_is_not_here_is_refused(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(1) }), 0);
        assert_rule(s.answer, RULE_NO_DEVICES);
        (void) scene_device(&s, GiB(24));
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(1), .uuid = "GPU-none" }), 0);
        assert_rule(s.answer, RULE_UNKNOWN_DEVICE);
        scene_end(&s);
}

/* ---- the rest of waiting ---- */

static void no_wait_is_refused_when_it_cannot_start_at_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20), .no_wait = true });
        assert_runs(&s, a);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(5), .no_wait = true }), 0);
        assert_rule(s.answer, RULE_WOULD_WAIT);
        assert_bytes(s.answer.why.free_bytes, GiB(4));
        assert_non_null(blocker_of(&s.answer.why, BLOCKER_LEASE, GiB(20)));
        for (uint32_t i = 0; i < s.world->n_entries; i++)
                assert_int_equal(s.world->entries[i].kind, ENTRY_NONE);
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(4), .no_wait = true }));
        scene_end(&s);
}

static void no_wait_behind_a_head_is_refused_although_it_would_fit(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t head = behind_a(&s, 600, GiB(20), 3, NULL);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(6), .no_wait = true }), 0);
        assert_rule(s.answer, RULE_WOULD_WAIT);
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(6), .slot_s = 500, .no_wait = true }));
        assert_waits(&s, head);
        scene_end(&s);
}

static void entry_on_hold_neither_starts_nor_blocks(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
        uint64_t held = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_hold(&s, held);
        scene_tick_to_s(&s, 4000);
        scene_release(&s, a);
        assert_waits(&s, held);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(6) });
        assert_runs(&s, x);
        scene_release(&s, x);
        scene_unhold(&s, held);
        scene_tick_to_s(&s, 4001);
        scene_look(&s);
        assert_runs(&s, held);
        scene_end(&s);
}

static void more_waiting_work_starts_in_rank_order_when_much_comes_free(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
        uint64_t p4 = scene_request(&s, (struct ask){ .bytes = GiB(10), .priority = 4 });
        uint64_t p3 = scene_request(&s, (struct ask){ .bytes = GiB(10), .priority = 3 });
        uint64_t p2 = scene_request(&s, (struct ask){ .bytes = GiB(10), .priority = 2 });
        scene_release(&s, a);
        assert_runs(&s, p2);
        assert_runs(&s, p3);
        assert_waits(&s, p4);
        assert_true(scene_last(&s, p2, ACTION_GRANTED)->id < scene_last(&s, p3, ACTION_GRANTED)->id);
        scene_end(&s);
}

static void strangers_memory_shrinks_what_is_granted_and_its_exit_lets_the_head_in(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = scene_stranger(&s, card, GiB(10));
        assert_bytes(scene_free(&s, card), GiB(14));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(14) + 1 });
        assert_waits(&s, x); /* it may end some day: blocked, not refused */
        assert_rule(s.answer, RULE_NO_ROOM);
        assert_non_null(blocker_of(&s.answer.why, BLOCKER_STRANGER, GiB(10)));
        scene_process_ends(&s, pid);
        assert_runs(&s, x);
        scene_end(&s);
}

static void head_told_its_place_blockers_and_the_end_of_who_is_in_the_way(void **state)
{
        (void) state;
        struct scene s;
        uint64_t a;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) behind_a(&s, 600, GiB(20), 3, &a);
        const struct blocker *b = blocker_of(&s.answer.why, BLOCKER_LEASE, GiB(16));
        assert_non_null(b);
        assert_bytes(b->lease_id, a);
        assert_bytes(b->end_ms, SCENE_START_MS + SECONDS(600));
        assert_bytes(s.answer.why.total_bytes, GiB(24));
        assert_int_equal(s.answer.why.n_waiting, 1);
        char text[REASON_TEXT_MAX];
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_non_null(strstr(text, "20 GiB"));
        assert_non_null(strstr(text, "10 min"));
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(B1_rank_gains_one_level_per_600_s_and_stops_at_2),
                cmocka_unit_test(B2_order_of_fresh_and_aged_entries_of_equal_usage),
                cmocka_unit_test(B2_fresh_P2_and_P1_pass_a_P3_until_it_has_waited_600_s),
                cmocka_unit_test(B2_P5_that_waited_an_hour_stands_behind_a_fresh_P4),
                cmocka_unit_test(B1_holder_keeps_the_rank_of_its_grant_for_a_while),
                cmocka_unit_test(B3_one_request_beside_a_heavy_users_fifty_comes_first),
                cmocka_unit_test(B3_head_with_a_finite_start_stays_head),
                cmocka_unit_test(B3_usage_counts_half_after_one_day),
                cmocka_unit_test(B3_usage_is_what_was_held_and_for_how_long),
                cmocka_unit_test(B3_usage_is_held_memory_times_time),
                cmocka_unit_test(B4_usage_is_set_aside_for_what_waited_30_minutes),
                cmocka_unit_test(B4_time_on_hold_is_not_waiting),
                cmocka_unit_test(B4_stream_of_light_users_P2_does_not_starve_a_heavy_users_P3),
                cmocka_unit_test(B5_small_work_that_ends_before_the_heads_start_goes_first),
                cmocka_unit_test(B5_head_starts_at_its_computed_start),
                cmocka_unit_test(B5_start_becomes_unknown_when_the_slot_passes_without_a_way_out),
                cmocka_unit_test(B6_small_work_beside_which_the_head_fits_at_its_start_goes_first),
                cmocka_unit_test(B6_small_work_that_waited_for_a_look_shares_what_is_beside_the_head),
                cmocka_unit_test(B7_reclaimable_small_work_goes_first_where_the_ledger_has_room),
                cmocka_unit_test(B7_room_set_aside_in_the_ledger_is_gone_for_the_next),
                cmocka_unit_test(B8_ledger_must_hold_the_parked_head_and_who_goes_ahead_of_it),
                cmocka_unit_test(B9_what_the_head_claimed_is_lent_to_backfill_and_to_who_passes),
                cmocka_unit_test(B9_a_plans_claim_is_never_lent),
                cmocka_unit_test(B9_claim_ends_with_its_head),
                cmocka_unit_test(B10_head_without_a_start_blocks_from_30_minutes_for_as_long_as_it_had_waited),
                cmocka_unit_test(B10_blocking_and_stepping_aside_are_told_once_and_let_the_blocked_in),
                cmocka_unit_test(B10_entry_that_becomes_head_late_blocks_as_long_again_and_12_h_at_most),
                cmocka_unit_test(B10_blocking_head_is_passed_by_what_outranks_it),
                cmocka_unit_test(B11_request_above_the_ceiling_fails_at_once_and_names_it),
                cmocka_unit_test(B11_parked_work_above_the_ceiling_waits_and_never_fails),
                cmocka_unit_test(B11_pin_without_an_end_lowers_the_ceiling_one_with_an_end_does_not),
                cmocka_unit_test(B12_priorities_above_a_callers_ceiling_are_refused_not_clamped),
                cmocka_unit_test(B12_F40_tenant_without_a_way_out_lowers_the_ceiling_until_it_leaves),
                cmocka_unit_test(two_devices_head_of_one_does_not_keep_work_from_the_other),
                cmocka_unit_test(two_devices_each_has_a_head_of_its_own),
                cmocka_unit_test(two_devices_head_of_one_does_not_jump_the_head_of_the_other),
                cmocka_unit_test(two_devices_entry_is_no_head_where_it_can_never_fit),
                cmocka_unit_test(request_for_a_device_that_is_not_here_is_refused),
                cmocka_unit_test(no_wait_is_refused_when_it_cannot_start_at_once),
                cmocka_unit_test(no_wait_behind_a_head_is_refused_although_it_would_fit),
                cmocka_unit_test(entry_on_hold_neither_starts_nor_blocks),
                cmocka_unit_test(more_waiting_work_starts_in_rank_order_when_much_comes_free),
                cmocka_unit_test(strangers_memory_shrinks_what_is_granted_and_its_exit_lets_the_head_in),
                cmocka_unit_test(head_told_its_place_blockers_and_the_end_of_who_is_in_the_way),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
