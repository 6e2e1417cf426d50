/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exclusive lease has a device for itself: a benchmark that somebody else's grant disturbs is a wrong figure that nobody
 * notices.
 */
#include <stdio.h>
#include <string.h>
#include "scene.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

static uint64_t exclusive(struct scene *s, uint64_t slot_s)
{
        return scene_request(s, (struct ask){ .uid = ALICE, .exclusive = true, .slot_s = slot_s });
}

static bool names_lease(const struct action *a, uint64_t lease_id)
{
        for (uint32_t i = 0; i < a->why.n_blockers && i < BLOCKERS_MAX; i++)
                if (a->why.blockers[i].lease_id == lease_id)
                        return true;
        return false;
}

static bool names_kind(const struct action *a, enum blocker_kind kind)
{
        for (uint32_t i = 0; i < a->why.n_blockers && i < BLOCKERS_MAX; i++)
                if (a->why.blockers[i].kind == kind)
                        return true;
        return false;
}

/* ---- beside it ---- */

static void benchmark_has_the_whole_card_and_nothing_starts_beside_it(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct ask ask;
        } rows[] = {
                { "one byte", { .bytes = 1 } },
                { "one byte, urgent", { .bytes = 1, .priority = 1, .admin = true, .slot_s = 1, .named = RESTART } },
                { "one byte that ends in time", { .bytes = 1, .slot_s = 1 } },
                { "one byte that can be taken back", { .bytes = 1, .priority = 5, .named = RESTART } },
                { "of the same user", { .bytes = 1, .uid = ALICE } },
                { "exclusive too", { .exclusive = true, .slot_s = 1 } },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint32_t screen = scene_graphics(&s, card, MiB(300)); /* reserved for it: 1 GiB */
                uint64_t x = exclusive(&s, 3600);
                assert_runs(&s, x);
                assert_bytes(scene_lease(&s, x)->bytes, GiB(23));
                uint64_t other = scene_request(&s, rows[i].ask);
                assert_waits(&s, other);
                scene_process_ends(&s, screen); /* its reservation is free memory now */
                assert_bytes(scene_reserved(&s, card) - GiB(23),
                             scene_head_claim(&s, card) ? scene_head_claim(&s, card)->reserved_bytes : 0);
                scene_tick_to_s(&s, 120);
                assert_waits(&s, other);
                scene_uses(&s, x, GiB(2)); /* it takes little of what it has */
                scene_tick_to_s(&s, 240);
                assert_waits(&s, other);
                assert_null(scene_last(&s, other, ACTION_GRANTED));
                scene_process_ends(&s, scene_owner(&s, x));
                scene_release(&s, x);
                scene_tick_to_s(&s, 241);
                assert_runs(&s, other);
                scene_end(&s);
        }
}

static void who_waits_for_a_benchmark_is_told_whose_and_until_when(void **state)
{
        (void) state;
        struct scene s;
        char text[512];
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_graphics(&s, card, MiB(300));
        uint64_t x = exclusive(&s, 3600);
        uint64_t head = scene_request(&s, (struct ask){ .bytes = MiB(100) });
        assert_rule(s.answer, RULE_EXCLUSIVE_HOLDS);
        assert_bytes(s.answer.why.head_lease_id, x);
        assert_bytes(s.answer.why.start_ms, SCENE_START_MS + SECONDS(3600));
        assert_bytes(scene_entry(&s, head)->start_ms, SCENE_START_MS + SECONDS(3600));
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_non_null(strstr(text, "an exclusive lease (L1) has the device"));
        assert_non_null(strstr(text, "in 1 h"));

        uint64_t second = scene_request(&s, (struct ask){ .bytes = MiB(100) });
        assert_rule(s.answer, RULE_EXCLUSIVE_HOLDS);
        assert_bytes(s.answer.why.head_lease_id, x);
        assert_int_equal(s.answer.why.place, 2);

        size_t since = s.n_log;
        scene_change(&s, x, (struct change){ .what = CHANGE_SLOT });
        assert_kind(s.answer, ACTION_CHANGED);
        assert_bytes(scene_entry(&s, head)->start_ms, 0);
        assert_int_equal(scene_count(&s, since, head, ACTION_WAITING), 1);
        (void) reason_text(&scene_last(&s, head, ACTION_WAITING)->why, s.now_ms, text, sizeof(text));
        assert_non_null(strstr(text, "unknown"));
        assert_int_equal(scene_count(&s, since, second, ACTION_WAITING), 0);
        scene_release(&s, x);
        assert_runs(&s, head);
        assert_runs(&s, second);
        scene_end(&s);
}

