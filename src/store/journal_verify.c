/* SPDX-License-Identifier: Apache-2.0 */
/* Every hash again, from the oldest row that is kept to the newest (S27). */
#include "store/journal_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct verify {
        struct journal *j;
        struct journal_verified *ret;
        sqlite3_stmt *events; /* a cursor that moves along with the records; NULL when it is at its end */
        struct event_row event;
        struct chain_hash event_hash;
        uint64_t event_seq;   /* the records up to here have their events in the table */
        uint64_t first_event; /* older ones were pruned: their records may still be there */
        uint64_t segment;
        uint64_t seq;
        struct chain_hash hash;
};

/* The walk ends at the first finding: 1. */
static int found(struct verify *v, uint64_t segment, uint64_t seq, uint64_t event, const char *what)
{
        struct journal_verified *ret = v->ret;

        ret->ok = false;
        ret->bad_segment = segment;
        ret->bad_seq = seq;
        ret->bad_event = event;
        if (event)
                (void) snprintf(ret->words, sizeof(ret->words), "event %" PRIu64 ": %s", event, what);
        else if (seq)
                (void) snprintf(ret->words, sizeof(ret->words), "record %" PRIu64 ": %s", seq, what);
        else
                (void) snprintf(ret->words, sizeof(ret->words), "segment %" PRIu64 ": %s", segment, what);
        return 1;
}

/* ---- events ---- */

static int event_next(struct verify *v, struct error *err)
{
        int r = sql_step(v->j->db, v->events, "reading the events", err);
        if (r < 0)
                return r;
        if (r == 0) {
                sql_reset(v->events);
                v->events = NULL;
                return 0;
        }
        event_row_read(v->events, &v->event);
        v->ret->n_events++;

        const struct event_row *e = &v->event;
        struct action action;
        struct chain_hash hash = chain_hash_event(&v->event_hash, &e->event);
        if (!chain_hash_equal(&hash, &e->hash))
                return found(v, 0, 0, e->event.id, "not what was written, or one before it is missing");
        v->event_hash = hash;
        if (codec_action_decode(e->event.action.data, e->event.action.n, &action, NULL) < 0)
                return found(v, 0, 0, e->event.id, "its action cannot be read");
        if (action.id != e->event.id || action.kind != e->kind || action.lease_id != e->lease_id ||
            action.device != e->device || action.uid != e->uid)
                return found(v, 0, 0, e->event.id, "its columns do not say what its action says");
        return 0;
}

static int hex_digit(char c) /* as SQLite's hex() writes them; -1 for anything else */
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A hash that pruning kept. */
static int kept_hash(struct verify *v, const char *sql, struct chain_hash *ret, struct error *err)
{
        char hex[2 * JOURNAL_HASH_SIZE + 1] = "";

        int r = sql_query_text(v->j->db, sql, hex, sizeof(hex), err);
        for (size_t i = 0; r >= 0 && i < sizeof(ret->bytes); i++) {
                int high = hex_digit(hex[2 * i]), low = high < 0 ? -1 : hex_digit(hex[2 * i + 1]);
                if (low < 0)
                        return 1;
                ret->bytes[i] = (uint8_t) (high << 4 | low);
        }
        return r < 0 ? r : 0;
}

static int events_begin(struct verify *v, struct error *err)
{
        int r = sql_query_u64(v->j->db, "SELECT min(id) FROM event", &v->first_event, err);
        if (r < 0)
                return r;
        r = journal_index_position(v->j, &v->event_seq, err);
        if (r < 0)
                return r;
        r = kept_hash(v, "SELECT hex(event_hash) FROM keep WHERE id = 1", &v->event_hash, err);
        if (r != 0)
                return r < 0 ? r : found(v, 0, 0, v->first_event, "the hash before it is missing");
        r = journal_stmt(v->j, STMT_EVENTS_ALL, &v->events, err);
        return r < 0 ? r : event_next(v, err);
}

/* Is the next event this action? An older version may have written one of the two: both are brought into our form. */
static bool event_is(const struct verify *v, const struct action *action)
{
        uint8_t wanted[CODEC_ACTION_MAX], found_is[CODEC_ACTION_MAX];
        struct chain_blob blob = v->event.event.action;
        struct action read;
        size_t n_wanted = 0, n_found = 0;

        return codec_action_encode(action, wanted, sizeof(wanted), &n_wanted, NULL) == 0 &&
               codec_action_decode(blob.data, blob.n, &read, NULL) == 0 &&
               codec_action_encode(&read, found_is, sizeof(found_is), &n_found, NULL) == 0 && n_wanted == n_found &&
               memcmp(wanted, found_is, n_wanted) == 0;
}

/* The events a record must have left are exactly the next ones. Not yet those behind what is filled. */
static int events_of_record(struct verify *v, const struct chain_record *record, struct error *err)
{
        const struct actions *actions = v->j->actions;
        int r = 0;

        if (codec_actions_decode(record->actions.data, record->actions.n, v->j->actions, NULL) < 0)
                return found(v, v->segment, record->seq, 0, "its actions cannot be read");
        if (record->seq > v->event_seq)
                return 0;
        for (uint32_t i = 0; r == 0 && i < actions->n; i++) {
                const struct action *a = &actions->items[i];

                if (a->kind == ACTION_READ || (a->id < v->first_event && v->first_event > 0))
                        continue;
                if (!v->events || v->event.event.id != a->id)
                        return found(v, 0, 0, a->id, "missing");
                if (v->event.event.seq != record->seq || !event_is(v, a))
                        return found(v, 0, 0, a->id, "not what its record says");
                r = event_next(v, err);
        }
        return r;
}

/* ---- records ---- */

