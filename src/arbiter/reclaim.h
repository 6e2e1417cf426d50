/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whose memory would be taken back for a demand, by which way out, in which order; or why that does not come to enough
 * (design 4.3). It looks, and changes nothing. Worked examples: tests/unit/test_reclaim.c (C1 … C16).
 */
#include "model/plan.h"
#include "model/reason.h"
#include "model/world.h"

struct reclaim;

struct reclaim_demand {
        uint32_t device;
        uint64_t bytes;
        uint8_t priority;
        struct ref entry;              /* whose it is; its own plan and claims do not stand in its way */
        uint64_t leaving_ledger_bytes; /* of a thaw: what it takes out of the ledger itself */
        /* A gang's: what was found for it on its other devices; who gives way there has given way here too. */
        const struct reclaim *with;
        uint32_t n_with;
};

struct reclaim_step {
        uint32_t holder;      /* row */
        uint8_t way;          /* enum way_out_kind */
        uint64_t bytes;       /* what it gives back, by the reading */
        uint64_t moves_bytes; /* of that, and of what it has on other devices, to host memory */
};

struct reclaim {
        bool suffices;
        uint32_t n; /* 0 and it suffices: what is on its way already is enough */
        struct reclaim_step steps[VICTIMS_MAX];
        uint64_t earliest_ms; /* else: when that could change; 0 = nobody knows */
};

/* @why, where it is not NULL: its blockers and earliest_ms are filled where it does not suffice, else the blockers are the
 * victims. Without it the same is found quicker, and ret->earliest_ms is not. */
void reclaim_plan(struct world *world, const struct reclaim_demand *demand, struct reclaim *ret, struct reason *why);

/* The victims of a plan that was found without a reason, as reclaim_plan() would have named them. */
void reclaim_name_victims(struct world *world, const struct reclaim *r, struct reason *why);

/* May @lease still be taken from for the demand: did it become busy, pinned, more important since the plan was made? */
enum reclaim_no reclaim_may_take(struct world *world, const struct lease *lease, const struct reclaim_demand *demand);

/* Could this one lease be parked now, by whom it matters to or by a person (@demand NULL)? RECLAIM_MAY and the way out, or
 * why not. @not: ways out that are not to be used. */
enum reclaim_no reclaim_may_park(struct world *world, const struct lease *lease, uint8_t not, uint8_t *ret_way);

/* The same for a checkpoint that is to prove that it can be done: neither named nor proven has it to be. */
enum reclaim_no reclaim_may_rehearse(struct world *world, const struct lease *lease);

/* What the ledger and the host can still take, beside what is set aside and what is on its way there. */
uint64_t reclaim_ledger_room_bytes(const struct world *world);
uint64_t reclaim_ledger_room_now(struct world *world); /* from what the world keeps */
/* Host memory is below the reserve: nothing more is parked, and what fits comes back. */
bool reclaim_host_is_short(const struct world *world);
