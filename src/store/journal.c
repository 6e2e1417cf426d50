/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: records are collected in memory, written in one transaction, and forgotten only when they are in the file. */
#include "store/journal_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "store/codec_world.h"

enum {
        PENDING_BYTES_MAX =
                64 * 1024 * 1024, /* minutes of a busy card while the disk is full; then requests are refused */
        ARENA_KEPT_MAX = 512 * 1024,
};

static const char *const stmt_sql[STMT_N] = {
        [STMT_BEGIN] = "BEGIN IMMEDIATE",
        [STMT_COMMIT] = "COMMIT",
        [STMT_ROLLBACK] = "ROLLBACK",
        [STMT_RECORD_INSERT] = "INSERT INTO record (seq, segment, now_ms, wall_ms, kind, input, actions, hash)"
                               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        [STMT_EVENT_INSERT] = "INSERT INTO event (id, seq, now_ms, wall_ms, kind, lease_id, device, uid, action, hash)"
                              " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        [STMT_SEGMENT_INSERT] =
                "INSERT INTO segment (id, first_seq, wall_ms, core_version, boot_id, snapshot, before, hash)"
                " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        [STMT_SEGMENT_KEPT] = "SELECT id, first_seq FROM segment ORDER BY id DESC LIMIT 1 OFFSET ?1",
        [STMT_RECORDS_PRUNE] = "DELETE FROM record WHERE seq < ?1",
        [STMT_SEGMENTS_PRUNE] = "DELETE FROM segment WHERE id < ?1",
        [STMT_EVENT_KEPT] = "SELECT id, hash FROM event ORDER BY id DESC LIMIT 1 OFFSET ?1",
        [STMT_KEEP] = "SELECT event_seq FROM keep WHERE id = 1",
        [STMT_KEEP_EVENT_SEQ] = "UPDATE keep SET event_seq = ?1 WHERE id = 1",
        [STMT_KEEP_EVENT_HASH] = "UPDATE keep SET event_hash = ?1 WHERE id = 1",
        [STMT_EVENTS_PRUNE] = "DELETE FROM event WHERE id <= ?1",
        [STMT_HEAD] = "SELECT seq, hash FROM record ORDER BY seq DESC LIMIT 1",
        [STMT_SEGMENT_BELOW] = "SELECT id, first_seq, wall_ms, core_version, boot_id, snapshot, before, hash"
                               " FROM segment WHERE id < ?1 ORDER BY id DESC LIMIT 1",
        [STMT_SEGMENT_ABOVE] = "SELECT id, first_seq, wall_ms, core_version, boot_id, snapshot, before, hash"
                               " FROM segment WHERE id > ?1 ORDER BY id LIMIT 1",
        [STMT_RECORDS] =
                "SELECT seq, segment, now_ms, wall_ms, kind, input, actions, hash"
                " FROM record WHERE seq > ?1 AND seq <"
                " coalesce((SELECT first_seq FROM segment WHERE id > ?2 ORDER BY id LIMIT 1), ?3) ORDER BY seq",
        [STMT_RECORDS_AFTER] = "SELECT seq, segment, now_ms, wall_ms, kind, input, actions, hash FROM record"
                               " WHERE seq > ?1 ORDER BY seq",
        [STMT_RECORDS_AFTER_DOWN] = "SELECT seq, segment, now_ms, wall_ms, kind, input, actions, hash FROM record"
                                    " WHERE seq > ?1 ORDER BY seq DESC",
        [STMT_EVENTS_ALL] = "SELECT id, seq, now_ms, wall_ms, kind, lease_id, device, uid, action, hash FROM event"
                            " ORDER BY id",
        [STMT_EVENTS_UP] = "SELECT id, seq, now_ms, wall_ms, kind, lease_id, device, uid, action, hash FROM event"
                           " WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3",
        [STMT_EVENTS_DOWN] = "SELECT id, seq, now_ms, wall_ms, kind, lease_id, device, uid, action, hash FROM event"
                             " WHERE id > ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
        [STMT_EVENTS_UP_LEASE] = "SELECT id, seq, now_ms, wall_ms, kind, lease_id, device, uid, action, hash FROM event"
                                 " WHERE lease_id = ?4 AND lease_id > 0 AND id > ?1 AND id < ?2 ORDER BY id LIMIT ?3",
        [STMT_EVENTS_DOWN_LEASE] =
                "SELECT id, seq, now_ms, wall_ms, kind, lease_id, device, uid, action, hash FROM event"
                " WHERE lease_id = ?4 AND lease_id > 0 AND id > ?1 AND id < ?2"
                " ORDER BY id DESC LIMIT ?3",
        [STMT_AUDIT_INSERT] = "INSERT INTO audit (id, seq, wall_ms, boot_id, pid, start_ticks, uid, facts, hash)"
                              " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        [STMT_AUDIT_FIND] = "SELECT id FROM audit WHERE pid = ?1 AND start_ticks = ?2 AND boot_id = ?3",
        [STMT_AUDIT_KEPT] = "SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?1",
        [STMT_AUDITS_PRUNE] = "DELETE FROM audit WHERE id <= ?1",
        [STMT_KEEP_AUDIT_HASH] = "UPDATE keep SET audit_hash = ?1 WHERE id = 1",
        [STMT_AUDITS_ALL] =
                "SELECT id, seq, wall_ms, boot_id, pid, start_ticks, uid, facts, hash FROM audit ORDER BY id",
        [STMT_AUDITS_DOWN] = "SELECT id, seq, wall_ms, boot_id, pid, start_ticks, uid, facts, hash FROM audit"
                             " WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
        [STMT_AUDITS_DOWN_PID] =
                "SELECT id, seq, wall_ms, boot_id, pid, start_ticks, uid, facts, hash FROM audit"
                " WHERE pid = ?3 AND (?4 = 0 OR start_ticks = ?4) AND id < ?1 ORDER BY id DESC LIMIT ?2",
};

