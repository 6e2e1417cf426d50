/* SPDX-License-Identifier: Apache-2.0 */
/* Restart: the newest snapshot that proves true, and the records after it through the core again. */
#include "store/journal_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "store/codec_world.h"

/* Not the end of a number: what a damaged file says is believed so far. */
#define ID_BELIEVED_MAX (UINT64_C(1) << 48)

/* What one restore needs; a few hundred kB for the time it runs. */
struct restore {
        struct journal *j;
        struct world *world;
        journal_step_fn *step;
        void *ctx;
        struct journal_restored *ret;

        uint64_t segment; /* the one being walked */
        uint64_t seq;     /* proven so far, with everything before it */
        struct chain_hash hash;
        struct error damage; /* the first thing that was found not to be as written */

        struct actions *out;
        uint8_t *out_bytes;
        struct occupancy rows[ROWS_MAX];
};

static void restore_free(struct restore *s)
{
        free(s->out);
        free(s->out_bytes);
        free(s);
}
DEFINE_CLEANUP(struct restore *, restore_free)

static struct restore *restore_new(struct journal *j, struct world *world, journal_step_fn *step, void *ctx,
                                   struct journal_restored *ret)
{
        struct restore *s = calloc(1, sizeof(*s));
        if (!s)
                return NULL;
        s->out = malloc(sizeof(*s->out));
        s->out_bytes = malloc(CODEC_ACTIONS_MAX);
        if (!s->out || !s->out_bytes) {
                restore_free(s);
                return NULL;
        }
        s->j = j;
        s->world = world;
        s->step = step;
        s->ctx = ctx;
        s->ret = ret;
        return s;
}

/* Is @r a finding (the data is bad) rather than a failure to read (disk, lock, memory)? */
static bool is_damage(int r)
{
        return r == -EBADMSG || r == -EPROTONOSUPPORT;
}

static void damage_note(struct restore *s, int r, const struct error *why)
{
        if (r < 0 && s->damage.code == 0)
                s->damage = *why;
}

static void segment_noted(struct restore *s, const struct segment_row *row)
{
        s->segment = row->segment.id;
        s->hash = row->hash;
        s->ret->last_wall_ms = row->segment.wall_ms;
        (void) snprintf(s->ret->boot_id, sizeof(s->ret->boot_id), "%s", row->segment.boot_id);
        (void) snprintf(s->ret->core_version, sizeof(s->ret->core_version), "%s", row->segment.core_version);
}

/* ---- the base: a snapshot ---- */

/* 1 restored from it, 0 it is bad (noted), negative: could not be read. */
static int snapshot_load(struct restore *s, const struct segment_row *row)
{
        struct chain_hash hash = chain_hash_segment(&row->before, &row->segment);
        struct error why = { 0 };

        if (!chain_hash_equal(&hash, &row->hash)) {
                (void) error_set(&why, EBADMSG, "its snapshot is not what was written");
                damage_note(s, error_wrap(&why, -EBADMSG, "segment %" PRIu64 " of the journal", row->segment.id), &why);
                return 0;
        }
        int r = codec_world_decode(row->segment.snapshot.data, row->segment.snapshot.n, s->world, &why);
        if (r < 0) {
                damage_note(s, error_wrap(&why, r, "segment %" PRIu64 " of the journal", row->segment.id), &why);
                memset(s->world, 0, sizeof(*s->world));
                return 0;
        }
        segment_noted(s, row);
        s->seq = row->segment.first_seq - 1;
        return 1;
}

static int base_find(struct restore *s, struct error *err)
{
        uint64_t below = INT64_MAX;

        for (;;) {
                auto_reset sqlite3_stmt *stmt = NULL;
                struct segment_row row;
                int r = journal_stmt(s->j, STMT_SEGMENT_BELOW, &stmt, err);
                if (r < 0)
                        return r;
                sql_bind_u64(stmt, 1, below);
                r = sql_step(s->j->db, stmt, "reading a segment of the journal", err);
                if (r <= 0)
                        return r;
                segment_row_read(stmt, &row);
                r = snapshot_load(s, &row);
                if (r != 0)
                        return r;
                below = row.segment.id;
        }
}

/* ---- its records ---- */

