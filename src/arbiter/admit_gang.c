/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gang starts on as many devices as it asked for in one step, or on none; it reserves on each of them while it waits at the head, or on
 * none. It never goes ahead of a head on a promise to give way: on each of its devices it stands first, or passes who does.
 */
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/admit_pass.h"
#include "arbiter/booking.h"
#include "arbiter/ceiling.h"
#include "arbiter/plan.h"
#include "arbiter/rank.h"
#include "base/number.h"
#include "placement/pick.h"

static uint32_t n_devices_of(const struct entry *e)
{
        return 1U + e->n_more;
}

static bool may_be_on(const struct entry *e, uint32_t device)
{
        return (e->devices >> device & 1) != 0;
}

/* ---- the head ---- */

/* Where it can start first; of equals where it is head already, then the lowest. */
static bool starts_before(const struct projection *starts, uint64_t here, uint32_t a, uint32_t b)
{
        bool a_here = (here >> a & 1) != 0, b_here = (here >> b & 1) != 0;

        if (starts[a].finite != starts[b].finite)
                return starts[a].finite;
        if (starts[a].start_ms != starts[b].start_ms)
                return starts[a].start_ms < starts[b].start_ms;
        return a_here != b_here ? a_here : a < b;
}

bool admit_choose_heads(struct pass *p, const struct entry *e, struct projection starts[DEVICES_MAX],
                        uint64_t *ret_devices)
{
        struct world *w = p->world;
        uint32_t of[DEVICES_MAX], n = 0;
        uint64_t here = entry_head_devices(e);

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!may_be_on(e, d))
                        continue;
                struct lane *lane = lane_of(p, d);
                if (!lane->usable || (lane->head && lane->head != e) || (lane->pending && (here >> d & 1) == 0) ||
                    e->demand_bytes > lane->ceiling_bytes)
                        continue;
                project_start(w, d, &lane->now, e, &starts[d]);
                booking_push(w, d, &lane->now, e, &starts[d]);
                uint32_t at = n++;
                for (; at > 0 && starts_before(starts, here, d, of[at - 1]); at--)
                        of[at] = of[at - 1];
                of[at] = d;
        }
        if (n < n_devices_of(e))
                return false;
        *ret_devices = 0;
        for (uint32_t i = 0; i < n_devices_of(e); i++)
                *ret_devices |= UINT64_C(1) << of[i];
        return true;
}

/* ---- its plans ---- */

struct plans {
        uint64_t devices; /* bit mask */
        uint32_t n;
};

static struct plans plans_of(const struct world *w, const struct entry *e)
{
        struct plans plans = { 0 };

        for (uint32_t i = 0; i < w->n_plans; i++)
                if (w->plans[i].id != 0 && ref_equal(w->plans[i].entry, world_entry_ref(w, e))) {
                        plans.devices |= UINT64_C(1) << w->plans[i].device;
                        plans.n++;
                }
        return plans;
}

static void end_plans(struct pass *p, struct entry *e, uint64_t devices)
{
        plan_end_all(p->world, world_entry_ref(p->world, e));
        for (; devices != 0; devices &= devices - 1) {
                uint32_t d = (uint32_t) __builtin_ctzll(devices);
                lane_refresh(p->world, d, lane_of(p, d));
        }
}

/* All of it is there on all of them: it starts. */
static void start_by_plans(struct pass *p, struct entry *e, uint64_t devices)
{
        struct world *w = p->world;
        struct standing s = { .rule = RULE_RECLAIMED, .starts = true };

        for (uint64_t rest = devices; rest != 0; rest &= rest - 1) {
                uint32_t d = (uint32_t) __builtin_ctzll(rest);
                struct plan *plan = world_plan_on(w, world_entry_ref(w, e), d);
                const struct holder *claim = world_holder_get(w, plan->claim);
                struct lane *lane = lane_of(p, d);
                if (rest == devices)
                        s.room_bytes = lane->free_bytes + plan_claimed_bytes(w, plan);
                if (claim)
                        sums_take_out(&lane->now, claim);
                lane->free_bytes = sums_free_bytes(&lane->now);
        }
        plan_end_all(w, world_entry_ref(w, e));
        admit_start_on(p, e, devices, &s);
}

