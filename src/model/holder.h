/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One row of the table of everything that occupies a device (design 2, 4.1): what it was promised, what it has, how it
 * could give it back. "Unattributed" is no row: it is the residue of the sums (arbiter/free.h).
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/identity.h"
#include "model/ref.h"
#include "model/way_out.h"

enum holder_kind {
        HOLDER_NONE, /* an empty row */
        HOLDER_DISPLAY,
        HOLDER_LEASE,
        HOLDER_TENANT,
        HOLDER_CLAIM,
        HOLDER_STRANGER,
        HOLDER_KIND_N,
};

enum claim_kind {
        CLAIM_NONE,
        CLAIM_HEAD,    /* of a queue head for its later start: lent to backfill and to who passes */
        CLAIM_PLAN,    /* of a running reclaim plan: never lent */
        CLAIM_BOOKING, /* of a booking that is due: never lent */
};

/* What its processes did over the last interval in which that was watched. */
enum holder_activity {
        HOLDER_ACTIVITY_UNKNOWN,
        HOLDER_RESTED, /* each of them is known to have done nothing */
        HOLDER_WORKED, /* one of them at least did something */
        HOLDER_ACTIVITY_N,
};

/* How far up the ladder of idle holders it was told of (arbiter/idle.h). */
enum idle_told {
        IDLE_TOLD_NOTHING,
        IDLE_TOLD_BEGAN,
        IDLE_TOLD_NOTICE,
        IDLE_TOLD_RECLAIMABLE,
        IDLE_TOLD_LISTED,
        IDLE_TOLD_N,
};

struct holder {
        uint32_t generation; /* of this row; survives its being emptied */
        uint8_t kind;        /* enum holder_kind */
        uint8_t claim_kind;  /* enum claim_kind, for HOLDER_CLAIM */
        uint8_t priority;    /* a tenant's, base; 0 = normal */
        bool used_known;     /* false: the driver gave no figure for at least one of its processes; never 0 then */
        bool managed;        /* managed memory: its figure is known to be incomplete and counts as unknown */
        bool pinned;         /* may not be preempted; without an end it lowers the ceiling */
        bool protected;      /* may never be touched at all; lowers the ceiling */
        bool exclusive;      /* nothing is granted beside it */
        bool tells_idle;     /* its program says when it is idle and when at work */
        bool uncollected;    /* a grant nobody has collected: a reservation with a known use of 0 */
        uint8_t activity;    /* enum holder_activity, at the last look */
        uint8_t idle_told;   /* enum idle_told */
        uint32_t device;     /* index */
        uint64_t reserved_bytes;
        uint64_t used_bytes;    /* what the driver listed for it, also where incomplete */
        uint64_t pin_end_ms;    /* 0 = pinned without an end */
        uint64_t idle_since_ms; /* 0 = not idle, or not known to be */
        uint64_t idle_bytes;    /* what it used then: more is work */
        uint64_t keep_alive_ms; /* how long its application itself keeps what is idle; 0 = unknown */
        /* Since when it holds and was seen to do nothing; 0 = works, or nobody knows. The beginning of the idle time that was
         * told of; 0 = none was. */
        uint64_t rests_since_ms;
        uint64_t idle_told_ms;
        uint32_t n_processes; /* listed on this device */
        /* A lease on its way off: what it used here when that began, and what of its reservation went to the plan's claim here. */
        uint64_t began_used_bytes;
        uint64_t moved_bytes;
        struct ways_out ways;
        struct ref lease;        /* HOLDER_LEASE; for a stranger: the lease whose tree it is in, when it sits on another
                                    card than granted */
        struct ref entry;        /* HOLDER_CLAIM of a head: whose */
        struct identity process; /* HOLDER_STRANGER */
};

/* Is its figure good for sums? Managed memory hides from the process list, so such a figure is not. */
static inline bool holder_reading_is_known(const struct holder *h)
{
        if (h->uncollected && h->n_processes == 0)
                return true; /* nothing of it runs yet: 0, for sure, also where it will be managed memory */
        return h->used_known && !h->managed;
}

/* Since when it does nothing; 0 = it works, or nobody knows. What a program says of itself is asked before what it looks like:
 * who waits for an answer of the network is at work. */
static inline uint64_t holder_idle_since_ms(const struct holder *h)
{
        return h->tells_idle ? h->idle_since_ms : h->rests_since_ms;
}

/* A claim and an uncollected grant have nothing on the device, which is known: they never hide in what nobody can
 * attribute (A5). */
static inline bool holder_is_promise(const struct holder *h)
{
        return h->kind == HOLDER_CLAIM || h->uncollected;
}

/* Is it of those that may keep something back for ever (arbiter/ceiling.h)? Most are not. */
static inline bool holder_may_keep_back(const struct holder *h)
{
        return h->protected || h->pinned || h->kind == HOLDER_DISPLAY || h->kind == HOLDER_TENANT;
}

const char *holder_kind_name(enum holder_kind kind);
const char *holder_activity_name(enum holder_activity activity);