/* Does the record say what the core says now? What an older version wrote is brought into our form first. */
static bool record_agrees(struct restore *s, const struct chain_record *record)
{
        struct chain_blob then = record->actions;
        size_t n = 0, n_then = 0;

        if (codec_actions_encode(s->out, s->out_bytes, CODEC_ACTIONS_MAX, &n, NULL) < 0)
                return false;
        if (codec_version_of(then.data, then.n) == CODEC_VERSION)
                return n == then.n && memcmp(s->out_bytes, then.data, n) == 0;
        s->ret->same_core = false;
        auto_free uint8_t *as_ours = malloc(n + 1);
        return as_ours && journal_need_actions(s->j, NULL) == 0 &&
               codec_actions_decode(then.data, then.n, s->j->actions, NULL) == 0 &&
               codec_actions_encode(s->j->actions, as_ours, n + 1, &n_then, NULL) == 0 && n_then == n &&
               memcmp(as_ours, s->out_bytes, n) == 0;
}

static int record_feed(struct restore *s, const struct record_row *row, struct error *err)
{
        struct input input;

        int r = codec_input_decode(row->record.input.data, row->record.input.n, &input, s->rows, err);
        if (r < 0)
                return error_wrap(err, r, "record %" PRIu64 " of the journal", row->record.seq);
        s->step(s->ctx, s->world, &input, s->out);
        s->seq = row->record.seq;
        s->hash = row->hash;
        s->ret->n_records++;
        s->ret->last_wall_ms = row->record.wall_ms;
        if (s->ret->agreed && !record_agrees(s, &row->record)) {
                s->ret->agreed = false;
                s->ret->differs_at_seq = row->record.seq;
        }
        return 0;
}

static int records_feed(struct restore *s, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct record_row row;

        int r = journal_stmt(s->j, STMT_RECORDS, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, s->seq);
        sql_bind_u64(stmt, 2, s->segment);
        sql_bind_u64(stmt, 3, INT64_MAX);
        while ((r = sql_step(s->j->db, stmt, "reading the journal", err)) > 0) {
                record_row_read(stmt, &row);
                struct chain_hash hash = chain_hash_record(&s->hash, &row.record);
                if (row.record.seq != s->seq + 1)
                        return error_set(err, EBADMSG, "record %" PRIu64 " of the journal is missing", s->seq + 1);
                if (row.record.segment != s->segment || !chain_hash_equal(&hash, &row.hash))
                        return error_set(err, EBADMSG, "record %" PRIu64 " of the journal is not what was written",
                                         row.record.seq);
                r = record_feed(s, &row, err);
                if (r < 0)
                        return r;
        }
        return r;
}

/*
 * The snapshot of the next segment is bad, or we would have begun there. If the world that was just replayed gives the very
 * hash that stands there, it is that snapshot, and the chain goes on.
 */
static int next_rebuild(struct restore *s, const struct segment_row *row, struct error *err)
{
        if (row->segment.first_seq != s->seq + 1 || !chain_hash_equal(&row->before, &s->hash))
                return error_set(err, EBADMSG, "records before segment %" PRIu64 " of the journal are missing",
                                 row->segment.id);
        size_t size = codec_world_size_max(s->world), n = 0;
        auto_free uint8_t *snapshot = malloc(size);
        if (!snapshot)
                return error_set(err, ENOMEM, "no memory for a snapshot of %zu bytes", size);
        int r = codec_world_encode(s->world, snapshot, size, &n, err);
        if (r < 0)
                return r;

        struct chain_segment segment = row->segment;
        segment.snapshot = (struct chain_blob){ .data = snapshot, .n = n };
        struct chain_hash hash = chain_hash_segment(&s->hash, &segment);
        if (!chain_hash_equal(&hash, &row->hash))
                return error_set(err, EBADMSG, "segment %" PRIu64 " of the journal cannot be rebuilt", row->segment.id);
        segment_noted(s, row);
        return 0;
}

static int next_segment(struct restore *s, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct segment_row row;

        int r = journal_stmt(s->j, STMT_SEGMENT_ABOVE, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, s->segment);
        r = sql_step(s->j->db, stmt, "reading a segment of the journal", err);
        if (r <= 0)
                return r;
        segment_row_read(stmt, &row);
        r = next_rebuild(s, &row, err);
        return r < 0 ? r : 1;
}

/* ---- the whole ---- */

/* What the damaged file had given out must not be given out again. As far as it can still be read, and believed. */
static uint64_t highest(struct restore *s, const char *sql, uint64_t at_least)
{
        uint64_t v = 0;

        (void) sql_query_u64(s->j->db, sql, &v, NULL);
        return v > at_least && v < ID_BELIEVED_MAX ? v : at_least;
}

