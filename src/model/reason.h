/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why a decision was made, as data (design 3.1): the rule, the figures it rested on, who is in the way. `lessor why` tells
 * it to a person, a test asserts it, the journal keeps it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/limits.h"

enum rule {
        RULE_NONE,
        /* granted */
        RULE_FITS,             /* first in the queue, and it fits into what is free */
        RULE_PASSES_HEAD,      /* more important than the waiting head by the margin */
        RULE_ENDS_IN_TIME,     /* backfill: ends before the head's computed start */
        RULE_FITS_BESIDE,      /* backfill: the head can still be placed at its start beside it */
        RULE_RECLAIMABLE,      /* backfill: can be taken back without the ledger */
        RULE_LEDGER_SET_ASIDE, /* backfill: can be checkpointed, and room in the ledger is set aside for it */
        /* waits */
        RULE_NO_ROOM,     /* head: not enough is free */
        RULE_BEHIND_HEAD, /* fits, but would delay the head */
        RULE_NO_ROOM_BEHIND_HEAD,
        RULE_HEAD_BLOCKS,   /* the head has waited 30 min without a start: new non-reclaimable work waits too */
        RULE_READING_STALE, /* no reading young enough (driver silent, or just changed) */
        RULE_READING_UNSETTLED,
        RULE_NO_USABLE_DEVICE,
        RULE_ABOVE_CEILING, /* fitted when it came; what can ever be given has become less */
        RULE_ON_HOLD,
        RULE_STEPPED_ASIDE, /* blocked as long as it may; keeps its rank */
        RULE_BLOCKING_BEGAN,
        RULE_CLAIM_CHANGED, /* what is kept free for the head of a device */
        /* refused */
        RULE_NEVER_FITS,        /* above the ceiling of every device it may use */
        RULE_WOULD_WAIT,        /* --no-wait, and it cannot start now */
        RULE_PRIORITY_CEILING,  /* asked for more than this caller may */
        RULE_URGENT_NEEDS_SLOT, /* priority 1 needs a slot and a way out */
        RULE_UNKNOWN_DEVICE,    /* names a device that is not here */
        RULE_LIMIT_LEASES,      /* a table is full: the limit is in figures.limit */
        RULE_LIMIT_ENTRIES,
        RULE_LIMIT_WAITING_PER_USER,
        RULE_LIMIT_LEASES_PER_USER,
        RULE_LIMIT_USERS,
        RULE_NO_DEVICES, /* there is no device at all */
        /* requests about a lease */
        RULE_NOT_FOUND,
        RULE_NOT_OWNER,
        RULE_WRONG_STATE,
        /* life of a lease */
        RULE_ENDED,    /* figures.end says why */
        RULE_DRAINING, /* its memory is still on the device */
        RULE_DRAINED,
        RULE_ORPHANED, /* the command is gone, workers live */
        RULE_ACTIVATED,
        RULE_RENEWED, /* a heartbeat */
        RULE_SLOT_WARNING,
        RULE_SLOT_OVER,    /* ranks as a filler from now on */
        RULE_OTHER_DEVICE, /* memory of a lease appeared on another card than granted */
        RULE_OVER_USE,     /* uses more than it reserved, beyond the tolerance and for longer than that may last */
        /* devices and strangers */
        RULE_DEVICE_FOUND,
        RULE_DEVICE_CHANGED, /* its health changed */
        RULE_STRANGER_SEEN,
        RULE_STRANGER_GONE,
        RULE_EYES_STALE, /* the driver does not answer: nothing is granted */
        RULE_EYES_BACK,
        RULE_RESTARTED,
        /* Numbers are in the journal: what came later stands here, whatever it is about. */
        RULE_EXCLUSIVE_HOLDS,  /* waits: an exclusive lease has the device */
        RULE_ADOPTED,          /* granted: over what ran already */
        RULE_NOTHING_TO_ADOPT, /* refused: no memory on a device, and no bytes named */
        RULE_ADOPT_LEASED,     /* refused: it is under a lease already */
        RULE_ADOPT_SEVERAL,    /* refused: it is on several devices, and none is named */
        RULE_ADOPT_NOT_YOURS,  /* refused: not all of it belongs to the asker */
        RULE_LIMIT_BYTES_PER_USER,
        RULE_LIMIT_SLOT, /* longer than this user's slots may be; limit in need_bytes' place: start_ms */
        RULE_LIMIT_PINS,
        RULE_LIMIT_PIN_TIME,
        RULE_NO_SLOT,             /* nothing to extend */
        RULE_BACKFILL_KEEPS_SLOT, /* went ahead of a head on the promise to end in time */
        RULE_CHANGED,
        RULE_END_ORDERED, /* life: what is left of it is being ended */
        RULE_END_BLOCKED, /* life: ending it could not be tried; figures.limit is the enum hand_why */
        RULE_UNKILLABLE,
        RULE_PIN_OVER, /* life: its pin has run out */
        /* taking memory back (design 4.3, 4.4) */
        RULE_RECLAIMED,      /* granted: memory was taken back for it */
        RULE_RECLAIMING,     /* waits: memory is being taken back for it */
        RULE_RETURNS_LIMIT,  /* waits: came back too often within the hour */
        RULE_CARD_MOVES,     /* waits: somebody outside leases grew a moment ago */
        RULE_THAW_AGAIN,     /* waits: the last look before the restore said no; tried again at start_ms */
        RULE_UNDO_ORDER,     /* waits: who was parked after it comes back first */
        RULE_PLAN_BEGAN,     /* of whose the memory is, in the blockers */
        RULE_PLAN_FAILED,    /* a step could not be done; limit is the number of the step */
        RULE_PLAN_OVER,      /* nothing more has to be taken back */
        RULE_ASKED,          /* life: it is to give its device up, by the way out in limit, for head_lease_id */
        RULE_PARKED,         /* life: it is off its device */
        RULE_PARK_BLOCKED,   /* life: could not be tried; it goes on; limit is the enum hand_why */
        RULE_PARK_FAILED,    /* life: this way out was tried in vain (limit) */
        RULE_PARK_UNDONE,    /* life: what had begun was undone */
        RULE_STUCK,          /* life: failed for good: nothing more is done with it; limit is the enum hand_why */
        RULE_THAW_BEGAN,     /* life: it is coming back */
        RULE_THAW_BLOCKED,   /* life: could not be tried, stays parked; limit is the enum hand_why */
        RULE_THAWED,         /* life: it is back */
        RULE_HELD,           /* life: locked in place, its memory kept */
        RULE_LET_GO,         /* life: works again */
        RULE_BROKE_PROMISE,  /* life: it gave its memory back, and took it again */
        RULE_STRUCK_OUT,     /* life: this way out (limit) failed too often, and is not used until a person says so */
        RULE_IDLE,           /* life: its program says that it is idle */
        RULE_BUSY,           /* life: or at work */
        RULE_CANNOT_PARK,    /* refused: limit is the enum reclaim_no */
        RULE_NOT_PARKED,     /* refused: there is nothing to bring back */
        RULE_IS_PARKED,      /* refused: it has to be brought back first */
        RULE_BOOKED,         /* waits: a booking that is not due yet; start_ms */
        RULE_BEFORE_BOOKING, /* waits: would be in the way of the booking head_lease_id, which begins at start_ms */
        RULE_BOOKING_PAST,   /* refused: begins in the past, or without an end */
        RULE_BOOKING_TAKEN,  /* refused: what is booked at that time already leaves too little (free_bytes) */
        RULE_LIMIT_BOOKINGS, /* refused: limit */
        RULE_FORGIVEN,       /* life: its strikes are taken back */
        RULE_WANTS_BACK,     /* waits: parked, and in the queue from now on */
        RULE_WAY_OUT_UNFIT,  /* refused: its program cannot survive this way out (limit) */
        /* life: who holds and does nothing (arbiter/idle.h), and what lasts after its end */
        RULE_IDLE_BEGAN,       /* since start_ms */
        RULE_IDLE_OVER,        /* it had begun at start_ms */
        RULE_IDLE_NOTICE,      /* for long; reclaimable from earliest_ms on (0 = never) */
        RULE_IDLE_RECLAIMABLE, /* for so long that it counts as idle for whoever needs memory */
        RULE_IDLE_LISTED,      /* for so long that an administrator is to know */
        RULE_STILL_DRAINING,   /* its memory is still on the device, long after its end */
        RULE_STILL_ORPHANED,   /* its workers still hold, long after its command ended */
        RULE_THAW_FAILED,      /* life: its manager did not start it (limit: enum hand_why), place times in a row */
        RULE_PAUSED,           /* waits: the machine is about to sleep or to be shut down */
        /* strangers (design 4.7) */
        RULE_WOULD_END,        /* enforcement would end it; observing, nothing is done */
        RULE_STRANGER_WARNED,  /* its owner is told; limit is the enum verdict_why */
        RULE_STRANGER_NOTICED, /* is to be asked to end, at start_ms */
        RULE_STRANGER_ENDING,  /* order: SIGTERM, and SIGKILL at start_ms; or, with start_ms 0, SIGKILL */
        RULE_STRANGER_SPARED,  /* was to be ended, and no longer is; limit is the enum verdict_why */
        RULE_STRANGER_ENDED,   /* was ended: the device shows nothing of it any more */
        RULE_STRANGER_BLOCKED, /* ending it could not be tried; limit is the enum hand_why */
        RULE_STRANGER_UNKILLABLE,
        RULE_STRANGER_RETURNS, /* its unit or container starts it again and again: nothing more is done */
        RULE_ENFORCE_MODE,     /* the mode is another now; limit is the enum enforce_mode */
        RULE_ENFORCE_DOUBT,    /* limit is the enum enforce_doubt; 0 = nothing is in doubt any more */
        RULE_APPROVED,         /* head_lease_id is the number of the approval, start_ms its end */
        RULE_UNAPPROVED,
        RULE_APPROVAL_LAPSED, /* whom it covered is warned for a day */
        RULE_ADMIN_ONLY,      /* refused */
        RULE_MODE_CEILING,    /* refused: the configuration allows this mode at most (limit) */
        RULE_NOT_A_STRANGER,  /* refused: no such process has memory on a device */
        RULE_PROGRAM_UNKNOWN, /* refused: which file it runs cannot be seen, and a name is not enough */
        RULE_PLACE_UNKNOWN,   /* refused: it runs in no unit or container that is known */
        RULE_LIMIT_APPROVALS,
        RULE_NO_APPROVAL, /* refused: there is none of that number */
        RULE_MISSES_WORK, /* a lease of which nothing is on a device; in the blockers who of its user came later, and has no lease */
        RULE_SCRIPT_UNKNOWN,  /* refused: an interpreter, or what may be one, and what it runs cannot be seen */
        RULE_TOO_FEW_DEVICES, /* refused: it wants more devices than there are (limit) */
        RULE_BOOKING_OF_GANG, /* refused: a booking is on one device */
        RULE_N,
};

