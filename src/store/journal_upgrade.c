/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal of an older lessor goes on as ours: its blobs stay as they are (the codecs read them), only tables change. What
 * the older program needs to go back is kept beside it first, whole: PATH.vFORMAT, with the number that program names when
 * it refuses the newer file.
 */
#include "store/journal_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>
#include "store/aside.h"

bool journal_format_is_readable(uint64_t format)
{
        uint64_t tables = format / 1000, codec = format % 1000;

        return tables >= JOURNAL_TABLES_VERSION_OLDEST && tables <= JOURNAL_TABLES_VERSION &&
               codec >= CODEC_VERSION_OLDEST && codec <= CODEC_VERSION;
}

static int copy_into(struct journal *j, const char *path, struct error *err)
{
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(j->db, "VACUUM INTO ?1", -1, &stmt, NULL);
        if (rc != SQLITE_OK)
                return sql_error(j->db, rc, err, "keeping a copy of the journal");
        sql_bind_text(stmt, 1, path);
        int r = sql_step(j->db, stmt, "keeping a copy of the journal", err);
        (void) sqlite3_finalize(stmt);
        return r;
}

static int copy_keep(struct journal *j, uint64_t format, char *ret_name, size_t name_size, struct error *err)
{
        char fresh[PATH_MAX];

        int n = snprintf(ret_name, name_size, "%s.v%llu", j->path, (unsigned long long) format);
        if (n < 0 || (size_t) n >= name_size ||
            (size_t) snprintf(fresh, sizeof(fresh), "%s.new", ret_name) >= sizeof(fresh))
                return error_set(err, ENAMETOOLONG, "the name of a copy of %s is too long", j->path);
        (void) unlink(fresh); /* of an attempt that did not end */
        auto_close int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return error_errno(err, errno, "creating %s", fresh);
        int r = copy_into(j, fresh, err);
        if (r == 0 && fsync(fd) < 0)
                r = error_errno(err, errno, "writing %s", fresh);
        if (r == 0 && rename(fresh, ret_name) < 0)
                r = error_errno(err, errno, "renaming %s to %s", fresh, ret_name);
        if (r < 0)
                (void) unlink(fresh);
        else
                aside_directory_sync(j->path);
        return r;
}

static int tables_change(struct journal *j, uint64_t tables, struct error *err)
{
        char sql[96];

        int r = sql_exec(j->db, "BEGIN IMMEDIATE", err);
        if (r == 0 && tables < 2) /* until then each commit wrote its events itself */
                r = sql_exec(j->db,
                             "ALTER TABLE keep ADD COLUMN event_seq INTEGER NOT NULL DEFAULT 0 CHECK (event_seq >= 0);"
                             "UPDATE keep SET event_seq = (SELECT coalesce(max(seq), 0) FROM record)",
                             err);
        if (r == 0 && tables < 3)
                r = sql_exec(j->db, journal_audit_schema, err);
        if (r == 0) {
                (void) snprintf(sql, sizeof(sql), "PRAGMA user_version = %d; COMMIT", JOURNAL_FORMAT);
                r = sql_exec(j->db, sql, err);
        }
        if (r < 0)
                (void) sql_exec(j->db, "ROLLBACK", NULL);
        return r;
}

int journal_upgrade(struct journal *j, uint64_t format, struct error *err)
{
        char name[PATH_MAX];

        int r = copy_keep(j, format, name, sizeof(name), err);
        if (r < 0)
                return r;
        r = tables_change(j, format / 1000, err);
        if (r < 0)
                return r;
        /* The number has to stand in the main file itself, where an older program looks before it touches anything. A reader
         * that holds this up is no harm: it is in the write-ahead log. */
        (void) sql_exec(j->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
        (void) snprintf(j->upgraded, sizeof(j->upgraded),
                        "format %llu is now %d; to go back, put %.200s in the journal's place",
                        (unsigned long long) format, JOURNAL_FORMAT, name);
        return 0;
}

const char *journal_upgraded(const struct journal *j)
{
        return j->upgraded[0] ? j->upgraded : NULL;
}