static void ids_skip(struct world *world, const struct actions *actions)
{
        for (uint32_t i = 0; i < actions->n; i++) {
                const struct action *a = &actions->items[i];
                if (a->id >= world->next_action_id && a->id < ID_BELIEVED_MAX)
                        world->next_action_id = a->id + 1;
                if (a->lease_id >= world->next_lease_id && a->lease_id < ID_BELIEVED_MAX)
                        world->next_lease_id = a->lease_id + 1;
        }
}

/* The newest records, whose events are in no table yet. */
static void ids_skip_records(struct restore *s)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct record_row row;
        uint64_t seq = 0;

        (void) journal_index_position(s->j, &seq, NULL);
        if (journal_stmt(s->j, STMT_RECORDS_AFTER, &stmt, NULL) < 0)
                return;
        sql_bind_u64(stmt, 1, seq);
        while (sql_step(s->j->db, stmt, "reading the journal", NULL) > 0) {
                record_row_read(stmt, &row);
                if (codec_actions_decode(row.record.actions.data, row.record.actions.n, s->out, NULL) == 0)
                        ids_skip(s->world, s->out);
        }
}

static int damage_settle(struct restore *s, struct error *err)
{
        struct journal_restored *ret = s->ret;
        uint64_t seq = highest(s, "SELECT max(seq) FROM event", highest(s, "SELECT max(seq) FROM record", s->seq));

        s->world->next_action_id = highest(s, "SELECT max(id) + 1 FROM event", s->world->next_action_id);
        s->world->next_lease_id = highest(s, "SELECT max(lease_id) + 1 FROM event", s->world->next_lease_id);
        ids_skip_records(s);
        (void) sql_query_u64_of(s->j->db, "SELECT count(*) FROM record WHERE seq > ?1", s->seq, &ret->n_lost, NULL);
        if (s->j->options.read_only) {
                journal_degrade(s->j, "%s", s->damage.msg);
                return 0;
        }
        if (s->j->segment !=
            0) /* whoever writes has had a world that is lost now: it takes a whole start, and is said */
                return error_set(err, EBADMSG, "%s; a new start moves it aside", s->damage.msg);
        int r = journal_file_replace(s->j, s->damage.msg, err);
        if (r < 0)
                return r;
        s->j->last_seq = seq;
        s->j->event_seq = 0; /* of a file that has no records yet */
        return 0;
}

static int base_and_records(struct restore *s, struct error *err)
{
        int r = base_find(s, err);
        if (r < 0)
                return r;
        if (r == 0)
                return 0;
        do {
                if (strcmp(s->ret->core_version, s->j->core_version) != 0)
                        s->ret->same_core = false;
                r = records_feed(s, err);
                if (r == 0)
                        r = next_segment(s, err);
        } while (r > 0);
        return r;
}

int journal_restore(struct journal *j, struct world *world, journal_step_fn *step, void *ctx,
                    struct journal_restored *ret, struct error *err)
{
        struct error why = { 0 };

        *ret = (struct journal_restored){ .agreed = true, .same_core = true };
        auto_call(restore_freep) struct restore *s = restore_new(j, world, step, ctx, ret);
        if (!s)
                return error_set(err, ENOMEM, "no memory to read the journal");
        if (j->n_pending > 0)
                return error_set(err, EINVAL, "what is pending is committed or discarded before a restore");

        int r = base_and_records(s, &why);
        if (r < 0 && !is_damage(r))
                return error_set(err, -r, "%s", why.msg);
        damage_note(s, r, &why);
        ret->fresh = s->segment == 0;
        j->in_doubt = false; /* what the file says is known now */
        j->last_seq = s->seq;
        j->hash = s->hash;
        if (s->damage.code != 0)
                r = damage_settle(s, err);
        else
                r = journal_index_position(j, &j->event_seq, err);
        if (r < 0)
                return r;
        j->positioned = true;

        ret->next_lease_id = world->next_lease_id;
        ret->next_action_id = world->next_action_id;
        if (ret->fresh) /* zeroed it is, also where ids were raised on the way */
                world->next_lease_id = world->next_action_id = 0;
        const char *wrong = ret->fresh ? NULL : world_check(world);
        if (wrong)
                journal_degrade(j, "the books of the journal contradict themselves: %s", wrong);
        ret->degraded = j->degraded[0] != '\0';
        ret->last_seq = s->seq;
        return 0;
}