/* Why somebody's memory is not taken back. */
enum reclaim_no {
        RECLAIM_MAY,
        RECLAIM_NO_WAY_OUT, /* named none, and none is proven */
        RECLAIM_AT_WORK,    /* busy, and not less important by the margin */
        RECLAIM_KEEPS_RANK, /* busy, and its grant's rank still counts */
        RECLAIM_LINGER,     /* idle, but not for long enough */
        RECLAIM_IMMUNE,     /* came back a moment ago */
        RECLAIM_PINNED,
        RECLAIM_PROTECTED,
        RECLAIM_IN_TRANSIT,  /* on its way off its device, or back */
        RECLAIM_NOT_THERE,   /* has nothing on the device that could be taken off it */
        RECLAIM_UNKNOWN,     /* nobody knows what would come back */
        RECLAIM_LEDGER_FULL, /* of host memory for parked work there is not enough left */
        RECLAIM_HOST_MEMORY,
        RECLAIM_CGROUP_LIMIT,
        RECLAIM_PRESSURE,
        RECLAIM_CANNOT,      /* the machine cannot checkpoint */
        RECLAIM_STRIKES,     /* failed too often */
        RECLAIM_BACK_OFF,    /* could not be tried a moment ago */
        RECLAIM_NOT_A_LEASE, /* a stranger, a display */
        RECLAIM_PAUSED,      /* the machine is about to sleep or to be shut down */
        RECLAIM_NO_N,
};

