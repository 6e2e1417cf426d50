/* SPDX-License-Identifier: Apache-2.0 */
/* What lessord does for bookings by people's clocks, with the core itself: made again each day, exactly once, also by a daemon
 * that was away; moved when the clocks part. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/local_time.h"
#include "programs/lessord/bookings.h"
#include "scene.h"

static int64_t utc_s(const char *text)
{
        uint64_t ms = 0;

        assert_int_equal(rfc3339_parse(text, &ms), 0);
        return (int64_t) (ms / 1000);
}

/* Wall time is @wall0_s when the scene begins. */
static struct clocks clocks(const struct scene *s, int64_t wall0_s)
{
        return (struct clocks){ .world_ms = s->now_ms,
                                .wall_ms = (uint64_t) wall0_s * 1000 + s->now_ms - SCENE_START_MS };
}

static void begin(struct scene *s, const char *tz)
{
        (void) setenv("TZ", tz, 1);
        tzset();
        scene_begin(s);
        (void) scene_device(s, GiB(24));
}

static uint64_t submit(struct scene *s, struct request request)
{
        struct input input = { .kind = INPUT_REQUEST, .request = request };

        input.request.token = s->next_token++;
        scene_step_for(s, &input, input.request.token);
        return s->answer.kind == ACTION_REFUSED ? 0 : s->answer.lease_id;
}

/* As POST /api/leases makes it (api/booking.c). */
static uint64_t book_daily(struct scene *s, int64_t wall0_s, const char *start, uint64_t for_s)
{
        struct clocks now = clocks(s, wall0_s);
        struct local_time local;
        struct request r = { .uid = ALICE,
                             .priority = PRIORITY_NORMAL,
                             .bytes = GiB(20),
                             .slot_ms = SECONDS(for_s),
                             .start_wall_ms = (uint64_t) utc_s(start) * 1000,
                             .daily = true,
                             .binding = { .kind = BINDING_HEARTBEAT, .ttl_ms = SECONDS(365 * 86400) },
                             .name = "nightly" };

        assert_true(local_time_at(utc_s(start), &local));
        r.day_s = local.second;
        r.start_ms = now.world_ms + (r.start_wall_ms - now.wall_ms);
        return submit(s, r);
}

/* What bookings_look() does after each turn. Returns how many were made. */
static unsigned look(struct scene *s, int64_t wall0_s)
{
        struct clocks now = clocks(s, wall0_s);
        unsigned n = 0;

        for (uint32_t i = 0; i < s->world->n_leases; i++) {
                struct request next;
                if (s->world->lease_ids[i] == 0 || !bookings_owes_next(s->world, &s->world->leases[i], now.world_ms))
                        continue;
                assert_true(bookings_next(s->world, &s->world->leases[i], now, 0, &next));
                n += submit(s, next) != 0;
        }
        return n;
}

/* The only one that is to be made again. */
static const struct lease *carrier(struct scene *s)
{
        const struct lease *found = NULL;

        for (uint32_t i = 0; i < s->world->n_leases; i++) {
                if (s->world->lease_ids[i] == 0 || !s->world->leases[i].daily)
                        continue;
                assert_null(found);
                found = &s->world->leases[i];
        }
        return found;
}

static void wait_until(struct scene *s, int64_t wall0_s, const char *wall)
{
        scene_tick_to_s(s, (uint64_t) (utc_s(wall) - wall0_s));
}

/* Over the night the clock is set: 02:30 is not there on the 29th, where it begins at 03:00, and is there again on the 30th. */
static void daily_booking_is_made_again_when_it_begins_at_its_local_time(void **state)
{
        (void) state;
        static const struct {
                const char *now, *starts[4];
        } rows[] = {
                { "2026-03-27T12:00:00Z",
                  { "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z" } },
                { "2026-10-23T12:00:00Z",
                  { "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z" } },
        };
        for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
                int64_t wall0_s = utc_s(rows[row].now);
                struct scene s;
                begin(&s, "CET-1CEST,M3.5.0,M10.5.0/3");
                uint64_t id = book_daily(&s, wall0_s, rows[row].starts[0], 3600);
                assert_int_not_equal(id, 0);
                for (size_t day = 0; day < 3; day++) {
                        scene_tick_to_s(&s, (uint64_t) (utc_s(rows[row].starts[day]) - wall0_s) - 60);
                        assert_int_equal(look(&s, wall0_s), 0); /* not before its time */
                        scene_tick_to_s(&s, (uint64_t) (utc_s(rows[row].starts[day]) - wall0_s));
                        assert_state(&s, id, LEASE_GRANTED);
                        assert_int_equal(look(&s, wall0_s), 1);
                        assert_int_equal(look(&s, wall0_s), 0);
                        const struct lease *next = carrier(&s);
                        assert_non_null(next);
                        assert_int_equal(next->booked_wall_ms, utc_s(rows[row].starts[day + 1]) * 1000);
                        assert_int_equal(next->booked_ms - SCENE_START_MS,
                                         SECONDS(utc_s(rows[row].starts[day + 1]) - wall0_s));
                        assert_string_equal(next->name, "nightly");
                        assert_int_equal(next->uid, ALICE);
                        id = next->id;
                }
                scene_release(&s, id); /* cancelled: none after it */
                assert_null(carrier(&s));
                assert_int_equal(look(&s, wall0_s), 0);
                scene_end(&s);
        }
}

