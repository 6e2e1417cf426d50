/* SPDX-License-Identifier: Apache-2.0 */
/* Who starts: its row, its promise, and what that leaves to heads. */
#include <assert.h>
#include "arbiter/actions.h"
#include "arbiter/admit_pass.h"
#include "arbiter/life.h"
#include "arbiter/park.h"
#include "arbiter/plan.h"
#include "arbiter/rank.h"
#include "arbiter/usage.h"
#include "base/number.h"

uint64_t admit_lease_id_of_entry(struct world *w, const struct entry *e)
{
        const struct lease *lease = e ? world_lease_get(w, e->lease) : NULL;
        return lease ? lease->id : 0;
}

void admit_fill_reason(struct pass *p, struct reason *why, uint32_t device, const struct entry *e,
                       const struct standing *s)
{
        struct world *w = p->world;
        const struct lane *lane = &p->lanes[device];
        const struct entry *head = lane->head ? lane->head : lane->old_head;
        struct sums booked;

        sums_now(w, device, &booked);
        *why = (struct reason){
                .rule = s->rule,
                .place = p->place,
                .n_waiting = p->n_waiting,
                .need_bytes = e->demand_bytes,
                .free_bytes = sums_free_bytes(&booked),
                .total_bytes = booked.total_bytes,
                .used_bytes = booked.used_bytes,
                .reserved_bytes = booked.reserved_bytes,
                .reading_age_ms = u64_sub0(w->now_ms, w->devices[device].reading_ms),
        };
        if (s->rule == RULE_EXCLUSIVE_HOLDS)
                why->head_lease_id = lane->exclusive_id;
        else if (head != e)
                why->head_lease_id = admit_lease_id_of_entry(w, head);
        why->lent_bytes = s->starts ? u64_sub0(s->room_bytes, why->free_bytes) : 0;
}

void admit_drop_entry(struct world *w, struct entry *e)
{
        struct ref ref = world_entry_ref(w, e);

        plan_end_all(w, ref);

        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (ref_equal(w->holders[i].entry, ref))
                        world_holder_drop(w, &w->holders[i]);
        /* Who went ahead of it while it was head owes it nothing any more, and the ledger room kept for that is free again. */
        for (uint32_t i = 0; e->head_since_ms != 0 && i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && ref_equal(w->leases[i].backfill_for, ref)) {
                        w->leases[i].backfilled = false;
                        for (uint32_t k = 0; k < lease_n_parts(&w->leases[i]); k++)
                                world_device_changed(w, lease_part(&w->leases[i], k).device);
                        w->leases[i].backfill_for = (struct ref){ 0 };
                        w->leases[i].ledger_set_aside_bytes = 0;
                        world_ledger_changed(w);
                }

        struct lease *lease = world_lease_get(w, e->lease);
        if (lease)
                lease->entry = (struct ref){ 0 };
        w->users[e->user].n_waiting--;
        world_entry_drop(w, e);
}

/* A head's claim gives way to what goes ahead on loan from it. */
static void shrink_claim(struct world *w, uint32_t device)
{
        world_each_holder_of (w, i, HOLDER_CLAIM) {
                struct holder *h = &w->holders[i];
                if (h->claim_kind != CLAIM_HEAD || h->device != device)
                        continue;

                struct sums sums;
                sums_now(w, device, &sums);
                uint64_t debt = u64_sub0(sums_committed_bytes(&sums), sums.total_bytes);
                if (debt != 0) {
                        world_holder_writing(w, h);
                        h->reserved_bytes = u64_sub0(h->reserved_bytes, debt);
                        world_holder_written(w, h);
                }
                if (h->reserved_bytes == 0)
                        world_holder_drop(w, h);
        }
}

/* It is head of no device any more, wherever it was. */
void admit_leave_heads(struct pass *p, const struct entry *e)
{
        for (uint32_t d = 0; d < p->world->n_devices; d++) {
                if (p->lanes[d].old_head == e)
                        p->lanes[d].old_head = NULL;
                if (p->lanes[d].head == e)
                        p->lanes[d].head = NULL;
        }
}

/* It went ahead of the head of its lane on a promise. */
static void note_backfill(struct pass *p, struct lease *lease, const struct lane *lane, const struct entry *e,
                          const struct standing *s)
{
        bool for_head = lane->head && s->rule >= RULE_ENDS_IN_TIME && s->rule <= RULE_LEDGER_SET_ASIDE;

        if (!for_head && ref_is_none(s->promise))
                return;
        /* What came back modestly, for it was idle, gives way as what it is. */
        if (for_head && e->kind == ENTRY_THAW && rank_passes(&p->world->config, lease->priority, lane->head_rank))
                return;
        lease->backfilled = true;
        lease->backfill_for = ref_is_none(s->promise) ? world_entry_ref(p->world, lane->head) : s->promise;
        lease->ledger_set_aside_bytes = s->rule == RULE_LEDGER_SET_ASIDE ? e->demand_bytes : 0;
        world_ledger_changed(p->world);
        p->ledger_room_bytes = u64_sub0(p->ledger_room_bytes, lease->ledger_set_aside_bytes);
}

