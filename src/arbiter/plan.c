/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/plan.h"
#include "arbiter/actions.h"
#include "arbiter/free.h"
#include "arbiter/lane.h"
#include "arbiter/park.h"
#include "arbiter/project.h"
#include "base/number.h"

static struct holder *claim_of(struct world *w, const struct plan *plan)
{
        return world_holder_get(w, plan->claim);
}

uint64_t plan_claimed_bytes(struct world *w, const struct plan *plan)
{
        const struct holder *claim = claim_of(w, plan);

        return claim ? claim->reserved_bytes : 0;
}

static void set_claim(struct world *w, struct plan *plan, uint64_t bytes)
{
        struct holder *claim = claim_of(w, plan);

        if (bytes == plan_claimed_bytes(w, plan))
                return;
        if (claim) {
                world_holder_writing(w, claim);
        } else {
                claim = world_holder_new(w, HOLDER_CLAIM, plan->device);
                if (!claim)
                        return; /* the table is sized for it */
                claim->claim_kind = CLAIM_PLAN;
                claim->entry = plan->entry;
                plan->claim = world_holder_ref(w, claim);
        }
        claim->reserved_bytes = bytes;
        world_holder_written(w, claim);
}

/* Whatever is free on its device, up to what it needs and never more than 4.1 leaves. */
static void grow_claim(struct world *w, struct plan *plan)
{
        struct sums sums;
        uint64_t has_bytes = plan_claimed_bytes(w, plan);

        sums_now(w, plan->device, &sums);
        set_claim(w, plan, has_bytes + u64_min(u64_sub0(plan->need_bytes, has_bytes), sums_free_bytes(&sums)));
}

void plan_set_need(struct world *w, struct plan *plan, uint64_t bytes)
{
        plan->need_bytes = bytes;
        set_claim(w, plan, u64_min(plan_claimed_bytes(w, plan), bytes));
}

/* What @lease gave back since the last look goes from its reservation to the claim, in one step. What the list of processes
 * lacks while the device still counts it (it is unattributed now) is not given back: one row may be missing from one look. */
static void move_settled(struct world *w, struct plan *plan, struct lease *lease)
{
        struct holder *h = world_part_on(w, lease, plan->device);

        if (!h || !holder_reading_is_known(h) || h->used_bytes >= h->began_used_bytes)
                return;
        uint64_t settled_bytes =
                u64_sub0(h->began_used_bytes - h->used_bytes, device_unattributed_now(w, plan->device));
        uint64_t more_bytes =
                u64_min(u64_sub0(settled_bytes, h->moved_bytes), u64_sub0(h->reserved_bytes, h->used_bytes));
        if (more_bytes == 0)
                return;

        struct sums sums;
        world_holder_writing(w, h);
        h->reserved_bytes -= more_bytes;
        world_holder_written(w, h);
        sums_now(w, plan->device, &sums);
        uint64_t has_bytes = plan_claimed_bytes(w, plan);
        uint64_t gain_bytes =
                u64_min(u64_min(more_bytes, u64_sub0(plan->need_bytes, has_bytes)), sums_free_bytes(&sums));
        set_claim(w, plan, has_bytes + gain_bytes);
        h->moved_bytes += gain_bytes;
        lease->park.moved_bytes += gain_bytes;
        world_holder_writing(w, h);
        h->reserved_bytes += more_bytes - gain_bytes;
        world_holder_written(w, h);
}

struct plan *plan_of_victim(struct world *w, const struct lease *lease)
{
        struct ref ref = world_lease_ref(w, lease);

        for (uint32_t i = 0; i < w->n_plans; i++)
                for (uint32_t v = 0; w->plans[i].id != 0 && v < w->plans[i].n_victims; v++)
                        if (ref_equal(w->plans[i].victims[v].lease, ref) && w->plans[i].victims[v].state != VICTIM_DONE)
                                return &w->plans[i];
        return NULL;
}

static void say(struct world *w, const struct plan *plan, const struct reason *why, struct actions *out)
{
        struct entry *e = world_entry_get(w, plan->entry);
        struct lease *lease = e ? world_lease_get(w, e->lease) : NULL;

        if (!lease)
                return;
        struct action *a = actions_add_lease(w, out, ACTION_PLAN, lease, why);
        a->device = plan->device;
}

void plan_end(struct world *w, struct plan *plan)
{
        struct holder *claim = claim_of(w, plan);

        if (claim)
                world_holder_drop(w, claim);
        *plan = (struct plan){ 0 };
}