int journal_stmt(struct journal *j, enum journal_stmt which, sqlite3_stmt **ret, struct error *err)
{
        if (!j->db)
                return error_set(err, EIO, "%s is not open any more: starting a fresh one had failed", j->path);
        if (!j->stmts[which]) {
                int rc = sqlite3_prepare_v3(j->db, stmt_sql[which], -1, SQLITE_PREPARE_PERSISTENT, &j->stmts[which],
                                            NULL);
                if (rc != SQLITE_OK)
                        return sql_error(j->db, rc, err, "preparing a statement of the journal");
        }
        *ret = j->stmts[which];
        return 0;
}

int journal_run(struct journal *j, enum journal_stmt which, const char *doing, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, which, &stmt, err);
        return r < 0 ? r : sql_step(j->db, stmt, doing, err);
}

void journal_abort(struct journal *j)
{
        if (j->db && !sqlite3_get_autocommit(j->db))
                (void) journal_run(j, STMT_ROLLBACK, "rolling back", NULL); /* SQLite has often done it already */
}

int journal_need_actions(struct journal *j, struct error *err)
{
        if (!j->actions)
                j->actions = malloc(sizeof(*j->actions));
        return j->actions ? 0 : error_set(err, ENOMEM, "no memory to read a record of the journal");
}

struct chain_hash chain_hash_read(sqlite3_stmt *stmt, int column)
{
        struct chain_hash hash = { 0 };
        struct chain_blob blob = sql_blob(stmt, column);

        if (blob.n == sizeof(hash.bytes))
                memcpy(hash.bytes, blob.data, sizeof(hash.bytes));
        return hash;
}

void segment_row_read(sqlite3_stmt *stmt, struct segment_row *ret)
{
        *ret = (struct segment_row){
                .segment = { .id = sql_u64(stmt, 0),
                             .first_seq = sql_u64(stmt, 1),
                             .wall_ms = sql_u64(stmt, 2),
                             .core_version = sql_text(stmt, 3),
                             .boot_id = sql_text(stmt, 4),
                             .snapshot = sql_blob(stmt, 5) },
                .before = chain_hash_read(stmt, 6),
                .hash = chain_hash_read(stmt, 7),
        };
}

