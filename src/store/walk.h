/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A journal read from one of its snapshots to its end, for whoever wants to look again at what was decided (replay.h). All of
 * it as of one moment, over a connection that is read_only: a daemon that writes meanwhile is not held up.
 *
 * What is damaged is told and passed over: each segment begins with a snapshot, so one that cannot be read costs itself only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"
#include "store/journal.h"

/* From where on the visitor is told `counts`. The walk itself begins at the newest snapshot before that. */
struct walk_since {
        enum { WALK_ALL, WALK_SINCE_WALL_MS, WALK_SINCE_EVENT } kind;
        uint64_t value;
};

struct walk_segment {
        uint64_t id;
        uint64_t first_seq;
        uint64_t wall_ms;
        const char *core_version; /* of the program that wrote it */
        bool same_core;           /* and that is this one */
        bool same_codec;          /* its snapshot is in the form that codec_world_encode() writes */
        const void *snapshot;     /* as it stands there */
        size_t n_snapshot;
        const struct world *world; /* the same, read; the walk's, until the next segment */
};

struct walk_record {
        uint64_t seq;
        uint64_t wall_ms;
        bool counts;               /* at or after the moment that was named */
        bool opens;                /* the first of its segment */
        const struct input *input; /* all three are the walk's, until the next record */
        const struct actions *actions;
        const void *actions_bytes; /* as they stand there */
        size_t n_actions_bytes;
};

/* A negative answer ends the walk and is returned. */
struct walk_visitor {
        void *ctx;
        int (*segment)(void *ctx, const struct walk_segment *segment, struct error *err);
        int (*record)(void *ctx, const struct walk_record *record, struct error *err);
        void (*damage)(void *ctx, const char *words); /* "record 17 is not what was written" */
};

/* -ENOENT: there is no such event, or the journal has nothing so late or no snapshot at all. Others as in journal.h. */
int journal_walk(struct journal *j, const struct walk_since *since, const struct walk_visitor *visitor,
                 struct error *err);

/* Zeroed memory for a world, of which only what is touched costs anything; NULL: no memory. */
struct world *walk_world_new(void);
void walk_world_zero(struct world *world);
void walk_world_free(struct world *world); /* NULL is fine */
