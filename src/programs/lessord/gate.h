/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gate, as lessord sees it (docs/decisions/0009): who may pass follows from the world's leases, compared row by row with what the
 * keeper was told, so a restart of either side, or a world that was read again, needs nothing special.
 *
 * A lease passes before anybody is told that it began: while the keeper has not answered, the actions of a turn wait as they do
 * for the disk (turn.c), GATE_PATIENCE_MS at most. Without a keeper nothing waits, and everybody passes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "base/error.h"
#include "model/identity.h"
#include "model/limits.h"
#include "model/world.h"
#include "programs/lessord/gate_link.h"
#include "wire/gate.h"

struct daemon;

enum { GATE_PATIENCE_MS = 500 };

struct gate_row {
        struct gate_allow allow; /* as it was last said, or is to be; lease_id 0 = an empty row */
        bool unsaid;
        uint32_t n_asked; /* answers that have not come yet */
};

struct gate {
        struct gate_link *link; /* NULL: never configured since the start */
        bool sync_due;          /* the world could not be looked at when there was reason to */
        bool set_due;           /* when all leases are named */
        bool holds;             /* a turn's actions wait for answers */
        bool state_known;
        enum gate_why set_why; /* what came of the last SET */
        struct gate_state state;
        uv_timer_t patience;
        uint32_t n_rows;
        struct gate_row rows[LEASES_MAX]; /* by row of the world's lease table */
};

void gate_start(struct daemon *d);
/* The configuration was read again. */
void gate_reload(struct daemon *d);
/* A turn is on the disk: the keeper is told what changed. True: its actions wait; turn_let_out() follows. */
bool gate_hold(struct daemon *d, bool leases_changed);
bool gate_holds(const struct daemon *d);
/* What waits is let out now: the daemon ends. */
void gate_finish(struct daemon *d);
void gate_stop(struct daemon *d); /* run the loop once more, then gate_free() */
void gate_free(struct daemon *d);

/* For status and doctor. */
struct gate_view {
        enum gate_mode mode; /* as configured; OFF: nothing else counts */
        const char *state;   /* "off", "log", "on": in force; "away", "blocked": everybody passes */
        const char *words;   /* why, or the keeper's version */
        bool known;          /* the figures are */
        uint32_t n_leases;
        uint64_t refused; /* since the keeper began */
        uint32_t last_uid;
};
void gate_look(const struct daemon *d, struct gate_view *ret);
