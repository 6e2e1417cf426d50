/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/actions.h"
#include "arbiter/change.h"
#include "arbiter/park.h"
#include "arbiter/request.h"
#include "base/number.h"

static bool is_waiting(const struct lease *lease)
{
        return lease->state == LEASE_QUEUED;
}

static bool may_change(const struct change *c, const struct lease *lease, struct reason *why)
{
        if (!c->is_admin && lease->uid != c->uid)
                why->rule = RULE_NOT_OWNER;
        else if (lease->state == LEASE_DRAINING || lease->ending)
                why->rule = RULE_WRONG_STATE;
        return why->rule == RULE_NONE;
}

static bool may_have_priority(const struct world *w, const struct change *c, struct reason *why)
{
        uint32_t ceiling = request_ceiling(w, c->quota, c->is_admin);

        if (c->priority < ceiling)
                *why = (struct reason){ .rule = RULE_PRIORITY_CEILING, .limit = ceiling };
        return why->rule == RULE_NONE;
}

/* The time by which a slot runs: it stands still while its lease is parked, and is moved by that when it is back. */
static uint64_t slot_now_ms(const struct world *w, const struct lease *lease)
{
        return park_slot_stands(lease) ? lease->park.parked_ms : w->now_ms;
}

/* The slot as it would be, from its start on (waiting: whenever that is). What it ran beyond its end counts. */
static uint64_t slot_after(const struct world *w, const struct change *c, const struct lease *lease)
{
        if (!(c->what & (CHANGE_SLOT | CHANGE_EXTEND)))
                return lease->slot_ms;
        if (c->what & CHANGE_EXTEND) {
                uint64_t beyond_ms = is_waiting(lease) ? 0 : u64_sub0(slot_now_ms(w, lease), lease->slot_end_ms);
                return u64_add_sat(u64_add_sat(lease->slot_ms, beyond_ms), c->slot_ms);
        }
        if (c->slot_ms == 0 || is_waiting(lease))
                return c->slot_ms;
        return u64_add_sat(u64_sub0(slot_now_ms(w, lease), lease->granted_ms), c->slot_ms);
}

static bool may_have_slot(struct world *w, const struct change *c, const struct lease *lease, struct reason *why)
{
        uint64_t slot_ms = slot_after(w, c, lease);
        bool longer = lease->slot_ms != 0 && (slot_ms == 0 || slot_ms > lease->slot_ms);
        const struct entry *head = world_entry_get(w, lease->backfill_for);
        const struct lease *ahead = head ? world_lease_get(w, head->lease) : NULL;

        if (lease->booked_ms != 0 && is_waiting(lease))
                why->rule = RULE_WRONG_STATE; /* others were let in or refused by it */
        else if ((c->what & CHANGE_EXTEND) && lease->slot_ms == 0)
                *why = (struct reason){ .rule = RULE_NO_SLOT };
        else if (lease->backfilled && ahead && longer && !c->is_admin)
                *why = (struct reason){ .rule = RULE_BACKFILL_KEEPS_SLOT, .head_lease_id = ahead->id };
        else
                (void) request_slot_is_allowed(w, c->quota, c->is_admin, slot_ms, why);
        return why->rule == RULE_NONE;
}

/* Only the daemon itself asks for it. */
static bool may_begin_then(const struct change *c, const struct lease *lease, struct reason *why)
{
        if (!c->is_admin || lease->booked_ms == 0 || !is_waiting(lease))
                why->rule = RULE_WRONG_STATE;
        return why->rule == RULE_NONE;
}

/* What it would be then: an urgent one has an end, and a way to it. */
static bool may_be_urgent(const struct world *w, const struct change *c, const struct lease *lease, struct reason *why)
{
        uint8_t priority = c->what & CHANGE_PRIORITY ? c->priority : lease->priority;

        if (priority == PRIORITY_URGENT &&
            (slot_after(w, c, lease) == 0 || (lease->ways.named == 0 && !lease->kill_at_end)))
                *why = (struct reason){ .rule = RULE_URGENT_NEEDS_SLOT, .limit = PRIORITY_URGENT };
        return why->rule == RULE_NONE;
}

/* 0 = without an end. */
static uint64_t pin_after(const struct world *w, const struct change *c)
{
        if (c->pin_ms != CHANGE_PIN_LONGEST)
                return c->pin_ms;
        return c->is_admin ? 0 : config_quota(&w->config, c->quota).pin_max_ms;
}

static bool may_pin(struct world *w, const struct change *c, const struct lease *lease, struct reason *why)
{
        struct quota quota = config_quota(&w->config, c->quota);
        uint64_t pin_ms = pin_after(w, c);
        uint32_t n = 0;

        if (!lease_state_holds((enum lease_state) lease->state)) {
                why->rule = RULE_WRONG_STATE;
                return false;
        }
        world_each_holder_of (w, i, HOLDER_LEASE) {
                const struct holder *h = &w->holders[i];
                if (!h->pinned || ref_equal(h->lease, world_lease_ref(w, lease)) ||
                    h->device != w->leases[h->lease.index].device) /* a gang's is one pin */
                        continue;
                n += w->leases[h->lease.index].uid == lease->uid;
        }
        if (c->is_admin)
                return true;
        if (n >= quota.pins_max)
                *why = (struct reason){ .rule = RULE_LIMIT_PINS, .limit = quota.pins_max };
        else if (quota.pin_max_ms != 0 && (pin_ms == 0 || pin_ms > quota.pin_max_ms))
                *why = (struct reason){ .rule = RULE_LIMIT_PIN_TIME, .start_ms = quota.pin_max_ms };
        return why->rule == RULE_NONE;
}

