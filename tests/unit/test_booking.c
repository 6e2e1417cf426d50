/* SPDX-License-Identifier: Apache-2.0 */
/* A promise for later: what it keeps others from, what may go ahead of it, and that the card is there at its time. D9. */
#include <stdio.h>
#include "scene_park.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)

static uint64_t book(struct scene *s, uint64_t bytes, uint64_t at_s, uint64_t for_s)
{
        return scene_request(
                s, (struct ask){ .bytes = bytes, .start_s = at_s, .slot_s = for_s, .uid = ALICE, .uncollected = true });
}

static void begin(struct scene *s, uint64_t lead_s)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        s->config.booking_lead_ms = SECONDS(lead_s);
        scene_config(s);
        scene_hands(s);
}

static void D9_booking_is_passed_only_by_what_is_not_in_its_way(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct ask ask;
                bool starts;
        } rows[] = {
                { "6 for an hour ends in time", { .bytes = GiB(6), .slot_s = 3600 }, true },
                { "6 until the very moment", { .bytes = GiB(6), .slot_s = 7200 }, true },
                { "6 for a second longer", { .bytes = GiB(6), .slot_s = 7201 }, false },
                { "4 without limit is beside it", { .bytes = GiB(4) }, true },
                { "6 without limit", { .bytes = GiB(6) }, false },
                { "6 that can be restarted", { .bytes = GiB(6), .named = RESTART }, true },
                { "more important, without limit", { .bytes = GiB(6), .priority = 2 }, false },
                { "more important, that can be restarted", { .bytes = GiB(6), .priority = 2, .named = RESTART }, true },
                { "urgent",
                  { .bytes = GiB(6), .priority = 1, .admin = true, .slot_s = 90000, .named = RESTART },
                  true },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                begin(&s, 0);
                uint64_t b = book(&s, GiB(20), 7200, 3600);
                assert_waits(&s, b);
                uint64_t id = scene_request(&s, rows[i].ask);
                print_message("# %s\n", rows[i].name);
                assert_state(&s, id, rows[i].starts ? LEASE_ACTIVE : LEASE_QUEUED);
                scene_tick_to_s(&s, 100);
                assert_state(&s, id, rows[i].starts ? LEASE_ACTIVE : LEASE_QUEUED);
                scene_end(&s);
        }
}

static void what_the_driver_keeps_is_nobodys_when_a_booking_begins(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                bool rows_unknown;
                uint64_t mib;
                bool starts;
        } rows[] = {
                { "processes are listed, it fits", false, 5 * 1024, true },
                { "processes are listed, too much", false, 5 * 1024 + 1, false },
                { "no processes are listed, it fits", true, 5 * 1024, true },
                { "no processes are listed, too much", true, 5 * 1024 + 1, false },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                begin(&s, 0);
                s.cards[0].hidden_bytes = GiB(1);
                s.world->devices[0].driver_own_bytes = GiB(1);
                s.cards[0].rows_unknown = rows[i].rows_unknown;
                scene_look(&s);
                (void) scene_request(&s, (struct ask){ .bytes = GiB(10) });
                assert_waits(&s, book(&s, GiB(8), 7200, 3600));
                uint64_t id = scene_request(&s, (struct ask){ .bytes = MiB(rows[i].mib) });
                print_message("# %s\n", rows[i].name);
                assert_state(&s, id, rows[i].starts ? LEASE_ACTIVE : LEASE_QUEUED);
                scene_end(&s);
        }
}

static void D9_who_is_in_its_way_is_head_behind_it_and_others_go_ahead_of_that(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 0);
        (void) book(&s, GiB(20), 7200, 3600);
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(6) });
        assert_waits(&s, head);
        assert_true(scene_entry(&s, head)->is_head);
        assert_int_equal(scene_entry(&s, head)->start_ms, SCENE_START_MS + SECONDS(10800));
        uint64_t ends = scene_request(&s, (struct ask){ .bytes = GiB(20), .slot_s = 3600 });
        assert_runs(&s, ends);
        uint64_t beside = scene_request(&s, (struct ask){ .bytes = GiB(4) });
        assert_runs(&s, beside);
        scene_end(&s);
}

