/* SPDX-License-Identifier: Apache-2.0 */
/* For whom memory is taken back, and when it is there. */
#include "arbiter/actions.h"
#include "arbiter/admit_pass.h"
#include "arbiter/booking.h"
#include "arbiter/ceiling.h"
#include "arbiter/plan.h"
#include "arbiter/rank.h"
#include "base/number.h"

/* Its memory is being taken back: it starts when all of it is there, and claims what is there already. */
void admit_serve_plan(struct pass *p, struct entry *e, struct plan *plan)
{
        struct world *w = p->world;
        uint32_t device = plan->device;
        struct lane *lane = lane_of(p, device);
        const struct holder *claim = world_holder_get(w, plan->claim);
        struct standing s = { .rule = RULE_RECLAIMING, .room_bytes = lane->free_bytes + plan_claimed_bytes(w, plan) };
        struct sums sums = lane->now;

        if (claim)
                sums_take_out(&sums, claim);
        bool there = plan_has_enough(w, plan) && !(e->least_bytes != 0 && lane->has_leases) && lane->exclusive_id == 0;
        if (there && lane->fresh && !lane->pending) {
                s.booking = booking_in_the_way(w, device, &sums, e, admit_ledger_room_for(p, e), NULL, &s.promise);
                if (s.booking) { /* made since the plan began: it waits, and who gave way comes back */
                        plan_end(w, plan);
                        lane_refresh(w, device, lane);
                        return;
                }
                s.rule = RULE_RECLAIMED;
                s.starts = true;
                lane->now = sums;
                lane->free_bytes = sums_free_bytes(&sums);
                plan_end(w, plan);
                admit_start(p, e, device, &s);
                return;
        }
        if (there) {
                bool others_wait;
                admit_order_looks(p, e, UINT64_C(1) << device, &others_wait);
        }
        if (!admit_must_tell(p, e, RULE_RECLAIMING, false))
                return;
        struct reason why;
        admit_fill_reason(p, &why, device, e, &s);
        why.reserved_bytes = plan_claimed_bytes(w, plan);
        for (uint32_t v = 0; v < plan->n_victims; v++) {
                const struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                if (lease)
                        reason_add_blocker(&why, &(struct blocker){ .kind = BLOCKER_LEASE,
                                                                    .lease_id = lease->id,
                                                                    .bytes = lease->bytes });
        }
        admit_tell_wait(p, e, &why, false);
}

bool admit_is_of_leases(const struct world *w, const struct reclaim *r)
{
        for (uint32_t i = 0; i < r->n; i++)
                if (w->holders[r->steps[i].holder].kind != HOLDER_LEASE)
                        return false;
        return true;
}

/*
 * It cannot start: could others give way to it? Only who is first on a device, or more important than who is, asks that. One
 * reading that is unsettled or old may delay it; nothing is begun by it. Where it does not suffice, *ret_device is where that was
 * found.
 */
bool admit_reclaim_for(struct pass *p, struct entry *e, uint32_t *ret_device)
{
        struct world *w = p->world;
        const struct lease *lease = world_lease_get(w, e->lease);
        struct reclaim best;
        uint64_t unread = 0;
        bool others_wait;

        *ret_device = NO_DEVICE;
        if (e->no_wait || w->degraded || !lease)
                return false;
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)))
                        continue;
                struct lane *lane = lane_of(p, d);
                if (!lane->usable || lane->pending || e->demand_bytes > lane->ceiling_bytes ||
                    world_tally(w, d)->n_giving == 0)
                        continue;
                if (lane->head && lane->head != e && !rank_passes(&w->config, e->priority, lane->head_rank))
                        continue;

                struct reclaim_demand demand = admit_demand_of(w, e, d);
                struct reclaim r;
                reclaim_plan(w, &demand, &r, NULL);
                struct ref promise;
                if (r.suffices && booking_in_the_way(w, d, &lane->now, e, admit_ledger_room_for(p, e), &r, &promise))
                        continue; /* nobody gives way in vain */
                bool better = *ret_device == NO_DEVICE || (r.suffices && !best.suffices) ||
                              (r.suffices && best.suffices && r.n < best.n);
                if (r.suffices && r.n != 0 && !lane->fresh) {
                        unread |= UINT64_C(1) << d;
                        continue;
                }
                if (!better || !admit_is_of_leases(w, &r))
                        continue;
                best = r;
                *ret_device = d;
        }
        if (unread != 0 && !(*ret_device != NO_DEVICE && best.suffices))
                admit_order_looks(p, e, unread, &others_wait);
        if (*ret_device == NO_DEVICE)
                return false;
        if (!best.suffices || best.n == 0)
                return false;
        struct reason why = { .rule = RULE_PLAN_BEGAN,
                              .need_bytes = e->demand_bytes,
                              .free_bytes = p->lanes[*ret_device].free_bytes,
                              .total_bytes = p->lanes[*ret_device].now.total_bytes };
        reclaim_name_victims(w, &best, &why);
        struct plan *plan = plan_begin(w, e, *ret_device, &best, &why, p->out);
        if (!plan)
                return false;
        lane_refresh(w, *ret_device, &p->lanes[*ret_device]);
        admit_leave_heads(p, e);
        e->is_head = false;
        e->head_is_finite = true; /* a plan is as good as a start: should it fail, nobody came before it meanwhile */
        e->start_ms = 0;
        admit_serve_plan(p, e, plan);
        return true;
}

/* One of its other devices has become free meanwhile: it starts there, and nobody else is taken from for it. */
bool admit_start_elsewhere(struct pass *p, struct entry *e, struct plan *plan)
{
        struct world *w = p->world;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)) || d == plan->device)
                        continue;
                struct lane *lane = lane_of(p, d);
                if (!lane->usable || !lane->fresh || lane->pending)
                        continue;
                lane_keep_head(w, d, lane, e);
                struct standing s = lane_stand(w, lane, e, admit_ledger_room_for(p, e));
                if (s.starts)
                        admit_mind_bookings(p, e, d, &s);
                if (!s.starts || (e->kind == ENTRY_THAW && !admit_last_look_allows(p, e)))
                        continue;
                uint32_t planned = plan->device;
                plan_end(w, plan);
                if (p->lanes[planned].looked)
                        lane_refresh(w, planned, &p->lanes[planned]);
                admit_start(p, e, d, &s);
                return true;
        }
        return false;
}
