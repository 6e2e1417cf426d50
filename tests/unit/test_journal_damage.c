/* SPDX-License-Identifier: Apache-2.0 */
/* The journal after what must not happen: edited rows, broken pages, a newer program's file, death in the middle. */
#include "desk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- edited rows (S27) ---- */

enum bad { BAD_RECORD, BAD_SEGMENT, BAD_EVENT };

static void S27_verify_names_every_edited_row(void **state)
{
        struct desk *d = *state;
        int rows_failed = 0;
        static const struct {
                const char *name;
                const char *sql;
                enum bad bad;
                uint64_t at;
        } rows[] = {
                { "a bit in an input",
                  "UPDATE record SET input = CAST(substr(input, 1, 9) || x'01' || substr(input, 11) AS BLOB) WHERE seq "
                  "= 17",
                  BAD_RECORD, 17 },
                { "a bit in actions",
                  "UPDATE record SET actions = CAST(substr(actions, 1, 20) || x'7f' || substr(actions, 22) AS BLOB) "
                  "WHERE seq = 18",
                  BAD_RECORD, 18 },
                { "a hash", "UPDATE record SET hash = zeroblob(32) WHERE seq = 19", BAD_RECORD, 19 },
                { "a wall time", "UPDATE record SET wall_ms = wall_ms + 1 WHERE seq = 1", BAD_RECORD, 1 },
                { "a kind", "UPDATE record SET kind = 3 WHERE seq = 30", BAD_RECORD, 30 },
                { "two rows exchanged",
                  "UPDATE record SET seq = 1000 WHERE seq = 5; UPDATE record SET seq = 5 WHERE seq = 6;"
                  "UPDATE record SET seq = 6 WHERE seq = 1000",
                  BAD_RECORD, 5 },
                { "a row gone", "DELETE FROM record WHERE seq = 8", BAD_RECORD, 8 },
                { "the end of a segment gone", "DELETE FROM record WHERE seq = 20", BAD_RECORD, 20 },
                { "the newest records gone", "DELETE FROM record WHERE seq > 28", BAD_EVENT, 39 },
                { "a row of another segment", "UPDATE record SET segment = 1 WHERE seq = 25", BAD_RECORD, 25 },
                { "a row in front of all", "DELETE FROM segment WHERE id = 1", BAD_RECORD, 1 },
                { "a bit in a snapshot",
                  "UPDATE segment SET snapshot = CAST(substr(snapshot, 1, 9) || x'ee' || substr(snapshot, 11) AS BLOB) "
                  "WHERE id = 2",
                  BAD_SEGMENT, 2 },
                { "a boot id", "UPDATE segment SET boot_id = 'mine' WHERE id = 1", BAD_SEGMENT, 1 },
                { "a core version", "UPDATE segment SET core_version = '9' WHERE id = 2", BAD_SEGMENT, 2 },
                { "the hash before a segment", "UPDATE segment SET before = zeroblob(32) WHERE id = 2", BAD_SEGMENT,
                  2 },
                { "an event's action",
                  "UPDATE event SET action = CAST(substr(action, 1, 9) || x'55' || substr(action, 11) AS BLOB) WHERE "
                  "id = 7",
                  BAD_EVENT, 7 },
                { "an event's lease", "UPDATE event SET lease_id = 99 WHERE id = 8", BAD_EVENT, 8 },
                { "an event's uid", "UPDATE event SET uid = 0 WHERE id = 8", BAD_EVENT, 8 },
                { "an event's time", "UPDATE event SET wall_ms = 5 WHERE id = 8", BAD_EVENT, 8 },
                { "an event gone", "DELETE FROM event WHERE id = 10", BAD_EVENT, 11 },
                { "the first event gone", "DELETE FROM event WHERE id = 2", BAD_EVENT, 3 },
                { "the newest event gone", "DELETE FROM event WHERE id = 40", BAD_EVENT, 40 },
                { "all events gone", "DELETE FROM event", BAD_EVENT, 2 },
        };

        desk_start(d);
        desk_write(d, 20);
        desk_snapshot(d);
        desk_write(d, 10);
        desk_assert_verifies(d);
        assert_int_equal(journal_tidy(d->j, &d->err), 0); /* events of records that are cut off tell on them */
        desk_assert_verifies(d);
        desk_close(d);

        size_t n;
        uint8_t *good = desk_read(d->path, &n);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct journal_verified v;
                desk_write_file(d->path, good, n);
                desk_sql(d, rows[i].sql);
                assert_int_equal(journal_open(&d->j, d->path, NULL, &d->err), 0);
                assert_int_equal(journal_verify(d->j, &v, &d->err), 0);
                desk_close(d);
                uint64_t at = rows[i].bad == BAD_RECORD    ? v.bad_seq
                              : rows[i].bad == BAD_SEGMENT ? v.bad_segment
                                                           : v.bad_event;
                row_check(rows[i].name, !v.ok && v.words[0]);
                row_check(rows[i].name, at == rows[i].at);
                if (at != rows[i].at)
                        print_message("# %s: %s\n", rows[i].name, v.words);
        }
        free(good);
        rows_end();
}