static int record_verify(struct verify *v, const struct record_row *row, struct error *err)
{
        struct chain_hash hash = chain_hash_record(&v->hash, &row->record);

        if (row->record.seq != v->seq + 1)
                return found(v, v->segment, v->seq + 1, 0, "missing");
        if (row->record.segment != v->segment || !chain_hash_equal(&hash, &row->hash))
                return found(v, v->segment, row->record.seq, 0, "not what was written");
        v->seq = row->record.seq;
        v->hash = hash;
        v->ret->n_records++;
        return events_of_record(v, &row->record, err);
}

static int segment_records_verify(struct verify *v, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct record_row row;

        int r = journal_stmt(v->j, STMT_RECORDS, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, v->seq);
        sql_bind_u64(stmt, 2, v->segment);
        sql_bind_u64(stmt, 3, INT64_MAX);
        while ((r = sql_step(v->j->db, stmt, "reading the journal", err)) > 0) {
                record_row_read(stmt, &row);
                r = record_verify(v, &row, err);
                if (r != 0)
                        return r;
        }
        return r;
}

/* 1: verified, there may be another; 0: no more. Findings are told through v->ret->ok. */
static int segment_verify(struct verify *v, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct segment_row row;

        int r = journal_stmt(v->j, STMT_SEGMENT_ABOVE, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, v->segment);
        r = sql_step(v->j->db, stmt, "reading a segment of the journal", err);
        if (r <= 0)
                return r;
        segment_row_read(stmt, &row);
        struct chain_hash hash = chain_hash_segment(&row.before, &row.segment);
        if (v->segment == 0) { /* the oldest that is kept: where the chain came from is stored with it */
                v->seq = row.segment.first_seq - 1;
                v->hash = row.before;
        }
        v->segment = row.segment.id;
        if (row.segment.first_seq != v->seq + 1)
                return found(v, v->segment, v->seq + 1, 0, "missing");
        if (!chain_hash_equal(&row.before, &v->hash))
                return found(v, v->segment, 0, 0, "does not continue the one before");
        if (!chain_hash_equal(&hash, &row.hash))
                return found(v, v->segment, 0, 0, "its snapshot or its figures are not what was written");
        v->hash = hash;
        v->ret->n_segments++;
        r = segment_records_verify(v, err);
        return r < 0 ? r : 1;
}

/* Events whose records were pruned lie before the first record that is kept. */
static int events_skip_pruned(struct verify *v, struct error *err)
{
        uint64_t first_seq = 0;
        int r = sql_query_u64(v->j->db, "SELECT first_seq FROM segment ORDER BY id LIMIT 1", &first_seq, err);

        while (r == 0 && v->ret->ok && v->events && (v->event.event.seq < first_seq || first_seq == 0))
                r = event_next(v, err);
        return r;
}

/* A row in front of the oldest segment would lie outside every walk. */
static int records_count(struct verify *v, struct error *err)
{
        uint64_t n = 0, first = 0;
        int r = sql_query_u64(v->j->db, "SELECT count(*) FROM record", &n, err);
        if (r < 0 || n == v->ret->n_records)
                return r;
        r = sql_query_u64(v->j->db, "SELECT min(seq) FROM record", &first, err);
        return r < 0 ? r : found(v, 0, first, 0, "belongs to no segment");
}

/* ---- audits ---- */

static int audit_found(void *ctx, uint64_t id, bool ok)
{
        struct verify *v = ctx;

        v->ret->n_audits++;
        if (ok)
                return 0;
        v->ret->ok = false;
        v->ret->bad_audit = id;
        (void) snprintf(v->ret->words, sizeof(v->ret->words),
                        "audit %" PRIu64 ": not what was written, or one before it is missing", id);
        return 1;
}

static int audits_verify(struct verify *v, struct error *err)
{
        struct chain_hash before;

        int r = kept_hash(v, "SELECT hex(audit_hash) FROM keep WHERE id = 1", &before, err);
        if (r > 0)
                return audit_found(v, 0, false);
        return r < 0 ? r : journal_audits_verify(v->j, before, audit_found, v, err);
}

static int walk(struct journal *j, struct journal_verified *ret, struct error *err)
{
        struct verify v = { .j = j, .ret = ret };
        int r = events_begin(&v, err);

        if (r >= 0 && ret->ok)
                r = events_skip_pruned(&v, err);
        while (r >= 0 && ret->ok && (r = segment_verify(&v, err)) > 0)
                ;
        if (r >= 0 && ret->ok && v.events)
                (void) found(&v, 0, 0, v.event.event.id, "the record it was made from is not there");
        if (v.events)
                sql_reset(v.events);
        if (r >= 0 && ret->ok && v.segment != 0 && v.event_seq > v.seq)
                (void) found(&v, v.segment, v.seq + 1, 0, "missing");
        if (r >= 0 && ret->ok)
                r = records_count(&v, err);
        if (r >= 0 && ret->ok)
                r = audits_verify(&v, err);
        ret->last_seq = v.seq;
        memcpy(ret->hash, v.hash.bytes, sizeof(ret->hash));
        return r < 0 ? r : 0;
}

int journal_verify(struct journal *j, struct journal_verified *ret, struct error *err)
{
        *ret = (struct journal_verified){ .ok = true };
        int r = journal_need_actions(j, err);
        if (r < 0)
                return r;
        if (!j->db)
                return error_set(err, EIO, "%s is not open any more", j->path);

        /* All of it as of one moment: a daemon may be writing, and what it adds in the middle of the walk would not add up. */
        r = sql_exec(j->db, "BEGIN", err);
        if (r < 0)
                return r;
        r = walk(j, ret, err);
        (void) sql_exec(j->db, "COMMIT", NULL); /* nothing was written */
        return r;
}