static void who_does_not_wait_is_refused_with_the_benchmarks_name(void **state)
{
        (void) state;
        struct scene s;
        char text[512];
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t screen = scene_graphics(&s, card, MiB(300));
        uint64_t x = exclusive(&s, 3600);
        scene_process_ends(&s, screen);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = MiB(100), .no_wait = true }), 0);
        assert_rule(s.answer, RULE_WOULD_WAIT);
        assert_bytes(s.answer.why.head_lease_id, x);
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_non_null(strstr(text, "L1")); /* else it reads: needs 100M, 1G is free, so wait */
        assert_non_null(strstr(text, "exclusive"));
        scene_end(&s);
}

static void other_card_goes_on_while_one_is_benchmarked(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t big = scene_device(&s, GiB(24)), small = scene_device(&s, GiB(12));
        uint64_t x = exclusive(&s, 3600);
        assert_int_equal(scene_lease(&s, x)->device, big);
        assert_bytes(scene_lease(&s, x)->bytes, GiB(24));
        uint64_t other = scene_request(&s, (struct ask){ .bytes = GiB(12) });
        assert_runs(&s, other);
        assert_int_equal(scene_lease(&s, other)->device, small);
        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = GiB(1), .uuid = scene_uuid(&s, big) }));
        scene_end(&s);
}

static void benchmark_of_a_named_small_card_has_that_one(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t big = scene_device(&s, GiB(24)), small = scene_device(&s, GiB(12));
        uint64_t x = scene_request(&s, (struct ask){ .exclusive = true, .uuid = scene_uuid(&s, small) });
        assert_int_equal(scene_lease(&s, x)->device, small);
        assert_bytes(scene_lease(&s, x)->bytes, GiB(12));
        uint64_t other = scene_request(&s, (struct ask){ .bytes = GiB(2) });
        assert_int_equal(scene_lease(&s, other)->device, big);
        scene_end(&s);
}

/* ---- getting it ---- */

static void benchmark_waits_until_everybody_has_left_and_names_them(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 600 });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(3) });
        scene_uses(&s, b, GiB(3));
        uint32_t b_pid = scene_owner(&s, b);
        uint32_t stranger = scene_stranger(&s, card, MiB(200));
        uint64_t x = exclusive(&s, 3600);
        assert_waits(&s, x);
        assert_rule(s.answer, RULE_NO_ROOM);
        assert_true(names_lease(&s.answer, a) && names_lease(&s.answer, b));
        assert_true(names_kind(&s.answer, BLOCKER_STRANGER));
        scene_release(&s, a);
        assert_waits(&s, x);
        scene_release(&s, b);
        assert_state(&s, b, LEASE_DRAINING);
        assert_waits(&s, x);
        scene_process_ends(&s, b_pid);
        assert_gone(&s, b);
        assert_waits(&s, x);
        uint64_t behind = scene_request(&s, (struct ask){ .bytes = GiB(24), .priority = 4 });
        scene_process_ends(&s, stranger);
        assert_runs(&s, x);
        const struct action *told = scene_last(&s, behind, ACTION_WAITING); /* in the same pass over the queue */
        assert_non_null(told);
        assert_rule(*told, RULE_EXCLUSIVE_HOLDS);
        assert_bytes(told->why.head_lease_id, x);
        scene_end(&s);
}

