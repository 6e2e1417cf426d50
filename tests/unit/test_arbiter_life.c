/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the request to the last byte given back: each end exactly once, nothing freed on paper before it is freed in fact,
 * and no grant on a reading that may not be trusted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scene.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

static struct world *copy_of(const struct world *world)
{
        struct world *copy = malloc(sizeof(*copy));

        assert_non_null(copy);
        memcpy(copy, world, sizeof(*copy));
        return copy;
}

/* ---- grant, collect, release ---- */

static void request_that_fits_is_granted_and_counted_at_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(10), .slot_s = 3600, .name = "one" });
        assert_runs(&s, x);
        assert_kind(s.answer, ACTION_GRANTED);
        assert_rule(s.answer, RULE_FITS);
        assert_int_equal(s.answer.device, card);
        assert_int_equal(s.answer.uid, ALICE);
        assert_int_equal(s.answer.priority, 3);
        assert_bytes(s.answer.bytes, GiB(10));
        assert_bytes(s.answer.why.free_bytes, GiB(24));
        assert_int_equal(scene_count(&s, 0, x, ACTION_ACTIVE), 1);
        assert_bytes(scene_free(&s, card), GiB(14));
        const struct lease *lease = scene_lease(&s, x);
        assert_bytes(lease->slot_end_ms, SCENE_START_MS + SECONDS(3600));
        assert_bytes(lease->granted_ms, SCENE_START_MS);
        assert_string_equal(lease->name, "one");
        scene_end(&s);
}

static void release_with_nothing_on_the_device_ends_at_once_and_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        scene_release(&s, x);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_RELEASED);
        assert_int_equal(scene_count(&s, 0, x, ACTION_DRAINING), 0);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void F42_second_release_is_refused_and_changes_nothing(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t other = scene_request(&s, (struct ask){ .bytes = GiB(3) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        scene_uses(&s, x, GiB(10));

        scene_release(&s, x); /* memory still there: draining */
        assert_state(&s, x, LEASE_DRAINING);
        struct world *before = copy_of(s.world);
        scene_release(&s, x);
        assert_kind(s.answer, ACTION_REFUSED);
        assert_true(s.answer.why.rule == RULE_NOT_FOUND || s.answer.why.rule == RULE_WRONG_STATE);
        assert_true(scene_books_same(before, s.world));
        free(before);

        scene_process_ends(&s, 100001); /* its owner's process: the second pid of the scene */
        assert_gone(&s, x);
        before = copy_of(s.world);
        scene_release(&s, x);
        assert_kind(s.answer, ACTION_REFUSED);
        assert_rule(s.answer, RULE_NOT_FOUND);
        assert_true(scene_books_same(before, s.world));
        free(before);

        assert_runs(&s, other);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        assert_bytes(scene_free(&s, card), GiB(21));
        scene_end(&s);
}

static void calls_of_others_are_refused_and_change_nothing(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(10) });
        uint64_t waits = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(20) });
        struct world *before = copy_of(s.world);
        scene_release_by(&s, x, BOB, false);
        assert_kind(s.answer, ACTION_REFUSED);
        assert_rule(s.answer, RULE_NOT_OWNER);
        scene_release_by(&s, waits, BOB, false);
        assert_rule(s.answer, RULE_NOT_OWNER);
        scene_release_by(&s, 4711, ALICE, false);
        assert_rule(s.answer, RULE_NOT_FOUND);
        scene_release_by(&s, 0, ALICE, false);
        assert_rule(s.answer, RULE_NOT_FOUND);
        assert_true(scene_books_same(before, s.world));
        free(before);
        scene_release_by(&s, x, BOB, true);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_RELEASED_ADMIN);
        assert_runs(&s, waits);
        scene_end(&s);
}

static void queued_request_that_is_released_leaves_the_queue_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        scene_release(&s, x);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        scene_release(&s, a);
        scene_tick_to_s(&s, 10);
        assert_int_equal(scene_count(&s, 0, x, ACTION_GRANTED), 0); /* a client that vanished is never granted to */
        scene_end(&s);
}

static void F36_memory_is_free_only_when_the_device_says_so(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        uint32_t pid = scene_owner(&s, x);
        scene_uses(&s, x, GiB(12));
        assert_bytes(scene_free(&s, card), GiB(8));
        uint64_t next = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_release(&s, x);
        assert_state(&s, x, LEASE_DRAINING);
        assert_int_equal(scene_count(&s, 0, x, ACTION_DRAINING), 1);
        assert_bytes(scene_free(&s, card) +
                             (scene_head_claim(&s, card) ? scene_head_claim(&s, card)->reserved_bytes : 0),
                     GiB(12)); /* A9: r 0, u 12 */
        scene_tick_to_s(&s, 30);
        scene_look(&s);
        assert_waits(&s, next);
        scene_process_uses(&s, pid, card, GiB(5), COMPUTE); /* some of it */
        assert_state(&s, x, LEASE_DRAINING);
        assert_waits(&s, next);
        scene_process_vanishes(&s, pid);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_RELEASED);
        assert_runs(&s, next);
        scene_end(&s);
}

static void draining_lease_with_an_unknown_figure_keeps_its_reservation(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        uint32_t pid = scene_process(&s, scene_owner(&s, x), 0, 0);
        scene_process_uses(&s, pid, card, 0, ROW_COMPUTE); /* listed, with no figure */
        scene_release(&s, x);
        assert_state(&s, x, LEASE_DRAINING);
        assert_bytes(scene_free(&s, card), GiB(8));
        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = GiB(9) }));
        scene_process_ends(&s, pid);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        scene_end(&s);
}

static void F43_grant_that_nobody_collects_is_given_up_after_60_s(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16), .uncollected = true });
        assert_state(&s, x, LEASE_GRANTED);
        assert_bytes(scene_free(&s, card), GiB(8));
        uint64_t next = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_tick_to_s(&s, 59);
        assert_state(&s, x, LEASE_GRANTED);
        scene_tick_to_s(&s, 60);
        assert_gone(&s, x);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_NOT_COLLECTED);
        assert_runs(&s, next);
        scene_activate(&s, x, 0, 0); /* too late */
        assert_rule(s.answer, RULE_NOT_FOUND);
        scene_tick_to_s(&s, 200);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        scene_end(&s);
}

static void grant_collected_in_time_stays(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16), .uncollected = true });
        scene_tick_to_s(&s, 59);
        scene_activate(&s, x, 0, 0);
        assert_kind(s.answer, ACTION_ACTIVE);
        assert_runs(&s, x);
        assert_bytes(scene_lease(&s, x)->active_ms, s.now_ms);
        scene_tick_to_s(&s, 300);
        assert_runs(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_GRANTED), 1);
        scene_end(&s);
}