static bool is_ready(struct pass *p, const struct entry *e, const struct plan *plan)
{
        const struct lane *lane = lane_of(p, plan->device);

        return plan_has_enough(p->world, plan) && !(e->least_bytes != 0 && lane->has_leases) && lane->exclusive_id == 0;
}

/* A booking that was made since its plans began: it waits, and who gave way comes back. */
static bool is_in_the_way(struct pass *p, const struct entry *e, const struct plan *plan)
{
        struct world *w = p->world;
        const struct holder *claim = world_holder_get(w, plan->claim);
        struct sums sums = lane_of(p, plan->device)->now;
        struct ref promise;

        if (claim)
                sums_take_out(&sums, claim);
        return booking_in_the_way(w, plan->device, &sums, e, admit_ledger_room_for(p, e), NULL, &promise) != NULL ||
               !ref_is_none(promise);
}

static void say_what_comes(struct pass *p, struct entry *e, uint64_t devices)
{
        struct world *w = p->world;
        uint32_t first = (uint32_t) __builtin_ctzll(devices);
        struct plan *plan = world_plan_on(w, world_entry_ref(w, e), first);
        struct standing s = { .rule = RULE_RECLAIMING };
        struct reason why;

        s.room_bytes = lane_of(p, first)->free_bytes + plan_claimed_bytes(w, plan);
        admit_fill_reason(p, &why, first, e, &s);
        why.reserved_bytes = plan_claimed_bytes(w, plan);
        for (uint64_t rest = devices; rest != 0; rest &= rest - 1) {
                plan = world_plan_on(w, world_entry_ref(w, e), (uint32_t) __builtin_ctzll(rest));
                for (uint32_t v = 0; v < plan->n_victims; v++) {
                        const struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                        if (lease)
                                reason_add_blocker(&why, &(struct blocker){ .kind = BLOCKER_LEASE,
                                                                            .lease_id = lease->id,
                                                                            .bytes = lease->bytes });
                }
        }
        admit_tell_wait(p, e, &why, false);
}

static void serve_plans(struct pass *p, struct entry *e, uint64_t devices)
{
        struct world *w = p->world;
        uint64_t ready = 0, fresh = 0;
        bool others_wait;

        for (uint64_t rest = devices; rest != 0; rest &= rest - 1) {
                uint32_t d = (uint32_t) __builtin_ctzll(rest);
                struct plan *plan = world_plan_on(w, world_entry_ref(w, e), d);
                struct lane *lane = lane_of(p, d);
                if (!lane->usable) { /* nothing will come back there */
                        end_plans(p, e, devices);
                        return;
                }
                if (plan->need_bytes != e->demand_bytes) {
                        plan_set_need(w, plan, e->demand_bytes);
                        lane_refresh(w, d, lane);
                }
                if (is_ready(p, e, plan))
                        ready |= UINT64_C(1) << d;
                if (lane->fresh && !lane->pending)
                        fresh |= UINT64_C(1) << d;
        }
        if ((ready & fresh) == devices) {
                for (uint64_t rest = devices; rest != 0; rest &= rest - 1) {
                        uint32_t d = (uint32_t) __builtin_ctzll(rest);
                        if (!is_in_the_way(p, e, world_plan_on(w, world_entry_ref(w, e), d)))
                                continue;
                        end_plans(p, e, devices);
                        return;
                }
                start_by_plans(p, e, devices);
                return;
        }
        if (ready == devices)
                admit_order_looks(p, e, ready & ~fresh, &others_wait);
        if (admit_must_tell(p, e, RULE_RECLAIMING, false))
                say_what_comes(p, e, devices);
}

/* Could others give way to it on @device, beside those who do on others? As for who wants one device (admit_plan.c). */
static bool could_be_freed(struct pass *p, const struct entry *e, uint32_t device, const struct reclaim *with,
                           uint32_t n_with, struct reclaim *ret)
{
        struct world *w = p->world;
        const struct lane *lane = lane_of(p, device);
        struct reclaim_demand demand = admit_demand_of(w, e, device);
        struct ref promise;

        if (!lane->usable || lane->pending || e->demand_bytes > lane->ceiling_bytes)
                return false;
        if (lane->head && lane->head != e && !rank_passes(&w->config, e->priority, lane->head_rank))
                return false;
        demand.with = with;
        demand.n_with = n_with;
        reclaim_plan(w, &demand, ret, NULL);
        return ret->suffices && admit_is_of_leases(w, ret) &&
               !booking_in_the_way(w, device, &lane->now, e, admit_ledger_room_for(p, e), ret, &promise) &&
               ref_is_none(promise);
}