static void benchmark_does_not_start_beside_a_stranger_because_the_screen_was_switched_off(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t screen = scene_graphics(&s, card, MiB(300));
        uint32_t stranger = scene_stranger(&s, card, MiB(500));
        uint64_t x = exclusive(&s, 3600);
        assert_waits(&s, x);
        scene_process_ends(&s, screen); /* 1 GiB more can be had than when it asked */
        scene_tick_to_s(&s, 10);
        assert_waits(&s, x);
        scene_process_ends(&s, stranger);
        assert_runs(&s, x);
        assert_bytes(scene_lease(&s, x)->bytes, GiB(24));
        scene_end(&s);
}

/* What the driver keeps for itself shows only when the card is empty, and a screen may come on while it waits. */
static void benchmark_asked_for_on_a_busy_card_starts_when_that_is_empty(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct ask ask;
                bool screen;
                uint64_t expected;
        } rows[] = {
                { "exclusive", { .exclusive = true }, false, GiB(24) - MiB(500) },
                { "exclusive, a screen comes on", { .exclusive = true }, true, GiB(23) },
                { "exclusive, at least 20G", { .exclusive = true, .bytes = GiB(20) }, true, GiB(23) },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                s.world->devices[card].driver_own_known = false; /* as after a start on a card that is in use */
                s.cards[card].hidden_bytes = rows[i].screen ? 0 : MiB(500);
                uint32_t busy = scene_stranger(&s, card, GiB(4));
                uint64_t x = scene_request(&s, rows[i].ask);
                assert_waits(&s, x);
                if (rows[i].screen)
                        (void) scene_graphics(&s, card, MiB(300));
                scene_process_ends(&s, busy);
                for (uint64_t t = 1; t < 10; t++) {
                        scene_tick_to_s(&s, t);
                        scene_look(&s);
                }
                assert_runs(&s, x);
                assert_bytes(scene_lease(&s, x)->bytes, rows[i].expected);
                assert_bytes(scene_free(&s, card), 0);
                scene_end(&s);
        }
}

static void benchmark_starts_beside_a_screen_that_uses_more_than_is_reserved_for_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t screen = scene_graphics(&s, card, MiB(1400)); /* a desktop seldom shrinks to its 1 GiB */
        uint64_t x = exclusive(&s, 600);
        assert_runs(&s, x);
        assert_bytes(scene_lease(&s, x)->bytes, GiB(24) - MiB(1400));
        scene_release(&s, x);
        uint32_t stranger = scene_stranger(&s, card, MiB(1));
        x = exclusive(&s, 600);
        scene_process_uses(&s, screen, card, MiB(2000), ROW_USED_KNOWN | ROW_GRAPHICS);
        assert_waits(&s, x);
        scene_process_ends(&s, stranger);
        assert_runs(&s, x);
        assert_bytes(scene_lease(&s, x)->bytes, GiB(24) - MiB(2000));
        scene_end(&s);
}

/* A display that uses more than is left makes "the whole" small: it is not alone for that. */
static void benchmark_never_starts_beside_a_lease_because_a_screen_uses_much(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 600 });
        (void) scene_graphics(&s, card, GiB(23)); /* more than anybody gave it */
        uint64_t x = exclusive(&s, 600);
        s.cards[card].lies = true;
        s.cards[card].says_used = GiB(1); /* the list and the total are of two moments */
        scene_look(&s);
        scene_tick_to_s(&s, 10);
        assert_waits(&s, x);
        assert_bytes(scene_entry(&s, x)->start_ms, SCENE_START_MS + SECONDS(600));
        scene_change(&s, a, (struct change){ .what = CHANGE_SLOT });
        assert_bytes(scene_entry(&s, x)->start_ms, 0); /* nobody knows */
        scene_release(&s, a);
        assert_runs(&s, x);
        scene_end(&s);
}

static void benchmark_that_needs_more_than_is_left_waits_and_is_told(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(2) });
        uint64_t x = scene_request(&s, (struct ask){ .exclusive = true, .bytes = GiB(24) });
        uint32_t screen = scene_graphics(&s, card, MiB(300));
        scene_release(&s, a);
        scene_tick_to_s(&s, 5);
        assert_waits(&s, x); /* 23 is not what it was promised */
        assert_non_null(scene_last_rule(&s, x, RULE_ABOVE_CEILING));
        scene_process_ends(&s, screen);
        assert_runs(&s, x);
        scene_end(&s);
}