static void grant_out_of_the_queue_waits_to_be_collected(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(20), .uncollected = true });
        scene_tick_to_s(&s, 100);
        scene_release(&s, a);
        assert_state(&s, x, LEASE_GRANTED);
        scene_tick_to_s(&s, 159);
        assert_state(&s, x, LEASE_GRANTED);
        scene_tick_to_s(&s, 160); /* 60 s from the grant, not from the request */
        assert_gone(&s, x);
        scene_end(&s);
}

static void activation_by_another_user_or_of_a_queued_lease_is_refused(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(16), .uncollected = true });
        uint64_t waits = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(16) });
        struct input input = { .kind = INPUT_ACTIVATE, .call = { .token = 77, .lease_id = x, .uid = BOB } };
        scene_step(&s, &input);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_NOT_OWNER), 1);
        assert_state(&s, x, LEASE_GRANTED);
        scene_activate(&s, waits, 0, 0);
        assert_kind(s.answer, ACTION_REFUSED);
        assert_rule(s.answer, RULE_WRONG_STATE);
        assert_waits(&s, waits);
        scene_end(&s);
}

/* ---- ends that nobody calls for ---- */

static void F45_owner_that_dies_frees_its_lease_at_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        uint32_t pid = scene_owner(&s, x);
        scene_uses(&s, x, GiB(16));
        uint64_t next = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_owner_ended(&s, x); /* its pidfd; the driver still lists it for a moment */
        assert_int_equal(scene_count(&s, 0, x, ACTION_ORPHANED), 0);
        assert_waits(&s, next);
        scene_process_ends(&s, pid);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_OWNER_EXITED);
        assert_runs(&s, next);
        assert_bytes(scene_free(&s, card), GiB(4));
        scene_owner_ended(&s, x); /* told twice */
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        scene_end(&s);
}

static void owner_that_dies_while_waiting_leaves_the_queue(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_owner_ended(&s, x);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        scene_release(&s, a);
        assert_int_equal(scene_count(&s, 0, x, ACTION_GRANTED), 0);
        scene_end(&s);
}

static void F46_orphaned_lease_counts_in_full_until_its_last_worker_leaves(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        uint32_t owner = scene_process(&s, scene_owner(&s, x), 0, 0);
        uint32_t one = scene_process(&s, 0, owner, 0), two = scene_process(&s, 0, owner, 0);
        scene_process_uses(&s, one, card, GiB(6), COMPUTE);
        scene_process_uses(&s, two, card, GiB(2), COMPUTE);
        assert_bytes(scene_free(&s, card), GiB(8)); /* they are the lease's, not strangers */
        scene_process_ends(&s, owner);
        scene_owner_ended(&s, x);
        assert_state(&s, x, LEASE_ORPHANED);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ORPHANED), 1);
        assert_bytes(scene_free(&s, card), GiB(8));
        scene_tick_to_s(&s, 100);
        scene_process_ends(&s, one);
        assert_state(&s, x, LEASE_ORPHANED);
        assert_bytes(scene_free(&s, card), GiB(8));
        scene_process_ends(&s, two);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_WORKERS_GONE);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ORPHANED), 1);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void heartbeat_lease_ends_when_nobody_renews_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16), .ttl_s = 30 });
        scene_tick_to_s(&s, 29);
        scene_renew(&s, x);
        assert_kind(s.answer, ACTION_RENEWED);
        scene_tick_to_s(&s, 58);
        assert_runs(&s, x);
        scene_renew(&s, x);
        scene_tick_to_s(&s, 87);
        assert_runs(&s, x);
        scene_tick_to_s(&s, 89);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_EXPIRED);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_renew(&s, x);
        assert_rule(s.answer, RULE_NOT_FOUND);
        scene_end(&s);
}

static void expired_heartbeat_lease_drains_like_any_other(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16), .ttl_s = 30 });
        uint32_t pid = scene_owner(&s, x);
        scene_uses(&s, x, GiB(16));
        scene_tick_to_s(&s, 40);
        assert_state(&s, x, LEASE_DRAINING);
        assert_int_equal(scene_count(&s, 0, x, ACTION_DRAINING), 1);
        assert_bytes(scene_free(&s, card), GiB(8));
        scene_tick_to_s(&s, 100);
        scene_process_ends(&s, pid);
        assert_gone(&s, x);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_EXPIRED);
        scene_end(&s);
}

static void wait_that_is_over_ends_the_request_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(20), .wait_s = 600 });
        scene_tick_to_s(&s, 599);
        assert_waits(&s, x);
        scene_tick_to_s(&s, 600);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_WAIT_OVER);
        scene_release(&s, a);
        scene_tick_to_s(&s, 700);
        assert_int_equal(scene_count(&s, 0, x, ACTION_GRANTED), 0);
        scene_end(&s);
}

static void slot_is_warned_of_once_and_over_time_signals_nobody(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 7200, .named = RESTART });
        scene_tick_to_s(&s, 6599);
        assert_int_equal(scene_count(&s, 0, x, ACTION_WARNING), 0);
        scene_tick_to_s(&s, 6600);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_WARNING), 1);
        scene_tick_to_s(&s, 7199);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_OVER), 0);
        assert_false(scene_lease(&s, x)->over_time);
        scene_tick_to_s(&s, 7200);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_OVER), 1);
        assert_true(scene_lease(&s, x)->over_time);
        scene_tick_to_s(&s, 9000);
        assert_runs(&s, x);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_WARNING), 1);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_OVER), 1);
        scene_end(&s);
}

/* ---- readings that may not be trusted ---- */

static void closed_eyes(struct scene *s, uint32_t *ret_card)
{
        scene_begin(s);
        *ret_card = scene_device(s, GiB(24));
        s->eyes_closed = true;
}

static void reading_at_most_a_second_old_grants_an_older_one_does_not(void **state)
{
        (void) state;
        static const struct {
                uint64_t age_ms;
                bool grants;
        } rows[] = { { 0, true }, { 999, true }, { 1000, true }, { 1001, false }, { 60000, false } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %" PRIu64 " ms\n", rows[i].age_ms);
                struct scene s;
                uint32_t card;
                closed_eyes(&s, &card);
                s.now_ms += 100000;
                scene_reading(&s, card, s.now_ms, 0, true);
                s.now_ms += rows[i].age_ms;
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(1) });
                assert_string_equal(scene_state(&s, x), rows[i].grants ? "active" : "queued");
                if (!rows[i].grants) {
                        assert_rule(s.answer, RULE_READING_STALE);
                        assert_bytes(s.answer.why.reading_age_ms, rows[i].age_ms);
                        assert_non_null(scene_last(&s, 0, ACTION_READ)); /* it looks, and then */
                        scene_reading(&s, card, s.now_ms, 0, true);
                        assert_runs(&s, x);
                }
                scene_end(&s);
        }
}

