/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/admit_pass.h"
#include "arbiter/booking.h"
#include "arbiter/ceiling.h"
#include "arbiter/park.h"
#include "arbiter/plan.h"
#include "arbiter/queue.h"
#include "arbiter/request.h"
#include "base/number.h"
#include "placement/pick.h"

static void set_demand(struct pass *p, struct entry *e, struct lease *lease, uint64_t bytes)
{
        struct world *w = p->world;

        e->demand_bytes = lease->bytes = bytes;
        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (ref_equal(w->holders[i].entry, world_entry_ref(w, e)) && w->holders[i].reserved_bytes > bytes) {
                        world_holder_writing(w, &w->holders[i]);
                        w->holders[i].reserved_bytes = bytes;
                        world_holder_written(w, &w->holders[i]);
                }
}

/*
 * The whole of a device was asked for, and what that comes to shows late: what the driver keeps only when the device is
 * empty, a display when it is switched on. Without following it would wait on an empty device for ever; without following
 * upwards the more that can be had would be somebody else's, beside it.
 */
void admit_follow_whole(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        struct lease *lease = e->least_bytes == 0 || e->kind != ENTRY_REQUEST ? NULL : world_lease_get(w, e->lease);
        uint64_t whole_bytes = 0;

        if (!lease)
                return;
        for (uint32_t d = 0; d < w->n_devices; d++)
                if ((e->devices & (UINT64_C(1) << d)) && lane_of(p, d)->usable)
                        whole_bytes = u64_max(whole_bytes, device_whole_bytes(w, d));
        if (whole_bytes < e->least_bytes)
                return;
        set_demand(p, e, lease, whole_bytes);
}

/* The same for a share of a device, but downwards only: "all" of what can be given is less when less can be given (the
 * driver's own shows when the device is empty), and nobody waits on an empty device for what it never gives. */
void admit_follow_share(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        struct lease *lease = e->percent_milli == 0 ? NULL : world_lease_get(w, e->lease);
        uint64_t ceiling_bytes = 0;

        if (!lease)
                return;
        for (uint32_t d = 0; d < w->n_devices; d++)
                if ((e->devices & (UINT64_C(1) << d)) && lane_of(p, d)->usable)
                        ceiling_bytes = u64_max(ceiling_bytes, lane_of(p, d)->ceiling_bytes);
        uint64_t share = (uint64_t) ((unsigned __int128) ceiling_bytes * e->percent_milli / PERCENT_ALL);
        if (share != 0 && share < e->demand_bytes)
                set_demand(p, e, lease, share);
}

/* What a return needs moves with what the device can give. */
void admit_follow_need(struct pass *p, struct entry *e)
{
        struct lease *lease = e->kind == ENTRY_THAW ? world_lease_get(p->world, e->lease) : NULL;

        if (lease)
                e->demand_bytes = thaw_demand_bytes(p->world, lease);
}

/* What comes back makes room where it was. */
uint64_t admit_ledger_room_for(const struct pass *p, const struct entry *e)
{
        struct lease *lease = e->kind == ENTRY_THAW ? world_lease_get(p->world, e->lease) : NULL;

        return lease ? u64_add_sat(p->ledger_room_bytes, lease->park.charged_bytes) : p->ledger_room_bytes;
}

bool admit_last_look_allows(const struct pass *p, const struct entry *e)
{
        struct lease *lease = world_lease_get(p->world, e->lease);

        return !lease || thaw_keeps_waiting(p->world, lease, NULL) == RULE_NONE;
}

/* It could start, but for what was promised to others for later. */
void admit_mind_bookings(struct pass *p, const struct entry *e, uint32_t device, struct standing *s)
{
        s->booking = booking_in_the_way(p->world, device, &p->lanes[device].now, e, admit_ledger_room_for(p, e), NULL,
                                        &s->promise);
        if (!s->booking)
                return;
        s->starts = false;
        s->rule = RULE_BEFORE_BOOKING;
}