/* Who was parked by this plan, and for nobody else, comes back in reverse order, without a mark. */
static void undo_parks(struct world *w, const struct plan *plan)
{
        for (uint32_t v = 0; v < plan->n_victims; v++) {
                struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                if (!lease || lease->state != LEASE_PARKED || lease->park.cause != PARK_FOR_PLAN)
                        continue;
                lease->park.undo_group = plan->id;
                lease->park.undo_order = (uint8_t) (v + 1);
        }
}

void plan_end_all(struct world *w, struct ref entry)
{
        struct plan *plan;

        while ((plan = world_plan_of(w, entry)))
                plan_end(w, plan);
}

/* Those of a gang fail together. */
static void fail(struct world *w, struct plan *plan, uint32_t step, struct actions *out)
{
        struct ref entry = plan->entry;

        say(w, plan, &(struct reason){ .rule = RULE_PLAN_FAILED, .limit = step + 1, .need_bytes = plan->need_bytes },
            out);
        for (uint32_t i = 0; i < w->n_plans; i++)
                if (w->plans[i].id != 0 && ref_equal(w->plans[i].entry, entry))
                        undo_parks(w, &w->plans[i]);
        plan_end_all(w, entry);
}

void plan_fail_of(struct world *w, const struct lease *lease, struct actions *out)
{
        struct plan *plan = plan_of_victim(w, lease);
        uint32_t v = 0;

        if (!plan)
                return;
        while (!ref_equal(plan->victims[v].lease, world_lease_ref(w, lease)))
                v++;
        fail(w, plan, v, out);
}

bool plan_has_enough(struct world *w, const struct plan *plan)
{
        const struct holder *claim = claim_of(w, plan);
        struct sums sums;

        sums_now(w, plan->device, &sums);
        if (claim)
                sums_take_out(&sums, claim);
        for (uint32_t v = 0; v < plan->n_victims; v++) {
                const struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                const struct holder *h = lease ? world_part_on(w, lease, plan->device) : NULL;
                if (!h || plan->victims[v].state != VICTIM_RUNNING || lease->state != LEASE_ASKING ||
                    h->reserved_bytes >= lease->bytes)
                        continue;
                struct holder moved = { .kind = HOLDER_CLAIM,
                                        .used_known = true,
                                        .reserved_bytes = lease->bytes - h->reserved_bytes };
                sums_add(&sums, &moved);
        }
        return sums_fit(&sums, plan->need_bytes);
}

static void begin_step(struct world *w, struct plan *plan, struct victim *victim, struct actions *out)
{
        struct lease *lease = world_lease_get(w, victim->lease);
        struct entry *e = world_entry_get(w, plan->entry);
        struct lease *demander = e ? world_lease_get(w, e->lease) : NULL;

        victim->state = VICTIM_RUNNING;
        park_begin(w, lease, (enum way_out_kind) victim->way, PARK_FOR_PLAN, demander ? demander->id : 0, 0, out);
}

/* While those before it went, it may have begun to work, or been pinned, or its demander become less important. */
static enum reclaim_no may_still_take(struct world *w, const struct plan *plan, const struct lease *lease)
{
        const struct entry *e = world_entry_get(w, plan->entry);

        return reclaim_may_take(w, lease,
                                &(struct reclaim_demand){ .device = plan->device,
                                                          .bytes = plan->need_bytes,
                                                          .priority = e->priority,
                                                          .entry = plan->entry });
}

/* Another plan of the same gang has begun with it, for its memory on another device. */
static bool is_on_its_way_for(struct world *w, const struct plan *plan, const struct lease *lease)
{
        const struct entry *e = world_entry_get(w, plan->entry);
        const struct lease *demander = e && e->n_more != 0 ? world_lease_get(w, e->lease) : NULL;

        return demander && lease && lease->park.step != PARK_NONE && lease->park.cause == PARK_FOR_PLAN &&
               lease->park.for_lease_id == demander->id;
}

/* False: the plan is over. */
static bool advance_victim(struct world *w, struct plan *plan, uint32_t v, struct actions *out)
{
        struct victim *victim = &plan->victims[v];
        struct lease *lease = world_lease_get(w, victim->lease);
        uint8_t way;

        if (victim->state == VICTIM_TO_DO && is_on_its_way_for(w, plan, lease))
                victim->state = VICTIM_RUNNING;
        if (victim->state == VICTIM_TO_DO) {
                if (plan_has_enough(w, plan) || !device_is_fresh(w, plan->device))
                        return true;
                if (!lease) {
                        victim->state = VICTIM_DONE; /* gone by itself */
                        return true;
                }
                if (may_still_take(w, plan, lease) != RECLAIM_MAY ||
                    reclaim_may_park(w, lease, 0, &way) != RECLAIM_MAY) {
                        fail(w, plan, v, out);
                        return false;
                }
                if (victim->way == WAY_OUT_CHECKPOINT)
                        victim->way = way; /* its room may be somebody else's by now */
                begin_step(w, plan, victim, out);
                return true;
        }
        if (!lease || lease->park.step == PARK_OUT) {
                victim->state = VICTIM_DONE;
                grow_claim(w, plan);
                return true;
        }
        if (lease->state == LEASE_ASKING) {
                move_settled(w, plan, lease);
                return true;
        }
        if (lease->state == LEASE_DRAINING &&
            w->now_ms <
                    lease->ended_ms + settle_ms(lease->bytes)) { /* it ended instead: what comes back is whoever's the
                                                                        claim reaches */
                grow_claim(w, plan);
                return true;
        }
        fail(w, plan, v, out);
        return false;
}