void record_row_read(sqlite3_stmt *stmt, struct record_row *ret)
{
        *ret = (struct record_row){
                .record = { .seq = sql_u64(stmt, 0),
                            .segment = sql_u64(stmt, 1),
                            .now_ms = sql_u64(stmt, 2),
                            .wall_ms = sql_u64(stmt, 3),
                            .kind = (uint32_t) sql_u64(stmt, 4),
                            .input = sql_blob(stmt, 5),
                            .actions = sql_blob(stmt, 6) },
                .hash = chain_hash_read(stmt, 7),
        };
}

void event_row_read(sqlite3_stmt *stmt, struct event_row *ret)
{
        *ret = (struct event_row){
                .event = { .id = sql_u64(stmt, 0),
                           .seq = sql_u64(stmt, 1),
                           .now_ms = sql_u64(stmt, 2),
                           .wall_ms = sql_u64(stmt, 3),
                           .action = sql_blob(stmt, 8) },
                .kind = (uint32_t) sql_u64(stmt, 4),
                .lease_id = sql_u64(stmt, 5),
                .device = sqlite3_column_type(stmt, 6) == SQLITE_NULL ? UINT32_MAX : (uint32_t) sql_u64(stmt, 6),
                .uid = (uint32_t) sql_u64(stmt, 7),
                .hash = chain_hash_read(stmt, 9),
        };
}

/* ---- collecting ---- */

static int pending_room(struct journal *j, size_t n_bytes, struct error *err)
{
        if (j->n_arena + n_bytes > PENDING_BYTES_MAX)
                return error_set(err, ENOBUFS, "%zu records wait to be written to %s, and no more can", j->n_pending,
                                 j->path);
        if (j->n_arena + n_bytes > j->cap_arena) {
                size_t cap = 2 * j->cap_arena > j->n_arena + n_bytes ? 2 * j->cap_arena : j->n_arena + n_bytes;
                uint8_t *arena = realloc(j->arena, cap);
                if (!arena)
                        return error_set(err, ENOMEM, "no memory for a record of the journal");
                j->arena = arena;
                j->cap_arena = cap;
        }
        if (j->n_pending == j->cap_pending) {
                size_t cap = j->cap_pending > 0 ? 2 * j->cap_pending : 64;
                struct pending *pending = realloc(j->pending, cap * sizeof(*pending));
                if (!pending)
                        return error_set(err, ENOMEM, "no memory for a record of the journal");
                j->pending = pending;
                j->cap_pending = cap;
        }
        return 0;
}

int journal_append(struct journal *j, const struct input *input, const struct actions *actions, uint64_t wall_ms,
                   struct error *err)
{
        if (j->options.read_only)
                return error_set(err, EROFS, "%s was opened for reading only", j->path);
        if (j->segment == 0)
                return error_set(err, EINVAL, "the journal needs a snapshot before its first record");
        if (input->now_ms >= CODEC_ID_END || wall_ms >= CODEC_ID_END)
                return error_set(err, EINVAL, "a time of 2^63 ms or more cannot be journalled");
        if (actions->n > ACTIONS_MAX)
                return error_set(err, EINVAL, "%u actions of one step", actions->n);
        size_t n_actions_max = CODEC_ACTIONS_MAX - (ACTIONS_MAX - actions->n) * (size_t) CODEC_ACTION_MAX;
        int r = pending_room(j, CODEC_INPUT_MAX + n_actions_max, err);
        if (r < 0)
                return r;

