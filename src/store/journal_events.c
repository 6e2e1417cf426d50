/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal_private.h"

#include <errno.h>
#include <inttypes.h>

int journal_events(struct journal *j, const struct journal_events_filter *filter, journal_event_fn *each, void *ctx,
                   struct error *err)
{
        static const enum journal_stmt by[2][2] = { { STMT_EVENTS_UP, STMT_EVENTS_DOWN },
                                                    { STMT_EVENTS_UP_LEASE, STMT_EVENTS_DOWN_LEASE } };
        uint64_t before = filter->before_id > 0 && filter->before_id < CODEC_ID_END ? filter->before_id : INT64_MAX;
        uint32_t limit =
                filter->limit > 0 && filter->limit < JOURNAL_EVENTS_LIMIT ? filter->limit : JOURNAL_EVENTS_LIMIT;

        if (filter->after_id >= CODEC_ID_END || filter->lease_id >= CODEC_ID_END)
                return 0; /* no such ids: none above, none about it */
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, by[filter->lease_id != 0][filter->newest_first], &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, filter->after_id);
        sql_bind_u64(stmt, 2, before);
        sql_bind_u64(stmt, 3, limit);
        if (filter->lease_id != 0)
                sql_bind_u64(stmt, 4, filter->lease_id);

        while ((r = sql_step(j->db, stmt, "reading the events", err)) > 0) {
                struct event_row row;
                event_row_read(stmt, &row);
                struct journal_event event = { .seq = row.event.seq,
                                               .wall_ms = row.event.wall_ms,
                                               .now_ms = row.event.now_ms };
                r = codec_action_decode(row.event.action.data, row.event.action.n, &event.action, err);
                if (r < 0)
                        return error_wrap(err, r, "event %" PRIu64 " of the journal", row.event.id);
                r = each(ctx, &event);
                if (r != 0)
                        return r;
        }
        return r;
}