static void reading_that_arrives_late_is_as_old_as_it_was_taken(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        closed_eyes(&s, &card);
        s.now_ms += 100000;
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(1) });
        assert_waits(&s, x);
        scene_reading(&s, card, s.now_ms - 1001, 0, true);
        assert_waits(&s, x);
        scene_reading(&s, card, s.now_ms - 1000, 0, true);
        assert_runs(&s, x);
        scene_end(&s);
}

static void reading_older_than_the_last_change_grants_nothing(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        closed_eyes(&s, &card);
        scene_reading(&s, card, s.now_ms, 0, true);
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        assert_runs(&s, a);
        assert_waits(&s, x);
        s.now_ms += 500;
        scene_release(&s, a);
        assert_waits(&s, x); /* nothing was read since */
        assert_non_null(scene_last(&s, 0, ACTION_READ));
        s.now_ms += 10;
        scene_reading(&s, card, s.now_ms - 11, 0, true); /* taken before the release, said after it */
        assert_waits(&s, x);
        scene_reading(&s, card, s.now_ms, 0, true);
        assert_runs(&s, x);
        scene_end(&s);
}

/* A holder dies between two readings: what is free is known only when the card was read again. */
static void exit_of_a_holder_grants_nothing_before_a_new_reading(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = scene_stranger(&s, card, GiB(10));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        s.eyes_closed = true;
        struct input ended = { .kind = INPUT_PROCESS_ENDED, .process_ended = s.rows[0].identity };
        assert_int_equal(ended.process_ended.pid, pid);
        scene_step(&s, &ended);
        assert_waits(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_GRANTED), 0);
        scene_reading(&s, card, s.now_ms, 0, true);
        assert_runs(&s, x);
        scene_end(&s);
}

static void unsettled_reading_delays_and_never_starts_anything(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        closed_eyes(&s, &card);
        scene_reading(&s, card, s.now_ms, GiB(3), false);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        assert_waits(&s, x);
        assert_rule(s.answer, RULE_READING_UNSETTLED);
        assert_non_null(scene_last(&s, 0, ACTION_READ));
        for (int i = 0; i < 20; i++) {
                s.now_ms += 1000;
                scene_reading(&s, card, s.now_ms, GiB((uint64_t) i % 3), false);
                scene_tick(&s);
                assert_waits(&s, x);
        }
        scene_reading(&s, card, s.now_ms, GiB(3), true);
        assert_runs(&s, x);
        scene_end(&s);
}

/* Whatever a skewed reading shows, nobody is ended, warned or counted away by it. */
static void unsettled_reading_ends_no_lease_and_drains_none(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        scene_uses(&s, x, GiB(16));
        scene_release(&s, x);
        assert_state(&s, x, LEASE_DRAINING);
        s.eyes_closed = true;
        scene_reading(&s, card, s.now_ms, GiB(16), false); /* total says 16, the list is empty: skew */
        assert_state(&s, x, LEASE_DRAINING);
        scene_reading(&s, card, s.now_ms, 0, true);
        assert_gone(&s, x);
        scene_end(&s);
}

static void I7_unknown_device_figure_is_never_nothing_used(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_stranger(&s, card, GiB(10));
        s.cards[card].used_unknown = true;
        scene_look(&s);
        assert_bytes(scene_free(&s, card), 0);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(1) });
        assert_waits(&s, x);
        assert_bytes(scene_free(&s, card), 0);
        s.cards[card].used_unknown = false;
        scene_look(&s);
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), GiB(13));
        scene_end(&s);
}

static void unknown_row_of_a_lease_is_never_zero_used(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        uint32_t pid = scene_process(&s, scene_owner(&s, x), 0, 0);
        s.cards[card].hidden_bytes = GiB(3); /* nobody's, but the unknown lease may explain it */
        scene_process_uses(&s, pid, card, 0, ROW_COMPUTE);
        const struct holder *h = world_holder_get(s.world, scene_lease(&s, x)->holder);
        assert_false(h->used_known);
        assert_bytes(scene_free(&s, card), GiB(14)); /* 10 promised, 3 of it may be taken */
        scene_end(&s);
}

static void silent_eyes_grant_nothing_end_nothing_and_recover(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        closed_eyes(&s, &card);
        scene_reading(&s, card, s.now_ms, 0, true);
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(4) });
        assert_runs(&s, a);
        struct input eyes = { .kind = INPUT_EYES, .eyes = { .answering = false, .silent_since_ms = s.now_ms } };
        scene_step(&s, &eyes);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_EYES_STALE), 1);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(4) });
        assert_waits(&s, x); /* although the last reading is young */
        assert_rule(s.answer, RULE_READING_STALE);
        for (int i = 0; i < 1000; i++) {
                s.now_ms += 1000;
                scene_tick(&s);
        }
        assert_runs(&s, a);
        assert_waits(&s, x);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_EYES_STALE), 1);
        eyes = (struct input){ .kind = INPUT_EYES, .eyes = { .answering = true } };
        scene_step(&s, &eyes);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_EYES_BACK), 1);
        assert_waits(&s, x);
        scene_reading(&s, card, s.now_ms, 0, true);
        assert_runs(&s, x);
        scene_end(&s);
}

/* What the card showed before it fell silent, or was at fault, is not newer than the last change: it is not known. */
static void reading_of_before_a_fault_or_a_silence_grants_nothing(void **state)
{
        (void) state;
        for (int fault = 0; fault <= 1; fault++) {
                print_message("# %s\n", fault ? "fault" : "silence");
                struct scene s;
                uint32_t card;
                closed_eyes(&s, &card);
                scene_reading(&s, card, s.now_ms, 0, true);
                s.now_ms += 100;
                if (fault) {
                        scene_device_health(&s, card, DEVICE_FAULT);
                        scene_device_health(&s, card, DEVICE_OK);
                } else {
                        struct input eyes = { .kind = INPUT_EYES,
                                              .eyes = { .answering = false, .silent_since_ms = s.now_ms } };
                        scene_step(&s, &eyes);
                        eyes.eyes = (struct eyes_state){ .answering = true };
                        scene_step(&s, &eyes);
                }
                s.now_ms += 100;
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(4) });
                assert_waits(&s, x);
                scene_reading(&s, card, s.now_ms, 0, true);
                assert_runs(&s, x);
                scene_end(&s);
        }
}

/* A process is still listed, without a figure: nothing says that its memory is gone, however long ago it was released. */
static void draining_lease_that_is_still_listed_without_figures_is_never_buried(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        uint32_t pid = scene_owner(&s, x);
        scene_uses(&s, x, GiB(16));
        s.cards[card].rows_unknown = true;
        scene_look(&s);
        scene_release(&s, x);
        assert_state(&s, x, LEASE_DRAINING);
        for (uint64_t t = 1; t <= 200; t++) {
                scene_tick_to_s(&s, t);
                scene_look(&s);
        }
        assert_state(&s, x, LEASE_DRAINING);
        scene_process_ends(&s, pid);
        scene_tick_to_s(&s, 300);
        scene_look(&s);
        assert_gone(&s, x);
        assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
        scene_end(&s);
}

