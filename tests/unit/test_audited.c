/* SPDX-License-Identifier: Apache-2.0 */
/* How much a process had when, and who waited because of it, from a journal that the real core wrote. */
#include <stdio.h>
#include <string.h>
#include "scene_journal.h"
#include "store/audited.h"

#define KNOWN (ROW_USED_KNOWN | ROW_COMPUTE)

/* Second 0 of a scene lies so far in its hour. */
enum { INTO_HOUR_S = 800 };

static struct audited read_of(struct scene *s, uint32_t pid)
{
        const struct audited_look look = { .pid = pid };
        struct journal *j = scene_read_journal(s);
        struct error err = { 0 };
        struct audited audited;

        if (audited_read(j, &look, &audited, &err) < 0)
                fail_msg("%s", err.msg);
        journal_close(j);
        return audited;
}

static const struct audited_series *only_series(const struct audited *a)
{
        assert_int_equal(a->n_series, 1);
        return &a->series[0];
}

/* Point @i lies in that hour of the scene, and has these figures, in GiB. */
#define assert_point(series, i, hour, min, max, last)                                                                  \
        do {                                                                                                           \
                const struct audited_point *p_ = &(series)->points[i];                                                 \
                assert_int_equal(p_->hour_ms, SCENE_WALL_MS - SECONDS(INTO_HOUR_S) + HOURS(hour));                     \
                assert_bytes(p_->min_bytes, GiB(min));                                                                 \
                assert_bytes(p_->max_bytes, GiB(max));                                                                 \
                assert_bytes(p_->last_bytes, GiB(last));                                                               \
        } while (0)

static void begin(struct scene *s)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        (void) scene_device(s, GiB(24));
        scene_record(s);
}

static void end(struct scene *s, struct audited *a)
{
        audited_fini(a);
        scene_record_end(s);
        scene_end(s);
}

static void memory_is_told_by_hours_with_what_an_hour_began_with(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(4));
        scene_wait_to_s(&s, 1800);
        scene_process_uses(&s, pid, 0, GiB(10), KNOWN);
        scene_process_uses(&s, pid, 0, GiB(8), KNOWN);
        scene_wait_to_s(&s, 3 * 3600);
        scene_process_uses(&s, pid, 0, GiB(6), KNOWN);
        struct audited a = read_of(&s, pid);
        const struct audited_series *series = only_series(&a);
        assert_int_equal(series->n_points, 2);
        assert_point(series, 0, 0, 4, 10, 8);
        assert_point(series, 1, 3, 6, 8, 6);
        end(&s, &a);
}

static void memory_on_several_devices_is_one_sum(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(4));
        scene_process_uses(&s, pid, 1, GiB(3), KNOWN);
        struct audited a = read_of(&s, pid);
        assert_point(only_series(&a), 0, 0, 4, 7, 7);
        end(&s, &a);
}

static void unknown_amount_is_no_point_and_never_zero(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(4));
        scene_process_uses(&s, pid, 0, 0, ROW_COMPUTE);
        struct audited a = read_of(&s, pid);
        assert_int_equal(only_series(&a)->n_points, 1);
        assert_point(only_series(&a), 0, 0, 4, 4, 4);
        end(&s, &a);
}

static void end_of_a_process_is_no_point(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(4));
        scene_process_ends(&s, pid);
        struct audited a = read_of(&s, pid);
        assert_point(only_series(&a), 0, 0, 4, 4, 4);
        end(&s, &a);
}

static void segment_goes_on_with_what_it_began_with(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(4));
        scene_wait_to_s(&s, 2 * 3600);
        scene_segment(&s);
        struct audited a = read_of(&s, pid);
        assert_int_equal(only_series(&a)->n_points, 2);
        assert_point(only_series(&a), 1, 2, 4, 4, 4);
        end(&s, &a);
}

