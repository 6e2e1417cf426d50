/* SPDX-License-Identifier: Apache-2.0 */
/* Back on its device: when it may, and how. */
#include "arbiter/park_steps.h"
#include "arbiter/actions.h"
#include "arbiter/ceiling.h"
#include "arbiter/cost.h"
#include "arbiter/life.h"
#include "arbiter/manage.h"
#include "arbiter/member.h"
#include "arbiter/reading.h"
#include "base/number.h"

/*
 * It may have used more than it reserved, and more than it was read to: so its host memory says, which grows by somewhat more
 * than what was on the device. That asks for room as slack does, never for more than can be given: whoever had all of a device
 * would not come back to it.
 */
uint64_t thaw_need_bytes(struct world *w, const struct lease *lease, const struct holder *h)
{
        if (lease->park.way != WAY_OUT_CHECKPOINT)
                return lease->bytes;
        /* By what host memory grew more than that on all its devices together, it may have grown on any. */
        uint64_t grown_bytes = u64_sub0(lease->park.charged_bytes, lease->park.used_bytes);
        uint64_t seen_bytes = u64_max(lease->bytes, h->began_used_bytes);
        uint64_t grew_to_bytes = u64_add_sat(h->began_used_bytes, grown_bytes);
        uint64_t wanted_bytes = u64_add_sat(u64_max(seen_bytes, grew_to_bytes), park_slack_bytes(w, h->device));
        return u64_max(seen_bytes, u64_min(wanted_bytes, device_ceiling_now(w, h->device)));
}

uint64_t thaw_demand_bytes(struct world *w, const struct lease *lease)
{
        uint64_t most_bytes = 1, least_more_bytes = UINT64_MAX, least_ceiling_bytes = UINT64_MAX;
        bool comes_whole = lease->park.way == WAY_OUT_CHECKPOINT;
        const struct holder *h;

        each_part (w, lease, h) {
                uint64_t need_bytes = thaw_need_bytes(w, lease, h);
                uint64_t seen_bytes = comes_whole ? u64_max(lease->bytes, h->began_used_bytes) : need_bytes;
                bool stays = !comes_whole && holder_reading_is_known(h);
                most_bytes = u64_max(most_bytes, stays ? u64_sub0(need_bytes, h->used_bytes) : seen_bytes);
                least_more_bytes = u64_min(least_more_bytes, need_bytes - seen_bytes);
                least_ceiling_bytes = u64_min(least_ceiling_bytes, device_ceiling_now(w, h->device));
        }
        uint64_t demand_bytes = u64_add_sat(most_bytes, lease_n_parts(lease) != 0 ? least_more_bytes : 0);
        /* Slack, or more than it was promised, that one device has room for is not asked of a smaller one: each is looked at for what is
         * to come back there (thaw_keeps_waiting). */
        if (lease->n_more != 0 && demand_bytes > least_ceiling_bytes)
                return u64_max(lease->bytes, least_ceiling_bytes);
        return demand_bytes;
}

bool thaw_is_wanted(const struct world *w, const struct lease *lease)
{
        const struct park *k = &lease->park;

        if (k->wants_back || k->cause == PARK_REHEARSAL)
                return true;
        if (manage_goes_by(lease) && k->strikes[k->way] >= w->config.strikes_max)
                return false; /* it was not started too often: until a person says so */
        if (k->cause == PARK_BY_PERSON)
                return k->until_ms != 0 && w->now_ms >= k->until_ms;
        /* What was checkpointed cannot say that it has work again, nor does who never says such a thing: it comes back when
         * there is room. */
        return !k->idle || k->way != WAY_OUT_COOPERATE || !w->holders[lease->holder.index].tells_idle;
}

void thaw_enqueue(struct world *w, struct lease *lease)
{
        struct entry *e = world_entry_get(w, lease->entry);
        uint64_t parked_ms = w->now_ms - lease->park.parked_ms;

        if (e || !world_has_entry_room(w))
                return; /* the next tick asks again */
        e = world_entry_new(w, ENTRY_THAW);
        if (!e)
                return;
        bool modest =
                lease->over_time || (lease->park.idle && lease->park.cause == PARK_FOR_PLAN && !lease->park.wants_back);
        e->priority = modest ? PRIORITY_FILLER : lease->priority;
        e->collected = true;
        e->lease = world_lease_ref(w, lease);
        e->user = lease->user;
        e->demand_bytes = thaw_demand_bytes(w, lease);
        e->least_bytes = lease->exclusive ? 1 : 0;
        e->n_more = lease->n_more;
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                e->devices |= UINT64_C(1) << lease_part(lease, i).device;
        e->limit_ms = lease->slot_end_ms != 0 ? u64_max(u64_sub0(lease->slot_end_ms, lease->park.parked_ms), 1) : 0;
        e->ways = lease->ways;
        /* It stands there with its first arrival, what it waited before and the time parked; what it ran does not count. */
        e->arrived_ms = lease->arrived_ms;
        e->held_ms = u64_sub0(u64_sub0(w->now_ms, e->arrived_ms), u64_add_sat(lease->waited_ms, parked_ms));
        lease->entry = world_entry_ref(w, e);
        w->users[lease->user].n_waiting++;
}