static void F25_lost_device_takes_only_its_own_leases_along(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(&s, first) });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(&s, second) });
        scene_device_health(&s, first, DEVICE_LOST);
        assert_state(&s, a, LEASE_LOST);
        assert_runs(&s, b);
        assert_bytes(scene_free(&s, first), 0);
        assert_int_equal(scene_count(&s, 0, 0, ACTION_ENDED), 0);
        uint64_t c = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        assert_runs(&s, c);
        assert_int_equal(scene_lease(&s, c)->device, second);
        uint64_t d = scene_request(&s, (struct ask){ .bytes = GiB(4), .uuid = scene_uuid(&s, first) });
        assert_string_not_equal(scene_state(&s, d), "active");
        scene_device_health(&s, first, DEVICE_OK);
        scene_look(&s);
        assert_runs(&s, a);
        scene_end(&s);
}

static void F18_device_without_a_memory_figure_grants_nothing_and_others_go_on(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        s.cards[first].used_unknown = true;
        scene_device_health(&s, first, DEVICE_NO_MEMORY_READING);
        scene_look(&s);
        assert_bytes(scene_free(&s, first), 0);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        assert_runs(&s, x);
        assert_int_equal(scene_lease(&s, x)->device, second);
        uint64_t y = scene_request(&s, (struct ask){ .bytes = GiB(16) });
        assert_string_not_equal(scene_state(&s, y), "active");
        scene_end(&s);
}

static void F28_card_in_mig_mode_is_granted_nothing(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t parent = scene_device(&s, GiB(24)), instance = scene_device(&s, GiB(10));
        scene_device_health(&s, parent, DEVICE_PARENT);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        assert_runs(&s, x);
        assert_int_equal(scene_lease(&s, x)->device, instance);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(10) + 1 }), 0);
        assert_rule(s.answer, RULE_NEVER_FITS); /* the instance is full at 10, whatever the parent has free */
        scene_end(&s);
}

static void F17_all_ones_marker_is_unknown_and_kills_nobody(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, MiB(16376));
        uint32_t pid = scene_process(&s, 0, 0, 0);
        s.cards[card].hidden_bytes = MiB(14360);
        scene_process_uses(&s, pid, card, 0, ROW_COMPUTE); /* the eyes turned the marker into "unknown" */
        assert_bytes(scene_free(&s, card), MiB(2016));
        assert_bytes(device_unattributed_bytes(s.world, card), MiB(14360));
        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = MiB(2017) }));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = MiB(1000), .slot_s = 1, .named = RESTART });
        (void) x;
        scene_end(&s);
}

static void F20_ghost_row_is_counted_as_used(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        s.rows[s.n_rows++] = (struct scene_row){
                .identity = { .pid = 10151 }, .bytes = MiB(10151), .device = card, .flags = COMPUTE | ROW_GHOST
        };
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(24) - MiB(10151));
        size_t told = scene_count(&s, 0, 0, ACTION_STRANGER);
        for (int i = 0; i < 10; i++) {
                scene_tick_to_s(&s, (uint64_t) i + 1);
                scene_look(&s);
        }
        assert_int_equal(scene_count(&s, 0, 0, ACTION_STRANGER), told); /* once, not every tick */
        s.n_rows = 0;
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

/* ---- who is whose ---- */

static void A2_F53_display_reserves_while_there_is_a_graphics_client(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, MiB(8192));
        assert_bytes(scene_free(&s, card), MiB(8192));
        uint32_t pid = scene_graphics(&s, card, MiB(900));
        assert_bytes(scene_free(&s, card), MiB(7168));
        assert_bytes(device_unattributed_bytes(s.world, card), 0);
        scene_process_uses(&s, pid, card, MiB(1400), ROW_USED_KNOWN | ROW_GRAPHICS);
        assert_bytes(scene_free(&s, card), MiB(6792));
        assert_bytes(device_unattributed_bytes(s.world, card), 0);
        scene_process_ends(&s, pid);
        assert_bytes(scene_free(&s, card), MiB(8192));
        scene_end(&s);
}

static void A1_stranger_beside_a_lease_that_has_not_taken_all(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        scene_uses(&s, a, GiB(2));
        (void) scene_stranger(&s, card, GiB(8));
        assert_bytes(scene_free(&s, card), GiB(6));
        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = GiB(6) + 1 }));
        scene_end(&s);
}

static void A3_lease_marked_as_managed_is_counted_by_what_the_device_shows(void **state)
{
        (void) state;
        for (int managed = 0; managed <= 1; managed++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, TENTHS(240));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = TENTHS(200), .managed = managed });
                s.cards[card].hidden_bytes = TENTHS(184);
                scene_uses(&s, a, TENTHS(5));
                assert_bytes(scene_free(&s, card), managed ? TENTHS(40) : 0);
                scene_end(&s);
        }
}

static void A7_over_use_is_counted_and_raises_no_reservation(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(4) });
        scene_uses(&s, a, GiB(6));
        assert_bytes(scene_free(&s, card), GiB(18));
        s.cards[card].hidden_bytes = GiB(3);
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(15));
        assert_bytes(device_unattributed_bytes(s.world, card), GiB(3));
        assert_bytes(world_holder_get(s.world, scene_lease(&s, a)->holder)->reserved_bytes, GiB(4));
        assert_runs(&s, a);
        scene_end(&s);
}

/* 256 MiB for 30 s (design 4): less, or shorter, is nobody's business; more is said, again ten, thirty, seventy minutes later,
 * and signals nobody. */
static void over_use_is_warned_of_and_again_with_back_off(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t over;
                uint64_t until_s;
                size_t warnings;
        } rows[] = {
                { "256 MiB for 29 s", MiB(256) + MiB(1), 29, 0 },
                { "257 MiB for two minutes", MiB(257), 120, 1 },
                { "257 MiB for ten minutes and 29 s", MiB(257), 629, 1 },
                { "257 MiB for ten minutes and 31 s", MiB(257), 632, 2 },
                { "257 MiB for half an hour", MiB(257), 1800 + 32, 3 },
                { "257 MiB for a day", MiB(257), 24 * 3600, 8 },
                { "100 MiB for two minutes", MiB(100), 120, 0 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(4) });
                scene_uses(&s, a, GiB(4) + rows[i].over);
                for (uint64_t t = 1; t <= rows[i].until_s; t++) {
                        scene_tick_to_s(&s, t);
                        if (t <= 120)
                                scene_look(&s);
                }
                assert_int_equal(scene_count_rule(&s, 0, a, RULE_OVER_USE), rows[i].warnings);
                assert_runs(&s, a);
                scene_end(&s);
        }
}

