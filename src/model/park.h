/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A lease on its way off its device, away from it, or on its way back (design 4.4). What was done is remembered here, step by
 * step; a plan that is made anew every second changes nothing of it.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/way_out.h"

/*
 *   out    ASKING (a participant gives its memory back itself, or ends)
 *          LOCKING -> CHECKPOINTING -> STOPPING
 *          -> SETTLING until the device shows it -> OUT: parked
 *   back   RESTORING -> UNLOCKING -> RETURNING until the device shows it, or the participant says so -> NONE
 *   by its manager (a unit, a container; model/manager.h): ASKING until it is stopped, then SETTLING; RETURNING until it is started
 *   undone UNDOING: whoever got further than running is brought back, then NONE, or STUCK where one of them failed
 *   held   HOLDING -> HELD_HERE: locked in place, its memory kept -> UNLOCKING
 */
enum park_step {
        PARK_NONE,
        PARK_ASKING,
        PARK_LOCKING,
        PARK_CHECKPOINTING,
        PARK_STOPPING,
        PARK_SETTLING,
        PARK_OUT,
        PARK_RESTORING,
        PARK_UNLOCKING,
        PARK_RETURNING,
        PARK_UNDOING,
        PARK_HOLDING,
        PARK_HELD_HERE,
        PARK_STEP_N,
};

/* Who wanted it away: that says when it may come back. */
enum park_cause {
        PARK_FOR_NOBODY,
        PARK_FOR_PLAN,  /* somebody's memory: back as soon as it fits */
        PARK_BY_PERSON, /* until the person says so, or the time given is over */
        PARK_REHEARSAL, /* to prove that it can: back at once */
        PARK_CAUSE_N,
};

enum { RETURNS_KEPT = 8, STRIKES_MAX = 100 };

struct park {
        uint8_t step;               /* enum park_step */
        uint8_t way;                /* enum way_out_kind, of this attempt or this park */
        uint8_t cause;              /* enum park_cause */
        uint8_t failed_ways;        /* bit mask: tried in this attempt, and did not work */
        uint8_t strikes[WAY_OUT_N]; /* in a row, of ways out that can be repeated; a success sets 0 */
        uint8_t n_returns;          /* in returns_ms, oldest first */
        uint8_t undo_order;         /* of a plan that failed: who was parked later comes back first; 0 = not of one */
        bool yielded;               /* the participant says that it gave its memory back, or that it has it again */
        bool lost_one;              /* a member failed for good: stuck, once the others are back */
        bool broke_promise;         /* cooperated, and took its memory back: told */
        bool told;                  /* that it does not get on */
        bool wants_back;            /* by a person: thaw it */
        bool idle;                  /* it had nothing to do: nobody's work is stopped for its return until it has */
        uint64_t undo_group;        /* the plan that failed; 0 = none */
        uint64_t started_ms;        /* this attempt, or this way back */
        uint64_t step_ms;           /* since when in this step */
        uint64_t deadline_ms;       /* of this step; 0 = none */
        uint64_t again_ms;          /* nothing of it is ordered before */
        uint64_t parked_ms;         /* since when it is parked */
        uint64_t until_ms;          /* by a person: back then; 0 = when the person says so */
        uint64_t for_lease_id;      /* whose memory it is now; 0 = nobody's */
        uint32_t by_uid;            /* the person */
        uint64_t used_bytes;        /* what it used when this began, on all its devices */
        uint64_t moved_bytes;       /* of its reservations, to the claims of plans */
        uint64_t planned_bytes;     /* room in the ledger that is kept for it */
        uint64_t charged_bytes;     /* in the ledger: what the host grew by */
        uint64_t out_ms;            /* what it took to get it away, this time */
        uint64_t back_ms;           /* and back, the last time */
        uint64_t returned_ms;       /* its last return; 0 = never: immunity begins there */
        uint64_t not_before_ms;     /* could not be tried lately: no candidate before */
        uint64_t returns_ms[RETURNS_KEPT];
        uint64_t order_id; /* the order to its manager that is out; 0 = none */
        bool may_be_done;  /* an order to stop it was lost: it may have been carried out */
};

/* One process of a lease that is taken off its device by a checkpoint. */
enum member_step {
        MEMBER_RUNNING,
        MEMBER_LOCKING,
        MEMBER_LOCKED,
        MEMBER_CHECKPOINTING,
        MEMBER_CHECKPOINTED,
        MEMBER_STOPPING,
        MEMBER_STOPPED,
        MEMBER_RESTORING,
        MEMBER_RESTORED, /* locked still */
        MEMBER_UNLOCKING,
        MEMBER_FAILED, /* for good */
        MEMBER_STEP_N,
};

const char *park_step_name(enum park_step step);
const char *park_cause_name(enum park_cause cause);
const char *member_step_name(enum member_step step);

/* Its memory is in host memory, or may be: nobody but us brings it back. */
static inline bool member_is_away(unsigned step)
{
        return step >= MEMBER_CHECKPOINTING && step <= MEMBER_RESTORING;
}

/* An order was given and not answered. */
static inline bool member_is_busy(unsigned step)
{
        return step == MEMBER_LOCKING || step == MEMBER_CHECKPOINTING || step == MEMBER_STOPPING ||
               step == MEMBER_RESTORING || step == MEMBER_UNLOCKING;
}
