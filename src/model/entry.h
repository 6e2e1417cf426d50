/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One row of the one queue (design 2, 4.2). The order is computed, not stored: what is stored is only what happened (when
 * it came, how long it stood on hold, since when it is head).
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/ref.h"
#include "model/way_out.h"

enum entry_kind {
        ENTRY_NONE, /* an empty row */
        ENTRY_REQUEST,
        ENTRY_THAW,    /* a parked lease that wants back */
        ENTRY_BOOKING, /* a promise for later: until it is due it only keeps others from being in its way */
        ENTRY_KIND_N,
};

/* What keeps an entry waiting; each change is an event, so that the wait can be told. */
enum wait_kind {
        WAIT_NOT_LOOKED,     /* new */
        WAIT_READING,        /* the device's reading is too old or unsettled */
        WAIT_NO_ROOM,        /* head: not enough is free */
        WAIT_BEHIND,         /* would fit, but would delay the head */
        WAIT_NO_ROOM_BEHIND, /* does not fit, and stands behind a head */
        WAIT_BLOCKED,        /* the head without a start blocks (30-minute rule) */
        WAIT_NO_DEVICE,      /* none of its devices is usable now */
        WAIT_ON_HOLD,
        WAIT_ABOVE_CEILING,  /* what can ever be given has become less than it wants */
        WAIT_EXCLUSIVE,      /* an exclusive lease has the device */
        WAIT_RECLAIMING,     /* memory is being taken back for it */
        WAIT_BACK,           /* parked: it fits, and something else keeps it from coming back */
        WAIT_BOOKED,         /* a booking that is not due yet */
        WAIT_BEFORE_BOOKING, /* would be in the way of a booking */
        WAIT_KIND_N,
};

struct entry {
        uint32_t generation; /* of this row; survives its being emptied */
        uint8_t kind;        /* enum entry_kind */
        uint8_t priority;    /* base */
        uint8_t wait_kind;   /* enum wait_kind, as last told */
        bool is_head;        /* head of head_device, with a finite start or blocking */
        bool head_is_finite; /* it has (had) a finite start: it stays head */
        bool stepped_aside;  /* blocked as long as it was allowed to */
        bool no_wait;        /* starts at the first good look at its devices, or is given up */
        bool collected;      /* its asker is connected and takes the grant at once */
        uint8_t n_more;      /* a gang: so many devices beside one, with its demand on each, all at once */
        uint64_t id;         /* arrival order, never reused */
        struct ref lease;
        uint32_t user; /* row in the world's users */
        uint64_t demand_bytes;
        uint64_t
                percent_milli; /* a share of a device's ceiling was asked for: where that falls, the demand follows; 0: not */
        uint64_t least_bytes; /* exclusive: it wants the whole of a device, whatever that is now, but so much; 0: not */
        uint64_t devices;     /* bit mask */
        uint64_t limit_ms;    /* how long it will run at most; 0 = no word on it */
        uint64_t due_ms;      /* of a booking: when it begins */
        uint64_t arrived_ms;  /* first arrival */
        uint64_t held_ms;     /* total time on hold: does not count as waiting */
        uint64_t held_since_ms; /* 0 = not on hold */
        uint64_t give_up_ms;    /* when its wait is over; 0 = never */
        struct ways_out ways;

        uint32_t head_device;    /* while is_head; a gang's first */
        uint64_t head_devices;   /* a gang's, bit mask; else 0 */
        uint64_t head_since_ms;  /* 0 = never was */
        uint64_t start_ms;       /* computed start while head; 0 = unknown */
        uint64_t block_since_ms; /* 30-minute rule: since when it blocks; 0 = does not */
        uint64_t block_until_ms; /* when it steps aside */
};

static inline bool entry_is_head_of(const struct entry *e, uint32_t device)
{
        return e->is_head && (e->head_devices != 0 ? (e->head_devices >> device & 1) != 0 : e->head_device == device);
}

/* Those that it is head of, as a mask. */
static inline uint64_t entry_head_devices(const struct entry *e)
{
        return !e->is_head ? 0 : e->head_devices != 0 ? e->head_devices : UINT64_C(1) << e->head_device;
}

const char *entry_kind_name(enum entry_kind kind);
const char *wait_kind_name(enum wait_kind kind);