static void oldest_hours_are_forgotten_first(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(1));
        for (uint32_t hour = 1; hour <= 60; hour++) {
                scene_wait_to_s(&s, 3600 * hour);
                scene_process_uses(&s, pid, 0, GiB(1 + hour % 2), KNOWN);
        }
        struct audited a = read_of(&s, pid);
        const struct audited_series *series = only_series(&a);
        assert_int_equal(series->n_points, AUDITED_POINTS_MAX);
        assert_point(series, 0, 60 - AUDITED_POINTS_MAX + 1, 1, 2, 2);
        assert_point(series, AUDITED_POINTS_MAX - 1, 60, 1, 2, 1);
        end(&s, &a);
}

static void lease_that_waits_for_its_memory_was_displaced(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(20)), other = scene_stranger(&s, 1, GiB(10));
        uint64_t waits = scene_request(&s, (struct ask){ .bytes = GiB(20), .uuid = scene_uuid(&s, 0) });
        assert_waits(&s, waits);
        struct audited a = read_of(&s, pid);
        const struct audited_series *series = only_series(&a);
        assert_int_equal(series->n_displaced, 1);
        assert_int_equal(series->displaced[0].lease_id, waits);
        assert_bytes(series->displaced[0].bytes, GiB(20));
        audited_fini(&a);
        a = read_of(&s, other);
        assert_int_equal(only_series(&a)->n_displaced, 0);
        end(&s, &a);
}

static void displaced_leases_beyond_the_table_are_left_out(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        uint32_t pid = scene_stranger(&s, 0, GiB(20));
        for (unsigned i = 0; i < AUDITED_DISPLACED_MAX + 5; i++)
                scene_release(&s, scene_request(&s, (struct ask){ .bytes = GiB(20), .uuid = scene_uuid(&s, 0) }));
        struct audited a = read_of(&s, pid);
        assert_int_equal(only_series(&a)->n_displaced, AUDITED_DISPLACED_MAX);
        assert_int_equal(only_series(&a)->displaced[AUDITED_DISPLACED_MAX - 1].lease_id, AUDITED_DISPLACED_MAX);
        end(&s, &a);
}

static void pid_that_nobody_had_has_nothing(void **state)
{
        struct scene s;

        (void) state;
        begin(&s);
        (void) scene_stranger(&s, 0, GiB(20));
        struct audited a = read_of(&s, 7);
        assert_int_equal(a.n_series, 0);
        assert_int_equal(a.n_rows, 0);
        end(&s, &a);
}

/* ---- rows ---- */

static void add(struct audited *a, uint32_t pid, uint64_t start_ticks, const char *boot_id)
{
        struct journal_audit audit = { .pid = pid, .start_ticks = start_ticks, .facts = "{}", .n_facts = 2 };

        (void) snprintf(audit.boot_id, sizeof(audit.boot_id), "%s", boot_id);
        assert_int_equal(audited_add(a, &audit), 0);
}

static void one_that_the_journal_has_is_not_added_again(void **state)
{
        struct audited a = { 0 };

        (void) state;
        add(&a, 7, 1, "b");
        add(&a, 7, 1, "b");
        add(&a, 7, 2, "b");
        add(&a, 7, 2, "c");
        assert_int_equal(a.n_rows, 3);
        assert_int_equal(a.rows[0].audit.start_ticks, 2);
        assert_string_equal(a.rows[0].audit.boot_id, "c");
        audited_fini(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(memory_is_told_by_hours_with_what_an_hour_began_with),
                cmocka_unit_test(memory_on_several_devices_is_one_sum),
                cmocka_unit_test(unknown_amount_is_no_point_and_never_zero),
                cmocka_unit_test(end_of_a_process_is_no_point),
                cmocka_unit_test(segment_goes_on_with_what_it_began_with),
                cmocka_unit_test(oldest_hours_are_forgotten_first),
                cmocka_unit_test(lease_that_waits_for_its_memory_was_displaced),
                cmocka_unit_test(displaced_leases_beyond_the_table_are_left_out),
                cmocka_unit_test(pid_that_nobody_had_has_nothing),
                cmocka_unit_test(one_that_the_journal_has_is_not_added_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