static void look_at(struct pass *p, struct entry *e)
{
        if (e->n_more != 0) {
                admit_look_at_gang(p, e);
                return;
        }
        struct world *w = p->world;
        struct pick picks[DEVICES_MAX];
        struct standing standings[DEVICES_MAX];
        size_t n_picks = 0;
        uint64_t unread = 0; /* devices it would start on, but for the reading */
        uint32_t nearest = NO_DEVICE;

        struct plan *plan = world_plan_of(w, world_entry_ref(w, e));
        if (plan && !lane_of(p, plan->device)->usable) {
                uint32_t device = plan->device;
                plan_end(w, plan); /* nothing will come back there: another device may do */
                lane_refresh(w, device, &p->lanes[device]);
                plan = NULL;
        }
        if (plan && admit_start_elsewhere(p, e, plan))
                return;
        if (plan) {
                admit_follow_need(p, e);
                if (plan->need_bytes != e->demand_bytes) {
                        plan_set_need(w, plan, e->demand_bytes);
                        lane_refresh(w, plan->device, lane_of(p, plan->device));
                }
                admit_serve_plan(p, e, plan);
                return;
        }
        if (admit_stays_parked(p, e))
                return;
        admit_follow_whole(p, e);
        admit_follow_share(p, e);
        admit_follow_need(p, e);
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)))
                        continue;
                struct lane *lane = lane_of(p, d);
                if (!lane->usable)
                        continue;

                lane_keep_head(w, d, lane, e);
                standings[d] = lane_stand(w, lane, e, admit_ledger_room_for(p, e));
                if (standings[d].starts)
                        admit_mind_bookings(p, e, d, &standings[d]);
                if (e->kind == ENTRY_THAW && standings[d].starts && !admit_last_look_allows(p, e)) {
                        standings[d].starts = false;
                        standings[d].rule = RULE_NO_ROOM;
                }
                if (nearest == NO_DEVICE || standings[d].room_bytes > standings[nearest].room_bytes)
                        nearest = d;
                if (!standings[d].starts && !(e->no_wait && !lane->fresh))
                        continue;
                if (!lane->fresh || lane->pending) {
                        unread |= UINT64_C(1) << d;
                        continue;
                }
                picks[n_picks++] = (struct pick){ .device = d, .free_bytes = standings[d].room_bytes };
        }

        if (nearest == NO_DEVICE) {
                struct reason why = { .rule = RULE_NO_USABLE_DEVICE,
                                      .place = p->place,
                                      .n_waiting = p->n_waiting,
                                      .need_bytes = e->demand_bytes };
                admit_tell_wait(p, e, &why, false);
                return;
        }
        if (n_picks != 0) {
                uint32_t device = picks[pick_best_fit(picks, n_picks)].device;
                admit_start(p, e, device, &standings[device]);
                return;
        }
        if (unread != 0) {
                admit_wait_for_reading(p, e, unread, standings);
                return;
        }
        uint32_t asked;
        if (admit_reclaim_for(p, e, &asked))
                return;
        if (!admit_become_head(p, e, standings, asked) && !admit_is_too_large(p, e))
                admit_stay_behind(p, e, nearest, &standings[nearest]);
}

/* On @devices it stands here, before others that are looked at now: it starts there, or nothing becomes of it yet. */
static bool look_early(struct pass *p, struct entry *e, uint64_t devices)
{
        struct world *w = p->world;
        struct pick picks[DEVICES_MAX];
        struct standing standings[DEVICES_MAX];
        size_t n_picks = 0;
        uint64_t unread = 0;

        if (e->n_more != 0 || e->held_since_ms != 0 || e->kind == ENTRY_BOOKING ||
            (e->kind == ENTRY_THAW && !admit_last_look_allows(p, e)))
                return false;
        admit_follow_whole(p, e);
        admit_follow_share(p, e);
        admit_follow_need(p, e);
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(devices & (UINT64_C(1) << d)) || !lane_of(p, d)->usable)
                        continue;
                struct lane *lane = &p->lanes[d];
                lane_keep_head(w, d, lane, e);
                standings[d] = lane_stand(w, lane, e, admit_ledger_room_for(p, e));
                if (standings[d].starts)
                        admit_mind_bookings(p, e, d, &standings[d]);
                if (!standings[d].starts)
                        continue;
                if (lane->fresh && !lane->pending)
                        picks[n_picks++] = (struct pick){ .device = d, .free_bytes = standings[d].room_bytes };
                else
                        unread |= UINT64_C(1) << d;
        }
        if (n_picks != 0) {
                uint32_t device = picks[pick_best_fit(picks, n_picks)].device;
                admit_start(p, e, device, &standings[device]);
                return true;
        }
        bool others_wait;
        if (unread != 0)
                admit_order_looks(p, e, unread, &others_wait);
        return false;
}

static void say_claim(struct pass *p, uint32_t device, uint64_t bytes)
{
        struct action *a = actions_add(p->world, p->out, ACTION_WAITING);

        a->device = device;
        a->bytes = bytes;
        a->why = (struct reason){ .rule = RULE_CLAIM_CHANGED, .reserved_bytes = bytes };
}