static void booking_is_there_at_its_time_and_what_ran_before_goes_for_it(void **state)
{
        (void) state;
        for (uint64_t lead_s = 0; lead_s <= 30; lead_s += 30) {
                struct scene s;
                begin(&s, lead_s);
                uint64_t b = book(&s, GiB(20), 7200, 3600);
                uint64_t before = scene_request(
                        &s, (struct ask){ .bytes = GiB(6), .priority = 2, .uid = BOB, .named = CHECKPOINT });
                assert_runs(&s, before);
                scene_uses(&s, before, GiB(6));
                assert_true(scene_lease(&s, before)->backfilled);
                scene_tick_to_s(&s, 7199 - lead_s);
                assert_runs(&s, before);
                scene_tick_to_s(&s, 7202 - lead_s);
                assert_state(&s, before, LEASE_PARKED);
                assert_state(&s, b, LEASE_GRANTED);
                assert_int_equal(scene_lease(&s, b)->slot_end_ms, SCENE_START_MS + SECONDS(10800));
                scene_tick_to_s(&s, 9000); /* the card is kept for it, whether it is collected or not */
                assert_state(&s, b, LEASE_GRANTED);
                assert_state(&s, before, LEASE_PARKED);
                scene_tick_to_s(&s, 10803);
                assert_gone(&s, b);
                assert_runs(&s, before);
                scene_end(&s);
        }
}

static void booking_that_can_never_be_met_is_refused_when_it_is_made(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 30);
        assert_int_equal(book(&s, GiB(25), 7200, 3600), 0);
        assert_rule(s.answer, RULE_NEVER_FITS);
        uint64_t first = book(&s, GiB(20), 7200, 3600);
        assert_int_not_equal(first, 0);
        assert_int_equal(book(&s, GiB(5), 9000, 3600), 0);
        assert_rule(s.answer, RULE_BOOKING_TAKEN);
        assert_bytes(s.answer.why.free_bytes, GiB(4));
        assert_int_not_equal(book(&s, GiB(4), 9000, 3600), 0);
        assert_int_not_equal(book(&s, GiB(24), 12600, 3600), 0); /* the moment they end */
        scene_tick_to_s(&s, 60);
        assert_int_equal(book(&s, GiB(1), 30, 3600), 0);
        assert_rule(s.answer, RULE_BOOKING_PAST);
        assert_int_equal(book(&s, GiB(1), 7200, 0), 0);
        assert_rule(s.answer, RULE_BOOKING_PAST);
        assert_int_not_equal(book(&s, GiB(1), 50000, 60), 0);
        assert_int_equal(book(&s, GiB(1), 60000, 60), 0);
        assert_rule(s.answer, RULE_LIMIT_BOOKINGS);
        scene_release(&s, first);
        assert_int_not_equal(book(&s, GiB(1), 60000, 60), 0);
        scene_end(&s);
}

static void bookings_come_to_their_sum_where_they_overlap(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t gib, at_s, for_s, free_gib; /* 0 = there is room */
        } rows[] = {
                { "over the moment when both are there", 8, 1500, 2000, 0 },
                { "somewhat more than is left then", 9, 1500, 2000, 8 },
                { "from the end of the first on", 16, 3000, 500, 0 },
                { "a second earlier", 16, 2999, 500, 8 },
                { "until the second begins", 16, 1500, 500, 0 },
                { "before both", 24, 500, 500, 0 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                begin(&s, 0);
                assert_int_not_equal(book(&s, GiB(8), 1000, 2000), 0);
                assert_int_not_equal(book(&s, GiB(8), 2000, 2000), 0);
                print_message("# %s\n", rows[i].name);
                uint64_t id = book(&s, GiB(rows[i].gib), rows[i].at_s, rows[i].for_s);
                assert_int_equal(id != 0, rows[i].free_gib == 0);
                if (id == 0) {
                        assert_rule(s.answer, RULE_BOOKING_TAKEN);
                        assert_bytes(s.answer.why.free_bytes, GiB(rows[i].free_gib));
                }
                scene_end(&s);
        }
}

