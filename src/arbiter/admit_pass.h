/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to the files of one pass over the queue: admit.c (who is looked at, and where), admit_start.c (who starts), admit_wait.c
 * (who waits, and what is told of it), admit_plan.c (for whom memory is taken back), admit_gang.c (who
 * wants several devices at once).
 */
#include "arbiter/admit.h"
#include "arbiter/lane.h"
#include "arbiter/reclaim.h"

enum { UNSETTLED_AGAIN_MS = 100 };

struct pass {
        struct world *world;
        struct actions *out;
        struct newcomer *newcomer;
        bool by_time; /* nothing came in but the time */
        uint64_t ledger_room_bytes;
        uint32_t place; /* of the entry being looked at */
        uint32_t n_waiting;
        struct lane lanes[DEVICES_MAX]; /* zeroed for those devices there are */
};

static inline struct lane *lane_of(struct pass *p, uint32_t device)
{
        if (!p->lanes[device].looked)
                lane_look(p->world, device, &p->lanes[device]);
        return &p->lanes[device];
}

/* ---- admit.c ---- */
/* What a return needs moves with what the device can give. */
void admit_follow_whole(struct pass *p, struct entry *e);
void admit_follow_share(struct pass *p, struct entry *e);
void admit_follow_need(struct pass *p, struct entry *e);
/* What comes back makes room in the ledger where it was. */
uint64_t admit_ledger_room_for(const struct pass *p, const struct entry *e);
bool admit_last_look_allows(const struct pass *p, const struct entry *e);
/* It could start, but for what was promised to others for later. */
void admit_mind_bookings(struct pass *p, const struct entry *e, uint32_t device, struct standing *s);

/* ---- admit_start.c ---- */
uint64_t admit_lease_id_of_entry(struct world *w, const struct entry *e);
void admit_fill_reason(struct pass *p, struct reason *why, uint32_t device, const struct entry *e,
                       const struct standing *s);
/* It is head of no device any more, wherever it was. */
void admit_leave_heads(struct pass *p, const struct entry *e);
void admit_start(struct pass *p, struct entry *e, uint32_t device, const struct standing *s);
/* A gang: on all of these. @s is how it stands on the first. */
void admit_start_on(struct pass *p, struct entry *e, uint64_t devices, const struct standing *s);

/* ---- admit_wait.c ---- */
/* Is there anybody to tell why it waits? The reason is only made then. */
bool admit_must_tell(const struct pass *p, const struct entry *e, enum rule rule, bool start_changed);
void admit_tell_wait(struct pass *p, struct entry *e, const struct reason *why, bool start_changed);
void admit_say_booking(struct pass *p, const struct entry *booking, struct reason *why);
struct reclaim_demand admit_demand_of(const struct world *w, const struct entry *e, uint32_t device);
/* Each of @devices is looked at: one that cannot be read may not keep it from another. */
void admit_order_looks(struct pass *p, struct entry *e, uint64_t devices, bool *ret_others_wait);
void admit_wait_for_reading(struct pass *p, struct entry *e, uint64_t devices, const struct standing *standings);
bool admit_become_head(struct pass *p, struct entry *e, const struct standing *standings, uint32_t asked);
/* It is head no longer of what it was head of; a gang claims nothing there any more. */
void admit_leave_head(struct world *w, struct entry *e);
bool admit_say_nobody_gives_way(struct world *w, const struct entry *e, uint32_t device, struct reason *why);
void admit_stay_behind(struct pass *p, struct entry *e, uint32_t device, const struct standing *s);
bool admit_is_too_large(struct pass *p, struct entry *e);
bool admit_stays_parked(struct pass *p, struct entry *e);

/* ---- admit_plan.c ---- */
void admit_serve_plan(struct pass *p, struct entry *e, struct plan *plan);
bool admit_reclaim_for(struct pass *p, struct entry *e, uint32_t *ret_device);
bool admit_start_elsewhere(struct pass *p, struct entry *e, struct plan *plan);
bool admit_is_of_leases(const struct world *w, const struct reclaim *r);

/* ---- admit_gang.c ---- */
/* Its turn in the order: it starts on as many devices as it needs, or on none. */
void admit_look_at_gang(struct pass *p, struct entry *e);
/* Of which devices it is head: where it can start first, as many as it needs. *@ret_devices is a mask, @starts are by device. */
bool admit_choose_heads(struct pass *p, const struct entry *e, struct projection starts[DEVICES_MAX],
                        uint64_t *ret_devices);