/* Its memory, or what its command left, is there long after: said, and again ever more rarely; nobody is signalled. */
static void draining_and_orphaned_are_warned_of_and_again_with_back_off(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                bool orphaned;
                uint64_t until_s;
                size_t warnings;
        } rows[] = {
                { "drains for 29 s", false, 29, 0 },
                { "drains for a minute", false, 60, 1 },
                { "drains for eleven minutes", false, 660, 2 },
                { "drains for a day", false, 24 * 3600, 8 },
                { "orphaned for 29 s", true, 29, 0 },
                { "orphaned for a minute", true, 60, 1 },
                { "orphaned for eleven minutes", true, 660, 2 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(4) });
                uint32_t worker = scene_process(&s, 0, scene_owner(&s, a), 0);
                scene_process_uses(&s, worker, card, GiB(4), COMPUTE);
                if (rows[i].orphaned)
                        scene_owner_ended(&s, a);
                else
                        scene_release(&s, a);
                scene_tick_to_s(&s, rows[i].until_s);
                assert_state(&s, a, rows[i].orphaned ? LEASE_ORPHANED : LEASE_DRAINING);
                assert_int_equal(scene_count_rule(&s, 0, a, RULE_STILL_ORPHANED),
                                 rows[i].orphaned ? rows[i].warnings : 0);
                assert_int_equal(scene_count_rule(&s, 0, a, RULE_STILL_DRAINING),
                                 rows[i].orphaned ? 0 : rows[i].warnings);
                for (size_t k = 0; k < s.n_log; k++)
                        assert_int_not_equal(s.log[k].kind, ACTION_HAND);
                scene_process_ends(&s, worker);
                assert_gone(&s, a);
                scene_end(&s);
        }
}

static void process_belongs_to_the_lease_of_its_nearest_ancestor(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t outer = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t shell = scene_process(&s, scene_owner(&s, outer), 0, 0);
        uint64_t inner = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t wrapper = scene_owner(&s, inner);
        uint32_t worker = 200000;
        struct input facts = { .kind = INPUT_PROCESS };
        facts.process.identity = (struct identity){ worker, 7000 + worker };
        facts.process.ppid = wrapper;
        facts.process.n_ancestors = 2;
        facts.process.ancestors[0] = (struct identity){ wrapper, 7000 + (uint64_t) wrapper };
        facts.process.ancestors[1] = (struct identity){ shell, 7000 + (uint64_t) shell };
        scene_step(&s, &facts);
        scene_process_uses(&s, worker, card, GiB(5), COMPUTE);
        assert_bytes(world_holder_get(s.world, scene_lease(&s, inner)->holder)->used_bytes, GiB(5));
        assert_bytes(world_holder_get(s.world, scene_lease(&s, outer)->holder)->used_bytes, 0);
        assert_bytes(scene_free(&s, card), GiB(8));
        scene_end(&s);
}

static void process_in_the_cgroup_of_a_lease_belongs_to_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8), .uncollected = true });
        scene_activate(&s, a, 0, 4242);
        uint32_t inside = scene_process(&s, 0, 0, 4242), outside = scene_process(&s, 0, 0, 4243);
        scene_process_uses(&s, inside, card, GiB(5), COMPUTE);
        scene_process_uses(&s, outside, card, GiB(2), COMPUTE);
        assert_bytes(world_holder_get(s.world, scene_lease(&s, a)->holder)->used_bytes, GiB(5));
        assert_bytes(scene_free(&s, card), GiB(14));
        scene_end(&s);
}

static void root_of_the_command_given_at_activation_binds_its_tree(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8), .uncollected = true });
        uint32_t root = scene_process(&s, 0, 0, 0);
        scene_activate(&s, a, root, 0);
        uint32_t child = scene_process(&s, 0, root, 0);
        scene_process_uses(&s, child, card, GiB(5), COMPUTE);
        assert_bytes(world_holder_get(s.world, scene_lease(&s, a)->holder)->used_bytes, GiB(5));
        assert_bytes(scene_free(&s, card), GiB(16));
        scene_end(&s);
}

/* A pid that is used again is somebody else (F48): its start time says so. */
static void recycled_pid_of_an_owner_is_a_stranger(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        struct identity again = { scene_owner(&s, a), 99 };
        struct input facts = { .kind = INPUT_PROCESS, .process = { .identity = again, .ppid = 1 } };
        scene_step(&s, &facts);
        s.rows[s.n_rows++] = (struct scene_row){ .identity = again, .bytes = GiB(5), .device = card, .flags = COMPUTE };
        scene_look(&s);
        assert_bytes(world_holder_get(s.world, scene_lease(&s, a)->holder)->used_bytes, 0);
        assert_bytes(scene_free(&s, card), GiB(11));
        scene_end(&s);
}

static void strangers_are_told_when_they_come_and_go(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = scene_stranger(&s, card, GiB(5));
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_SEEN), 1);
        assert_int_equal(scene_last_rule(&s, 0, RULE_STRANGER_SEEN)->process.pid, pid);
        assert_bytes(scene_last_rule(&s, 0, RULE_STRANGER_SEEN)->bytes, GiB(5));
        scene_look(&s);
        scene_look(&s);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_SEEN), 1);
        scene_process_ends(&s, pid);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_GONE), 1);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void F27_memory_on_another_card_than_granted_is_warned_of_once_and_counted_there(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(&s, first) });
        uint32_t pid = scene_process(&s, scene_owner(&s, a), 0, 0);
        scene_process_uses(&s, pid, second, GiB(10), COMPUTE);
        assert_int_equal(scene_count_rule(&s, 0, a, RULE_OTHER_DEVICE), 1);
        assert_int_equal(scene_last_rule(&s, a, RULE_OTHER_DEVICE)->device, second);
        assert_kind(*scene_last_rule(&s, a, RULE_OTHER_DEVICE), ACTION_WARNING);
        assert_bytes(scene_free(&s, first), GiB(8));
        assert_bytes(scene_free(&s, second), GiB(14));
        for (uint64_t t = 1; t <= 20; t++) {
                scene_tick_to_s(&s, t);
                scene_process_uses(&s, pid, second, GiB(10 + t % 2), COMPUTE);
        }
        assert_int_equal(scene_count_rule(&s, 0, a, RULE_OTHER_DEVICE), 1);
        assert_runs(&s, a);
        scene_release(&s, a); /* nothing of it where it was granted */
        assert_bytes(scene_free(&s, first), GiB(24));
        assert_bytes(scene_free(&s, second), GiB(14));
        scene_end(&s);
}

/* ---- restart ---- */

static void eyes_open(struct scene *s)
{
        struct input eyes = { .kind = INPUT_EYES, .eyes = { .answering = true } };

        scene_step(s, &eyes);
}