static void benchmark_is_refused_when_it_can_never_be_alone_or_large_enough(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_device(&s, GiB(12));
        assert_int_equal(scene_request(&s, (struct ask){ .exclusive = true, .bytes = GiB(25) }), 0);
        assert_rule(s.answer, RULE_NEVER_FITS);
        assert_bytes(s.answer.why.ceiling_bytes, GiB(24));
        assert_runs(&s, scene_request(&s, (struct ask){ .exclusive = true, .bytes = GiB(20) }));
        scene_end(&s);
}

static void benchmark_never_starts_beside_a_lease_that_is_pinned_for_ever(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t pinned = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        scene_change(&s, pinned, (struct change){ .what = CHANGE_PIN, .is_admin = true });
        assert_kind(s.answer, ACTION_CHANGED);
        /* 14 GiB is all that can ever be had there, and it is free: that is not a card of its own. */
        assert_int_equal(scene_request(&s, (struct ask){ .exclusive = true }), 0);
        assert_rule(s.answer, RULE_NEVER_FITS);
        assert_true(names_lease(&s.answer, pinned));

        uint32_t other = scene_device(&s, GiB(12));
        uint64_t x = scene_request(&s, (struct ask){ .exclusive = true });
        assert_runs(&s, x);
        assert_int_equal(scene_lease(&s, x)->device, other);
        assert_int_not_equal(scene_lease(&s, x)->device, card);
        scene_end(&s);
}

static void waiting_benchmark_does_not_shrink_to_what_a_new_pin_leaves(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        uint64_t x = exclusive(&s, 60);
        scene_change(&s, a, (struct change){ .what = CHANGE_PIN, .is_admin = true });
        scene_tick_to_s(&s, 5);
        assert_waits(&s, x);
        assert_non_null(scene_last_rule(&s, x, RULE_ABOVE_CEILING));
        scene_change(&s, a, (struct change){ .what = CHANGE_UNPIN });
        scene_release(&s, a);
        assert_runs(&s, x);
        scene_end(&s);
}

/* ---- the queue around it ---- */

static void waiting_benchmark_is_not_kept_out_for_ever_by_small_ones(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t last = scene_request(&s, (struct ask){ .bytes = GiB(2) });
        uint64_t x = exclusive(&s, 60);
        bool x_ran = false;
        for (uint64_t minute = 1; minute < 180 && !x_ran; minute++) {
                scene_wait_to_s(&s, minute * 60);
                uint64_t next =
                        scene_request(&s, (struct ask){ .bytes = GiB(2) }); /* always one before the last leaves */
                if (last != 0)
                        scene_release(&s, last);
                last = scene_lease(&s, next)->state == LEASE_ACTIVE ? next : 0;
                x_ran = strcmp(scene_state(&s, x), "active") == 0;
        }
        assert_true(x_ran);
        assert_true(scene_s(&s) <= 32 * 60);
        scene_end(&s);
}

static void benchmark_that_ended_and_leaves_memory_behind_blocks_the_rest_no_longer(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = exclusive(&s, 3600);
        scene_uses(&s, x, MiB(200));
        uint64_t next = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        assert_waits(&s, next);
        scene_release(&s, x);
        assert_state(&s, x, LEASE_DRAINING); /* a worker stays, maybe for days */
        assert_runs(&s, next);
        assert_bytes(scene_free(&s, card), GiB(4) - MiB(200));
        scene_end(&s);
}

static void benchmark_whose_command_is_gone_is_alone_until_its_workers_are(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = exclusive(&s, 0);
        uint32_t worker = scene_process(&s, 0, scene_owner(&s, x), 0);
        scene_process_uses(&s, worker, 0, GiB(1), COMPUTE);
        scene_owner_ended(&s, x);
        assert_state(&s, x, LEASE_ORPHANED);
        uint64_t next = scene_request(&s, (struct ask){ .bytes = GiB(1) });
        assert_waits(&s, next);
        scene_process_ends(&s, worker);
        assert_runs(&s, next);
        scene_end(&s);
}