/* Where the evidence lies, as the words say. */
static const char *kept_as(const struct desk *d)
{
        const char *at = strstr(journal_degraded(d->j), "kept as ");

        assert_non_null(at);
        return at + strlen("kept as ");
}

static void S27_record_that_was_edited_ends_what_is_provable(void **state)
{
        struct desk *d = *state;
        struct world *told = books_world_new();

        desk_start(d);
        desk_write(d, 20);
        desk_snapshot(d);
        desk_write(d, 5);
        memcpy(told, d->world, sizeof(*told)); /* after record 25 */
        desk_write(d, 10);
        uint64_t next_action_id = d->world->next_action_id, next_lease_id = d->world->next_lease_id;
        desk_close(d);
        desk_sql(d, "UPDATE record SET input = zeroblob(10) WHERE seq = 26");
        size_t n_old;
        uint8_t *old = desk_read(d->path, &n_old);

        desk_open(d);
        assert_true(d->restored.degraded);
        assert_false(d->restored.fresh);
        assert_int_equal(d->restored.last_seq, 25);
        assert_int_equal(d->restored.n_records, 5);
        assert_int_equal(d->restored.n_lost, 10);
        assert_non_null(strstr(journal_degraded(d->j), "record 26"));
        assert_non_null(strstr(journal_degraded(d->j), ".aside-"));
        /* Nothing is given out twice: ids go on where the damaged file had come to. */
        assert_int_equal(d->world->next_action_id, next_action_id);
        assert_int_equal(d->world->next_lease_id, next_lease_id);
        told->next_action_id = next_action_id;
        told->next_lease_id = next_lease_id;
        desk_assert_same_books(d->world, told);

        /* The evidence is whole. */
        size_t n_aside;
        uint8_t *aside = desk_read(kept_as(d), &n_aside);
        assert_non_null(aside);
        assert_int_equal(n_aside, n_old);
        assert_memory_equal(aside, old, n_old);
        free(aside);
        free(old);

        desk_snapshot(d);
        desk_write(d, 10);
        assert_int_equal(journal_last_seq(d->j), 45); /* the sequence skips what is lost too */
        desk_assert_verifies(d);
        desk_close(d);
        desk_start(d);
        assert_false(d->restored.degraded); /* the fresh file is sound */
        assert_int_equal(d->restored.last_seq, 45);
        books_world_free(told);
}

static void S27_snapshot_that_was_edited_is_rebuilt_from_the_segment_before(void **state)
{
        struct desk *d = *state;
        struct world *told = books_world_new();

        desk_start(d);
        desk_write(d, 20);
        desk_snapshot(d);
        desk_write(d, 7);
        desk_snapshot(d);
        desk_write(d, 9);
        memcpy(told, d->world, sizeof(*told));
        desk_close(d);
        desk_sql(d, "UPDATE segment SET snapshot = zeroblob(100) WHERE id > 1");

        desk_open(d);
        assert_true(d->restored.degraded);
        assert_true(d->restored.agreed);
        assert_int_equal(d->restored.last_seq, 36);
        assert_int_equal(d->restored.n_records, 36);
        assert_int_equal(d->restored.n_lost, 0);
        desk_assert_same_books(d->world, told);
        books_world_free(told);
}