static void restart_keeps_living_leases_and_ends_those_whose_owners_left(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t lives = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint64_t left = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint64_t waits = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        struct input restart = { .kind = INPUT_RESTART };
        scene_step(&s, &restart);
        struct input gone = { .kind = INPUT_OWNER_ENDED,
                              .call = {
                                      .lease_id = left, .by_system = true, .end_reason = END_OWNER_GONE_WHILE_AWAY } };
        scene_step(&s, &gone);
        assert_runs(&s, lives);
        assert_gone(&s, left);
        assert_int_equal(scene_last(&s, left, ACTION_ENDED)->why.end, END_OWNER_GONE_WHILE_AWAY);
        scene_look(&s);
        assert_bytes(scene_reserved(&s, card) -
                             (scene_head_claim(&s, card) ? scene_head_claim(&s, card)->reserved_bytes : 0),
                     GiB(8));
        (void) waits;
        scene_end(&s);
}

static void restart_after_a_reboot_ends_every_lease_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        scene_uses(&s, b, GiB(8));
        s.n_rows = 0; /* nothing survives a reboot */
        struct input restart = { .kind = INPUT_RESTART, .restart = { .rebooted = true } };
        scene_step(&s, &restart);
        const uint64_t ids[] = { a, b };
        for (int i = 0; i < 2; i++) {
                struct input gone = { .kind = INPUT_OWNER_ENDED,
                                      .call = { .lease_id = ids[i], .by_system = true, .end_reason = END_REBOOTED } };
                scene_step(&s, &gone);
        }
        eyes_open(&s);
        scene_look(&s);
        assert_gone(&s, a);
        assert_gone(&s, b);
        assert_int_equal(scene_count(&s, 0, a, ACTION_ENDED), 1);
        assert_int_equal(scene_count(&s, 0, b, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_REBOOTED);
        assert_int_equal(scene_last(&s, b, ACTION_ENDED)->why.end, END_REBOOTED);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

/* Nothing is granted on what was read before the daemon was away. */
static void restart_grants_nothing_before_the_first_reading(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        closed_eyes(&s, &card);
        scene_reading(&s, card, s.now_ms, 0, true);
        struct input restart = { .kind = INPUT_RESTART };
        scene_step(&s, &restart);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        assert_waits(&s, x);
        eyes_open(&s);
        assert_waits(&s, x);
        scene_reading(&s, card, s.now_ms, 0, true);
        assert_runs(&s, x);
        scene_end(&s);
}

/* ---- limits ---- */

static void full_tables_refuse_by_naming_the_limit(void **state)
{
        (void) state;
        struct config config;
        struct scene s;

        memset(&config, 0, sizeof(config));
        config_defaults(&config);
        config.leases_max = 5;
        config.entries_max = 3;
        config.waiting_per_user_max = 2;
        scene_begin_with(&s, &config);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .uid = CAROL, .bytes = GiB(24) });
        assert_waits(&s, scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(24) }));
        assert_waits(&s, scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(24) }));
        assert_int_equal(scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(24) }), 0);
        assert_rule(s.answer, RULE_LIMIT_WAITING_PER_USER);
        assert_int_equal(s.answer.why.limit, 2);
        assert_waits(&s, scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(24) }));
        struct world *before = copy_of(s.world);
        assert_int_equal(scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(24) }), 0);
        assert_rule(s.answer, RULE_LIMIT_ENTRIES);
        assert_int_equal(s.answer.why.limit, 3);
        for (uint32_t i = 0; i < s.world->n_leases; i++)
                assert_true(i < before->n_leases ? s.world->lease_ids[i] == before->lease_ids[i]
                                                 : s.world->lease_ids[i] == 0);
        assert_int_equal(scene_reserved(&s, 0), GiB(24));
        free(before);
        scene_release(&s, a);
        scene_end(&s);

        config.entries_max = ENTRIES_MAX;
        scene_begin_with(&s, &config);
        (void) scene_device(&s, GiB(24));
        for (int i = 0; i < 5; i++)
                assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(1) }));
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(1) }), 0);
        assert_rule(s.answer, RULE_LIMIT_LEASES);
        assert_int_equal(s.answer.why.limit, 5);
        scene_end(&s);
}

static void tables_as_large_as_they_get_are_filled_and_emptied(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.sparse_checks = true;
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t first = 0, last = 0;
        for (uint32_t i = 0; i < LEASES_MAX; i++) {
                s.eyes_closed = i % 64 != 0; /* a look now and then: time stands still */
                last = scene_request(&s, (struct ask){ .uid = 2000 + i % 1000, .bytes = MiB(1) });
                if (i == 0)
                        first = last;
                assert_int_equal(last, first + i);
        }
        assert_runs(&s, last);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = MiB(1) }), 0);
        assert_rule(s.answer, RULE_LIMIT_LEASES);
        assert_int_equal(s.answer.why.limit, LEASES_MAX);
        assert_bytes(scene_free(&s, card), GiB(20));
        for (uint64_t id = first; id <= last; id++)
                scene_release(&s, id);
        s.eyes_closed = false;
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(24));
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(24) }));
        scene_end(&s);
}

static void more_users_than_rows_are_refused_by_name_and_forgotten_when_they_left(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.sparse_checks = true;
        (void) scene_device(&s, GiB(24));
        for (uint32_t i = 0; i < USERS_MAX; i++) {
                s.eyes_closed = i % 64 != 0;
                assert_runs(&s, scene_request(&s, (struct ask){ .uid = 2000 + i, .bytes = MiB(1) }));
        }
        assert_int_equal(scene_request(&s, (struct ask){ .uid = 1, .bytes = MiB(1) }), 0);
        assert_rule(s.answer, RULE_LIMIT_USERS);
        assert_int_equal(s.answer.why.limit, USERS_MAX);
        scene_release(&s, 1);
        s.eyes_closed = false;
        assert_runs(&s, scene_request(&s, (struct ask){ .uid = 1, .bytes = MiB(1) }));
        scene_end(&s);
}