/* Heads that are heads no longer, and what each head claims: what is free, up to its demand, never more than 4.1 leaves. */
static void settle_lane(struct pass *p, uint32_t device)
{
        struct world *w = p->world;
        struct lane *lane = &p->lanes[device];
        struct entry *head = lane->head;
        struct holder *claim = NULL;
        uint64_t had_bytes = 0;
        bool changed = false;

        if (!lane->looked || (lane->pending && !lane->head))
                return;
        if (lane->old_head && lane->old_head->kind != ENTRY_NONE && lane->old_head != lane->head &&
            entry_is_head_of(lane->old_head, device)) {
                admit_leave_head(w, lane->old_head);
                changed = true;
        }

        if (head && !entry_is_head_of(head, device))
                head = NULL; /* it was kept, and became head elsewhere */
        bool claims = head && (lane->start.finite || lane->blocks);
        uint64_t want = claims ? u64_min(head->demand_bytes, sums_free_bytes(&lane->now)) : 0;
        world_each_holder_of (w, i, HOLDER_CLAIM) {
                struct holder *h = &w->holders[i];
                if (h->claim_kind != CLAIM_HEAD || h->device != device)
                        continue;
                had_bytes += h->reserved_bytes;
                if (want != 0 && !claim && ref_equal(h->entry, world_entry_ref(w, head)))
                        claim = h;
                else
                        world_holder_drop(w, h);
        }
        if (want != 0 && (!claim || claim->reserved_bytes != want)) {
                if (claim)
                        world_holder_writing(w, claim);
                else
                        claim = world_holder_new(w, HOLDER_CLAIM, device);
                assert(claim);
                claim->claim_kind = CLAIM_HEAD;
                claim->entry = world_entry_ref(w, head);
                claim->reserved_bytes = want;
                world_holder_written(w, claim);
        }
        /* What only time made change is said: ticks without actions are not kept. */
        if (p->by_time && (changed || want != had_bytes) && p->out->n == 0)
                say_claim(p, device, want);
}

static bool anyone_may_use_ledger(const struct world *w, const uint32_t *order, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (ways_out_usable(&w->entries[order[i]].ways) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT))
                        return true;
        return false;
}

static bool has_started(const struct early *early, uint32_t entry)
{
        for (uint32_t k = 0; k < early->n; k++)
                if (early->of[k].entry == entry)
                        return early->of[k].started;
        return false;
}

void admit_pass(struct world *w, struct actions *out, struct newcomer *newcomer, bool by_time)
{
        uint32_t order[ENTRIES_MAX];
        struct early early;

        plans_advance(w, by_time, out);
        uint32_t n = queue_order_now(w, order, &early);
        if (n == 0)
                return;

        struct pass p;
        memset(&p, 0, offsetof(struct pass, lanes) + w->n_devices * sizeof(p.lanes[0]));
        p.world = w;
        p.out = out;
        p.newcomer = newcomer;
        p.by_time = by_time;
        p.n_waiting = n;
        if (anyone_may_use_ledger(w, order, n))
                p.ledger_room_bytes = reclaim_ledger_room_now(w);
        for (uint32_t i = 0; i < n; i++) { /* so that a head that stopped being one is noticed */
                struct entry *e = &w->entries[order[i]];
                if (!e->is_head)
                        continue;
                for (uint64_t heads = entry_head_devices(e); heads != 0; heads &= heads - 1) {
                        uint32_t d = (uint32_t) __builtin_ctzll(heads);
                        p.lanes[d].old_head = e;
                        (void) lane_of(&p, d);
                }
        }
        for (uint32_t i = 0, k = 0; i < n; i++) {
                struct entry *e = &w->entries[order[i]];
                if (!actions_have_room(out, 8))
                        return;

                p.place = i + 1;
                for (; k < early.n && early.of[k].at == i && actions_have_room(out, 8); k++)
                        early.of[k].started = look_early(&p, &w->entries[early.of[k].entry], early.of[k].devices);
                if (has_started(&early, order[i]))
                        continue;
                if (e->kind == ENTRY_BOOKING) /* when it is due, by the time alone, nothing of it changes any more */
                        admit_follow_share(&p, e);
                if (e->held_since_ms != 0) {
                        struct reason why = {
                                .rule = RULE_ON_HOLD, .place = p.place, .n_waiting = n, .need_bytes = e->demand_bytes
                        };
                        admit_tell_wait(&p, e, &why, false);
                        continue;
                }
                if (!booking_is_due(w, e)) {
                        struct reason why = {
                                .rule = RULE_BOOKED, .place = p.place, .n_waiting = n, .need_bytes = e->demand_bytes
                        };
                        why.start_ms = e->due_ms;
                        admit_tell_wait(&p, e, &why, false);
                        continue;
                }
                if (booking_is_over(w, e))
                        continue; /* the next tick says so */
                look_at(&p, e);
        }
        for (uint32_t d = 0; d < w->n_devices; d++)
                settle_lane(&p, d);
}
