/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A lease: an explicit promise of N bytes on a device to a process tree, a cgroup, a connection or a heartbeat (design 2).
 * It exists from the request on (queued) until it is ended and its memory is gone. One function changes its state
 * (lease_next), by one table; names, docs and man page come from the same table.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/number.h"
#include "model/identity.h"
#include "model/limits.h"
#include "model/manager.h"
#include "model/park.h"
#include "model/ref.h"
#include "model/way_out.h"

enum lease_state {
        LEASE_NONE, /* an empty row */
        LEASE_QUEUED,
        LEASE_GRANTED, /* reserved, nobody collected it yet */
        LEASE_ACTIVE,
        LEASE_ASKING,
        LEASE_HELD,
        LEASE_PARKED,
        LEASE_THAWING,
        LEASE_DRAINING, /* ended in the books, memory still on the device */
        LEASE_ORPHANED, /* its command is gone, workers live: counted in full */
        LEASE_STUCK,
        LEASE_LOST,  /* its device is lost */
        LEASE_ENDED, /* a moment only: the row is emptied in the same step */
        LEASE_STATE_N,
};

enum lease_event {
        LEASE_EVENT_GRANT,
        LEASE_EVENT_ACTIVATE,    /* collected */
        LEASE_EVENT_END,         /* released, cancelled, expired, not collected, refused: no owner any more */
        LEASE_EVENT_OWNER_GONE,  /* the command ended while workers live */
        LEASE_EVENT_MEMORY_GONE, /* the device shows nothing of it any more */
        LEASE_EVENT_DEVICE_LOST,
        LEASE_EVENT_DEVICE_BACK,
        LEASE_EVENT_ASK,    /* it is on its way off the device */
        LEASE_EVENT_PARK,   /* and is off, as the device shows */
        LEASE_EVENT_THAW,   /* it is on its way back */
        LEASE_EVENT_RETURN, /* it is back, or never went */
        LEASE_EVENT_STICK,  /* a checkpoint or restore failed for good */
        LEASE_EVENT_HOLD,   /* locked in place, its memory kept */
        LEASE_EVENT_N,
};

/* Why a lease ended, as every answer and event names it. */
enum end_reason {
        END_NONE,
        END_RELEASED,       /* by its owner */
        END_RELEASED_ADMIN, /* by an administrator */
        END_OWNER_EXITED,   /* the process it was bound to is gone */
        END_CONNECTION_CLOSED,
        END_EXPIRED,               /* no heartbeat within its TTL */
        END_NOT_COLLECTED,         /* granted, and nobody took it for 60 s */
        END_WAIT_OVER,             /* waited as long as it was willing to */
        END_CANCELLED,             /* left the queue */
        END_OWNER_GONE_WHILE_AWAY, /* not there any more when the daemon came back */
        END_REBOOTED,
        END_WORKERS_GONE, /* orphaned, and the last worker is gone */
        END_UNADOPTED,    /* an adopted one was let go: its processes are strangers again */
        END_REASON_N,
};

enum binding_kind {
        BINDING_PROCESS,    /* lives as long as a process (and its tree) does */
        BINDING_CONNECTION, /* lives as long as the client's connection */
        BINDING_HEARTBEAT,  /* lives as long as somebody renews it */
        BINDING_KIND_N,
};

struct binding {
        uint8_t kind;           /* enum binding_kind */
        struct identity owner;  /* BINDING_PROCESS: who must live; otherwise who asked (for display and attribution) */
        struct identity root;   /* the command itself once it runs (activate); its tree is the lease's */
        uint64_t cgroup_id;     /* inode of the cgroup the command was put in; 0 = none */
        uint64_t ttl_ms;        /* BINDING_HEARTBEAT */
        struct manager manager; /* adopted: who stops and starts it; none = nobody we could ask */
};

static inline bool binding_is_managed(const struct binding *b)
{
        return b->manager.kind != MANAGER_NONE;
}

/* A client's Idempotency-Key, mixed with who used it where, and the body it came with (api/idempotency.h). */
struct idempotency {
        uint64_t key[2];
        uint64_t body;
};

enum ending_told {
        ENDING_TOLD_NOTHING,
        ENDING_TOLD_BLOCKED,    /* it could not be tried */
        ENDING_TOLD_UNKILLABLE, /* it was, and something does not end */
        ENDING_TOLD_N,
};

/* How its size was found. */
enum sized {
        SIZED_ASKED,   /* an amount or a share was named */
        SIZED_LEARNED, /* none was: by what its earlier runs came to */
        SIZED_WHOLE,   /* none was, and nothing is known of such runs: all a device can give */
        SIZED_RAISED,  /* one was, and its earlier runs came to more */
        SIZED_N,
};

/* What a lease has on one device. */
struct part {
        uint32_t device;   /* index */
        struct ref holder; /* its row in the holder table */
};