static void journal_without_a_good_snapshot_begins_anew_with_ids_that_go_on(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_write(d, 30);
        uint64_t next_action_id = d->world->next_action_id, next_lease_id = d->world->next_lease_id;
        desk_close(d);
        desk_sql(d, "UPDATE segment SET snapshot = x'00'");
        desk_open(d);
        assert_true(d->restored.fresh && d->restored.degraded);
        assert_int_equal(d->restored.n_lost, 30);
        assert_int_equal(d->restored.next_action_id, next_action_id);
        assert_int_equal(d->restored.next_lease_id, next_lease_id);
        assert_int_equal(d->world->next_lease_id, 1); /* desk_open's world_init */
        desk_snapshot(d);
        desk_write(d, 3);
        assert_int_equal(journal_last_seq(d->j), 33);
        desk_assert_verifies(d);
}

static void reading_only_moves_nothing_aside(void **state)
{
        struct desk *d = *state;
        struct stat before, after;

        desk_start(d);
        desk_write(d, 30);
        desk_close(d);
        desk_sql(d, "UPDATE record SET input = zeroblob(10) WHERE seq = 26");
        assert_int_equal(stat(d->path, &before), 0);
        d->options.read_only = true;
        desk_open(d);
        assert_true(d->restored.degraded);
        assert_int_equal(d->restored.last_seq, 25);
        assert_non_null(strstr(journal_degraded(d->j), "record 26"));
        assert_int_equal(stat(d->path, &after), 0);
        assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
        assert_int_equal(desk_count(d, ".aside-"), 0);
}

/* ---- broken files (F75) ---- */

/* F75: the first page is overwritten beneath a log that was never checkpointed. */
static void F75_broken_first_page_moves_the_file_aside_whole(void **state)
{
        struct desk *d = *state;
        static const char *const suffixes[] = { "", "-wal", "-shm" };
        char path[PATH_MAX], name[PATH_MAX];
        uint8_t junk[4096];

        desk_start(d);
        desk_write(d, 30);
        desk_copy(d, "copy.db", path);
        desk_close(d);
        memset(junk, 0xa5, sizeof(junk));
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, junk, sizeof(junk), 0), sizeof(junk));
        (void) close(fd);
        desk_path(d->path, "%s", path);
        uint8_t *data[3];
        size_t n[3];
        for (size_t i = 0; i < 3; i++) {
                desk_path(name, "%s%s", path, suffixes[i]);
                data[i] = desk_read(name, &n[i]);
                assert_non_null(data[i]);
        }

        desk_open(d);
        assert_true(d->restored.fresh && d->restored.degraded);
        assert_non_null(strstr(journal_degraded(d->j), "damaged"));
        for (size_t i = 0; i < 3; i++) {
                size_t n_now;
                desk_path(name, "%s%s", kept_as(d), suffixes[i]);
                uint8_t *now = desk_read(name, &n_now);
                assert_non_null(now);
                assert_int_equal(n_now, n[i]);
                assert_memory_equal(now, data[i], n[i]);
                free(now);
                free(data[i]);
        }
        desk_snapshot(d);
        desk_write(d, 5);
        desk_close(d);
        desk_open(d);
        assert_false(d->restored.degraded);
        assert_int_equal(d->restored.last_seq, 5);
}

/* Whatever page breaks: never a crash, never other books in silence. */
static void F75_every_broken_page_is_noticed_or_does_not_matter(void **state)
{
        struct desk *d = *state;
        struct world *told = books_world_new();
        unsigned n_noticed = 0;
        size_t n;

        desk_start(d);
        desk_write(d, 60);
        desk_snapshot(d);
        desk_write(d, 60);
        memcpy(told, d->world, sizeof(*told));
        desk_close(d);
        uint8_t *good = desk_read(d->path, &n);
        for (size_t page = 0; page < n / 4096; page++)
                for (int how = 0; how < 2; how++) {
                        uint8_t *bad = malloc(n);
                        assert_non_null(bad);
                        memcpy(bad, good, n);
                        if (how == 0)
                                memset(bad + page * 4096, 0xff, 4096);
                        else
                                bad[page * 4096 + 2000] ^= 4; /* one bit: SQLite itself often cannot know */
                        desk_write_file(d->path, bad, n);
                        free(bad);
                        desk_open(d);
                        n_noticed += d->restored.degraded;
                        if (!d->restored.degraded) {
                                assert_int_equal(d->restored.last_seq, 120);
                                desk_assert_same_books(d->world, told);
                        } else if (!d->restored.fresh) {
                                assert_true(d->restored.last_seq <= 120);
                        }
                        desk_close(d);
                }
        assert_true(n_noticed > n / 4096); /* whole pages all, single bits some */
        free(good);
        books_world_free(told);
}