/* Could it come back now, as far as anybody can see? */
static bool could_return(struct world *w, const struct lease *lease)
{
        const struct holder *h;
        struct sums sums;

        if (lease->state == LEASE_THAWING)
                return true;
        if (lease->state != LEASE_PARKED || ref_is_none(lease->entry) || w->now_ms < lease->park.again_ms)
                return false;
        each_part (w, lease, h) {
                sums_now(w, h->device, &sums);
                world_each_holder_of (w, i, HOLDER_CLAIM)
                        if (w->holders[i].claim_kind == CLAIM_HEAD && w->holders[i].device == h->device)
                                sums_take_out(&sums, &w->holders[i]);
                if (thaw_need_bytes(w, lease, h) > sums_free_bytes(&sums))
                        return false;
        }
        return true;
}

/* Of a plan that failed, who was parked later comes back first, where he can. */
static bool waits_for_another(struct world *w, const struct lease *lease)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct lease *other = &w->leases[i];
                if (w->lease_ids[i] != 0 && lease->park.undo_group != 0 &&
                    other->park.undo_group == lease->park.undo_group &&
                    other->park.undo_order > lease->park.undo_order && could_return(w, other))
                        return true;
        }
        return false;
}

enum { HOUR_MS = 3600000 };

static bool is_within_hour(const struct world *w, uint64_t ms)
{
        return w->now_ms - u64_min(ms, w->now_ms) < HOUR_MS;
}

/* Did it come back as often as it may within the hour? They are kept oldest first: the one that would make it so many decides. */
static bool has_returned_enough(const struct world *w, const struct park *k)
{
        uint32_t most = w->config.returns_max;

        return most == 0 || (k->n_returns >= most && is_within_hour(w, k->returns_ms[k->n_returns - most]));
}

static uint32_t returns_within_hour(const struct world *w, const struct park *k, uint64_t *ret_oldest_ms)
{
        uint32_t n = 0;

        *ret_oldest_ms = 0;
        for (uint32_t i = 0; i < k->n_returns; i++)
                if (is_within_hour(w, k->returns_ms[i])) {
                        if (n++ == 0)
                                *ret_oldest_ms = k->returns_ms[i];
                }
        return n;
}

enum rule thaw_keeps_waiting(struct world *w, const struct lease *lease, struct reason *why)
{
        const struct park *k = &lease->park;
        const struct holder *h;

        if (w->pause != PAUSE_NONE && (!w->pause_thaws || k->way == WAY_OUT_RESTART))
                return RULE_PAUSED; /* nothing is started that is to be ended in a moment */
        if (w->now_ms < k->again_ms) {
                if (why)
                        why->start_ms = k->again_ms;
                return RULE_THAW_AGAIN;
        }
        if (k->undo_group != 0 && waits_for_another(w, lease))
                return RULE_UNDO_ORDER;
        if (k->undo_group == 0 && k->cause == PARK_FOR_PLAN && has_returned_enough(w, k)) {
                uint64_t oldest_ms;
                if (why) {
                        why->limit = returns_within_hour(w, k, &oldest_ms);
                        why->start_ms = oldest_ms + HOUR_MS;
                }
                return RULE_RETURNS_LIMIT;
        }
        if (k->way != WAY_OUT_CHECKPOINT)
                return RULE_NONE;
        each_part (w, lease, h) {
                const struct device *dev = &w->devices[h->device];
                if (dev->foreign_grew_ms != 0 &&
                    w->now_ms - u64_min(dev->foreign_grew_ms, w->now_ms) < w->config.card_quiet_ms)
                        return RULE_CARD_MOVES;
        }
        /* The last look: the device's own figure, whatever the sums say. */
        each_part (w, lease, h) {
                const struct device *dev = &w->devices[h->device];
                if (!dev->used_known || dev->used_bytes > u64_sub0(dev->total_bytes, thaw_need_bytes(w, lease, h)))
                        return RULE_NO_ROOM;
        }
        return RULE_NONE;
}

void thaw_is_back(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;
        struct process *p;
        bool undone = k->undo_group != 0;

        each_member (w, lease, p)
                member_leave(w, lease, p);
        if (park_is_a_promise(lease) && !k->broke_promise)
                k->strikes[k->way] = 0;
        k->back_ms = w->now_ms - k->started_ms;
        cost_learn_back(w, lease, (enum way_out_kind) k->way, k->back_ms);
        if (k->way == WAY_OUT_CHECKPOINT)
                ways_prove(w, lease);
        if (!undone) {
                k->returned_ms = w->now_ms;
                if (k->n_returns == RETURNS_KEPT) {
                        for (uint32_t i = 1; i < RETURNS_KEPT; i++)
                                k->returns_ms[i - 1] = k->returns_ms[i];
                        k->n_returns--;
                }
                k->returns_ms[k->n_returns++] = w->now_ms;
        }
        k->undo_group = 0;
        k->undo_order = 0;
        park_back_to_work(w, lease);
        k->again_ms = 0;
        park_say(w, lease, ACTION_THAWED, RULE_THAWED, k->way, out);
        reading_outdated_of(w, lease, out);
}