/* Those on which the fewest have to give way, as many as it needs; 0 = there are not so many. */
static uint64_t choose_devices(struct pass *p, const struct entry *e)
{
        uint32_t of[DEVICES_MAX], n_victims[DEVICES_MAX], n = 0;
        uint64_t devices = 0;
        struct reclaim r;

        for (uint32_t d = 0; d < p->world->n_devices; d++) {
                if (!may_be_on(e, d) || !could_be_freed(p, e, d, NULL, 0, &r))
                        continue;
                uint32_t at = n++;
                for (; at > 0 && r.n < n_victims[of[at - 1]]; at--)
                        of[at] = of[at - 1];
                of[at] = d;
                n_victims[d] = r.n;
        }
        for (uint32_t i = 0; n >= n_devices_of(e) && i < n_devices_of(e); i++)
                devices |= UINT64_C(1) << of[i];
        return devices;
}

/* A gang that gives way on another device does so here too: @found waits for it. */
static bool add_gangs(struct world *w, const struct reclaim *with, uint32_t n_with, uint32_t device,
                      struct reclaim *found)
{
        for (uint32_t i = 0; i < n_with; i++)
                for (uint32_t k = 0; k < with[i].n; k++) {
                        struct reclaim_step step = with[i].steps[k];
                        const struct lease *lease = world_lease_get(w, w->holders[step.holder].lease);
                        const struct holder *h = lease ? world_part_on(w, lease, device) : NULL;
                        bool known = !h;
                        for (uint32_t v = 0; h && v < found->n; v++)
                                known = known || ref_equal(w->holders[found->steps[v].holder].lease, h->lease);
                        if (known)
                                continue;
                        if (found->n == VICTIMS_MAX)
                                return false;
                        step.holder = (uint32_t) (h - w->holders);
                        found->steps[found->n++] = step;
                }
        return true;
}

/* Nothing happens before all of it is known to suffice, on all of them, with the host memory that all of it takes. */
static bool begin_plans(struct pass *p, struct entry *e, uint64_t devices)
{
        struct world *w = p->world;
        struct reclaim found[GANG_MAX];
        uint32_t n = 0;

        for (uint64_t rest = devices; rest != 0; rest &= rest - 1, n++) {
                uint32_t d = (uint32_t) __builtin_ctzll(rest);
                if (!could_be_freed(p, e, d, found, n, &found[n]) || !add_gangs(w, found, n, d, &found[n]))
                        return false;
        }
        n = 0;
        for (uint64_t rest = devices; rest != 0; rest &= rest - 1, n++) {
                uint32_t d = (uint32_t) __builtin_ctzll(rest);
                struct reason why = { .rule = RULE_PLAN_BEGAN,
                                      .need_bytes = e->demand_bytes,
                                      .free_bytes = p->lanes[d].free_bytes,
                                      .total_bytes = p->lanes[d].now.total_bytes };
                reclaim_name_victims(w, &found[n], &why);
                if (plan_begin(w, e, d, &found[n], &why, p->out))
                        continue;
                end_plans(p, e, devices); /* there are too many: who was asked comes back */
                return false;
        }
        for (uint64_t rest = devices; rest != 0; rest &= rest - 1)
                lane_refresh(w, (uint32_t) __builtin_ctzll(rest), &p->lanes[__builtin_ctzll(rest)]);
        return true;
}

static bool reclaim_for(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        bool others_wait, any_gives = false;
        uint64_t unread = 0;

        if (e->no_wait || w->degraded)
                return false;
        for (uint32_t d = 0; d < w->n_devices; d++)
                any_gives = any_gives || (may_be_on(e, d) && world_tally(w, d)->n_giving != 0);
        uint64_t devices = any_gives ? choose_devices(p, e) : 0;
        if (devices == 0)
                return false;
        for (uint64_t rest = devices; rest != 0; rest &= rest - 1)
                if (!p->lanes[__builtin_ctzll(rest)].fresh)
                        unread |= rest & -rest;
        if (unread != 0) {
                admit_order_looks(p, e, unread, &others_wait);
                return false;
        }
        if (!begin_plans(p, e, devices))
                return false;
        admit_leave_heads(p, e);
        admit_leave_head(w, e);
        e->head_is_finite = true; /* a plan is as good as a start: should it fail, nobody came before it meanwhile */
        serve_plans(p, e, devices);
        return true;
}

