/* SPDX-License-Identifier: Apache-2.0 */
/* A journal of an older lessor goes on, and the way back is kept. The real thing, with a real older lessor: tests/upgrade. */
#include "desk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As tables version 1 lay in the file: each commit had written its events, nothing said how far they went, and no audits. */
static void make_older(struct desk *d)
{
        assert_int_equal(journal_tidy(d->j, &d->err), 0);
        desk_close(d);
        desk_sql(d, "DROP TABLE audit; ALTER TABLE keep DROP COLUMN audit_hash; ALTER TABLE keep DROP COLUMN event_seq;"
                    "PRAGMA user_version = 1004");
}

static int count_event(void *ctx, const struct journal_event *event)
{
        unsigned *n = ctx;

        (void) event;
        (*n)++;
        return 0;
}

static void older_journal_goes_on_and_a_copy_is_kept_for_the_way_back(void **state)
{
        struct desk *d = *state;
        char copy[PATH_MAX];
        unsigned n_events = 0;
        struct stat st;

        desk_start(d);
        desk_write(d, 30);
        make_older(d);

        desk_open(d);
        assert_false(d->restored.fresh || d->restored.degraded);
        assert_true(d->restored.agreed);
        assert_int_equal(d->restored.last_seq, 30);
        assert_non_null(journal_upgraded(d->j));
        assert_non_null(strstr(journal_upgraded(d->j), "journal.db.v1004"));
        assert_int_equal(desk_count(d, ".aside-"), 0);
        desk_snapshot(d);
        desk_write(d, 10);
        desk_assert_on_disk(d, 40);
        desk_assert_verifies(d);
        assert_int_equal(journal_events(d->j, &(struct journal_events_filter){ 0 }, count_event, &n_events, &d->err),
                         0);
        assert_int_equal(n_events, 40);
        desk_close(d);
        desk_open(d);
        assert_null(journal_upgraded(d->j)); /* once */
        desk_close(d);

        desk_path(copy, "%s.v1004", d->path);
        assert_int_equal(stat(copy, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(rename(copy, d->path), 0);
        assert_int_equal(desk_sql_u64(d, "PRAGMA user_version"), 1004);
        assert_int_equal(desk_sql_u64(d, "SELECT max(seq) FROM record"), 30);
        desk_open(d); /* and forth again */
        assert_int_equal(d->restored.last_seq, 30);
        assert_int_equal(desk_count(d, ".v1004"), 1);
}

/* The number stands in the main file itself, not only in its log: an older program looks there before it touches it. */
static void number_of_the_form_is_in_the_main_file_at_once(void **state)
{
        struct desk *d = *state;
        size_t n;

        desk_start(d);
        desk_write(d, 30);
        make_older(d);
        desk_open(d);
        uint8_t *header = desk_read(d->path, &n);
        assert_true(n > 100);
        assert_int_equal(header[60] << 24 | header[61] << 16 | header[62] << 8 | header[63],
                         desk_sql_u64(d, "PRAGMA user_version"));
        free(header);
}

static void conversion_without_room_for_the_copy_changes_nothing(void **state)
{
        struct desk *d = *state;
        char blocked[PATH_MAX];
        size_t n, n_now;

        desk_start(d);
        desk_write(d, 30);
        make_older(d);
        desk_path(blocked, "%s.v1004.new", d->path);
        assert_int_equal(mkdir(blocked, 0700), 0); /* as good as a full disk, also for root */
        uint8_t *before = desk_read(d->path, &n);

        assert_int_equal(journal_open(&d->j, d->path, NULL, &d->err), -EEXIST);
        assert_non_null(strstr(d->err.msg, "journal.db.v1004.new"));
        uint8_t *now = desk_read(d->path, &n_now);
        assert_int_equal(n, n_now);
        assert_memory_equal(before, now, n);
        free(before);
        free(now);
        assert_int_equal(rmdir(blocked), 0);
        desk_open(d);
        assert_int_equal(d->restored.last_seq, 30);
}

static void older_journal_is_not_converted_by_a_reader(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        make_older(d);
        d->options.read_only = true;
        assert_int_equal(journal_open(&d->j, d->path, &d->options, &d->err), -EPROTONOSUPPORT);
        assert_non_null(strstr(d->err.msg, "start lessord once"));
        assert_int_equal(desk_sql_u64(d, "PRAGMA user_version"), 1004);
}

int main(void)
{
#define journal_test(f) cmocka_unit_test_setup_teardown(f, desk_begin, desk_end)
        const struct CMUnitTest tests[] = {
                journal_test(older_journal_goes_on_and_a_copy_is_kept_for_the_way_back),
                journal_test(number_of_the_form_is_in_the_main_file_at_once),
                journal_test(conversion_without_room_for_the_copy_changes_nothing),
                journal_test(older_journal_is_not_converted_by_a_reader),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