static void who_collects_a_booking_has_it_from_then_on(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 30);
        uint64_t b = book(&s, GiB(20), 7200, 3600);
        scene_tick_to_s(&s, 7200);
        assert_state(&s, b, LEASE_GRANTED);
        scene_activate(&s, b, 0, 0);
        assert_runs(&s, b);
        scene_tick_to_s(&s, 10805);
        assert_runs(&s, b); /* its slot is over, nobody wants its memory */
        assert_true(scene_lease(&s, b)->over_time);
        scene_end(&s);
}

static void daily_booking_is_made_again_exactly_once(void **state)
{
        (void) state;
        const struct ask today = {
                .bytes = GiB(20), .start_s = 7200, .slot_s = 3600, .uid = ALICE, .uncollected = true, .daily = true
        };
        struct ask tomorrow = today;
        struct scene s;
        begin(&s, 30);
        uint64_t first = scene_request(&s, today);
        scene_tick_to_s(&s, 7200);
        assert_state(&s, first, LEASE_GRANTED);
        tomorrow.start_s += 86400;
        tomorrow.follows = first;
        uint64_t second = scene_request(&s, tomorrow);
        assert_waits(&s, second);
        assert_true(scene_lease(&s, second)->daily);
        assert_false(scene_lease(&s, first)->daily);
        assert_int_equal(scene_request(&s, tomorrow), 0); /* once more, after a kill: it was made */
        assert_rule(s.answer, RULE_WRONG_STATE);
        tomorrow.follows = second;
        tomorrow.start_s = 1; /* one that is refused is owed still */
        assert_int_equal(scene_request(&s, tomorrow), 0);
        assert_rule(s.answer, RULE_BOOKING_PAST);
        assert_true(scene_lease(&s, second)->daily);
        scene_release(&s, second);
        tomorrow.start_s = today.start_s + 2 * 86400;
        assert_int_equal(scene_request(&s, tomorrow), 0); /* who cancels it, cancels all that would have come */
        assert_rule(s.answer, RULE_NOT_FOUND);
        scene_end(&s);
}

static void booking_goes_with_the_clock_it_was_made_by(void **state)
{
        (void) state;
        struct scene s;
        struct change to = {
                .what = CHANGE_START, .is_admin = true, .uid = ALICE, .start_ms = SCENE_START_MS + SECONDS(3600)
        };
        begin(&s, 0);
        uint64_t b = scene_request(
                &s,
                (struct ask){ .bytes = GiB(20), .start_s = 7200, .slot_s = 3600, .uid = ALICE, .uncollected = true });
        scene_change(&s, b, (struct change){ .what = CHANGE_SLOT, .uid = ALICE, .slot_ms = SECONDS(9000) });
        assert_rule(s.answer, RULE_WRONG_STATE); /* nobody asked whether that is free */
        to.is_admin = false;
        scene_change(&s, b, to);
        assert_rule(s.answer, RULE_WRONG_STATE); /* its owner cannot move it past everybody else */
        to.is_admin = true;
        scene_change(&s, b, to);
        assert_kind(s.answer, ACTION_CHANGED);
        scene_tick_to_s(&s, 3599);
        assert_waits(&s, b);
        scene_tick_to_s(&s, 3600);
        assert_state(&s, b, LEASE_GRANTED);
        assert_int_equal(scene_lease(&s, b)->slot_end_ms, SCENE_START_MS + SECONDS(7200));
        scene_end(&s);
}