/* ---- its turn ---- */

/* As who wants one device stands there, but for what it could only do on a promise. */
static struct standing stand(struct pass *p, const struct entry *e, uint32_t device)
{
        struct world *w = p->world;
        struct lane *lane = &p->lanes[device];
        struct standing s;

        lane_keep_head(w, device, lane, e);
        s = lane_stand(w, lane, e, admit_ledger_room_for(p, e));
        if (s.starts && s.rule != RULE_FITS && s.rule != RULE_PASSES_HEAD) {
                s.starts = false;
                s.rule = RULE_BEHIND_HEAD;
        }
        if (s.starts)
                admit_mind_bookings(p, e, device, &s);
        if (s.starts && !ref_is_none(s.promise)) {
                s.booking = world_entry_get(w, s.promise);
                s.starts = false;
                s.rule = RULE_BEFORE_BOOKING;
        }
        if (e->kind == ENTRY_THAW && s.starts && !admit_last_look_allows(p, e)) {
                s.starts = false;
                s.rule = RULE_NO_ROOM;
        }
        return s;
}

/* The tightest of them, so that large gaps stay large. */
static uint64_t pick_devices(const struct entry *e, struct pick *picks, size_t n)
{
        uint64_t devices = 0;

        for (uint32_t i = 0; i < n_devices_of(e); i++) {
                size_t at = pick_best_fit(picks, n);
                devices |= UINT64_C(1) << picks[at].device;
                n--;
                memmove(&picks[at], &picks[at + 1], (n - at) * sizeof(*picks));
        }
        return devices;
}

void admit_look_at_gang(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        struct pick picks[DEVICES_MAX];
        struct standing standings[DEVICES_MAX];
        size_t n_picks = 0;
        uint64_t unread = 0;
        uint32_t nearest = NO_DEVICE, n_usable = 0;

        admit_follow_whole(p, e);
        admit_follow_share(p, e);
        admit_follow_need(p, e);
        struct plans plans = plans_of(w, e);
        if (plans.n != 0) {
                serve_plans(p, e, plans.devices);
                return;
        }
        if (admit_stays_parked(p, e))
                return;
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!may_be_on(e, d) || !lane_of(p, d)->usable)
                        continue;
                const struct lane *lane = &p->lanes[d];
                n_usable++;
                standings[d] = stand(p, e, d);
                if (nearest == NO_DEVICE || standings[d].room_bytes > standings[nearest].room_bytes)
                        nearest = d;
                if (!standings[d].starts && !(e->no_wait && !lane->fresh))
                        continue;
                if (lane->fresh && !lane->pending)
                        picks[n_picks++] = (struct pick){ .device = d, .free_bytes = standings[d].room_bytes };
                else
                        unread |= UINT64_C(1) << d;
        }
        if (n_usable < n_devices_of(e)) {
                admit_tell_wait(p, e,
                                &(struct reason){ .rule = RULE_NO_USABLE_DEVICE,
                                                  .place = p->place,
                                                  .n_waiting = p->n_waiting,
                                                  .need_bytes = e->demand_bytes },
                                false);
                return;
        }
        if (n_picks >= n_devices_of(e)) {
                uint64_t devices = pick_devices(e, picks, n_picks);
                admit_start_on(p, e, devices, &standings[__builtin_ctzll(devices)]);
                return;
        }
        if (n_picks + (size_t) __builtin_popcountll(unread) >= n_devices_of(e)) {
                admit_wait_for_reading(p, e, unread, standings);
                return;
        }
        if (reclaim_for(p, e))
                return;
        if (!admit_become_head(p, e, standings, NO_DEVICE) && !admit_is_too_large(p, e))
                admit_stay_behind(p, e, nearest, &standings[nearest]);
}