struct lease {
        uint32_t generation;  /* of this row; survives its being emptied */
        uint8_t state;        /* enum lease_state */
        uint8_t priority;     /* 1 … 5, base */
        uint8_t kept_rank;    /* the ⌈e⌉ of its grant, kept for 30 min or its slot if shorter (design 4.2) */
        uint8_t end_reason;   /* enum end_reason, once draining */
        uint8_t absent_looks; /* draining, orphaned: looks in a row that showed nothing of it */
        bool managed;
        bool kill_at_end;
        bool slot_warned;
        bool over_time;        /* its slot is over: ranks as a filler */
        uint8_t over_use_told; /* warnings so far; leaving: of draining or being orphaned */
        uint8_t leaving_told;
        bool misplaced;       /* memory of it was seen on another card, and said */
        bool root_living;     /* the command (binding.root) has not ended, as far as is known */
        bool owner_gone;      /* its owner ended; workers may live (orphaned) */
        bool backfilled;      /* went ahead of a head as backfill: may be reclaimed for that head */
        bool exclusive;       /* nothing is granted beside it */
        bool adopted;         /* over a process that ran before it: its end gives the process back */
        bool kill_left;       /* what its command leaves behind is ended, after notice and grace */
        bool filler;          /* --filler: checkpoint where proven, else restart */
        bool no_stop;         /* checkpointed, its process is not stopped as well */
        bool ending;          /* its processes are being ended (arbiter/ending.c) */
        uint8_t ending_told;  /* enum ending_told: what was said of its not getting on */
        bool misses_told;     /* that its work seems to be somebody else's (arbiter/misses.h) */
        bool failed;          /* its program ended with an error, as was said at the end */
        uint8_t sized;        /* enum sized */
        uint8_t sized_by;     /* SIZED_LEARNED, SIZED_RAISED: how many runs */
        uint8_t n_more;       /* a gang: so many devices beside the first, all of them or none */
        uint64_t id;          /* 1, 2, 3 … never reused; "L17" for people */
        uint32_t uid;         /* owner */
        uint32_t user;        /* row in the world's users */
        uint64_t bytes;       /* what was asked for, resolved; on each of its devices */
        uint64_t asked_bytes; /* what it named; 0 = no amount */
        uint64_t peak_bytes;  /* the most it was known to use at any look; 0 = never known to use any */
        uint64_t devices;     /* bit mask of devices it may be on */
        uint32_t device;      /* index, once granted; a gang's first */
        uint64_t booked_ms;   /* a booking: when it begins; 0 = none */
        /* What of a booking is the shell's business, and only kept here: the moment it was made for by people's clocks (the
         * world's may part from them: booked_ms follows); whether it is still to be made again for the next day, and then the
         * second of the local day it is made for. */
        uint64_t booked_wall_ms;
        bool daily;
        uint32_t day_s;
        uint64_t slot_ms; /* --for; 0 = no limit */
        uint64_t arrived_ms;
        uint64_t granted_ms;  /* 0 = not yet */
        uint64_t active_ms;   /* 0 = not yet */
        uint64_t ended_ms;    /* when it left the books (draining), or the last of it known to live ended (orphaned) */
        uint64_t slot_end_ms; /* 0 = none */
        uint64_t renewed_ms;  /* the last heartbeat */
        uint64_t waited_ms;   /* before its grant */
        uint64_t over_use_since_ms;      /* 0 = within its reservation and the tolerance */
        uint64_t ledger_set_aside_bytes; /* backfill by checkpoint: room kept in the ledger for it */
        uint64_t root_term_ms;           /* ending: when its command was sent SIGTERM; 0 = not */
        uint64_t tree_kill_ms;           /* ending: when killing its tree was last ordered; 0 = not */
        uint64_t ending_again_ms;        /* ending: nothing is ordered before; the hands could not */
        struct idempotency idempotency;  /* of the request it came from; zero = none */
        struct binding binding;
        struct ways_out ways;
        struct park park;
        struct ref holder;               /* its row in the holder table, once granted; on @device */
        struct part more[GANG_MORE_MAX]; /* a gang's others, once granted; by device */
        struct ref entry;                /* its place in the queue, while it has one */
        struct ref backfill_for;         /* the head it went ahead of */
        char name[NAME_MAX_BYTES];
        char consumer[NAME_MAX_BYTES]; /* under which costs and peaks are remembered */
};

/* On how many devices it has rows: none while it waits, else all that it asked for. */
static inline uint32_t lease_n_parts(const struct lease *l)
{
        return ref_is_none(l->holder) ? 0 : 1U + l->n_more;
}

static inline struct part lease_part(const struct lease *l, uint32_t i)
{
        return i == 0 ? (struct part){ .device = l->device, .holder = l->holder } : l->more[i - 1];
}

/* Does it have a row there? */
static inline bool lease_is_on(const struct lease *l, uint32_t device)
{
        for (uint32_t i = 0; i < lease_n_parts(l); i++)
                if (lease_part(l, i).device == device)
                        return true;
        return false;
}

/* Of all its devices together. */
static inline uint64_t lease_whole_bytes(const struct lease *l)
{
        return u64_mul_sat(l->bytes, 1U + l->n_more);
}

enum { LEASE_ID_TEXT_MAX = 24 };

/* The only way a state changes. Returns LEASE_NONE when the table has no such edge: the caller's bug or a late event. */
enum lease_state lease_next(enum lease_state state, enum lease_event event);
const char *lease_state_name(enum lease_state state);
const char *lease_event_name(enum lease_event event);
const char *end_reason_name(enum end_reason reason); /* machine form, "owner-exited" */
const char *end_reason_text(enum end_reason reason); /* for people, "the process it was bound to is gone" */
const char *binding_kind_name(enum binding_kind kind);
const char *sized_name(enum sized sized);
const char *lease_id_text(uint64_t id, char buf[LEASE_ID_TEXT_MAX]); /* "L17" */
bool lease_id_parse(const char *text, uint64_t *ret_id);             /* "L17" or "17" */
/* Does it count on its device (a holder row with its reservation)? */
bool lease_state_holds(enum lease_state state);

enum { PRIORITY_URGENT = 1, PRIORITY_INTERACTIVE, PRIORITY_NORMAL, PRIORITY_BATCH, PRIORITY_FILLER };
const char *priority_name(unsigned priority);                 /* "urgent" … ; "?" outside 1…5 */
bool priority_parse(const char *text, uint8_t *ret_priority); /* number or name */