        struct pending *p = &j->pending[j->n_pending];
        *p = (struct pending){ .now_ms = input->now_ms, .wall_ms = wall_ms, .kind = input->kind, .at = j->n_arena };
        r = codec_input_encode(input, j->arena + p->at, CODEC_INPUT_MAX, &p->n_input, err);
        if (r < 0)
                return r;
        r = codec_actions_encode(actions, j->arena + p->at + p->n_input, n_actions_max, &p->n_actions, err);
        if (r < 0)
                return r;
        j->n_arena += p->n_input + p->n_actions;
        j->n_pending++;
        return 0;
}

void journal_discard(struct journal *j)
{
        /* One large batch is no reason to keep its room for ever. */
        if (j->cap_arena > ARENA_KEPT_MAX) {
                free(j->arena);
                j->arena = NULL;
                j->cap_arena = 0;
        }
        j->n_arena = 0;
        j->n_pending = 0;
}

size_t journal_pending(const struct journal *j)
{
        return j->n_pending;
}

size_t journal_pending_bytes(const struct journal *j)
{
        return j->n_arena;
}

uint64_t journal_last_seq(const struct journal *j)
{
        return j->last_seq;
}

/* ---- committing ---- */

/* What the chain will be once the batch is in: kept apart until it is. */
struct head {
        uint64_t seq;
        struct chain_hash hash;
};

static int record_insert(struct journal *j, const struct chain_record *record, const struct chain_hash *hash,
                         struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_RECORD_INSERT, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, record->seq);
        sql_bind_u64(stmt, 2, record->segment);
        sql_bind_u64(stmt, 3, record->now_ms);
        sql_bind_u64(stmt, 4, record->wall_ms);
        sql_bind_u64(stmt, 5, record->kind);
        sql_bind_blob(stmt, 6, record->input.data, record->input.n);
        sql_bind_blob(stmt, 7, record->actions.data, record->actions.n);
        sql_bind_blob(stmt, 8, hash->bytes, sizeof(hash->bytes));
        return sql_step(j->db, stmt, "writing to the journal", err);
}

static struct chain_record pending_record(const struct journal *j, const struct pending *p, uint64_t seq)
{
        return (struct chain_record){
                .seq = seq,
                .segment = j->segment,
                .now_ms = p->now_ms,
                .wall_ms = p->wall_ms,
                .kind = p->kind,
                .input = { .data = j->arena + p->at, .n = p->n_input },
                .actions = { .data = j->arena + p->at + p->n_input, .n = p->n_actions },
        };
}