static void grant_that_nobody_collects_gives_the_card_back(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .exclusive = true, .uncollected = true });
        uint64_t next = scene_request(&s, (struct ask){ .bytes = GiB(1) });
        assert_waits(&s, next);
        scene_tick_to_s(&s, 60);
        assert_gone(&s, x);
        assert_runs(&s, next);
        scene_end(&s);
}

static void start_behind_a_benchmark_counts_its_grace_and_its_end(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct ask ask;
                uint64_t at_s, start_s; /* start 0: unknown */
        } rows[] = {
                { "no slot", { .exclusive = true }, 1, 0 },
                { "slot", { .exclusive = true, .slot_s = 600 }, 1, 600 },
                { "slot over, no way out", { .exclusive = true, .slot_s = 600 }, 601, 0 },
                { "slot, ended at its end", { .exclusive = true, .slot_s = 600, .kill_at_end = true }, 1, 660 },
                { "slot over, being ended", { .exclusive = true, .slot_s = 600, .kill_at_end = true }, 630, 660 },
                { "slot over, and did not end", { .exclusive = true, .slot_s = 600, .kill_at_end = true }, 661, 0 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t x = scene_request(&s, rows[i].ask);
                scene_uses(&s, x, GiB(1));
                scene_tick_to_s(&s, rows[i].at_s);
                uint64_t head = scene_request(&s, (struct ask){ .bytes = MiB(1) });
                assert_waits(&s, head);
                assert_bytes(scene_entry(&s, head)->start_ms,
                             rows[i].start_s ? SCENE_START_MS + SECONDS(rows[i].start_s) : 0);
                scene_end(&s);
        }
}

static void parked_work_does_not_come_back_beside_a_benchmark(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = exclusive(&s, 600);
        uint64_t parked = scene_parked(&s, card, GiB(1), GiB(1));
        scene_tick_to_s(&s, 30);
        assert_state(&s, parked, LEASE_PARKED);
        assert_runs(&s, x);
        assert_int_equal(scene_count(&s, 0, parked, ACTION_GRANTED), 0);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(benchmark_has_the_whole_card_and_nothing_starts_beside_it),
                cmocka_unit_test(who_waits_for_a_benchmark_is_told_whose_and_until_when),
                cmocka_unit_test(who_does_not_wait_is_refused_with_the_benchmarks_name),
                cmocka_unit_test(other_card_goes_on_while_one_is_benchmarked),
                cmocka_unit_test(benchmark_of_a_named_small_card_has_that_one),
                cmocka_unit_test(benchmark_waits_until_everybody_has_left_and_names_them),
                cmocka_unit_test(benchmark_does_not_start_beside_a_stranger_because_the_screen_was_switched_off),
                cmocka_unit_test(benchmark_asked_for_on_a_busy_card_starts_when_that_is_empty),
                cmocka_unit_test(benchmark_starts_beside_a_screen_that_uses_more_than_is_reserved_for_it),
                cmocka_unit_test(benchmark_never_starts_beside_a_lease_because_a_screen_uses_much),
                cmocka_unit_test(benchmark_that_needs_more_than_is_left_waits_and_is_told),
                cmocka_unit_test(benchmark_is_refused_when_it_can_never_be_alone_or_large_enough),
                cmocka_unit_test(benchmark_never_starts_beside_a_lease_that_is_pinned_for_ever),
                cmocka_unit_test(waiting_benchmark_does_not_shrink_to_what_a_new_pin_leaves),
                cmocka_unit_test(waiting_benchmark_is_not_kept_out_for_ever_by_small_ones),
                cmocka_unit_test(benchmark_that_ended_and_leaves_memory_behind_blocks_the_rest_no_longer),
                cmocka_unit_test(benchmark_whose_command_is_gone_is_alone_until_its_workers_are),
                cmocka_unit_test(grant_that_nobody_collects_gives_the_card_back),
                cmocka_unit_test(start_behind_a_benchmark_counts_its_grace_and_its_end),
                cmocka_unit_test(parked_work_does_not_come_back_beside_a_benchmark),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