static void F75_empty_main_file_beside_a_log_is_damage_not_a_new_start(void **state)
{
        struct desk *d = *state;
        char path[PATH_MAX];

        desk_start(d);
        desk_write(d, 30);
        desk_copy(d, "copy.db", path);
        desk_close(d);
        desk_path(d->path, "%s", path);
        assert_int_equal(truncate(path, 0), 0);
        desk_open(d);
        assert_true(d->restored.fresh && d->restored.degraded);
        assert_int_equal(desk_count(d, ".aside-"), 3);
        desk_close(d);

        assert_int_equal(truncate(path, 0), 0); /* alone: what is left of a creation that died */
        desk_open(d);
        assert_true(d->restored.fresh);
        assert_false(d->restored.degraded);
}

/* ---- files of others ---- */

static void file_is_refused_untouched(struct desk *d, int code)
{
        static const char *const suffixes[] = { "", "-wal" };
        char name[PATH_MAX];
        uint8_t *before[2];
        size_t n[2];

        for (size_t i = 0; i < 2; i++) {
                desk_path(name, "%s%s", d->path, suffixes[i]);
                before[i] = desk_read(name, &n[i]);
        }
        assert_int_equal(journal_open(&d->j, d->path, NULL, &d->err), code);
        assert_true(d->err.msg[0] != '\0');
        for (size_t i = 0; i < 2; i++) {
                size_t n_now;
                desk_path(name, "%s%s", d->path, suffixes[i]);
                uint8_t *now = desk_read(name, &n_now);
                assert_int_equal(n_now, n[i]);
                assert_true((now == NULL) == (before[i] == NULL));
                if (now)
                        assert_memory_equal(now, before[i], n[i]);
                free(now);
                free(before[i]);
        }
        assert_int_equal(desk_count(d, ".aside-"), 0);
}

static void newer_journal_is_refused_untouched(void **state)
{
        struct desk *d = *state;
        char path[PATH_MAX], own[64];

        desk_start(d);
        desk_write(d, 30);
        desk_close(d);
        (void) snprintf(own, sizeof(own), "PRAGMA user_version = %" PRIu64, desk_sql_u64(d, "PRAGMA user_version"));
        desk_sql(d, "PRAGMA user_version = 999999");
        file_is_refused_untouched(d, -EPROTONOSUPPORT);
        assert_non_null(strstr(d->err.msg, "newer lessor"));
        desk_sql(d, own);

        /* The number stands in the log alone, and there is a log to lose. */
        desk_open(d);
        desk_sql(d, "PRAGMA user_version = 999999");
        desk_copy(d, "copy.db", path);
        desk_close(d);
        desk_path(d->path, "%s", path);
        file_is_refused_untouched(d, -EPROTONOSUPPORT);
}

static void journal_in_a_form_nothing_converts_is_moved_aside(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_close(d);
        desk_sql(d, "PRAGMA user_version = 1000");
        desk_open(d);
        assert_true(d->restored.fresh && d->restored.degraded);
        assert_non_null(strstr(journal_degraded(d->j), "the format 1000"));
}

