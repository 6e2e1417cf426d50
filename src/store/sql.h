/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SQLite with our errors: what the caller has to tell apart is a negative errno (journal.h), the rest is words. */
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cleanup.h"
#include "base/error.h"
#include "store/chain.h"

/* The last failure of @db, whose result code is @rc. "@doing: SQLite's words". */
int sql_error(sqlite3 *db, int rc, struct error *err, const char *doing);

/* Statements without rows, several separated by ';'. Constant text only. */
int sql_exec(sqlite3 *db, const char *sql, struct error *err);
/* The first column of the first row of constant text; *ret_value stays as it is when there is no row. */
int sql_query_u64(sqlite3 *db, const char *sql, uint64_t *ret_value, struct error *err);
/* The same with ?1 bound to @bound. */
int sql_query_u64_of(sqlite3 *db, const char *sql, uint64_t bound, uint64_t *ret_value, struct error *err);
int sql_query_text(sqlite3 *db, const char *sql, char *ret_text, size_t size, struct error *err);

/* A prepared statement that is kept: sql_reset() when done with its rows, so that no lock and no borrowed blob stays behind. */
void sql_reset(sqlite3_stmt *stmt);
int sql_step(sqlite3 *db, sqlite3_stmt *stmt, const char *doing, struct error *err); /* 1 a row, 0 no more */

static inline void sql_resetp(sqlite3_stmt **stmt)
{
        if (*stmt)
                sql_reset(*stmt);
}
#define auto_reset auto_call(sql_resetp)

/* Numbers of ours that SQLite keeps are below 2^63 (checked where they come in). Blobs are borrowed until the reset. */
static inline void sql_bind_u64(sqlite3_stmt *stmt, int at, uint64_t v)
{
        (void) sqlite3_bind_int64(stmt, at, (sqlite3_int64) v);
}
void sql_bind_blob(sqlite3_stmt *stmt, int at, const void *data, size_t n);
void sql_bind_text(sqlite3_stmt *stmt, int at, const char *text);

static inline uint64_t sql_u64(sqlite3_stmt *stmt, int column)
{
        return (uint64_t) sqlite3_column_int64(stmt, column);
}
struct chain_blob sql_blob(sqlite3_stmt *stmt, int column); /* valid until the next step or reset */
const char *sql_text(sqlite3_stmt *stmt, int column);       /* "" for NULL; the same */