/* A parked lease comes back: the same admission, but it holds its rows already. */
static void bring_back(struct pass *p, struct entry *e, uint64_t devices, const struct standing *s)
{
        struct world *w = p->world;
        uint32_t first = (uint32_t) __builtin_ctzll(devices);
        struct lane *lane = &p->lanes[first];
        struct lease *lease = world_lease_get(w, e->lease);
        struct holder *h;
        bool beside = lane->head && s->rule == RULE_FITS_BESIDE;

        each_part (w, lease, h)
                world_holder_writing(w, h);
        note_backfill(p, lease, lane, e, s);
        each_part (w, lease, h)
                world_holder_written(w, h);
        lease->waited_ms = entry_waited_ms(e, w->now_ms);
        lease->kept_rank = (uint8_t) u64_min(entry_rank(&w->config, e, w->now_ms), lease->priority);
        lease->granted_ms = w->now_ms;
        admit_leave_heads(p, e);
        admit_drop_entry(w, e);
        thaw_begin(w, lease, p->out);
        each_part (w, lease, h) {
                lane = &p->lanes[h->device];
                lane->has_leases = true;
                if (lease->exclusive)
                        lane->exclusive_id = lease->id;
                lane_refresh(w, h->device, lane);
                if (beside) {
                        struct holder more = { .kind = HOLDER_CLAIM,
                                               .used_known = true,
                                               .reserved_bytes = h->reserved_bytes };
                        sums_add(&lane->start.at_start, &more);
                        lane->start_free_bytes = sums_free_bytes(&lane->start.at_start);
                }
                shrink_claim(w, h->device);
        }
}

/* A row for it on each of @devices. */
static void make_rows(struct world *w, struct lease *lease, uint64_t devices, uint64_t bytes)
{
        uint32_t n = 0;

        for (; devices != 0; devices &= devices - 1) {
                uint32_t device = (uint32_t) __builtin_ctzll(devices);
                struct holder *h = world_holder_new(w, HOLDER_LEASE, device);
                assert(h); /* the table of holders is sized for every lease */
                h->reserved_bytes = bytes;
                h->uncollected = true;
                h->managed = lease->managed;
                h->exclusive = lease->exclusive;
                h->ways = lease->ways;
                h->lease = world_lease_ref(w, lease);
                struct part part = { .device = device, .holder = world_holder_ref(w, h) };
                if (n == 0) {
                        lease->device = part.device;
                        lease->holder = part.holder;
                } else {
                        lease->more[n - 1] = part;
                }
                n++;
        }
        assert(n == 1U + lease->n_more);
}

static void grant(struct pass *p, struct entry *e, uint64_t devices, const struct standing *s)
{
        struct world *w = p->world;
        uint32_t first = (uint32_t) __builtin_ctzll(devices);
        struct lane *lane = &p->lanes[first];
        struct lease *lease = world_lease_get(w, e->lease);
        struct holder *h;
        struct reason why;
        assert(lease);
        admit_fill_reason(p, &why, first, e, s);

        make_rows(w, lease, devices, e->demand_bytes);
        lease->state = (uint8_t) lease_next((enum lease_state) lease->state, LEASE_EVENT_GRANT);
        lease->granted_ms = w->now_ms;
        lease->renewed_ms = w->now_ms;
        lease->waited_ms = entry_waited_ms(e, w->now_ms);
        /* A booking stands behind priority 1; what holds is what it is. */
        lease->kept_rank = (uint8_t) u64_min(entry_rank(&w->config, e, w->now_ms), lease->priority);
        lease->slot_end_ms = lease->slot_ms != 0 ? u64_max(w->now_ms, e->due_ms) + lease->slot_ms : 0;
        note_backfill(p, lease, lane, e, s);
        each_part (w, lease, h)
                world_holder_written(w, h);
        bool beside = lane->head && s->rule == RULE_FITS_BESIDE;

        struct user *user = &w->users[lease->user];
        usage_set_held(&w->config, user, user->held_bytes + lease_whole_bytes(lease), w->now_ms);

        each_part (w, lease, h) {
                p->lanes[h->device].has_leases = true;
                if (lease->exclusive)
                        p->lanes[h->device].exclusive_id = lease->id;
        }

        bool collected = e->collected;
        struct newcomer *mine =
                p->newcomer && ref_equal(p->newcomer->entry, world_entry_ref(w, e)) ? p->newcomer : NULL;
        admit_leave_heads(p, e);
        admit_drop_entry(w, e);

        struct action *a = actions_add_lease(w, p->out, ACTION_GRANTED, lease, &why);
        if (mine) {
                a->token = mine->token;
                mine->granted = true;
                mine->decided = true;
        }
        if (collected)
                life_set_active(w, lease, a->token, p->out);
        /* Only now is it known how it counts: managed memory is unknown from the moment it runs. */
        each_part (w, lease, h) {
                lane_add(&p->lanes[h->device], h, beside);
                shrink_claim(w, h->device);
        }
}

void admit_start_on(struct pass *p, struct entry *e, uint64_t devices, const struct standing *s)
{
        if (e->kind == ENTRY_THAW)
                bring_back(p, e, devices, s);
        else
                grant(p, e, devices, s);
}

void admit_start(struct pass *p, struct entry *e, uint32_t device, const struct standing *s)
{
        admit_start_on(p, e, UINT64_C(1) << device, s);
}