/* The daemon was away over several of its days: the first look of the next one makes the next to come, once, before the ticks
 * end the one that went by. */
static void daemon_that_was_away_makes_the_next_one_once(void **state)
{
        (void) state;
        int64_t wall0_s = utc_s("2026-11-30T12:00:00Z");
        for (int granted = 0; granted < 2; granted++) {
                struct scene s;
                begin(&s, "UTC");
                uint64_t id = book_daily(&s, wall0_s, "2026-11-30T22:00:00Z", 3600);
                if (granted) { /* it fell down between the grant and the next day's booking */
                        wait_until(&s, wall0_s, "2026-11-30T22:00:00Z");
                        assert_state(&s, id, LEASE_GRANTED);
                }
                s.now_ms = SCENE_START_MS + SECONDS(utc_s("2026-12-04T12:00:00Z") - wall0_s);
                scene_restart(&s, (struct restart_facts){ .rebooted = granted });
                assert_int_equal(look(&s, wall0_s), 1);
                scene_tick(&s);
                assert_gone(&s, id);
                assert_int_equal(look(&s, wall0_s), 0);
                assert_int_equal(carrier(&s)->booked_wall_ms, utc_s("2026-12-04T22:00:00Z") * 1000);
                scene_end(&s);
        }
}

/* The world's time stood still for three hours (asleep), or somebody set the clock: the booking goes with people's clocks. */
static void F26_F79_booking_begins_by_the_wall_clock_after_a_sleep(void **state)
{
        (void) state;
        int64_t wall0_s = utc_s("2026-11-30T12:00:00Z");
        static const struct {
                const char *name;
                int64_t ahead_s;
                bool moves;
        } rows[] = { { "asleep", 3 * 3600, true },
                     { "set back", -3600, true },
                     { "adjusted", 1, false },
                     { "as it was", 0, false },
                     { "asleep beyond its beginning", 10 * 3600 + 600, true } };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct input input = { .kind = INPUT_CHANGE };
                struct scene s;
                begin(&s, "UTC");
                uint64_t id = book_daily(&s, wall0_s, "2026-11-30T22:00:00Z", 3600);
                print_message("# %s\n", rows[i].name);
                assert_int_equal(
                        bookings_moved(scene_lease(&s, id), clocks(&s, wall0_s + rows[i].ahead_s), &input.change),
                        rows[i].moves);
                if (!rows[i].moves) {
                        scene_end(&s);
                        continue;
                }
                input.change.token = s.next_token++;
                scene_step_for(&s, &input, input.change.token);
                assert_kind(s.answer, ACTION_CHANGED);
                assert_false(bookings_moved(scene_lease(&s, id), clocks(&s, wall0_s + rows[i].ahead_s), &input.change));
                int64_t left_s = 10 * 3600 - rows[i].ahead_s;
                if (left_s > 60) {
                        scene_tick_to_s(&s, (uint64_t) left_s - 60);
                        assert_waits(&s, id);
                }
                scene_tick_to_s(&s, left_s > 0 ? (uint64_t) left_s : 1);
                assert_state(&s, id, LEASE_GRANTED);
                scene_end(&s);
        }
}

/* Tomorrow is taken: the day after. And the device that was named stays named. */
static void next_day_that_is_taken_is_passed_over(void **state)
{
        (void) state;
        int64_t wall0_s = utc_s("2026-11-30T12:00:00Z");
        struct request next;
        struct scene s;
        begin(&s, "UTC");
        uint64_t id = book_daily(&s, wall0_s, "2026-11-30T22:00:00Z", 3600);
        const struct lease *l = scene_lease(&s, id);
        assert_true(bookings_next(s.world, l, clocks(&s, wall0_s), 1, &next));
        assert_int_equal(next.start_wall_ms, utc_s("2026-12-02T22:00:00Z") * 1000);
        assert_string_equal(next.device_uuid, "");
        scene_lease(&s, id)->devices = 1;
        assert_true(bookings_next(s.world, l, clocks(&s, wall0_s), 0, &next));
        assert_string_equal(next.device_uuid, scene_uuid(&s, 0));
        assert_int_equal(next.follows_id, id);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(daily_booking_is_made_again_when_it_begins_at_its_local_time),
                cmocka_unit_test(daemon_that_was_away_makes_the_next_one_once),
                cmocka_unit_test(F26_F79_booking_begins_by_the_wall_clock_after_a_sleep),
                cmocka_unit_test(next_day_that_is_taken_is_passed_over),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
