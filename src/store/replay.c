/* SPDX-License-Identifier: Apache-2.0 */
#include "store/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "store/codec.h"
#include "store/codec_action.h"
#include "store/codec_world.h"

enum { WORDS_MAX = 200 };

struct replay {
        journal_step_fn *step;
        void *step_ctx;
        const struct replay_visitor *visitor;
        struct replay_result *ret;
        struct world *world;
        uint64_t segment; /* whose world it is; 0: none yet */
        uint64_t seq;     /* the last record that is in it */
        bool counts;      /* and whether that one counts */
        struct actions out;
        uint8_t bytes[CODEC_ACTIONS_MAX];
};

static void replay_free(struct replay *p)
{
        walk_world_free(p->world);
        free(p);
}
DEFINE_CLEANUP(struct replay *, replay_free)

/* ---- actions ---- */

/* What an older version wrote is brought into our form first. */
static bool actions_are_equal(struct replay *p, const struct walk_record *record)
{
        size_t n = 0, n_then = 0;

        if (codec_actions_encode(&p->out, p->bytes, sizeof(p->bytes), &n, NULL) < 0)
                return false;
        if (codec_version_of(record->actions_bytes, record->n_actions_bytes) == CODEC_VERSION)
                return n == record->n_actions_bytes && memcmp(p->bytes, record->actions_bytes, n) == 0;
        auto_free uint8_t *then = malloc(n + 1);
        return then && codec_actions_encode(record->actions, then, n + 1, &n_then, NULL) == 0 && n_then == n &&
               memcmp(then, p->bytes, n) == 0;
}

static bool action_is_equal(const struct action *a, const struct action *b)
{
        uint8_t bytes_a[CODEC_ACTION_MAX], bytes_b[CODEC_ACTION_MAX];
        size_t n_a = 0, n_b = 0;

        return codec_action_encode(a, bytes_a, sizeof(bytes_a), &n_a, NULL) == 0 &&
               codec_action_encode(b, bytes_b, sizeof(bytes_b), &n_b, NULL) == 0 && n_a == n_b &&
               memcmp(bytes_a, bytes_b, n_a) == 0;
}

static void difference_tell(struct replay *p, const struct walk_record *record)
{
        const struct actions *was = record->actions, *is = &p->out;
        uint32_t i = 0;

        while (i < was->n && i < is->n && action_is_equal(&was->items[i], &is->items[i]))
                i++;
        const struct replay_difference difference = {
                .segment = p->segment,
                .seq = record->seq,
                .wall_ms = record->wall_ms,
                .now_ms = p->world->now_ms,
                .kind = (enum input_kind) record->input->kind,
                .was = i < was->n ? &was->items[i] : NULL,
                .is = i < is->n ? &is->items[i] : NULL,
        };
        p->ret->n_differences++;
        p->visitor->difference(p->visitor->ctx, &difference);
}

static void record_count(struct replay_result *ret, const struct walk_record *record)
{
        if (ret->n_records == 0) {
                ret->first_seq = record->seq;
                ret->first_wall_ms = record->wall_ms;
        }
        ret->last_seq = record->seq;
        ret->last_wall_ms = record->wall_ms;
        ret->n_records++;
        ret->n_inputs[record->input->kind]++;
        ret->n_actions += record->actions->n;
}

static int on_record(void *ctx, const struct walk_record *record, struct error *err)
{
        struct replay *p = ctx;

        (void) err;
        p->step(p->step_ctx, p->world, record->input, &p->out);
        p->seq = record->seq;
        p->counts = record->counts;
        if (!record->counts) {
                p->ret->n_before++;
                return 0;
        }
        record_count(p->ret, record);
        if (!actions_are_equal(p, record))
                difference_tell(p, record);
        return 0;
}

/* ---- worlds ---- */

static const struct lease *lease_of(const struct world *world, uint64_t id)
{
        for (uint32_t i = 0; i < world->n_leases; i++)
                if (world->lease_ids[i] == id)
                        return &world->leases[i];
        return NULL;
}