static void advance(struct world *w, struct plan *plan, struct actions *out)
{
        if (!world_entry_get(w, plan->entry)) {
                plan_end(w, plan);
                return;
        }
        for (uint32_t v = 0; v < plan->n_victims; v++) {
                if (plan->victims[v].state == VICTIM_DONE)
                        continue;
                if (!actions_have_room(out, 64) || !advance_victim(w, plan, v, out))
                        return;
                if (plan->victims[v].state != VICTIM_DONE)
                        return;
        }
        grow_claim(w, plan);
        /* Everybody is off, and it is not enough: somebody else took some meanwhile. */
        if (!plan_has_enough(w, plan) && device_is_fresh(w, plan->device))
                fail(w, plan, plan->n_victims != 0 ? plan->n_victims - 1 : 0, out);
}

/* What an advance may change without a word. */
struct progress {
        uint64_t claimed_bytes, moved_bytes;
        uint32_t n_done;
};

static struct progress progress_of(struct world *w, const struct plan *plan)
{
        struct progress p = { .claimed_bytes = plan_claimed_bytes(w, plan) };

        for (uint32_t v = 0; v < plan->n_victims; v++) {
                const struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                p.n_done += plan->victims[v].state;
                p.moved_bytes += lease ? lease->park.moved_bytes : 0;
        }
        return p;
}

void plans_advance(struct world *w, bool by_time, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_plans; i++) {
                struct plan *plan = &w->plans[i];
                if (plan->id == 0)
                        continue;
                uint32_t n_before = out->n;
                struct progress before = by_time ? progress_of(w, plan) : (struct progress){ 0 };
                advance(w, plan, out);
                if (!by_time || plan->id == 0 || out->n != n_before || !actions_have_room(out, 1))
                        continue;
                struct progress after = progress_of(w, plan);
                if (after.claimed_bytes != before.claimed_bytes || after.moved_bytes != before.moved_bytes ||
                    after.n_done != before.n_done)
                        say(w, plan,
                            &(struct reason){ .rule = RULE_CLAIM_CHANGED, .reserved_bytes = after.claimed_bytes }, out);
        }
}

static void drop_head_claims(struct world *w, struct ref entry)
{
        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (w->holders[i].claim_kind == CLAIM_HEAD && ref_equal(w->holders[i].entry, entry))
                        world_holder_drop(w, &w->holders[i]);
}

/* Who is parked for the same demander stays so, and is no longer part of what was undone. */
static void take_over_parked(struct world *w, const struct entry *e)
{
        const struct lease *demander = world_lease_get(w, e->lease);

        for (uint32_t i = 0; demander && i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] != 0 && lease->state == LEASE_PARKED && lease->park.for_lease_id == demander->id) {
                        lease->park.undo_group = 0;
                        lease->park.undo_order = 0;
                }
        }
}

struct plan *plan_begin(struct world *w, struct entry *e, uint32_t device, const struct reclaim *r,
                        const struct reason *why, struct actions *out)
{
        struct plan *plan = world_plan_new(w);
        if (!plan)
                return NULL;

        plan->device = device;
        plan->entry = world_entry_ref(w, e);
        plan->need_bytes = e->demand_bytes;
        plan->started_ms = w->now_ms;
        plan->n_victims = r->n;
        for (uint32_t v = 0; v < r->n; v++)
                plan->victims[v] =
                        (struct victim){ .lease = w->holders[r->steps[v].holder].lease, .way = r->steps[v].way };
        drop_head_claims(w, plan->entry);
        take_over_parked(w, e);
        grow_claim(w, plan);
        say(w, plan, why, out);
        if (r->n != 0 && !is_on_its_way_for(w, plan, world_lease_get(w, plan->victims[0].lease)))
                begin_step(w, plan, &plan->victims[0], out);
        return plan;
}
