/* SPDX-License-Identifier: Apache-2.0 */
/* The journal while all is well, or only busy or full. What damage does to it: test_journal_damage.c. */
#include "desk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "store/journal_private.h"

/* ---- life ---- */

static void new_journal_is_private_and_fresh(void **state)
{
        struct desk *d = *state;
        struct stat st;

        desk_open(d);
        assert_true(d->restored.fresh);
        assert_false(d->restored.degraded);
        assert_null(journal_degraded(d->j));
        assert_int_equal(stat(d->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        desk_snapshot(d);
        desk_write(d, 1);
        char wal[PATH_MAX];
        desk_path(wal, "%s-wal", d->path);
        assert_int_equal(stat(wal, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        desk_close(d);
        assert_int_equal(chmod(d->path, 0644), 0); /* somebody was careless: closed again at the next start */
        desk_open(d);
        assert_int_equal(stat(d->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void restart_gives_the_same_books(void **state)
{
        struct desk *d = *state;
        struct world *before = books_world_new();
        size_t n;

        desk_start(d);
        for (int i = 0; i < 100; i++)
                desk_write(d, 3);
        uint8_t *bytes = desk_books(d->world, &n);
        memcpy(before, d->world, sizeof(*before));
        desk_close(d);

        desk_open(d);
        assert_false(d->restored.fresh);
        assert_true(d->restored.agreed && d->restored.same_core);
        assert_int_equal(d->restored.n_records, 300);
        assert_int_equal(d->restored.last_seq, 300);
        assert_int_equal(d->restored.last_wall_ms, 1700000000000 + 299);
        assert_string_equal(d->restored.core_version, "0.1.0");
        assert_int_equal(strlen(d->restored.boot_id), 36);
        desk_assert_same_books(d->world, before);
        assert_memory_equal(d->world, before, sizeof(*before));
        desk_assert_verifies(d);
        free(bytes);
        books_world_free(before);
}

static void clean_end_needs_no_replay(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_write(d, 30);
        desk_snapshot(d);
        desk_close(d);
        desk_open(d);
        assert_int_equal(d->restored.n_records, 0);
        assert_int_equal(d->restored.last_seq, 30);
        desk_assert_on_disk(d, 30);
}

static void segments_are_pruned_and_what_stays_verifies(void **state)
{
        struct desk *d = *state;
        struct journal_verified v;

        d->options = (struct journal_options){ .segment_records = 20, .keep_segments = 3, .keep_events = 50 };
        desk_start(d);
        for (int i = 0; i < 60; i++) {
                desk_write(d, 5);
                if (journal_wants_snapshot(d->j))
                        desk_snapshot(d);
        }
        assert_int_equal(journal_verify(d->j, &v, &d->err), 0);
        assert_true(v.ok);
        assert_int_equal(v.n_segments, 3);
        assert_int_equal(v.n_records, 40);
        assert_int_equal(v.n_events, 50);
        assert_int_equal(desk_sql_u64(d, "SELECT max(seq) FROM record"), 300);
        desk_assert_on_disk(d, 300);
        desk_close(d);

        desk_start(d); /* the chain goes on after a restart, over a prune that leaves no record of an old segment */
        desk_snapshot(d);
        desk_snapshot(d);
        desk_write(d, 5);
        assert_int_equal(journal_verify(d->j, &v, &d->err), 0);
        assert_true(v.ok);
        assert_int_equal(v.n_records, 5);
        desk_assert_on_disk(d, 305);
}

static void core_that_decides_otherwise_is_named_by_record(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_write(d, 30);
        desk_close(d);
        d->differs_at = 9; /* the READ and GRANTED of a request, two RENEWED: the ninth is of line 6, record 7 */
        d->options.core_version = "0.2.0";
        desk_open(d);
        assert_false(d->restored.agreed);
        assert_false(d->restored.same_core);
        assert_false(d->restored.degraded); /* nothing is damaged: it is another opinion */
        assert_int_equal(d->restored.differs_at_seq, 7);
        assert_int_equal(d->restored.n_records, 30);
}

static void calls_in_the_wrong_order_are_refused_in_words(void **state)
{
        struct desk *d = *state;
        struct journal_options read_only = { .read_only = true };
        struct journal *other;
        struct input input;

        books_story(0, &input);
        assert_int_equal(journal_open(&d->j, d->path, NULL, &d->err), 0);
        assert_int_equal(journal_snapshot(d->j, d->world, "", 1, &d->err), -EINVAL);
        assert_int_equal(journal_append(d->j, &input, d->out, 1, &d->err), -EINVAL);
        desk_close(d);

        desk_start(d);
        desk_append(d, 1);
        assert_int_equal(journal_snapshot(d->j, d->world, "", 1, &d->err), -EINVAL); /* a record is pending */
        assert_int_equal(journal_restore(d->j, d->world, books_step, NULL, &d->restored, &d->err), -EINVAL);
        input.request.priority = 9;
        assert_int_equal(journal_append(d->j, &input, d->out, 1, &d->err), -EINVAL);
        assert_non_null(strstr(d->err.msg, "request.priority"));
        input.request.priority = 3;
        input.now_ms = UINT64_MAX;
        assert_int_equal(journal_append(d->j, &input, d->out, 1, &d->err), -EINVAL);
        assert_int_equal(journal_pending(d->j), 1);
        assert_int_equal(journal_commit(d->j, &d->err), 0); /* what was refused left nothing behind */
        desk_assert_on_disk(d, 1);

        books_world_zero(d->world);
        input.now_ms = 1;
        assert_int_equal(journal_open(&other, d->path, &read_only, &d->err), 0);
        assert_int_equal(journal_restore(other, d->world, books_step, NULL, &d->restored, &d->err), 0);
        assert_int_equal(journal_append(other, &input, d->out, 1, &d->err), -EROFS);
        assert_int_equal(journal_snapshot(other, d->world, "", 1, &d->err), -EROFS);
        journal_close(other);
}

/* F79: order is by sequence; a wall clock that goes back changes nothing. */
static void F79_wall_clock_that_goes_back_changes_no_order(void **state)
{
        struct desk *d = *state;
        struct input input;

        desk_start(d);
        for (uint32_t i = 0; i < 10; i++) {
                books_story(i, &input);
                books_step(NULL, d->world, &input, d->out);
                assert_int_equal(journal_append(d->j, &input, d->out, 1700000000000 - i * UINT64_C(46800000), &d->err),
                                 0);
                assert_int_equal(journal_commit(d->j, &d->err), 0);
        }
        desk_assert_on_disk(d, 10);
        desk_assert_verifies(d);
}

/* ---- events ---- */

struct seen {
        uint64_t ids[2 * JOURNAL_EVENTS_LIMIT];
        size_t n;
        size_t stop_after;
};

static int see(void *ctx, const struct journal_event *event)
{
        struct seen *seen = ctx;

        assert_true(event->action.kind != ACTION_READ);
        assert_true(event->seq > 0 && event->wall_ms >= 1700000000000 && event->now_ms >= 1000);
        assert_true(event->action.why.free_bytes == event->action.id * 7);
        seen->ids[seen->n++] = event->action.id;
        return seen->n == seen->stop_after ? 42 : 0;
}

static void events_are_found_by_id_lease_and_direction(void **state)
{
        struct desk *d = *state;
        static struct seen s;

        desk_start(d);
        desk_write(d, 3000); /* of 4 ids in three lines the first is a READ */
        s = (struct seen){ 0 };
        assert_int_equal(journal_events(d->j, &(struct journal_events_filter){ 0 }, see, &s, &d->err), 0);
        assert_int_equal(s.n, 1000);
        assert_int_equal(s.ids[0], 2);
        assert_int_equal(s.ids[3], 6);
        s = (struct seen){ 0 };
        assert_int_equal(journal_events(d->j, &(struct journal_events_filter){ .limit = 5, .newest_first = true }, see,
                                        &s, &d->err),
                         0);
        assert_int_equal(s.n, 5);
        assert_int_equal(s.ids[0], 4000);
        assert_int_equal(s.ids[4], 3995);
        s = (struct seen){ 0 };
        assert_int_equal(journal_events(d->j, &(struct journal_events_filter){ .after_id = 3990, .before_id = 3996 },
                                        see, &s, &d->err),
                         0);
        assert_int_equal(s.n, 4); /* 3991, 3992, 3994, 3995; 3993 is a READ */
        assert_int_equal(s.ids[2], 3994);
        s = (struct seen){ 0 };
        assert_int_equal(journal_events(d->j, &(struct journal_events_filter){ .lease_id = 7 }, see, &s, &d->err), 0);
        assert_int_equal(s.n, 3);
        assert_int_equal(s.ids[0], 4 * 6 + 2);
        s = (struct seen){ 0 };
        assert_int_equal(
                journal_events(d->j, &(struct journal_events_filter){ .lease_id = 7, .newest_first = true, .limit = 1 },
                               see, &s, &d->err),
                0);
        assert_int_equal(s.ids[0], 4 * 6 + 4);
        s = (struct seen){ .stop_after = 2 };
        assert_int_equal(journal_events(d->j, &(struct journal_events_filter){ 0 }, see, &s, &d->err), 42);
        s = (struct seen){ 0 };
        assert_int_equal(
                journal_events(d->j, &(struct journal_events_filter){ .after_id = UINT64_MAX }, see, &s, &d->err), 0);
        assert_int_equal(s.n, 0);
        assert_int_equal(journal_commit(d->j, &d->err), 0); /* an early stop left no lock and no statement open */
        desk_write(d, 1);
}

/* ---- busy ---- */

/* F73: a lock held elsewhere is waited for and then told; the records wait, nothing is lost, nothing is there twice. */
static void F73_lock_of_another_writer_gives_busy_and_loses_nothing(void **state)
{
        struct desk *d = *state;
        sqlite3 *other = NULL;

        d->options.busy_ms = 60;
        desk_start(d);
        desk_write(d, 5);
        assert_int_equal(sqlite3_open(d->path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);

        desk_append(d, 5);
        uint64_t began_ms = clock_now_ms();
        assert_int_equal(journal_commit(d->j, &d->err), -EBUSY);
        uint64_t took_ms = clock_now_ms() - began_ms;
        assert_true(took_ms >= 50);
        assert_non_null(strstr(d->err.msg, "another program"));
        assert_int_equal(journal_commit(d->j, &d->err), -EBUSY);
        assert_int_equal(journal_snapshot(d->j, d->world, "", 1, &d->err), -EINVAL);
        desk_assert_on_disk(d, 5);
        desk_append(d, 5); /* the world may go on: what was decided waits in order */
        assert_int_equal(journal_pending(d->j), 10);

        assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(journal_commit(d->j, &d->err), 0);
        desk_assert_on_disk(d, 15);
        desk_assert_verifies(d);

        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(journal_snapshot(d->j, d->world, "", 1, &d->err), -EBUSY); /* the old segment goes on */
        assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        desk_write(d, 1);
        desk_assert_on_disk(d, 16);
}

static void other_program_that_wrote_makes_the_journal_stale(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_write(d, 5);
        desk_sql(d, "INSERT INTO record SELECT 6, segment, now_ms, wall_ms, kind, input, actions, hash FROM record "
                    "WHERE seq = 5");
        desk_append(d, 1);
        assert_int_equal(journal_commit(d->j, &d->err), -ESTALE);
        assert_int_equal(journal_commit(d->j, &d->err), -ESTALE);
        assert_int_equal(journal_last_seq(d->j), 5);
}

/* ---- full ---- */

static void limit_file_size(rlim_t bytes)
{
        struct rlimit limit;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static rlim_t wal_size(const struct desk *d)
{
        char wal[PATH_MAX];
        struct stat st;

        desk_path(wal, "%s-wal", d->path);
        return stat(wal, &st) == 0 ? (rlim_t) st.st_size : 0;
}

/* F76, at every write: the disk is full after so many more bytes; what was committed is there, what was not waits, and once
 * there is room everything is there once. */
static void F76_full_disk_at_every_write_loses_and_doubles_nothing(void **state)
{
        struct desk *d = *state;
        unsigned n_failed = 0;

        (void) signal(SIGXFSZ, SIG_IGN);
        desk_start(d);
        desk_write(d, 5);
        for (rlim_t room = 0; room < 60000; room += 1171) {
                uint64_t seq = journal_last_seq(d->j);

                limit_file_size(wal_size(d) + room);
                desk_append(d, 20);
                int r = journal_commit(d->j, &d->err);
                int again = r < 0 ? journal_commit(d->j, &d->err) : 0;
                limit_file_size(RLIM_INFINITY);
                if (r < 0) {
                        n_failed++;
                        if (r != -ENOSPC)
                                fail_msg("%d: %s", r, d->err.msg);
                        assert_int_equal(again, -ENOSPC);
                        assert_non_null(strstr(d->err.msg, "no space"));
                        assert_int_equal(journal_last_seq(d->j), seq);
                        assert_int_equal(journal_pending(d->j), 20);
                        desk_assert_on_disk(d, (uint32_t) seq);
                        assert_int_equal(journal_commit(d->j, &d->err), 0);
                }
                desk_assert_on_disk(d, d->i);
        }
        desk_assert_verifies(d);
        assert_true(n_failed > 5);

        for (rlim_t room = 0; room < 30000; room += 1171) { /* the same for snapshots */
                limit_file_size(wal_size(d) + room);
                int r = journal_snapshot(d->j, d->world, "", 1, &d->err);
                limit_file_size(RLIM_INFINITY);
                assert_true(r == 0 || r == -ENOSPC);
                desk_write(d, 1);
                desk_assert_on_disk(d, d->i);
        }
        desk_assert_verifies(d);
        (void) signal(SIGXFSZ, SIG_DFL);
}

/* The disk took the batch and then said no: put the journal back to before its COMMIT, with the rows already there. */
static void commit_that_failed_and_is_there_all_the_same_is_not_written_twice(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_write(d, 5);
        desk_append(d, 10);
        struct journal before = *d->j;
        assert_int_equal(journal_commit(d->j, &d->err), 0);
        struct journal after = *d->j;

        d->j->n_pending = before.n_pending;
        d->j->n_arena = before.n_arena;
        d->j->last_seq = before.last_seq;
        d->j->hash = before.hash;
        d->j->segment_records = before.segment_records;
        d->j->in_doubt = true;
        assert_int_equal(journal_commit(d->j, &d->err), 0);
        assert_int_equal(journal_last_seq(d->j), 15);
        assert_int_equal(journal_pending(d->j), 0);
        assert_memory_equal(&d->j->hash, &after.hash, sizeof(after.hash));
        assert_int_equal(d->j->segment_records, after.segment_records);
        assert_false(d->j->in_doubt);
        desk_write(d, 3);
        desk_assert_on_disk(d, 18);
        desk_assert_verifies(d);
}

static void full_quota_ends_when_old_segments_go(void **state)
{
        struct desk *d = *state;
        int r = 0;

        d->options = (struct journal_options){ .max_bytes = 400000, .keep_segments = 2, .keep_events = 10 };
        desk_start(d);
        for (int i = 0; i < 10000 && r == 0; i++) {
                desk_append(d, 10);
                r = journal_commit(d->j, &d->err);
        }
        assert_int_equal(r, -ENOSPC);
        uint64_t seq = journal_last_seq(d->j);
        assert_true(seq > 100);
        desk_assert_on_disk(d, (uint32_t) seq);

        /* The way back without room: forget what was never let out. The world is what the file says. */
        journal_discard(d->j);
        books_world_zero(d->world);
        assert_int_equal(journal_restore(d->j, d->world, books_step, NULL, &d->restored, &d->err), 0);
        assert_int_equal(d->restored.last_seq, seq);
        d->i = (uint32_t) seq;
        desk_assert_on_disk(d, d->i);
        desk_close(d);

        d->options.max_bytes = 4000000;
        desk_start(d);
        desk_snapshot(d);
        desk_write(d, 100);
        desk_assert_on_disk(d, d->i);
        desk_assert_verifies(d);
}

static void pending_records_have_a_limit(void **state)
{
        struct desk *d = *state;
        struct input input;
        int r = 0, n = 0;

        desk_start(d);
        books_story(0, &input);
        input.request.priority = 3;
        d->out->n = ACTIONS_MAX;
        for (uint32_t i = 0; i < ACTIONS_MAX; i++)
                books_action(8, &d->out->items[i]);
        for (; n < 1000 && r == 0; n++)
                r = journal_append(d->j, &input, d->out, 1, &d->err);
        if (r != -ENOBUFS)
                fail_msg("%d: %s", r, d->err.msg);
        assert_true(n > 20);
        journal_discard(d->j);
        assert_int_equal(journal_pending(d->j), 0);
        assert_int_equal(journal_commit(d->j, &d->err), 0);
}

/* A figure for people, not a test of time. */
static void commit_costs_about_one_commit_of_sqlite(void **state)
{
        struct desk *d = *state;
        sqlite3 *db = NULL;
        enum { N = 2000 };

        desk_start(d);
        uint64_t began_ns = clock_now_ns();
        for (int i = 0; i < N; i++)
                desk_write(d, 1);
        uint64_t ours_ns = (clock_now_ns() - began_ns) / N;

        char path[PATH_MAX];
        desk_path(path, "%s/plain.db", d->dir);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db,
                                      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                                      "CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB)",
                                      NULL, NULL, NULL),
                         SQLITE_OK);
        sqlite3_stmt *insert;
        assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO t (a) VALUES (zeroblob(400))", -1, &insert, NULL),
                         SQLITE_OK);
        began_ns = clock_now_ns();
        for (int i = 0; i < N; i++) {
                assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
                (void) sqlite3_reset(insert);
        }
        uint64_t plain_ns = (clock_now_ns() - began_ns) / N;
        (void) sqlite3_finalize(insert);
        (void) sqlite3_close(db);
        print_message("# one small record: %.1f us, a bare SQLite commit of the same size: %.1f us\n",
                      (double) ours_ns / 1e3, (double) plain_ns / 1e3);
}

static uint64_t size_of_file(const char *path)
{
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        return (uint64_t) st.st_size;
}

/* Moving the log into the file waits for the disk: whoever waited for that commit waited 20 ms longer. */
static void commits_leave_the_log_to_whoever_tidies(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        assert_int_equal(journal_tidy(d->j, &d->err), 0);
        uint64_t file_bytes = size_of_file(d->path);
        for (int i = 0; i < 1000; i++)
                desk_write(d, 1);
        assert_int_equal(size_of_file(d->path), file_bytes);
        assert_true(journal_wants_tidying(d->j));
        assert_int_equal(journal_tidy(d->j, &d->err), 0);
        assert_true(size_of_file(d->path) > file_bytes + 100000);
        assert_false(journal_wants_tidying(d->j));
}

int main(void)
{
#define journal_test(f) cmocka_unit_test_setup_teardown(f, desk_begin, desk_end)
        const struct CMUnitTest tests[] = {
                journal_test(new_journal_is_private_and_fresh),
                journal_test(restart_gives_the_same_books),
                journal_test(clean_end_needs_no_replay),
                journal_test(segments_are_pruned_and_what_stays_verifies),
                journal_test(core_that_decides_otherwise_is_named_by_record),
                journal_test(calls_in_the_wrong_order_are_refused_in_words),
                journal_test(F79_wall_clock_that_goes_back_changes_no_order),
                journal_test(events_are_found_by_id_lease_and_direction),
                journal_test(F73_lock_of_another_writer_gives_busy_and_loses_nothing),
                journal_test(other_program_that_wrote_makes_the_journal_stale),
                journal_test(F76_full_disk_at_every_write_loses_and_doubles_nothing),
                journal_test(commit_that_failed_and_is_there_all_the_same_is_not_written_twice),
                journal_test(full_quota_ends_when_old_segments_go),
                journal_test(pending_records_have_a_limit),
                journal_test(commits_leave_the_log_to_whoever_tidies),
                journal_test(commit_costs_about_one_commit_of_sqlite),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
