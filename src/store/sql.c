/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sql.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int file_last_errno(sqlite3_file *file)
{
        int code = 0;

        if (file && file->pMethods)
                (void) file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &code);
        return code;
}

/* A quota or a file size limit is a full disk to whoever waits for room. */
static bool is_no_space(int code)
{
        return code == ENOSPC || code == EDQUOT || code == EFBIG;
}

/*
 * What the system call said behind an I/O error. sqlite3_system_errno() is the errno of the moment SQLite gave up, which its
 * own clearing up has often overwritten (seen with EFBIG); the files remember better: the database and its log.
 */
static int system_errno(sqlite3 *db, int fallback)
{
        sqlite3_file *file = NULL, *log = NULL;

        if (!db)
                return fallback;
        (void) sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
        (void) sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
        int code = sqlite3_system_errno(db);
        if (is_no_space(code) || is_no_space(file_last_errno(file)) || is_no_space(file_last_errno(log)))
                return ENOSPC;
        return code == EROFS || code == EACCES || code == ENOENT ? code : fallback;
}

static int code_to_errno(sqlite3 *db, int rc)
{
        switch (rc & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return EBUSY;
        case SQLITE_FULL:
                return ENOSPC;
        case SQLITE_IOERR:
                return rc == SQLITE_IOERR_NOMEM ? ENOMEM : system_errno(db, EIO);
        case SQLITE_CANTOPEN:
                return system_errno(db, EIO);
        case SQLITE_NOMEM:
                return ENOMEM;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return EBADMSG;
        case SQLITE_READONLY:
                return EROFS;
        case SQLITE_PERM:
        case SQLITE_AUTH:
                return EACCES;
        case SQLITE_CONSTRAINT:
                return ESTALE; /* the row is there already: somebody else wrote */
        case SQLITE_TOOBIG:
                return EMSGSIZE;
        default:
                return EIO;
        }
}

int sql_error(sqlite3 *db, int rc, struct error *err, const char *doing)
{
        int code = code_to_errno(db, rc);

        if (code == ENOSPC)
                return error_set(err, code, "%s: no space left (disk, quota or limit)", doing);
        if (code == EBUSY)
                return error_set(err, code, "%s: another program holds the database", doing);
        return error_set(err, code, "%s: %s (SQLite %d)", doing, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc), rc);
}

int sql_exec(sqlite3 *db, const char *sql, struct error *err)
{
        int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
        return rc == SQLITE_OK ? 0 : sql_error(db, rc, err, sql);
}

static void finalizep(sqlite3_stmt **stmt)
{
        (void) sqlite3_finalize(*stmt); /* its error was told by the step */
}

static int query_first(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct error *err)
{
        int rc = sqlite3_prepare_v2(db, sql, -1, ret, NULL);
        if (rc != SQLITE_OK)
                return sql_error(db, rc, err, sql);
        return sql_step(db, *ret, sql, err);
}

int sql_query_u64(sqlite3 *db, const char *sql, uint64_t *ret_value, struct error *err)
{
        auto_call(finalizep) sqlite3_stmt *stmt = NULL;
        int r = query_first(db, sql, &stmt, err);
        if (r > 0)
                *ret_value = sql_u64(stmt, 0);
        return r < 0 ? r : 0;
}

int sql_query_u64_of(sqlite3 *db, const char *sql, uint64_t bound, uint64_t *ret_value, struct error *err)
{
        auto_call(finalizep) sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
        if (rc != SQLITE_OK)
                return sql_error(db, rc, err, sql);
        sql_bind_u64(stmt, 1, bound);
        int r = sql_step(db, stmt, sql, err);
        if (r > 0)
                *ret_value = sql_u64(stmt, 0);
        return r < 0 ? r : 0;
}

int sql_query_text(sqlite3 *db, const char *sql, char *ret_text, size_t size, struct error *err)
{
        auto_call(finalizep) sqlite3_stmt *stmt = NULL;
        int r = query_first(db, sql, &stmt, err);
        if (r > 0)
                (void) snprintf(ret_text, size, "%s", sql_text(stmt, 0));
        return r < 0 ? r : 0;
}

void sql_reset(sqlite3_stmt *stmt)
{
        (void) sqlite3_reset(stmt); /* its error was told by the step */
        (void) sqlite3_clear_bindings(stmt);
}

int sql_step(sqlite3 *db, sqlite3_stmt *stmt, const char *doing, struct error *err)
{
        int rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
                return 1;
        return rc == SQLITE_DONE ? 0 : sql_error(db, rc, err, doing);
}

void sql_bind_blob(sqlite3_stmt *stmt, int at, const void *data, size_t n)
{
        (void) sqlite3_bind_blob64(stmt, at, data ? data : "", n, SQLITE_STATIC);
}

void sql_bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
        (void) sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

struct chain_blob sql_blob(sqlite3_stmt *stmt, int column)
{
        const void *data = sqlite3_column_blob(stmt, column); /* first: _bytes means its form */
        int n = sqlite3_column_bytes(stmt, column);

        return (struct chain_blob){ .data = data, .n = data && n > 0 ? (size_t) n : 0 };
}

const char *sql_text(sqlite3_stmt *stmt, int column)
{
        const unsigned char *text = sqlite3_column_text(stmt, column);
        return text ? (const char *) text : "";
}