/* @write false: only the hashes, to see what the chain would be. */
static int batch_walk(struct journal *j, struct head *head, bool write, struct error *err)
{
        for (size_t i = 0; i < j->n_pending; i++) {
                struct chain_record record = pending_record(j, &j->pending[i], head->seq + 1);

                head->seq = record.seq;
                head->hash = chain_hash_record(&head->hash, &record);
                if (!write)
                        continue;
                int r = record_insert(j, &record, &head->hash, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/*
 * After a COMMIT that failed nobody can be sure (the disk may have taken it and then said no). Look: the file ends where we
 * think it does (0), it ends with this very batch (1), or somebody else wrote (-ESTALE).
 */
static int batch_is_there(struct journal *j, struct error *err)
{
        struct head after = { .seq = j->last_seq, .hash = j->hash };
        int r = batch_walk(j, &after, false, err);
        if (r < 0)
                return r;

        auto_reset sqlite3_stmt *stmt = NULL;
        r = journal_stmt(j, STMT_HEAD, &stmt, err);
        if (r < 0)
                return r;
        r = sql_step(j->db, stmt, "reading the end of the journal", err);
        if (r < 0)
                return r;
        uint64_t seq = r > 0 ? sql_u64(stmt, 0) : j->last_seq; /* all records may have been pruned */
        if (seq <= j->last_seq)
                return 0;
        struct chain_hash hash = chain_hash_read(stmt, 1);
        if (seq == after.seq && chain_hash_equal(&hash, &after.hash))
                return 1;
        return error_set(err, ESTALE, "another program wrote record %llu into %s", (unsigned long long) seq, j->path);
}

static int batch_write(struct journal *j, struct head *head, struct error *err)
{
        int r = journal_run(j, STMT_BEGIN, "beginning to write the journal", err);
        if (r < 0)
                return r;
        if (j->in_doubt) {
                r = batch_is_there(j, err);
                if (r != 0) {
                        bool is_there = r > 0;
                        journal_abort(j);
                        if (!is_there)
                                return r;
                        /* Written by the attempt that seemed to fail. */
                        r = batch_walk(j, head, false, err);
                        return r < 0 ? r : 1;
                }
        }
        r = batch_walk(j, head, true, err);
        if (r == 0)
                r = journal_audits_write(j, head->seq, err);
        if (r < 0)
                return r;
        j->in_doubt = true;
        r = journal_run(j, STMT_COMMIT, "committing to the journal", err);
        if (r == 0)
                j->in_doubt = false;
        return r;
}

int journal_commit(struct journal *j, struct error *err)
{
        if (j->n_pending == 0)
                return 0;

        struct head head = { .seq = j->last_seq, .hash = j->hash };
        int r = journal_place_check(j, err);
        if (r == 0)
                r = batch_write(j, &head, err);
        if (r < 0) {
                journal_abort(j);
                return r;
        }
        j->in_doubt = false;
        j->segment_records += head.seq - j->last_seq;
        j->last_seq = head.seq;
        j->hash = head.hash;
        journal_discard(j);
        journal_audits_forget(j);
        journal_place_note(j);
        if (journal_must_tidy(j))
                (void) journal_tidy(j, NULL); /* the records are in; their events can wait longer still */
        return 0;
}

/* ---- segments ---- */

bool journal_wants_snapshot(const struct journal *j)
{
        return j->segment != 0 && j->segment_records >= j->options.segment_records;
}

static int segment_insert(struct journal *j, const struct chain_segment *segment, const struct chain_hash *hash,
                          struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_SEGMENT_INSERT, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, segment->id);
        sql_bind_u64(stmt, 2, segment->first_seq);
        sql_bind_u64(stmt, 3, segment->wall_ms);
        sql_bind_text(stmt, 4, segment->core_version);
        sql_bind_text(stmt, 5, segment->boot_id);
        sql_bind_blob(stmt, 6, segment->snapshot.data, segment->snapshot.n);
        sql_bind_blob(stmt, 7, j->hash.bytes, sizeof(j->hash.bytes));
        sql_bind_blob(stmt, 8, hash->bytes, sizeof(hash->bytes));
        return sql_step(j->db, stmt, "writing a snapshot to the journal", err);
}

/* Row number @offset from the newest: 1 and its two columns, or 0 when there are not so many. */
static int kept_read(struct journal *j, enum journal_stmt which, uint64_t offset, uint64_t *ret_id,
                     uint64_t *ret_first_seq, struct chain_hash *ret_hash, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, which, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, offset);
        r = sql_step(j->db, stmt, "pruning the journal", err);
        if (r <= 0)
                return r;
        *ret_id = sql_u64(stmt, 0);
        if (ret_first_seq)
                *ret_first_seq = sql_u64(stmt, 1);
        if (ret_hash)
                *ret_hash = chain_hash_read(stmt, 1);
        return 1;
}

static int prune_below(struct journal *j, enum journal_stmt which, uint64_t id, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, which, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, id);
        return sql_step(j->db, stmt, "pruning the journal", err);
}

