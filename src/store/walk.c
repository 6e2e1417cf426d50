/* SPDX-License-Identifier: Apache-2.0 */
#include "store/walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "base/cleanup.h"
#include "store/codec_world.h"
#include "store/journal_private.h"

struct world *walk_world_new(void)
{
        void *p = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
        return p == MAP_FAILED ? NULL : p;
}

void walk_world_zero(struct world *world)
{
        (void) madvise(world, sizeof(*world), MADV_DONTNEED); /* private anonymous memory reads as zeros after it */
}

void walk_world_free(struct world *world)
{
        if (world)
                (void) munmap(world, sizeof(*world));
}

struct walk {
        struct journal *j;
        const struct walk_visitor *visitor;
        uint64_t since_seq; /* the first record that counts */
        uint64_t segment;
        uint64_t seq;
        bool is_linked; /* @hash is what the next row has to continue */
        struct chain_hash hash;
        struct world *world;
        struct input input;
        struct occupancy rows[ROWS_MAX];
};

static void walk_free(struct walk *w)
{
        walk_world_free(w->world);
        free(w);
}
DEFINE_CLEANUP(struct walk *, walk_free)

printf_like(2, 3) static void damaged(struct walk *w, const char *fmt, ...)
{
        char words[sizeof(((struct error *) 0)->msg) + 64];
        va_list args;

        va_start(args, fmt);
        (void) vsnprintf(words, sizeof(words), fmt, args);
        va_end(args);
        w->visitor->damage(w->visitor->ctx, words);
}

/* ---- from where on ---- */

static int take_seq(void *ctx, const struct journal_event *event)
{
        uint64_t *ret = ctx;
        *ret = event->seq;
        return 1;
}

static int since_event(struct walk *w, uint64_t id, struct error *err)
{
        const struct journal_events_filter filter = { .after_id = id > 0 ? id - 1 : 0, .limit = 1 };
        uint64_t seq = 0;

        int r = journal_events(w->j, &filter, take_seq, &seq, err);
        if (r < 0)
                return r;
        if (seq == 0)
                return error_set(err, ENOENT, "the journal has no event %" PRIu64 ", and none after it", id);
        w->since_seq = seq;
        return 0;
}

static int since_wall(struct walk *w, uint64_t wall_ms, struct error *err)
{
        int r = sql_query_u64_of(w->j->db, "SELECT min(seq) FROM record WHERE wall_ms >= ?1", wall_ms, &w->since_seq,
                                 err);

        if (r == 0 && w->since_seq == 0)
                r = error_set(err, ENOENT, "the journal has nothing from that moment on");
        return r;
}

static int since_find(struct walk *w, const struct walk_since *since, struct error *err)
{
        if (since->kind == WALK_SINCE_EVENT)
                return since_event(w, since->value, err);
        if (since->kind == WALK_SINCE_WALL_MS)
                return since_wall(w, since->value, err);
        w->since_seq = 0;
        return 0;
}

/* The segment before the first that is walked: the newest snapshot that lies at or before what counts. */
static int begin_find(struct walk *w, struct error *err)
{
        uint64_t first = 0;

        int r = sql_query_u64_of(w->j->db, "SELECT max(id) FROM segment WHERE first_seq <= ?1",
                                 w->since_seq > 0 ? w->since_seq : 1, &first, err);
        if (r < 0)
                return r;
        w->segment = w->since_seq > 0 && first > 0 ? first - 1 : 0;
        return 0;
}

/* ---- segments and records ---- */

static int record_visit(struct walk *w, const struct record_row *row, bool opens, struct error *err)
{
        const struct chain_record *record = &row->record;
        struct chain_hash hash = chain_hash_record(&w->hash, record);
        struct error why = { 0 };

        if (record->seq != w->seq + 1) {
                damaged(w, "record %" PRIu64 " is missing", w->seq + 1);
                return 0;
        }
        if (record->segment != w->segment || !chain_hash_equal(&hash, &row->hash))
                damaged(w, "record %" PRIu64 " is not what was written", record->seq);
        w->seq = record->seq;
        w->hash = row->hash; /* so that one change is told once */
        int r = codec_input_decode(record->input.data, record->input.n, &w->input, w->rows, &why);
        if (r == 0)
                r = codec_actions_decode(record->actions.data, record->actions.n, w->j->actions, &why);
        if (r < 0) {
                damaged(w, "record %" PRIu64 " cannot be read: %s", record->seq, why.msg);
                return 0;
        }
        const struct walk_record visited = {
                .seq = record->seq,
                .wall_ms = record->wall_ms,
                .counts = record->seq >= w->since_seq,
                .opens = opens,
                .input = &w->input,
                .actions = w->j->actions,
                .actions_bytes = record->actions.data,
                .n_actions_bytes = record->actions.n,
        };
        r = w->visitor->record(w->visitor->ctx, &visited, err);
        return r < 0 ? r : 1;
}

