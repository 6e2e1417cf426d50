/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the holders of one device come to: their sums, and which of them leave when. It follows from the tables of holders and
 * leases, so the world keeps it from step to step (world.h) until a row of that device is written.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/holder.h"
#include "model/limits.h"

struct world;

/* The sums over one device's holders from which everything else follows (arbiter/free.h); a holder can be taken out of them
 * again, which is how a later time is looked at. */
struct sums {
        uint64_t total_bytes; /* T, or the budget */
        uint64_t used_bytes;  /* U */
        bool used_known;
        bool per_process_known;
        uint64_t driver_own_bytes;
        uint64_t kept_free_bytes;        /* committed to nobody, and never granted */
        uint64_t reserved_bytes;         /* Σ r, claims and uncollected grants included */
        uint64_t promised_bytes;         /* of it: claims and uncollected grants */
        uint64_t known_used_bytes;       /* Σ_known u */
        uint64_t known_untaken_bytes;    /* Σ_known max(0, r − u) */
        uint64_t unknown_reserved_bytes; /* R_unknown */
};

void sums_add(struct sums *sums, const struct holder *holder);

struct tally {
        bool kept;             /* what follows is as the tables say */
        uint32_t n_leases;     /* holders that are leases' */
        uint32_t n_there;      /* of them: not draining or parked */
        uint32_t n_keepers;    /* holders of those that may keep something back for ever */
        uint32_t n_yielding;   /* leases that went ahead of a head and have a way out: they give way to it */
        uint32_t n_giving;     /* holders that have a way out, or may have one: else nothing has to be searched there */
        uint32_t n_idle;       /* leases and tenants that say or look as if they have nothing to do */
        uint32_t n_asking;     /* leases on their way off it */
        uint64_t exclusive_id; /* of the exclusive lease that has it; 0 = none */
        uint64_t listed_bytes; /* Σ u as listed, known whole or not */
        struct sums sums;      /* of the holders alone: what the device says of itself is 0 in it */
};

/* What of host memory is spoken for by leases beside what is charged already. */
struct ledger_tally {
        bool kept;
        uint64_t planned_bytes;   /* on its way there */
        uint64_t set_aside_bytes; /* for who went ahead on the promise to go there */
};

/* The entries there are, in the order in which they stood when the queue was last put in order, new ones behind: what is mostly
 * in order already is put in order quickly. Whatever it is, the order that comes of it is the same. */
struct line {
        uint32_t n;
        uint32_t n_bookings; /* of them */
        uint32_t entries[ENTRIES_MAX];
};

/* What a user has used lately, and all that it was worked out from: it is as good for as long as that is the same. */
struct usage_memo {
        uint64_t usage_mib_s, held_bytes, span_ms, half_life_ms;
        uint64_t now_mib_s;
};

/* A lease that says when it leaves. */
struct leaving {
        uint64_t end_ms;
        uint32_t holder; /* row */
        bool lapses;     /* once that time has passed, nobody knows any more */
};

struct leavings {
        bool kept;
        uint32_t n;
        struct leaving of[LEASES_MAX]; /* soonest first, ties by row */
};

/* All as the tables have it now. */
void ledger_tally_make(const struct world *world, struct ledger_tally *ret);
void tally_make(const struct world *world, uint32_t device, struct tally *ret);
void leavings_make(const struct world *world, uint32_t device, struct leavings *ret);
/* One holder less, as its row was when it was added, and one more. What cannot be told so is not kept any more. */
void tally_take_out(struct tally *tally, const struct world *world, const struct holder *holder);
void tally_add(struct tally *tally, const struct world *world, const struct holder *holder);
void leavings_take_out(struct leavings *leavings, const struct world *world, const struct holder *holder);
void leavings_add(struct leavings *leavings, const struct world *world, const struct holder *holder);

/* A lease that is on its device: what drains is nobody's any more, what is parked has nothing there. */
bool holder_is_lease_there(const struct world *world, const struct holder *holder);
/* How long memory may take to go away after its holder ended: bytes / (2 GB/s) + 30 s (design 4). */
uint64_t settle_ms(uint64_t bytes);