static void set_priority(struct world *w, const struct change *c, struct lease *lease)
{
        struct entry *e = world_entry_get(w, lease->entry);

        lease->priority = c->priority;
        lease->kept_rank = c->priority;
        if (!e)
                return;
        if (c->priority > e->priority)
                e->head_is_finite = false;                           /* it stayed head as what it was */
        if (e->kind != ENTRY_THAW || e->priority != PRIORITY_FILLER) /* an idle one's return stays modest */
                e->priority = c->priority;
        e->wait_kind = WAIT_NOT_LOOKED; /* its wait is told anew */
}

static void set_slot(struct world *w, const struct change *c, struct lease *lease)
{
        struct entry *e = world_entry_get(w, lease->entry);
        uint64_t now_ms = slot_now_ms(w, lease);

        lease->slot_ms = slot_after(w, c, lease);
        if (e && is_waiting(lease))
                e->limit_ms = lease->slot_ms;
        if (is_waiting(lease))
                return;
        /* Time that did not run (a lost card, a park) is in the end already: an extension moves it, no more. */
        if (c->what & CHANGE_EXTEND)
                lease->slot_end_ms = u64_add_sat(u64_max(lease->slot_end_ms, now_ms), c->slot_ms);
        else
                lease->slot_end_ms = c->slot_ms != 0 ? u64_add_sat(now_ms, c->slot_ms) : 0;
        lease->over_time = lease->slot_end_ms != 0 && lease->slot_end_ms <= now_ms;
        if (e)
                e->limit_ms = lease->slot_end_ms != 0 ? u64_max(u64_sub0(lease->slot_end_ms, now_ms), 1) : 0;
        lease->slot_warned = false;
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                world_device_changed(w, lease_part(lease, i).device);
}

static void set_start(struct world *w, const struct change *c, struct lease *lease)
{
        struct entry *e = world_entry_get(w, lease->entry);

        lease->booked_ms = e->due_ms = c->start_ms;
        e->wait_kind = WAIT_NOT_LOOKED;
}

static void set_pin(struct world *w, const struct change *c, struct lease *lease)
{
        uint64_t pin_ms = pin_after(w, c);
        struct holder *h;

        each_part (w, lease, h) {
                world_holder_writing(w, h);
                h->pinned = (c->what & CHANGE_PIN) != 0;
                h->pin_end_ms = h->pinned && pin_ms != 0 ? u64_add_sat(w->now_ms, pin_ms) : 0;
                world_holder_written(w, h);
        }
}

void change_step(struct world *w, const struct change *c, struct actions *out)
{
        struct lease *lease = world_lease_by_id(w, c->lease_id);
        struct reason why = { .rule = lease ? RULE_NONE : RULE_NOT_FOUND };
        bool may = lease && may_change(c, lease, &why);

        if (may && (c->what & CHANGE_PRIORITY))
                may = may_have_priority(w, c, &why);
        if (may && (c->what & (CHANGE_SLOT | CHANGE_EXTEND)))
                may = may_have_slot(w, c, lease, &why);
        if (may && (c->what & (CHANGE_PRIORITY | CHANGE_SLOT)))
                may = may_be_urgent(w, c, lease, &why);
        if (may && (c->what & CHANGE_START))
                may = may_begin_then(c, lease, &why);
        if (may && (c->what & CHANGE_PIN))
                may = may_pin(w, c, lease, &why);
        if (!may) {
                struct action *a = actions_add(w, out, ACTION_REFUSED);
                a->token = c->token;
                a->lease_id = c->lease_id;
                a->uid = lease ? lease->uid : c->uid;
                a->why = why;
                return;
        }

        if (c->what & CHANGE_PRIORITY)
                set_priority(w, c, lease);
        if (c->what & (CHANGE_SLOT | CHANGE_EXTEND))
                set_slot(w, c, lease);
        if (c->what & (CHANGE_PIN | CHANGE_UNPIN))
                set_pin(w, c, lease);
        if (c->what & CHANGE_START)
                set_start(w, c, lease);
        why = (struct reason){ .rule = RULE_CHANGED, .limit = c->what };
        if (c->what & (CHANGE_SLOT | CHANGE_EXTEND))
                why.start_ms = lease->slot_end_ms;
        if (c->what & CHANGE_START)
                why.start_ms = lease->booked_ms;
        actions_add_lease(w, out, ACTION_CHANGED, lease, &why)->token = c->token;
}

void change_tick(struct world *w, struct lease *lease, struct actions *out)
{
        struct holder *h = world_holder_get(w, lease->holder);

        if (!h || !h->pinned || h->pin_end_ms == 0 || w->now_ms < h->pin_end_ms)
                return;
        each_part (w, lease, h) {
                world_holder_writing(w, h);
                h->pinned = false;
                h->pin_end_ms = 0;
                world_holder_written(w, h);
        }
        actions_add_lease(w, out, ACTION_CHANGED, lease, &(struct reason){ .rule = RULE_PIN_OVER });
}