static void database_of_another_program_is_refused_untouched(void **state)
{
        struct desk *d = *state;
        sqlite3 *db;

        assert_int_equal(sqlite3_open(d->path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, "CREATE TABLE photos (id)", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        file_is_refused_untouched(d, -EPROTOTYPE);
        desk_sql(d, "PRAGMA application_id = 77");
        file_is_refused_untouched(d, -EPROTOTYPE);
        assert_int_equal(unlink(d->path), 0);

        assert_int_equal(journal_open(&d->j, "/nonexistent/journal.db", NULL, &d->err), -ENOENT);
        assert_int_equal(journal_open(&d->j, d->path, &(struct journal_options){ .read_only = true }, &d->err),
                         -ENOENT);
}

/* F75, S12: what is no file is moved aside unopened: a pipe would hold the daemon up, a link lead it elsewhere. */
static void F75_S12_folder_pipe_or_link_in_its_place_is_moved_aside(void **state)
{
        struct desk *d = *state;
        char other[PATH_MAX];
        struct stat st;
        unsigned n;

        desk_path(other, "%s/other.txt", d->dir);
        desk_write_file(other, "precious", 8);
        for (n = 1; n <= 3; n++) {
                if (n == 1)
                        assert_int_equal(mkdir(d->path, 0700), 0);
                else if (n == 2)
                        assert_int_equal(mkfifo(d->path, 0600), 0);
                else
                        assert_int_equal(symlink(other, d->path), 0);
                desk_open(d);
                assert_true(d->restored.fresh && d->restored.degraded);
                assert_non_null(strstr(journal_degraded(d->j), "not a file"));
                assert_int_equal(desk_count(d, ".aside-"), n);
                desk_snapshot(d);
                desk_write(d, 3);
                desk_close(d);
                d->i = 0;
                assert_int_equal(unlink(d->path), 0);
        }
        assert_int_equal(stat(other, &st), 0);
        assert_int_equal(st.st_size, 8);
}

/* ---- files that change under a running daemon (F75) ---- */

enum {
        RUNNING_MAIN_GONE,
        RUNNING_LOG_GONE,
        RUNNING_MAIN_EMPTY,
        RUNNING_LOG_EMPTY,
        RUNNING_REPLACED,
        RUNNING_FOLDER,
        RUNNING_N
};

static void change_under_it(struct desk *d, int what)
{
        char name[PATH_MAX];

        desk_path(name, "%s%s", d->path, what == RUNNING_LOG_GONE || what == RUNNING_LOG_EMPTY ? "-wal" : "");
        if (what == RUNNING_MAIN_EMPTY || what == RUNNING_LOG_EMPTY) {
                assert_int_equal(truncate(name, 0), 0);
                return;
        }
        assert_int_equal(unlink(name), 0);
        if (what == RUNNING_REPLACED)
                desk_write_file(name, "of somebody else", 16);
        if (what == RUNNING_FOLDER)
                assert_int_equal(mkdir(name, 0700), 0);
}

/* F75: without a look, SQLite would go on writing into what no name leads to, and each commit would be acknowledged. */
static void F75_journal_that_goes_while_it_is_in_use_is_begun_anew_from_the_world(void **state)
{
        struct desk *d = *state;

        for (int what = 0; what < RUNNING_N; what++) {
                struct world *told = books_world_new();
                uint64_t seq = d->i;

                desk_start(d);
                desk_write(d, 20);
                memcpy(told, d->world, sizeof(*told));
                seq = journal_last_seq(d->j);
                change_under_it(d, what);

                desk_append(d, 5);
                bool is_emptied = what == RUNNING_MAIN_EMPTY || what == RUNNING_LOG_EMPTY;
                int r = is_emptied ? journal_look(d->j, &d->err) : journal_commit(d->j, &d->err);
                if (r != -ENOENT)
                        fail_msg("%d: %d", what, r);
                assert_non_null(strstr(d->err.msg, "while it was in use"));
                journal_discard(d->j);
                books_world_zero(d->world); /* as the daemon does: the world as of what was stored */
                r = journal_restore(d->j, d->world, books_step, NULL, &d->restored, &d->err);
                if (r < 0)
                        fail_msg("%d: %s", what, d->err.msg);
                desk_assert_same_books(d->world, told); /* what is still open is still whole */
                assert_int_equal(d->restored.last_seq, seq);
                assert_int_equal(journal_begin_anew(d->j, &d->err), 0);
                assert_non_null(journal_degraded(d->j));
                desk_snapshot(d);
                memcpy(told, d->world, sizeof(*told));
                desk_close(d);

                desk_open(d);
                assert_false(d->restored.degraded);
                desk_assert_same_books(d->world, told);
                desk_assert_verifies(d);
                desk_close(d);
                books_world_free(told);
        }
}

/* What was lost cannot be read again by who goes on: nothing is moved under him, a whole start finds it and says so. */
static void damage_that_is_found_while_it_is_in_use_takes_a_new_start(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_write(d, 20);
        desk_sql(d, "UPDATE record SET input = zeroblob(10) WHERE seq = 16");
        books_world_zero(d->world);
        assert_int_equal(journal_restore(d->j, d->world, books_step, NULL, &d->restored, &d->err), -EBADMSG);
        assert_non_null(strstr(d->err.msg, "record 16"));
        assert_int_equal(desk_count(d, ".aside-"), 0);
        desk_close(d);
        desk_open(d);
        assert_true(d->restored.degraded);
        assert_int_equal(d->restored.last_seq, 15);
        assert_true(desk_count(d, ".aside-") > 0);
}

/* F75: SQLite passes over a log whose head is not one, and what was not in the main file yet would be gone in silence. */
static void F75_log_that_is_garbage_is_damage(void **state)
{
        struct desk *d = *state;
        char path[PATH_MAX], name[PATH_MAX + 8];
        size_t n;

        desk_start(d);
        desk_write(d, 30);
        desk_copy(d, "copy.db", path);
        desk_close(d);
        desk_path(d->path, "%s", path);
        desk_path(name, "%s-wal", path);
        uint8_t *log = desk_read(name, &n);
        assert_true(log && n > 4096);
        log[3] ^= 0x40;
        desk_write_file(name, log, n);
        desk_open(d);
        assert_true(d->restored.degraded && d->restored.fresh);
        assert_non_null(strstr(journal_degraded(d->j), "write-ahead log is damaged"));
        assert_int_equal(desk_count(d, ".aside-"), 3);
        desk_close(d);
        free(log);
}

/* ---- death (F77) ---- */

/* Writes one record after the other and says so, until it is killed. */
static void child_write(struct desk *d, int ack_fd)
{
        desk_start(d);
        d->i = (uint32_t) d->restored.last_seq;
        for (;;) {
                if (d->i % 40 == 39)
                        desk_snapshot(d);
                desk_write(d, 1 + d->i % 3);
                uint64_t seq = journal_last_seq(d->j);
                if (write(ack_fd, &seq, sizeof(seq)) != sizeof(seq))
                        _exit(1);
        }
}

static uint64_t last_acknowledged(int fd)
{
        uint64_t seq = 0, v;

        while (read(fd, &v, sizeof(v)) == sizeof(v))
                seq = v;
        return seq;
}

/* F77: kill -9 a hundred times in the middle of writing. What was acknowledged is there, nothing is there by half. */
static void F77_acknowledged_records_survive_kill_9(void **state)
{
        struct desk *d = *state;
        unsigned seed = 12345;
        uint64_t n_acknowledged = 0, seq_before = 0;

        d->options = (struct journal_options){ .keep_events = 500 };
        for (int round = 0; round < 100; round++) {
                int ends[2];
                assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
                pid_t pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        child_write(d, ends[1]);
                        _exit(1);
                }
                (void) close(ends[1]);
                /* Half of them anywhere, also while it still opens; the others once it writes, however long that takes here. */
                struct pollfd first = { .fd = ends[0], .events = POLLIN };
                if (round % 2 == 1)
                        assert_int_equal(poll(&first, 1, 60000), 1);
                seed = seed * 1103515245 + 12345;
                struct timespec wait = { .tv_nsec = 1000000 + (seed >> 8) % 25000000 };
                (void) nanosleep(&wait, NULL);
                (void) kill(pid, SIGKILL);
                assert_int_equal(waitpid(pid, NULL, 0), pid);
                uint64_t acknowledged = last_acknowledged(ends[0]);
                (void) close(ends[0]);

                desk_open(d);
                if (d->restored.degraded)
                        fail_msg("round %d: %s", round, journal_degraded(d->j));
                assert_true(d->restored.agreed);
                assert_true(d->restored.last_seq >= acknowledged);
                assert_true(d->restored.last_seq >= seq_before);
                desk_assert_verifies(d);
                desk_close(d);
                if (round % 10 == 9 && !d->restored.fresh)
                        desk_assert_on_disk(d, (uint32_t) d->restored.last_seq);
                n_acknowledged += acknowledged > seq_before ? acknowledged - seq_before : 0;
                seq_before = d->restored.last_seq;
        }
        print_message("# %llu acknowledged records, none lost\n", (unsigned long long) n_acknowledged);
        assert_true(n_acknowledged >= 50);
}

/* F77, the power cut: the log ends anywhere. What is left is a story from the beginning, shorter, never with a hole. */
static void F77_log_that_ends_anywhere_leaves_whole_records_from_the_start(void **state)
{
        struct desk *d = *state;
        struct desk copy = *d;
        char path[PATH_MAX], wal[PATH_MAX + 8];
        uint64_t seq_before = 0;
        unsigned n_lengths = 0;
        size_t n;

        copy.world = books_world_new();
        copy.out = calloc(1, sizeof(*copy.out));
        assert_non_null(copy.out);
        desk_start(d);
        for (int i = 0; i < 12; i++)
                desk_write(d, 1 + (uint32_t) i % 3);
        desk_copy(d, "copy.db", path);
        desk_path(copy.path, "%s", path);
        desk_path(wal, "%s-wal", path);
        uint8_t *whole = desk_read(wal, &n);
        assert_true(n > 20000);
        for (size_t cut = 0; cut <= n; cut += cut + 1009 > n && cut < n ? n - cut : 1009) {
                desk_copy(d, "copy.db", path);
                desk_write_file(wal, whole, cut);
                char shm[PATH_MAX + 8];
                desk_path(shm, "%s-shm", path);
                (void) unlink(shm);
                desk_open(&copy);
                assert_false(copy.restored.degraded);
                assert_true(copy.restored.agreed);
                assert_true(copy.restored.last_seq >= seq_before);
                n_lengths += copy.restored.last_seq > seq_before;
                seq_before = copy.restored.last_seq;
                desk_assert_verifies(&copy);
                desk_close(&copy);
                if (!copy.restored.fresh && seq_before > 0)
                        desk_assert_on_disk(&copy, (uint32_t) seq_before);
        }
        assert_int_equal(seq_before, d->i);
        assert_true(n_lengths >= 10); /* nearly every commit was the last one somewhere */
        free(whole);
        free(copy.out);
        books_world_free(copy.world);
}

int main(void)
{
#define journal_test(f) cmocka_unit_test_setup_teardown(f, desk_begin, desk_end)
        const struct CMUnitTest tests[] = {
                journal_test(S27_verify_names_every_edited_row),
                journal_test(S27_record_that_was_edited_ends_what_is_provable),
                journal_test(S27_snapshot_that_was_edited_is_rebuilt_from_the_segment_before),
                journal_test(journal_without_a_good_snapshot_begins_anew_with_ids_that_go_on),
                journal_test(reading_only_moves_nothing_aside),
                journal_test(F75_broken_first_page_moves_the_file_aside_whole),
                journal_test(F75_every_broken_page_is_noticed_or_does_not_matter),
                journal_test(F75_empty_main_file_beside_a_log_is_damage_not_a_new_start),
                journal_test(newer_journal_is_refused_untouched),
                journal_test(journal_in_a_form_nothing_converts_is_moved_aside),
                journal_test(database_of_another_program_is_refused_untouched),
                journal_test(F75_S12_folder_pipe_or_link_in_its_place_is_moved_aside),
                journal_test(F75_journal_that_goes_while_it_is_in_use_is_begun_anew_from_the_world),
                journal_test(damage_that_is_found_while_it_is_in_use_takes_a_new_start),
                journal_test(F75_log_that_is_garbage_is_damage),
                journal_test(F77_acknowledged_records_survive_kill_9),
                journal_test(F77_log_that_ends_anywhere_leaves_whole_records_from_the_start),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