enum blocker_kind {
        BLOCKER_NONE,
        BLOCKER_DRIVER,
        BLOCKER_DISPLAY,
        BLOCKER_LEASE,
        BLOCKER_TENANT,
        BLOCKER_CLAIM,
        BLOCKER_STRANGER,
        BLOCKER_UNATTRIBUTED,
        BLOCKER_PINNED,
        BLOCKER_PROTECTED,
        BLOCKER_KEPT_FREE, /* by configuration, whoever asks */
        BLOCKER_EXCLUSIVE, /* a lease beside which nothing is granted */
        BLOCKER_KIND_N,
};

struct blocker {
        uint8_t kind;      /* enum blocker_kind */
        uint8_t no;        /* enum reclaim_no: why its memory is not taken back; where nobody asked, RECLAIM_MAY */
        uint32_t pid;      /* a stranger's */
        uint64_t lease_id; /* a lease's, or the head's whose claim it is */
        uint64_t bytes;    /* what it takes away */
        uint64_t end_ms;   /* when it ends by its slot, or when that reason does; 0 = unknown */
};

/* Figures that do not apply are 0; where 0 would be an answer, the rule says which figures count. */
struct reason {
        uint16_t rule;      /* enum rule */
        uint16_t end;       /* enum end_reason, for RULE_ENDED and RULE_DRAINING */
        uint32_t place;     /* in the queue, 1 = first */
        uint32_t n_waiting; /* entries in the queue */
        uint32_t limit;     /* of a full table; or the smallest priority allowed; or the hands' reason (enum hand_why);
                       or what was changed (enum change_what) */
        uint64_t need_bytes;
        uint64_t free_bytes;    /* of the device, by 4.1 */
        uint64_t lent_bytes;    /* what the head lends on top */
        uint64_t ceiling_bytes; /* of the best device it may use */
        uint64_t total_bytes;
        uint64_t used_bytes;
        uint64_t reserved_bytes;
        uint64_t head_lease_id; /* who is head of the device */
        uint64_t start_ms;      /* the head's computed start (or this one's expected start); 0 = unknown */
        uint64_t reading_age_ms;
        uint64_t earliest_ms; /* when something that is in the way may be so no longer; 0 = nobody knows */
        uint32_t n_blockers;  /* all of them; the first BLOCKERS_MAX are listed, biggest first */
        struct blocker blockers[BLOCKERS_MAX];
};

/* About strangers, the mode and approvals: reason_enforce.c says what they are. */
static inline bool rule_is_enforcement(unsigned rule)
{
        return (rule >= RULE_WOULD_END && rule <= RULE_NO_APPROVAL) || rule == RULE_SCRIPT_UNKNOWN;
}

const char *rule_name(enum rule rule); /* machine form, "never-fits" */
const char *blocker_kind_name(enum blocker_kind kind);
const char *reclaim_no_name(enum reclaim_no no);
const char *reclaim_no_text(enum reclaim_no no); /* for people */
/*
 * One sentence for a person, with figures. @now_ms turns start_ms into "in 9 min". Never longer than @buf_size;
 * returns @buf. Pure: no locale, no clock.
 */
const char *reason_text(const struct reason *reason, uint64_t now_ms, char *buf, size_t buf_size);
const char *reason_enforce_text(const struct reason *reason, uint64_t now_ms, char *buf, size_t buf_size);
enum { REASON_TEXT_MAX = 768 };