static void booking_outlives_a_reboot_and_ends_with_its_slot(void **state)
{
        (void) state;
        for (int granted = 0; granted < 2; granted++) {
                struct scene s;
                begin(&s, 0);
                uint64_t other = scene_request(&s, (struct ask){ .bytes = GiB(1) });
                uint64_t b = scene_request(
                        &s,
                        (struct ask){
                                .bytes = GiB(20), .start_s = 100, .slot_s = 50, .ttl_s = 86400, .uncollected = true });
                scene_tick_to_s(&s, granted ? 110 : 50);
                scene_restart(&s, (struct restart_facts){ .rebooted = true });
                assert_gone(&s, other);
                scene_look(&s);
                assert_state(&s, b, granted ? LEASE_GRANTED : LEASE_QUEUED);
                scene_tick_to_s(&s, 149);
                assert_state(&s, b, LEASE_GRANTED);
                scene_tick_to_s(&s, 150);
                assert_gone(&s, b);
                scene_end(&s);
        }
}

/* Its whole time went by while nobody was there to keep it: it is over, however long that was. */
static void booking_whose_time_went_by_ends(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 0);
        uint64_t b =
                scene_request(&s, (struct ask){ .bytes = GiB(20), .start_s = 100, .slot_s = 50, .uncollected = true });
        scene_eyes(&s, false);
        s.now_ms = SCENE_START_MS + SECONDS(5000);
        scene_restart(&s, (struct restart_facts){ 0 });
        scene_tick(&s);
        assert_gone(&s, b);
        scene_end(&s);
}

/* Memory that is taken back for somebody is his for as long as he likes: what is promised then has to fit beside him. */
static void nobody_gives_way_to_who_would_be_in_the_way_of_a_booking(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct ask ask;
                bool comes;
        } rows[] = {
                { "4 without limit is beside it", { .bytes = GiB(4) }, true },
                { "6 without limit", { .bytes = GiB(6) }, false },
                { "6 until the very moment", { .bytes = GiB(6), .slot_s = 7000 }, true },
                { "6 that can be restarted", { .bytes = GiB(6), .named = RESTART }, true },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                struct ask ask = rows[i].ask;
                begin(&s, 0);
                print_message("# %s\n", rows[i].name);
                uint64_t victim =
                        scene_request(&s, (struct ask){ .bytes = GiB(23), .priority = 4, .named = CHECKPOINT });
                scene_uses(&s, victim, GiB(23));
                uint64_t b = book(&s, GiB(20), 7200, 3600);
                assert_waits(&s, b);
                scene_tick_to_s(&s, 100);
                ask.priority = 2;
                ask.uid = BOB;
                uint64_t id = scene_request(&s, ask);
                scene_tick_to_s(&s, 120);
                assert_state(&s, id, rows[i].comes ? LEASE_ACTIVE : LEASE_QUEUED);
                assert_state(&s, victim, rows[i].comes ? LEASE_PARKED : LEASE_ACTIVE);
                scene_end(&s);
        }
}

/* A booking that is made while memory is being taken back for somebody: he was not there yet, so he waits like others. */
static void plan_that_a_booking_overtook_ends(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 0);
        uint64_t victim = scene_request(&s, (struct ask){ .bytes = GiB(23), .priority = 4, .named = COOPERATE });
        scene_uses(&s, victim, GiB(23));
        scene_tick_to_s(&s, 100);
        uint64_t id = scene_request(&s, (struct ask){ .bytes = GiB(6), .priority = 2, .uid = BOB });
        assert_state(&s, victim, LEASE_ASKING);
        uint64_t b = book(&s, GiB(20), 7200, 3600);
        assert_waits(&s, b);
        scene_uses(&s, victim, 0);
        scene_yields(&s, victim);
        scene_tick_to_s(&s, 110);
        assert_waits(&s, id);
        scene_end(&s);
}