/* The first lease that only one of them has, or that is in another state there. */
static bool lease_differs(const struct world *reached, const struct world *written, char *buf, size_t size)
{
        for (uint32_t i = 0; i < written->n_leases; i++) {
                const struct lease *was = &written->leases[i], *is;
                if (written->lease_ids[i] == 0)
                        continue;
                is = lease_of(reached, was->id);
                if (is && is->state == was->state && is->bytes == was->bytes)
                        continue;
                (void) snprintf(buf, size, "L%" PRIu64 " is %s there, and %s here", was->id,
                                lease_state_name((enum lease_state) was->state),
                                !is                       ? "not there"
                                : is->state == was->state ? "of another size"
                                                          : lease_state_name((enum lease_state) is->state));
                return true;
        }
        for (uint32_t i = 0; i < reached->n_leases; i++) {
                if (reached->lease_ids[i] == 0 || lease_of(written, reached->lease_ids[i]))
                        continue;
                (void) snprintf(buf, size, "L%" PRIu64 " is %s here, and not there", reached->lease_ids[i],
                                lease_state_name((enum lease_state) reached->leases[i].state));
                return true;
        }
        return false;
}

static const char *world_difference(const struct world *reached, const struct world *written, char *buf, size_t size)
{
        if (lease_differs(reached, written, buf, size))
                return buf;
        if (memcmp(&reached->config, &written->config, sizeof(written->config)) != 0)
                return "the configuration is another";
        if (reached->next_lease_id != written->next_lease_id || reached->next_action_id != written->next_action_id)
                return "other numbers come next";
        for (uint32_t d = 0; d < written->n_devices && d < reached->n_devices; d++)
                if (reached->devices[d].used_bytes != written->devices[d].used_bytes ||
                    reached->devices[d].health != written->devices[d].health) {
                        (void) snprintf(buf, size, "device %" PRIu32 " is another", d);
                        return buf;
                }
        return "the same leases and devices, with other figures";
}

/*
 * Ticks that decided nothing are in no record, and move nothing but the clock: it is the snapshot that says how far. An older
 * form lacks what has come since and could only seem to differ.
 */
static int snapshot_compare(struct replay *p, const struct walk_segment *segment, struct error *err)
{
        char words[WORDS_MAX];
        size_t n = 0;

        if (p->segment == 0 || p->seq + 1 != segment->first_seq || !p->counts || !segment->same_codec)
                return 0;
        if (segment->world->now_ms > p->world->now_ms)
                p->world->now_ms = segment->world->now_ms;
        size_t size = codec_world_size_max(p->world);
        auto_free uint8_t *bytes = malloc(size);
        if (!bytes)
                return error_set(err, ENOMEM, "no memory for a snapshot of %zu bytes", size);
        p->ret->n_snapshots++;
        struct error why = { 0 };
        if (codec_world_encode(p->world, bytes, size, &n, &why) == 0 && n == segment->n_snapshot &&
            memcmp(bytes, segment->snapshot, n) == 0)
                return 0;
        p->ret->n_other_snapshots++;
        p->visitor->snapshot(p->visitor->ctx, segment->id, segment->wall_ms,
                             why.code != 0 ? why.msg
                                           : world_difference(p->world, segment->world, words, sizeof(words)));
        return 0;
}

static int on_segment(void *ctx, const struct walk_segment *segment, struct error *err)
{
        struct replay *p = ctx;

        int r = snapshot_compare(p, segment, err);
        if (r < 0)
                return r;
        if (!segment->same_core && p->ret->same_core) {
                p->ret->same_core = false;
                (void) snprintf(p->ret->core_version, sizeof(p->ret->core_version), "%s", segment->core_version);
        }
        walk_world_zero(p->world);
        world_copy(p->world, segment->world);
        p->segment = segment->id;
        p->seq = segment->first_seq - 1;
        p->ret->n_segments++;
        return 0;
}

static void on_damage(void *ctx, const char *words)
{
        struct replay *p = ctx;

        p->ret->n_damages++;
        p->visitor->damage(p->visitor->ctx, words);
}

int journal_replay(struct journal *j, const struct walk_since *since, journal_step_fn *step, void *step_ctx,
                   const struct replay_visitor *visitor, struct replay_result *ret, struct error *err)
{
        auto_call(replay_freep) struct replay *p = calloc(1, sizeof(*p));

        *ret = (struct replay_result){ .same_core = true };
        if (!p || !(p->world = walk_world_new()))
                return error_set(err, ENOMEM, "no memory to replay the journal");
        p->step = step;
        p->step_ctx = step_ctx;
        p->visitor = visitor;
        p->ret = ret;
        const struct walk_visitor walking = {
                .ctx = p, .segment = on_segment, .record = on_record, .damage = on_damage
        };
        return journal_walk(j, since, &walking, err);
}