/* The first of it needs room for all of it. */
uint64_t thaw_limit_bytes(struct world *w, const struct lease *lease, const struct process *p, uint32_t part)
{
        const struct holder *h = &w->holders[lease_part(lease, part).holder.index];
        struct members m;

        members_count(w, lease, &m);
        if (lease->park.step != PARK_RESTORING || m.at[MEMBER_RESTORED] != 0)
                return park_member_limit_bytes(w, lease, p, part);
        return u64_sub0(w->devices[h->device].total_bytes, thaw_need_bytes(w, lease, h));
}

/* One after another, the last locked first: the look before each tells what the one before it took. */
void thaw_restore_next(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p, *next = NULL;
        struct members m;

        members_count(w, lease, &m);
        if (m.n_busy != 0)
                return;
        each_member (w, lease, p)
                if (p->member == MEMBER_CHECKPOINTED || p->member == MEMBER_STOPPED)
                        next = p;
        if (next) {
                member_order(w, lease, next, HAND_RESTORE, MEMBER_RESTORING, thaw_limit_bytes(w, lease, next, 0), 0,
                             out);
                return;
        }
        if (m.at[MEMBER_FAILED] != 0) {
                lease->park.step = PARK_UNDOING;
                lease->park.lost_one = true;
                park_undo_members(w, lease, out);
                return;
        }
        park_enter(w, lease, PARK_UNLOCKING, HANDS_LATE_MS);
        each_member (w, lease, p)
                if (p->member == MEMBER_RESTORED || p->member == MEMBER_LOCKED)
                        member_order(w, lease, p, HAND_UNLOCK, MEMBER_UNLOCKING, 0, 0, out);
        members_count(w, lease, &m);
        if (m.n_busy == 0)
                thaw_is_back(w, lease, out); /* nobody of it is left to be brought back */
}

void thaw_begin(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;

        life_change_state(w, lease, LEASE_EVENT_THAW);
        park_reserve(w, lease, lease->bytes); /* from here on it counts in full */
        park_set_exclusive(w, lease, lease->exclusive);
        park_count_as_held(w, lease, true);
        k->started_ms = w->now_ms;
        k->wants_back = false;
        k->yielded = false;
        park_say(w, lease, ACTION_THAWING, RULE_THAW_BEGAN, k->way, out);
        if (k->way == WAY_OUT_CHECKPOINT) {
                park_enter(w, lease, PARK_RESTORING, settle_ms(k->used_bytes));
                thaw_restore_next(w, lease, out);
        } else if (manage_goes_by(lease)) {
                manage_start(w, lease, out);
        } else {
                park_enter(w, lease, PARK_RETURNING, w->config.collect_ms);
                if (lease->owner_gone)
                        thaw_is_back(w, lease, out); /* nobody is left to say so */
        }
}

static void stays_parked(struct world *w, struct lease *lease)
{
        park_reserve(w, lease, 0);
        park_set_exclusive(w, lease, false);
        park_count_as_held(w, lease, false);
        life_change_state(w, lease, LEASE_EVENT_PARK);
        park_enter(w, lease, PARK_OUT, 0);
}

/* Could not be tried: it stays parked, nothing is counted against it. */
void thaw_blocked(struct world *w, struct lease *lease, enum hand_why why, struct actions *out)
{
        struct park *k = &lease->park;
        bool lasts = why != HAND_WHY_HEADROOM && why != HAND_WHY_RATE && why != HAND_WHY_LOST;

        k->again_ms = w->now_ms + (lasts ? u64_max(w->config.back_off_ms, AGAIN_MS) : AGAIN_MS);
        stays_parked(w, lease);
        park_say(w, lease, ACTION_PARKED, RULE_THAW_BLOCKED, why, out);
        thaw_enqueue(w, lease);
        reading_outdated_of(w, lease, out);
}

void thaw_failed(struct world *w, struct lease *lease, enum hand_why why, struct actions *out)
{
        struct park *k = &lease->park;
        uint8_t *strikes = &k->strikes[k->way];

        if (*strikes < STRIKES_MAX)
                ++*strikes;
        bool out_of_tries = *strikes >= w->config.strikes_max;
        k->again_ms = w->now_ms + u64_max(w->config.back_off_ms, AGAIN_MS) * *strikes;
        stays_parked(w, lease);
        actions_add_lease(w, out, ACTION_PARKED, lease,
                          &(struct reason){ .rule = RULE_THAW_FAILED,
                                            .limit = why,
                                            .place = *strikes,
                                            .start_ms = out_of_tries ? 0 : k->again_ms });
        if (out_of_tries)
                park_say(w, lease, ACTION_WARNING, RULE_STRUCK_OUT, k->way, out);
        else
                thaw_enqueue(w, lease);
        reading_outdated_of(w, lease, out);
}

void park_activated(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->park.step == PARK_RETURNING && lease->park.way != WAY_OUT_CHECKPOINT)
                thaw_is_back(w, lease, out);
}
