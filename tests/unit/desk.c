/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "store/codec_world.h"

static const char boot_id[] = "6e2a0d5c-7b1f-4b7e-9d43-0c2f5a1b8e77";

int desk_begin(void **state)
{
        struct desk *d = calloc(1, sizeof(*d));
        if (!d)
                return -1;
        desk_path(d->dir, "/tmp/lessor-journal-XXXXXX");
        if (!mkdtemp(d->dir))
                return -1;
        desk_path(d->path, "%s/journal.db", d->dir);
        d->world = books_world_new();
        d->out = calloc(1, sizeof(*d->out));
        *state = d;
        return d->out ? 0 : -1;
}

int desk_end(void **state)
{
        struct desk *d = *state;
        DIR *dir = opendir(d->dir);
        struct dirent *e;
        char path[PATH_MAX];

        journal_close(d->j);
        while (dir && (e = readdir(dir)))
                if (e->d_name[0] != '.') {
                        desk_path(path, "%s/%s", d->dir, e->d_name);
                        if (unlink(path) < 0)
                                (void) rmdir(path);
                }
        if (dir)
                (void) closedir(dir);
        (void) rmdir(d->dir);
        books_world_free(d->world);
        free(d->out);
        free(d);
        return 0;
}

static void *core_of(struct desk *d)
{
        return d->differs_at ? &d->differs_at : NULL;
}

void desk_open(struct desk *d)
{
        struct config config;

        books_world_zero(d->world);
        if (journal_open(&d->j, d->path, &d->options, &d->err) < 0)
                fail_msg("journal_open: %s", d->err.msg);
        if (journal_restore(d->j, d->world, books_step, core_of(d), &d->restored, &d->err) < 0)
                fail_msg("journal_restore: %s", d->err.msg);
        if (!d->restored.fresh)
                return;
        config_defaults(&config);
        world_init(d->world, &config);
}

void desk_close(struct desk *d)
{
        journal_close(d->j);
        d->j = NULL;
}

void desk_snapshot(struct desk *d)
{
        if (journal_snapshot(d->j, d->world, boot_id, 1700000000000 + d->i, &d->err) < 0)
                fail_msg("journal_snapshot: %s", d->err.msg);
}

void desk_start(struct desk *d)
{
        desk_open(d);
        desk_snapshot(d);
}

void desk_append(struct desk *d, uint32_t n)
{
        for (; n > 0; n--, d->i++) {
                struct input input;

                books_story(d->i, &input);
                books_step(core_of(d), d->world, &input, d->out);
                if (journal_append(d->j, &input, d->out, 1700000000000 + d->i, &d->err) < 0)
                        fail_msg("journal_append: %s", d->err.msg);
        }
}

void desk_write(struct desk *d, uint32_t n)
{
        desk_append(d, n);
        if (journal_commit(d->j, &d->err) < 0)
                fail_msg("journal_commit: %s", d->err.msg);
}

uint8_t *desk_books(const struct world *world, size_t *ret_n)
{
        size_t size = codec_world_size_max(world);
        uint8_t *bytes = malloc(size);

        assert_non_null(bytes);
        assert_int_equal(codec_world_encode(world, bytes, size, ret_n, NULL), 0);
        return bytes;
}

void desk_assert_same_books(const struct world *a, const struct world *b)
{
        size_t n_a, n_b;
        uint8_t *bytes_a = desk_books(a, &n_a), *bytes_b = desk_books(b, &n_b);

        assert_int_equal(n_a, n_b);
        assert_memory_equal(bytes_a, bytes_b, n_a);
        free(bytes_a);
        free(bytes_b);
}

void desk_assert_on_disk(const struct desk *d, uint32_t n)
{
        struct world *told = books_world_new(), *read = books_world_new();
        struct journal_options options = { .read_only = true };
        struct journal_restored restored;
        struct config config;
        struct journal *j;
        struct error err;
        struct actions *out = calloc(1, sizeof(*out));

        assert_non_null(out);
        config_defaults(&config);
        world_init(told, &config);
        for (uint32_t i = 0; i < n; i++) {
                struct input input;
                books_story(i, &input);
                books_step(NULL, told, &input, out);
        }
        if (journal_open(&j, d->path, &options, &err) < 0)
                fail_msg("journal_open: %s", err.msg);
        assert_int_equal(journal_restore(j, read, books_step, NULL, &restored, &err), 0);
        assert_false(restored.degraded);
        assert_true(restored.agreed);
        assert_int_equal(restored.last_seq, n);
        desk_assert_same_books(told, read);
        journal_close(j);
        free(out);
        books_world_free(told);
        books_world_free(read);
}

void desk_assert_verifies(struct desk *d)
{
        struct journal_verified v;

        assert_int_equal(journal_verify(d->j, &v, &d->err), 0);
        if (!v.ok)
                fail_msg("journal_verify: %s", v.words);
}

static sqlite3 *raw_open(const char *path)
{
        sqlite3 *db = NULL;

        assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
        return db;
}

void desk_sql(const struct desk *d, const char *sql)
{
        sqlite3 *db = raw_open(d->path);
        char *words = NULL;

        if (sqlite3_exec(db, sql, NULL, NULL, &words) != SQLITE_OK)
                fail_msg("%s: %s", sql, words);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

uint64_t desk_sql_u64(const struct desk *d, const char *sql)
{
        sqlite3 *db = raw_open(d->path);
        sqlite3_stmt *stmt = NULL;

        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        uint64_t v = (uint64_t) sqlite3_column_int64(stmt, 0);
        (void) sqlite3_finalize(stmt);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        return v;
}

uint8_t *desk_read(const char *path, size_t *ret_n)
{
        struct stat st;
        FILE *f = fopen(path, "rb");

        *ret_n = 0;
        if (!f)
                return NULL;
        assert_int_equal(fstat(fileno(f), &st), 0);
        uint8_t *data = malloc((size_t) st.st_size + 1);
        assert_non_null(data);
        *ret_n = fread(data, 1, (size_t) st.st_size, f);
        (void) fclose(f);
        return data;
}

void desk_write_file(const char *path, const void *data, size_t n)
{
        FILE *f = fopen(path, "wb");

        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
}

const char *desk_copy(const struct desk *d, const char *name, char buf[PATH_MAX])
{
        static const char *const suffixes[] = { "", "-wal", "-shm" };
        char from[PATH_MAX], to[PATH_MAX];

        for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
                size_t n;
                desk_path(from, "%s%s", d->path, suffixes[i]);
                desk_path(to, "%s/%s%s", d->dir, name, suffixes[i]);
                uint8_t *data = desk_read(from, &n);
                (void) unlink(to);
                if (data)
                        desk_write_file(to, data, n);
                free(data);
        }
        assert_true(snprintf(buf, PATH_MAX, "%s/%s", d->dir, name) < PATH_MAX);
        return buf;
}

unsigned desk_count(const struct desk *d, const char *part)
{
        DIR *dir = opendir(d->dir);
        struct dirent *e;
        unsigned n = 0;

        assert_non_null(dir);
        while ((e = readdir(dir)))
                n += strstr(e->d_name, part) != NULL;
        (void) closedir(dir);
        return n;
}
