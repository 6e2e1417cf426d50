/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are the actions of records. A table of their own makes them quick to find and lets them outlive the records, but
 * costs a commit two more pages, so it is filled behind: the newest events are read from the records themselves.
 */
#include "store/journal_private.h"

#include <errno.h>
#include <inttypes.h>

enum {
        BEHIND_WANTED = 32, /* so many records without their events are worth a transaction */
        BEHIND_MAX = 1024,  /* and so many are read with every question */
};

/* ---- filling the table ---- */

int journal_index_position(struct journal *j, uint64_t *ret_seq, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_KEEP, &stmt, err);
        if (r < 0)
                return r;
        r = sql_step(j->db, stmt, "reading how far the events are", err);
        *ret_seq = r > 0 ? sql_u64(stmt, 0) : 0;
        return r < 0 ? r : 0;
}

static int last_hash(struct journal *j, struct chain_hash *ret, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_EVENT_KEPT, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, 0);
        r = sql_step(j->db, stmt, "reading the end of the events", err);
        *ret = r > 0 ? chain_hash_read(stmt, 1) : (struct chain_hash){ 0 };
        return r < 0 ? r : 0;
}

static int event_insert(struct journal *j, const struct action *action, const struct chain_record *record,
                        struct chain_hash *hash, struct error *err)
{
        uint8_t buf[CODEC_ACTION_MAX];
        struct chain_event event = {
                .id = action->id, .seq = record->seq, .now_ms = record->now_ms, .wall_ms = record->wall_ms
        };
        int r = codec_action_encode(action, buf, sizeof(buf), &event.action.n, err);
        if (r < 0)
                return r;
        event.action.data = buf;
        *hash = chain_hash_event(hash, &event);

        auto_reset sqlite3_stmt *stmt = NULL;
        r = journal_stmt(j, STMT_EVENT_INSERT, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, event.id);
        sql_bind_u64(stmt, 2, event.seq);
        sql_bind_u64(stmt, 3, event.now_ms);
        sql_bind_u64(stmt, 4, event.wall_ms);
        sql_bind_u64(stmt, 5, action->kind);
        sql_bind_u64(stmt, 6, action->lease_id);
        if (action->device != UINT32_MAX)
                sql_bind_u64(stmt, 7, action->device);
        sql_bind_u64(stmt, 8, action->uid);
        sql_bind_blob(stmt, 9, buf, event.action.n);
        sql_bind_blob(stmt, 10, hash->bytes, sizeof(hash->bytes));
        return sql_step(j->db, stmt, "writing an event to the journal", err);
}

static int actions_read(struct journal *j, const struct chain_record *record, struct error *err)
{
        int r = codec_actions_decode(record->actions.data, record->actions.n, j->actions, err);
        return r < 0 ? error_wrap(err, r, "record %" PRIu64 " of the journal", record->seq) : 0;
}

static int index_records(struct journal *j, uint64_t after, struct chain_hash *hash, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_RECORDS_AFTER, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, after);
        while ((r = sql_step(j->db, stmt, "reading the journal", err)) > 0) {
                struct record_row row;
                record_row_read(stmt, &row);
                r = actions_read(j, &row.record, err);
                for (uint32_t i = 0; r == 0 && i < j->actions->n; i++)
                        if (j->actions->items[i].kind != ACTION_READ)
                                r = event_insert(j, &j->actions->items[i], &row.record, hash, err);
                if (r < 0)
                        return r;
        }
        return r;
}

int journal_index(struct journal *j, struct error *err)
{
        struct chain_hash hash;
        uint64_t seq;

        /* From the file, not from memory: an attempt that seemed to fail may have been written all the same. */
        int r = journal_index_position(j, &seq, err);
        if (r < 0)
                return r;
        r = last_hash(j, &hash, err);
        if (r < 0)
                return r;
        r = journal_need_actions(j, err);
        if (r < 0)
                return r;
        r = index_records(j, seq, &hash, err);
        if (r < 0)
                return r;

        auto_reset sqlite3_stmt *stmt = NULL;
        r = journal_stmt(j, STMT_KEEP_EVENT_SEQ, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, j->last_seq);
        return sql_step(j->db, stmt, "writing how far the events are", err);
}

bool journal_wants_tidying(const struct journal *j)
{
        return j->last_seq >= j->event_seq + BEHIND_WANTED || journal_log_is_long(j);
}

bool journal_must_tidy(const struct journal *j)
{
        return j->last_seq >= j->event_seq + BEHIND_MAX;
}

static int tidy(struct journal *j, struct error *err)
{
        int r = journal_run(j, STMT_BEGIN, "beginning to write events", err);
        if (r < 0)
                return r;
        r = journal_index(j, err);
        if (r < 0)
                return r;
        return journal_run(j, STMT_COMMIT, "committing events", err);
}

