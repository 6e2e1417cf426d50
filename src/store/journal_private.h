/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the journal share: journal_open.c, journal_place.c, journal_upgrade.c, journal.c (writing),
 * journal_restore.c, journal_events.c, journal_log.c, journal_verify.c. */
#include <sys/types.h>
#include <time.h>
#include "store/chain.h"
#include "store/codec.h"
#include "store/codec_action.h"
#include "store/codec_input.h"
#include "store/journal.h"
#include "store/journal_audit.h"
#include "store/sql.h"

/*
 * The file: PRAGMA application_id says it is ours, user_version says in which form: the tables' version and the codecs'. A
 * program refuses a newer one untouched, so either of the two going up keeps an older program off.
 */
enum {
        JOURNAL_APPLICATION_ID = 0x4c53524a, /* "LSRJ" */
        JOURNAL_TABLES_VERSION = 3,
        JOURNAL_TABLES_VERSION_OLDEST = 1, /* that journal_upgrade.c converts */
        JOURNAL_FORMAT = JOURNAL_TABLES_VERSION * 1000 + CODEC_VERSION,
};

enum journal_stmt {
        STMT_BEGIN,
        STMT_COMMIT,
        STMT_ROLLBACK,
        STMT_RECORD_INSERT,
        STMT_EVENT_INSERT,
        STMT_SEGMENT_INSERT,
        STMT_SEGMENT_KEPT,
        STMT_RECORDS_PRUNE,
        STMT_SEGMENTS_PRUNE,
        STMT_EVENT_KEPT,
        STMT_KEEP,
        STMT_KEEP_EVENT_SEQ,
        STMT_KEEP_EVENT_HASH,
        STMT_EVENTS_PRUNE,
        STMT_HEAD,
        STMT_SEGMENT_BELOW,
        STMT_SEGMENT_ABOVE,
        STMT_RECORDS,
        STMT_RECORDS_AFTER,
        STMT_RECORDS_AFTER_DOWN,
        STMT_EVENTS_ALL,
        STMT_EVENTS_UP,
        STMT_EVENTS_DOWN,
        STMT_EVENTS_UP_LEASE,
        STMT_EVENTS_DOWN_LEASE,
        STMT_AUDIT_INSERT,
        STMT_AUDIT_FIND,
        STMT_AUDIT_KEPT,
        STMT_AUDITS_PRUNE,
        STMT_KEEP_AUDIT_HASH,
        STMT_AUDITS_ALL,
        STMT_AUDITS_DOWN,
        STMT_AUDITS_DOWN_PID,
        STMT_N,
};

struct pending { /* one record that is not committed; its bytes lie in the arena, input first */
        uint64_t now_ms;
        uint64_t wall_ms;
        uint32_t kind;
        size_t at;
        size_t n_input;
        size_t n_actions;
};

struct place { /* which file a name stood for */
        bool is_known;
        bool is_empty;
        dev_t dev;
        ino_t ino;
};

struct prepared {
        uint64_t wall_ms;
        char boot_id[JOURNAL_BOOT_ID_SIZE];
        size_t n;
        uint8_t data[];
};

struct journal {
        sqlite3 *db;
        char *path;
        struct journal_options options;
        char core_version[JOURNAL_VERSION_SIZE];
        sqlite3_stmt *stmts[STMT_N];
        struct place main_place, log_place;
        int folder_fd; /* -1 = none; its mtime tells whether a name in it has changed */
        struct timespec folder_mtime;
        char degraded[400];
        char upgraded[300];

        bool positioned; /* restore has run: the three below are true */
        uint64_t last_seq;
        struct chain_hash hash; /* of the last record, or of the segment that began after it */
        uint64_t event_seq;     /* the records up to here have their events in the table of events, as far as we know */

        uint64_t segment; /* the one we write; 0 = none yet */
        uint64_t segment_records;
        uint32_t log_pages; /* of the write-ahead log, that are not in the file yet */
        bool in_doubt;      /* a transaction failed at its end: look whether it is there before writing it again */

        struct pending *pending;
        size_t n_pending;
        size_t cap_pending;
        uint8_t *arena;
        size_t n_arena;
        size_t cap_arena;

        struct journal_audit *audits; /* that are not committed; their facts are ours */
        size_t n_audits;
        size_t cap_audits;

        struct prepared *prepared; /* a snapshot that is not written yet */

        struct actions *actions; /* room to decode a record into; made when first needed */
};

int journal_stmt(struct journal *j, enum journal_stmt which, sqlite3_stmt **ret, struct error *err);
int journal_run(struct journal *j, enum journal_stmt which, const char *doing,
                struct error *err); /* no parameters, no rows */
/* Ends a transaction that may or may not still be open after a failure. */
void journal_abort(struct journal *j);
void journal_degrade(struct journal *j, const char *fmt, ...) printf_like(2, 3); /* the first one counts */
int journal_need_actions(struct journal *j, struct error *err);
/* The events of all records that have none yet, inside the caller's transaction (journal_events.c). */
int journal_index(struct journal *j, struct error *err);
bool journal_must_tidy(const struct journal *j);
/* What the file says about j->event_seq. */
int journal_index_position(struct journal *j, uint64_t *ret_seq, struct error *err);

/* journal_place.c */
void journal_place_note(struct journal *j);
void journal_place_forget(struct journal *j);
int journal_place_check(struct journal *j, struct error *err); /* before each write: -ENOENT, not what it was */
bool journal_log_is_damaged(const char *path);

/* journal_log.c */
void journal_log_watch(struct journal *j);
bool journal_log_is_long(const struct journal *j);
void journal_log_tidy(struct journal *j);

/* journal_audit.c */
void journal_audits_forget(struct journal *j);
int journal_audits_write(struct journal *j, uint64_t seq, struct error *err); /* in the caller's transaction */
int journal_audits_prune(struct journal *j, struct error *err);
extern const char journal_audit_schema[];
/* For each row, the oldest first: is it what was written? Nonzero ends it. */
typedef int journal_audit_check_fn(void *ctx, uint64_t id, bool ok);
int journal_audits_verify(struct journal *j, struct chain_hash before, journal_audit_check_fn *found, void *ctx,
                          struct error *err);

/* journal_upgrade.c */
bool journal_format_is_readable(uint64_t format);
int journal_upgrade(struct journal *j, uint64_t format, struct error *err);

/* The file itself (journal_open.c). Damage found later: close, move aside, start a fresh one. */
int journal_file_replace(struct journal *j, const char *why, struct error *err);
void journal_file_close(struct journal *j, bool keep_wal);

/* Rows as they lie in the file. Blobs and texts are borrowed from the statement. */
struct segment_row {
        struct chain_segment segment;
        struct chain_hash before;
        struct chain_hash hash;
};
struct record_row {
        struct chain_record record;
        struct chain_hash hash;
};
struct event_row {
        struct chain_event event;
        uint32_t kind;
        uint32_t device; /* UINT32_MAX = none */
        uint32_t uid;
        uint64_t lease_id;
        struct chain_hash hash;
};
struct chain_hash chain_hash_read(sqlite3_stmt *stmt, int column);
void segment_row_read(sqlite3_stmt *stmt, struct segment_row *ret);
void record_row_read(sqlite3_stmt *stmt, struct record_row *ret);
void event_row_read(sqlite3_stmt *stmt, struct event_row *ret);

static inline bool chain_hash_equal(const struct chain_hash *a, const struct chain_hash *b)
{
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