/* From the old end only, whole segments and with them their records: what stays is a chain with its beginning stored. */
static int prune(struct journal *j, struct error *err)
{
        uint64_t id, first_seq;
        struct chain_hash hash;

        int r = kept_read(j, STMT_SEGMENT_KEPT, j->options.keep_segments - 1, &id, &first_seq, NULL, err);
        if (r > 0) {
                r = prune_below(j, STMT_RECORDS_PRUNE, first_seq, err);
                if (r == 0)
                        r = prune_below(j, STMT_SEGMENTS_PRUNE, id, err);
        }
        if (r < 0)
                return r;
        r = journal_audits_prune(j, err);
        if (r < 0)
                return r;
        r = kept_read(j, STMT_EVENT_KEPT, j->options.keep_events, &id, NULL, &hash, err);
        if (r <= 0)
                return r;
        r = prune_below(j, STMT_EVENTS_PRUNE, id, err);
        if (r < 0)
                return r;

        auto_reset sqlite3_stmt *stmt = NULL;
        r = journal_stmt(j, STMT_KEEP_EVENT_HASH, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_blob(stmt, 1, hash.bytes, sizeof(hash.bytes));
        return sql_step(j->db, stmt, "pruning the journal", err);
}

static int segment_write(struct journal *j, const struct chain_segment *segment, const struct chain_hash *hash,
                         struct error *err)
{
        int r = journal_run(j, STMT_BEGIN, "beginning a segment of the journal", err);
        if (r < 0)
                return r;
        r = journal_index(j, err); /* before the records go */
        if (r < 0)
                return r;
        r = segment_insert(j, segment, hash, err);
        if (r < 0)
                return r;
        r = prune(j, err);
        if (r < 0)
                return r;
        return journal_run(j, STMT_COMMIT, "committing a segment of the journal", err);
}

int journal_snapshot_prepare(struct journal *j, const struct world *world, const char *boot_id, uint64_t wall_ms,
                             struct error *err)
{
        if (j->options.read_only)
                return error_set(err, EROFS, "%s was opened for reading only", j->path);
        if (!j->positioned)
                return error_set(err, EINVAL, "the journal is restored before its first snapshot");
        if (j->n_pending > 0)
                return error_set(err, EINVAL, "a snapshot needs everything before it committed");
        if (strlen(boot_id) >= JOURNAL_BOOT_ID_SIZE || wall_ms >= CODEC_ID_END)
                return error_set(err, EINVAL, "not a boot id, or not a time");

        size_t size = codec_world_size_max(world);
        free(j->prepared);
        j->prepared = malloc(sizeof(*j->prepared) + size);
        if (!j->prepared)
                return error_set(err, ENOMEM, "no memory for a snapshot of %zu bytes", size);
        j->prepared->wall_ms = wall_ms;
        (void) snprintf(j->prepared->boot_id, sizeof(j->prepared->boot_id), "%s", boot_id);
        return codec_world_encode(world, j->prepared->data, size, &j->prepared->n, err);
}

static int prepared_write(struct journal *j, const struct prepared *prepared, struct error *err)
{
        uint64_t newest = 0;
        int r = journal_look(j, err);
        if (r < 0)
                return r;
        r = kept_read(j, STMT_SEGMENT_KEPT, 0, &newest, NULL, NULL, err);
        if (r < 0)
                return r;

        struct chain_segment segment = {
                .id = newest + 1,
                .first_seq = j->last_seq + 1,
                .wall_ms = prepared->wall_ms,
                .core_version = j->core_version,
                .boot_id = prepared->boot_id,
                .snapshot = { .data = prepared->data, .n = prepared->n },
        };
        struct chain_hash hash = chain_hash_segment(&j->hash, &segment);
        r = segment_write(j, &segment, &hash, err);
        if (r < 0) {
                journal_abort(j);
                return r;
        }
        j->segment = segment.id;
        j->segment_records = 0;
        j->hash = hash;
        j->event_seq = j->last_seq;
        journal_place_note(j);
        return 0;
}

int journal_snapshot_write(struct journal *j, struct error *err)
{
        if (!j->prepared)
                return error_set(err, EINVAL, "no snapshot was prepared");
        int r = prepared_write(j, j->prepared, err);
        free(j->prepared);
        j->prepared = NULL;
        return r;
}

int journal_snapshot(struct journal *j, const struct world *world, const char *boot_id, uint64_t wall_ms,
                     struct error *err)
{
        int r = journal_snapshot_prepare(j, world, boot_id, wall_ms, err);
        return r < 0 ? r : journal_snapshot_write(j, err);
}
