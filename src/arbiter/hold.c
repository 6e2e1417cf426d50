/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/hold.h"
#include "arbiter/actions.h"
#include "arbiter/cost.h"
#include "arbiter/life.h"
#include "arbiter/member.h"
#include "arbiter/park_steps.h"
#include "arbiter/rank.h"
#include "base/number.h"

/* Somebody waits for memory of that device: who is held there may be what gives it back, so it is let go. */
static bool is_wanted(const struct world *w, uint32_t device)
{
        for (uint32_t i = 0; i < w->n_entries; i++)
                if (w->entries[i].kind != ENTRY_NONE && entry_is_head_of(&w->entries[i], device))
                        return true;
        for (uint32_t i = 0; i < w->n_plans; i++)
                if (w->plans[i].id != 0 && w->plans[i].device == device)
                        return true;
        return false;
}

/* Is it at work, by its own word, or was it a moment ago? */
static bool is_at_work(const struct world *w, const struct holder *h)
{
        return h->tells_idle && (h->idle_since_ms == 0 || w->now_ms < h->idle_since_ms + w->config.hold_after_ms);
}

/* For whom @lease would be held; NULL = nobody. Over time who works is a filler himself, whatever he was asked for as. */
static const struct lease *more_important_at_work(const struct world *w, const struct lease *lease)
{
        unsigned rank = lease_rank(&w->config, lease, w->now_ms);

        for (uint32_t k = 0; k < lease_n_parts(lease); k++)
                world_each_holder_on (w, i, lease_part(lease, k).device) {
                        const struct holder *h = &w->holders[i];
                        const struct lease *other = h->kind == HOLDER_LEASE ? &w->leases[h->lease.index] : NULL;
                        if (other && other != lease && other->state == LEASE_ACTIVE && is_at_work(w, h) &&
                            !other->over_time && rank_passes(&w->config, other->priority, rank))
                                return other;
                }
        return NULL;
}

static bool is_anywhere_wanted(const struct world *w, const struct lease *lease)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                if (is_wanted(w, lease_part(lease, i).device))
                        return true;
        return false;
}

static void begin(struct world *w, struct lease *lease, const struct lease *for_whom, struct actions *out)
{
        struct process *p;

        life_change_state(w, lease, LEASE_EVENT_HOLD);
        lease->park.step = PARK_HOLDING;
        lease->park.way = WAY_OUT_CHECKPOINT;
        lease->park.for_lease_id = for_whom->id;
        lease->park.broke_promise = lease->park.lost_one = false; /* that was another time */
        lease->park.failed_ways = 0;
        lease->park.started_ms = lease->park.step_ms = w->now_ms;
        lease->park.deadline_ms = w->now_ms + w->config.lock_ms + HANDS_LATE_MS;
        lease->park.told = false;
        each_member (w, lease, p) {
                member_note_memory(w, lease, p);
                member_order(w, lease, p, HAND_HOLD, MEMBER_LOCKING, 0, w->config.lock_ms, out);
        }
}

void hold_let_go(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        lease->park.step = PARK_UNLOCKING;
        lease->park.step_ms = w->now_ms;
        lease->park.deadline_ms = w->now_ms + HANDS_LATE_MS;
        each_member (w, lease, p)
                if (p->member == MEMBER_LOCKED)
                        member_order(w, lease, p, HAND_UNLOCK, MEMBER_UNLOCKING, 0, 0, out);
        hold_went_on(w, lease, out);
}

void hold_went_on(struct world *w, struct lease *lease, struct actions *out)
{
        struct members m;
        struct process *p;

        members_count(w, lease, &m);
        if (m.n_busy != 0)
                return;
        if (lease->park.step == PARK_HOLDING) {
                lease->park.step = PARK_HELD_HERE;
                lease->park.deadline_ms = 0;
                lease->park.step_ms = w->now_ms;
                park_say(w, lease, ACTION_PARKED, RULE_HELD, WAY_OUT_CHECKPOINT, out);
                return;
        }
        if (lease->park.step != PARK_UNLOCKING || m.at[MEMBER_LOCKED] != 0 || m.at[MEMBER_RESTORED] != 0)
                return;
        each_member (w, lease, p)
                member_leave(w, lease, p);
        park_say(w, lease, ACTION_THAWED, RULE_LET_GO, WAY_OUT_CHECKPOINT, out);
        life_change_state(w, lease, LEASE_EVENT_RETURN);
        lease->park.step = PARK_NONE;
        lease->park.deadline_ms = 0;
        lease->park.for_lease_id = 0;
        if (lease->owner_gone)
                life_change_state(w, lease, LEASE_EVENT_OWNER_GONE);
}

static bool may_be_held(struct world *w, const struct lease *lease)
{
        const struct holder *h = world_holder_get(w, lease->holder);

        return w->config.hold_in_place && !w->degraded && w->pause == PAUSE_NONE && lease->state == LEASE_ACTIVE &&
               !lease->ending && lease->park.step == PARK_NONE && w->now_ms >= lease->park.not_before_ms && h &&
               world_lease_listed(w, lease) != 0 && !h->pinned && !h->protected &&
               w->host.checkpoint == CHECKPOINT_CAN && lease_rank(&w->config, lease, w->now_ms) >= PRIORITY_FILLER &&
               (ways_of_lease(w, lease) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT));
}

void hold_all(struct world *w, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || !actions_have_room(out, ACTIONS_PER_TREE))
                        continue;
                if (lease->state == LEASE_HELD && lease->park.step == PARK_HELD_HERE) {
                        if (!w->config.hold_in_place || is_anywhere_wanted(w, lease) ||
                            !more_important_at_work(w, lease))
                                hold_let_go(w, lease, out);
                } else if (may_be_held(w, lease) && !is_anywhere_wanted(w, lease)) {
                        const struct lease *for_whom = more_important_at_work(w, lease);
                        if (for_whom)
                                begin(w, lease, for_whom, out);
                }
        }
}
