/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Was it decided as it stands there? The snapshot that opens a segment becomes the world, each recorded input goes through
 * the core again, and what the core says is compared with what is recorded, byte by byte; at the end of a segment, the world
 * that was reached with the snapshot of the next. Each segment begins anew from its own snapshot, so that one difference does
 * not follow into all that came later.
 */
#include "store/walk.h"

struct replay_difference {
        uint64_t segment;
        uint64_t seq;
        uint64_t wall_ms;
        uint64_t now_ms;          /* of the world: reason_text() wants it */
        enum input_kind kind;     /* of the input */
        const struct action *was; /* the first on which they differ; NULL: the record says nothing more there */
        const struct action *is;  /* the same of the core as it is now */
};

struct replay_visitor {
        void *ctx;
        void (*difference)(void *ctx, const struct replay_difference *difference);
        /* The world reached before segment @segment is not what its snapshot says. */
        void (*snapshot)(void *ctx, uint64_t segment, uint64_t wall_ms, const char *words);
        void (*damage)(void *ctx, const char *words);
};

struct replay_result {
        bool same_core;                          /* all of it was decided by the version that this program is */
        char core_version[JOURNAL_VERSION_SIZE]; /* else the first other one */
        uint64_t n_segments;
        uint64_t n_records; /* that count */
        uint64_t n_before;  /* fed to the core to come there */
        uint64_t n_inputs[INPUT_KIND_N];
        uint64_t n_actions;     /* recorded ones */
        uint64_t n_differences; /* records that say other actions */
        uint64_t n_snapshots;   /* compared */
        uint64_t n_other_snapshots;
        uint64_t n_damages;
        uint64_t first_seq, last_seq;
        uint64_t first_wall_ms, last_wall_ms;
};

/* 0, also with differences: they are told as they are found, and counted. Errors as journal_walk() has them. */
int journal_replay(struct journal *j, const struct walk_since *since, journal_step_fn *step, void *step_ctx,
                   const struct replay_visitor *visitor, struct replay_result *ret, struct error *err);

/* Nothing differed, and nothing was damaged. */
static inline bool replay_is_equal(const struct replay_result *r)
{
        return r->n_differences == 0 && r->n_other_snapshots == 0 && r->n_damages == 0;
}