static void more_processes_than_rows_change_no_lease_and_lose_no_memory(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        static struct occupancy rows[ROWS_MAX + 8];
        struct input input = { .kind = INPUT_READING };
        memcpy(input.reading.uuid, s.cards[card].uuid, sizeof(input.reading.uuid));
        for (uint32_t i = 0; i < ROWS_MAX + 8; i++)
                rows[i] = (struct occupancy){ .identity = { 300000 + i, 5 }, .used_bytes = MiB(1), .flags = COMPUTE };
        input.reading.taken_ms = s.now_ms;
        input.reading.total_bytes = GiB(24);
        input.reading.used_bytes = MiB(ROWS_MAX + 8);
        input.reading.used_known = input.reading.per_process_known = input.reading.settled = true;
        input.reading.n_rows = ROWS_MAX + 8; /* more than one reading may list */
        input.reading.rows = rows;
        scene_step(&s, &input);
        assert_runs(&s, a);
        assert_bytes(scene_free(&s, card), GiB(16) - MiB(ROWS_MAX + 8));

        for (uint32_t i = 0; i < PROCESSES_MAX + 10; i++) {
                struct input facts = { .kind = INPUT_PROCESS, .process = { .identity = { 400000 + i, 5 }, .ppid = 1 } };
                facts.now_ms = s.now_ms;
                arbiter_step(s.world, &facts, s.out); /* not through the scene: its check walks all of them each time */
        }
        assert_null(world_check(s.world));
        assert_runs(&s, a);
        scene_end(&s);
}

/* A step may say no more than ACTIONS_MAX things; what is left goes on at the next tick, and nothing is forgotten. */
enum { MANY = 1000 };

static void many_leases(struct scene *s, uint32_t *ret_card, uint64_t ids[MANY])
{
        scene_begin(s);
        s->sparse_checks = true;
        *ret_card = scene_device(s, GiB(24));
        for (uint32_t i = 0; i < MANY; i++) {
                s->eyes_closed = i % 64 != 0;
                ids[i] = scene_request(s, (struct ask){ .uid = 2000 + i % 7, .bytes = MiB(10) });
                assert_runs(s, ids[i]);
        }
        s->eyes_closed = false;
}

static void more_than_one_list_of_grants_goes_on_until_all_run(void **state)
{
        (void) state;
        struct scene s;
        uint64_t ids[MANY];
        scene_begin(&s);
        s.sparse_checks = true;
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(24) });
        for (uint32_t i = 0; i < MANY; i++)
                ids[i] = scene_request(&s, (struct ask){ .uid = 2000 + i % 7, .bytes = MiB(10) });
        scene_release(&s, a);
        for (uint32_t i = 0; i < MANY; i++) {
                assert_runs(&s, ids[i]);
                assert_int_equal(scene_count(&s, 0, ids[i], ACTION_GRANTED), 1);
        }
        scene_end(&s);
}

static void more_than_one_list_of_losses_goes_on_until_all_are_lost(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        uint64_t ids[MANY];
        many_leases(&s, &card, ids);
        scene_device_health(&s, card, DEVICE_LOST);
        for (uint32_t i = 0; i < MANY; i++)
                assert_state(&s, ids[i], LEASE_LOST);
        scene_device_health(&s, card, DEVICE_OK);
        scene_look(&s);
        for (uint32_t i = 0; i < MANY; i++)
                assert_runs(&s, ids[i]);
        scene_end(&s);
}

static void more_than_one_list_of_drained_leases_goes_on_until_all_ended(void **state)
{
        (void) state;
        struct scene s;
        uint32_t card;
        uint64_t ids[MANY];
        many_leases(&s, &card, ids);
        static struct occupancy rows[MANY];
        for (uint32_t i = 0; i < MANY; i++) {
                uint32_t pid = scene_process(&s, scene_owner(&s, ids[i]), 0, 0);
                rows[i] = (struct occupancy){ .identity = { pid, 7000 + (uint64_t) pid },
                                              .used_bytes = MiB(10),
                                              .flags = COMPUTE };
        }
        struct input input = { .kind = INPUT_READING };
        memcpy(input.reading.uuid, s.cards[card].uuid, sizeof(input.reading.uuid));
        input.reading.taken_ms = s.now_ms;
        input.reading.total_bytes = GiB(24);
        input.reading.used_bytes = MiB(10) * MANY;
        input.reading.used_known = input.reading.per_process_known = input.reading.settled = true;
        input.reading.n_rows = MANY;
        input.reading.rows = rows;
        scene_step(&s, &input);
        s.eyes_closed = true;
        for (uint32_t i = 0; i < MANY; i++) {
                scene_release(&s, ids[i]);
                assert_state(&s, ids[i], LEASE_DRAINING);
        }
        scene_reading(&s, card, s.now_ms, 0, true);
        for (uint64_t t = 1; t <= 5; t++)
                scene_tick_to_s(&s, t);
        for (uint32_t i = 0; i < MANY; i++)
                assert_gone(&s, ids[i]);
        assert_int_equal(scene_count(&s, 0, 0, ACTION_ENDED), MANY);
        scene_end(&s);
}

static void more_than_one_list_of_strangers_is_told_of_each(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        static struct occupancy rows[MANY];
        for (uint32_t i = 0; i < MANY; i++)
                rows[i] = (struct occupancy){ .identity = { 300000 + i, 5 }, .used_bytes = MiB(10), .flags = COMPUTE };
        struct input input = { .kind = INPUT_READING };
        memcpy(input.reading.uuid, s.cards[card].uuid, sizeof(input.reading.uuid));
        input.reading.taken_ms = s.now_ms;
        input.reading.total_bytes = GiB(24);
        input.reading.used_bytes = MiB(10) * MANY;
        input.reading.used_known = input.reading.per_process_known = input.reading.settled = true;
        input.reading.n_rows = MANY;
        input.reading.rows = rows;
        scene_step(&s, &input);
        scene_step(&s, &input);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_SEEN), MANY);
        s.eyes_closed = true;
        scene_reading(&s, card, s.now_ms, 0, true);
        scene_reading(&s, card, s.now_ms, 0, true);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_GONE), MANY);
        scene_end(&s);
}

/* ---- races ---- */

static uint64_t random_state;

static uint64_t random_below(uint64_t n) /* splitmix64 */
{
        uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (z ^ (z >> 31)) % n;
}

static void F34_two_clients_race_for_the_last_bytes_and_never_both_get_them(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.sparse_checks = true;
        uint32_t card = scene_device(&s, MiB(1024));
        random_state = 34;
        for (int round = 0; round < 10000; round++) {
                uint32_t first = random_below(2) ? ALICE : BOB;
                s.eyes_closed = random_below(4) == 0;
                s.now_ms += random_below(300);
                uint64_t x = scene_request(&s, (struct ask){ .uid = first, .bytes = MiB(600) });
                if (random_below(2))
                        scene_look(&s);
                uint64_t y = scene_request(&s, (struct ask){ .uid = first == ALICE ? BOB : ALICE, .bytes = MiB(600) });
                scene_look(&s);
                bool x_runs = strcmp(scene_state(&s, x), "active") == 0,
                     y_runs = strcmp(scene_state(&s, y), "active") == 0;
                if (x_runs == y_runs)
                        fail_msg("round %d: %s", round, x_runs ? "both" : "neither");
                if (scene_reserved(&s, card) > MiB(1024))
                        fail_msg("round %d: promised more than there is", round);
                /* Either leaves first, the one that waits or the one that runs; both are gone in the end. */
                bool x_first = random_below(2);
                scene_release(&s, x_first ? x : y);
                scene_look(&s);
                scene_release(&s, x_first ? y : x);
                scene_look(&s);
                if (scene_reserved(&s, card) != 0 || scene_free(&s, card) != MiB(1024))
                        fail_msg("round %d: the books are not empty", round);
                if (s.n_log > 1) /* forget, but the ids go on */
                        s.log[0] = s.log[s.n_log - 1], s.n_log = 1;
        }
        scene_end(&s);
}