int journal_tidy(struct journal *j, struct error *err)
{
        if (j->options.read_only)
                return error_set(err, EROFS, "%s was opened for reading only", j->path);
        if (!j->positioned)
                return error_set(err, EINVAL, "the journal is restored before it is tidied");
        int r = tidy(j, err);
        if (r < 0) {
                journal_abort(j);
                return r;
        }
        j->event_seq = j->last_seq;
        journal_log_tidy(j);
        return 0;
}

/* ---- reading ---- */

struct reading_of_events {
        struct journal *j;
        const struct journal_events_filter *filter;
        journal_event_fn *each;
        void *ctx;
        uint64_t after, before; /* what is still wanted */
        uint32_t left;
};

/* 0 go on; anything else ends it. Another connection may have filled the table meanwhile: nothing is told twice. */
static int tell(struct reading_of_events *e, const struct journal_event *event)
{
        if (e->left == 0)
                return 0;
        e->left--;
        if (e->filter->newest_first)
                e->before = event->action.id;
        else
                e->after = event->action.id;
        return e->each(e->ctx, event);
}

static int tell_rows(struct reading_of_events *e, struct error *err)
{
        static const enum journal_stmt by[2][2] = { { STMT_EVENTS_UP, STMT_EVENTS_DOWN },
                                                    { STMT_EVENTS_UP_LEASE, STMT_EVENTS_DOWN_LEASE } };
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(e->j, by[e->filter->lease_id != 0][e->filter->newest_first], &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, e->after);
        sql_bind_u64(stmt, 2, e->before);
        sql_bind_u64(stmt, 3, e->left);
        if (e->filter->lease_id != 0)
                sql_bind_u64(stmt, 4, e->filter->lease_id);

        while ((r = sql_step(e->j->db, stmt, "reading the events", err)) > 0) {
                struct event_row row;
                event_row_read(stmt, &row);
                struct journal_event event = { .seq = row.event.seq,
                                               .wall_ms = row.event.wall_ms,
                                               .now_ms = row.event.now_ms };
                r = codec_action_decode(row.event.action.data, row.event.action.n, &event.action, err);
                if (r < 0)
                        return error_wrap(err, r, "event %" PRIu64 " of the journal", row.event.id);
                r = tell(e, &event);
                if (r != 0)
                        return r;
        }
        return r;
}

static bool is_wanted(const struct reading_of_events *e, const struct action *action)
{
        return action->kind != ACTION_READ && action->id > e->after && action->id < e->before &&
               (e->filter->lease_id == 0 || action->lease_id == e->filter->lease_id);
}

static int tell_record(struct reading_of_events *e, const struct chain_record *record, struct error *err)
{
        struct actions *actions = e->j->actions;
        int r = actions_read(e->j, record, err);

        for (uint32_t i = 0; r == 0 && i < actions->n; i++) {
                struct action *action = &actions->items[e->filter->newest_first ? actions->n - 1 - i : i];
                if (!is_wanted(e, action))
                        continue;
                r = tell(e, &(struct journal_event){
                                    .seq = record->seq,
                                    .wall_ms = record->wall_ms,
                                    .now_ms = record->now_ms,
                                    .action = *action,
                            });
        }
        return r;
}

/* Those whose records lie behind @seq. */
static int tell_records(struct reading_of_events *e, uint64_t seq, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(e->j, e->filter->newest_first ? STMT_RECORDS_AFTER_DOWN : STMT_RECORDS_AFTER, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, seq);
        while (e->left > 0 && (r = sql_step(e->j->db, stmt, "reading the journal", err)) > 0) {
                struct record_row row;
                record_row_read(stmt, &row);
                r = tell_record(e, &row.record, err);
                if (r != 0)
                        return r;
        }
        return r < 0 ? r : 0;
}

int journal_events(struct journal *j, const struct journal_events_filter *filter, journal_event_fn *each, void *ctx,
                   struct error *err)
{
        struct reading_of_events e = {
                .j = j,
                .filter = filter,
                .each = each,
                .ctx = ctx,
                .after = filter->after_id,
                .before = filter->before_id > 0 && filter->before_id < CODEC_ID_END ? filter->before_id : INT64_MAX,
                .left = filter->limit > 0 && filter->limit < JOURNAL_EVENTS_LIMIT ? filter->limit
                                                                                  : JOURNAL_EVENTS_LIMIT,
        };
        uint64_t seq;

        if (filter->after_id >= CODEC_ID_END || filter->lease_id >= CODEC_ID_END)
                return 0; /* no such ids: none above, none about it */
        int r = journal_index_position(j, &seq, err);
        if (r < 0)
                return r;
        r = journal_need_actions(j, err);
        if (r < 0)
                return r;
        if (filter->newest_first) {
                r = tell_records(&e, seq, err);
                return r != 0 || e.left == 0 ? r : tell_rows(&e, err);
        }
        r = tell_rows(&e, err);
        return r != 0 || e.left == 0 ? r : tell_records(&e, seq, err);
}