static int records_visit(struct walk *w, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct record_row row;
        bool opens = true;

        int r = journal_stmt(w->j, STMT_RECORDS, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, w->seq);
        sql_bind_u64(stmt, 2, w->segment);
        sql_bind_u64(stmt, 3, INT64_MAX);
        while ((r = sql_step(w->j->db, stmt, "reading the journal", err)) > 0) {
                record_row_read(stmt, &row);
                r = record_visit(w, &row, opens, err);
                if (r < 0)
                        return r;
                if (r == 0) {
                        w->is_linked = false; /* the rest of this segment follows from what is not there */
                        return 0;
                }
                opens = false;
        }
        return r;
}

static void segment_check(struct walk *w, const struct segment_row *row)
{
        struct chain_hash hash = chain_hash_segment(&row->before, &row->segment);

        if (w->is_linked && row->segment.first_seq != w->seq + 1)
                damaged(w, "record %" PRIu64 " is missing", w->seq + 1);
        else if (w->is_linked && !chain_hash_equal(&row->before, &w->hash))
                damaged(w, "segment %" PRIu64 " does not continue the one before", row->segment.id);
        if (!chain_hash_equal(&hash, &row->hash))
                damaged(w, "the snapshot of segment %" PRIu64 " is not what was written", row->segment.id);
}

static int segment_visit(struct walk *w, const struct segment_row *row, struct error *err)
{
        const struct chain_segment *segment = &row->segment;
        struct error why = { 0 };

        segment_check(w, row);
        w->segment = segment->id;
        w->seq = segment->first_seq - 1;
        w->hash = row->hash;
        walk_world_zero(w->world);
        int r = codec_world_decode(segment->snapshot.data, segment->snapshot.n, w->world, &why);
        const char *wrong = r == 0 ? world_check(w->world) : NULL;
        if (r < 0 || wrong) {
                damaged(w, "the snapshot of segment %" PRIu64 " cannot be used: %s", segment->id,
                        r < 0 ? why.msg : wrong);
                w->is_linked = false;
                return 0;
        }
        w->is_linked = true;
        const struct walk_segment visited = {
                .id = segment->id,
                .first_seq = segment->first_seq,
                .wall_ms = segment->wall_ms,
                .core_version = segment->core_version,
                .same_core = strcmp(segment->core_version, w->j->core_version) == 0,
                .same_codec = codec_version_of(segment->snapshot.data, segment->snapshot.n) == CODEC_VERSION,
                .snapshot = segment->snapshot.data,
                .n_snapshot = segment->snapshot.n,
                .world = w->world,
        };
        r = w->visitor->segment(w->visitor->ctx, &visited, err);
        return r < 0 ? r : records_visit(w, err);
}

static int segment_next(struct walk *w, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct segment_row row;

        int r = journal_stmt(w->j, STMT_SEGMENT_ABOVE, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, w->segment);
        r = sql_step(w->j->db, stmt, "reading a segment of the journal", err);
        if (r <= 0)
                return r;
        segment_row_read(stmt, &row);
        r = segment_visit(w, &row, err);
        return r < 0 ? r : 1;
}

static int walk(struct walk *w, const struct walk_since *since, struct error *err)
{
        bool any = false;

        int r = since_find(w, since, err);
        if (r == 0)
                r = begin_find(w, err);
        if (r < 0)
                return r;
        while ((r = segment_next(w, err)) > 0)
                any = true;
        if (r == 0 && !any)
                r = error_set(err, ENOENT, "%s has no snapshot: lessord has not written anything yet", w->j->path);
        return r;
}

int journal_walk(struct journal *j, const struct walk_since *since, const struct walk_visitor *visitor,
                 struct error *err)
{
        auto_call(walk_freep) struct walk *w = calloc(1, sizeof(*w));

        if (!w || !(w->world = walk_world_new()))
                return error_set(err, ENOMEM, "no memory to read the journal");
        w->j = j;
        w->visitor = visitor;
        int r = journal_need_actions(j, err);
        if (r < 0)
                return r;
        if (!j->db)
                return error_set(err, EIO, "%s is not open any more", j->path);
        r = sql_exec(j->db, "BEGIN", err);
        if (r < 0)
                return r;
        r = walk(w, since, err);
        (void) sql_exec(j->db, "COMMIT", NULL); /* nothing was written */
        return r;
}