static void time_that_goes_back_counts_as_now(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        s.now_ms += 5000;
        scene_tick(&s);
        s.now_ms -= 3000;
        scene_tick(&s);
        assert_bytes(s.world->now_ms, SCENE_START_MS + 5000);
        scene_end(&s);
}

static void tick_without_actions_changes_nothing_but_the_time(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 7200 });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(20) });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(6), .wait_s = 900 });
        s.eyes_closed = true;
        struct world *before = copy_of(s.world);
        for (uint64_t t = 1; t < 8000; t++) {
                size_t n = s.n_log;
                scene_tick_to_s(&s, t);
                if (s.n_log == n) {
                        before->now_ms = s.world->now_ms;
                        if (!scene_world_same(before, s.world))
                                fail_msg("the tick at %" PRIu64 " s changed the world and said nothing", t);
                } else {
                        memcpy(before, s.world, sizeof(*before));
                }
        }
        free(before);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(request_that_fits_is_granted_and_counted_at_once),
                cmocka_unit_test(release_with_nothing_on_the_device_ends_at_once_and_once),
                cmocka_unit_test(F42_second_release_is_refused_and_changes_nothing),
                cmocka_unit_test(calls_of_others_are_refused_and_change_nothing),
                cmocka_unit_test(queued_request_that_is_released_leaves_the_queue_once),
                cmocka_unit_test(F36_memory_is_free_only_when_the_device_says_so),
                cmocka_unit_test(draining_lease_with_an_unknown_figure_keeps_its_reservation),
                cmocka_unit_test(F43_grant_that_nobody_collects_is_given_up_after_60_s),
                cmocka_unit_test(grant_collected_in_time_stays),
                cmocka_unit_test(grant_out_of_the_queue_waits_to_be_collected),
                cmocka_unit_test(activation_by_another_user_or_of_a_queued_lease_is_refused),
                cmocka_unit_test(F45_owner_that_dies_frees_its_lease_at_once),
                cmocka_unit_test(owner_that_dies_while_waiting_leaves_the_queue),
                cmocka_unit_test(F46_orphaned_lease_counts_in_full_until_its_last_worker_leaves),
                cmocka_unit_test(heartbeat_lease_ends_when_nobody_renews_it),
                cmocka_unit_test(expired_heartbeat_lease_drains_like_any_other),
                cmocka_unit_test(wait_that_is_over_ends_the_request_once),
                cmocka_unit_test(slot_is_warned_of_once_and_over_time_signals_nobody),
                cmocka_unit_test(reading_at_most_a_second_old_grants_an_older_one_does_not),
                cmocka_unit_test(reading_that_arrives_late_is_as_old_as_it_was_taken),
                cmocka_unit_test(reading_older_than_the_last_change_grants_nothing),
                cmocka_unit_test(exit_of_a_holder_grants_nothing_before_a_new_reading),
                cmocka_unit_test(unsettled_reading_delays_and_never_starts_anything),
                cmocka_unit_test(unsettled_reading_ends_no_lease_and_drains_none),
                cmocka_unit_test(I7_unknown_device_figure_is_never_nothing_used),
                cmocka_unit_test(unknown_row_of_a_lease_is_never_zero_used),
                cmocka_unit_test(silent_eyes_grant_nothing_end_nothing_and_recover),
                cmocka_unit_test(reading_of_before_a_fault_or_a_silence_grants_nothing),
                cmocka_unit_test(draining_lease_that_is_still_listed_without_figures_is_never_buried),
                cmocka_unit_test(F25_lost_device_takes_only_its_own_leases_along),
                cmocka_unit_test(F18_device_without_a_memory_figure_grants_nothing_and_others_go_on),
                cmocka_unit_test(F28_card_in_mig_mode_is_granted_nothing),
                cmocka_unit_test(F17_all_ones_marker_is_unknown_and_kills_nobody),
                cmocka_unit_test(F20_ghost_row_is_counted_as_used),
                cmocka_unit_test(A2_F53_display_reserves_while_there_is_a_graphics_client),
                cmocka_unit_test(A1_stranger_beside_a_lease_that_has_not_taken_all),
                cmocka_unit_test(A3_lease_marked_as_managed_is_counted_by_what_the_device_shows),
                cmocka_unit_test(A7_over_use_is_counted_and_raises_no_reservation),
                cmocka_unit_test(over_use_is_warned_of_and_again_with_back_off),
                cmocka_unit_test(draining_and_orphaned_are_warned_of_and_again_with_back_off),
                cmocka_unit_test(process_belongs_to_the_lease_of_its_nearest_ancestor),
                cmocka_unit_test(process_in_the_cgroup_of_a_lease_belongs_to_it),
                cmocka_unit_test(root_of_the_command_given_at_activation_binds_its_tree),
                cmocka_unit_test(recycled_pid_of_an_owner_is_a_stranger),
                cmocka_unit_test(strangers_are_told_when_they_come_and_go),
                cmocka_unit_test(F27_memory_on_another_card_than_granted_is_warned_of_once_and_counted_there),
                cmocka_unit_test(restart_keeps_living_leases_and_ends_those_whose_owners_left),
                cmocka_unit_test(restart_after_a_reboot_ends_every_lease_once),
                cmocka_unit_test(restart_grants_nothing_before_the_first_reading),
                cmocka_unit_test(full_tables_refuse_by_naming_the_limit),
                cmocka_unit_test(tables_as_large_as_they_get_are_filled_and_emptied),
                cmocka_unit_test(more_users_than_rows_are_refused_by_name_and_forgotten_when_they_left),
                cmocka_unit_test(more_processes_than_rows_change_no_lease_and_lose_no_memory),
                cmocka_unit_test(more_than_one_list_of_grants_goes_on_until_all_run),
                cmocka_unit_test(more_than_one_list_of_losses_goes_on_until_all_are_lost),
                cmocka_unit_test(more_than_one_list_of_drained_leases_goes_on_until_all_ended),
                cmocka_unit_test(more_than_one_list_of_strangers_is_told_of_each),
                cmocka_unit_test(F34_two_clients_race_for_the_last_bytes_and_never_both_get_them),
                cmocka_unit_test(time_that_goes_back_counts_as_now),
                cmocka_unit_test(tick_without_actions_changes_nothing_but_the_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