static void urgent_booking_at_work_is_interrupted_by_no_urgent_work(void **state)
{
        (void) state;
        struct scene s;
        struct ask urgent = { .bytes = GiB(20),
                              .priority = 1,
                              .admin = true,
                              .named = RESTART,
                              .slot_s = 3600,
                              .uncollected = true,
                              .start_s = 600 };
        begin(&s, 0);
        uint64_t b = scene_request(&s, urgent);
        scene_tick_to_s(&s, 600);
        assert_state(&s, b, LEASE_GRANTED);
        scene_activate(&s, b, 0, 0);
        scene_uses(&s, b, GiB(20));
        urgent.start_s = 0;
        urgent.uncollected = false;
        uint64_t other = scene_request(&s, urgent);
        scene_tick_to_s(&s, 700);
        assert_runs(&s, b);
        assert_waits(&s, other);
        scene_end(&s);
}

/* Who went ahead of it because there is room beside it is there to stay: nobody else goes ahead as if he were gone. */
static void who_went_beside_a_booking_does_not_give_way_to_it(void **state)
{
        (void) state;
        struct scene s;
        struct change later = {
                .what = CHANGE_START, .is_admin = true, .uid = ALICE, .start_ms = SCENE_START_MS + SECONDS(7200)
        };
        begin(&s, 30);
        uint64_t holder = scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 3590 });
        uint64_t b = book(&s, GiB(16), 3600, 7200);
        scene_tick_to_s(&s, 3580);
        uint64_t beside = scene_request(&s, (struct ask){ .bytes = GiB(6), .uid = BOB });
        assert_runs(&s, beside);
        assert_true(scene_lease(&s, beside)->backfilled);
        scene_change(&s, b, later);
        assert_kind(s.answer, ACTION_CHANGED);
        scene_release(&s, holder);
        scene_look(&s);
        uint64_t more = scene_request(&s, (struct ask){ .bytes = GiB(4), .uid = BOB });
        assert_waits(&s, more);
        scene_end(&s);
}

/* Else it would do so when it is due, in a tick that says nothing of it. */
static void share_that_is_booked_follows_what_can_be_given_at_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t id = scene_request(&s, (struct ask){ .percent_milli = 50000, .start_s = 3600, .slot_s = 600 });
        assert_bytes(scene_entry(&s, id)->demand_bytes, GiB(12));
        s.config.kept_free_bytes = GiB(4);
        scene_config(&s);
        assert_bytes(scene_entry(&s, id)->demand_bytes, GiB(10));
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(share_that_is_booked_follows_what_can_be_given_at_once),
                cmocka_unit_test(D9_booking_is_passed_only_by_what_is_not_in_its_way),
                cmocka_unit_test(what_the_driver_keeps_is_nobodys_when_a_booking_begins),
                cmocka_unit_test(D9_who_is_in_its_way_is_head_behind_it_and_others_go_ahead_of_that),
                cmocka_unit_test(booking_is_there_at_its_time_and_what_ran_before_goes_for_it),
                cmocka_unit_test(booking_that_can_never_be_met_is_refused_when_it_is_made),
                cmocka_unit_test(bookings_come_to_their_sum_where_they_overlap),
                cmocka_unit_test(who_collects_a_booking_has_it_from_then_on),
                cmocka_unit_test(daily_booking_is_made_again_exactly_once),
                cmocka_unit_test(booking_goes_with_the_clock_it_was_made_by),
                cmocka_unit_test(booking_outlives_a_reboot_and_ends_with_its_slot),
                cmocka_unit_test(booking_whose_time_went_by_ends),
                cmocka_unit_test(nobody_gives_way_to_who_would_be_in_the_way_of_a_booking),
                cmocka_unit_test(plan_that_a_booking_overtook_ends),
                cmocka_unit_test(urgent_booking_at_work_is_interrupted_by_no_urgent_work),
                cmocka_unit_test(who_went_beside_a_booking_does_not_give_way_to_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
