/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include "arbiter/park.h"
#include "arbiter/actions.h"
#include "arbiter/admit.h"
#include "arbiter/ceiling.h"
#include "arbiter/cost.h"
#include "arbiter/ending.h"
#include "arbiter/free.h"
#include "arbiter/hold.h"
#include "arbiter/lane.h"
#include "arbiter/life.h"
#include "arbiter/member.h"
#include "arbiter/plan.h"
#include "arbiter/rank.h"
#include "arbiter/reading.h"
#include "arbiter/reclaim.h"
#include "arbiter/usage.h"
#include "base/number.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* What a process that was checkpointed may still show of itself (F09), and what stays of a program that frees what it has: its
 * context, unless its floor is known. */
enum { AGAIN_MS = 1000, HANDS_LATE_MS = 20000, ACTIONS_PER_TREE = 64 };
static const uint64_t trace_bytes = 64 * MIB, context_bytes = GIB;

/* ---- saying and counting ---- */

void park_say(struct world *w, const struct lease *lease, enum action_kind kind, enum rule rule, uint32_t limit,
              struct actions *out)
{
        const struct park *k = &lease->park;

        actions_add_lease(w, out, kind, lease,
                          &(struct reason){ .rule = (uint16_t) rule,
                                            .limit = limit,
                                            .head_lease_id = k->for_lease_id,
                                            .used_bytes = k->used_bytes,
                                            .need_bytes = rule == RULE_PARKED ? k->charged_bytes : lease->bytes,
                                            .start_ms = u64_max(k->again_ms, k->not_before_ms) });
}

static struct holder *holder_of(struct world *w, const struct lease *lease)
{
        return world_holder_get(w, lease->holder);
}

void park_reserve(struct world *w, struct lease *lease, uint64_t bytes)
{
        struct holder *h = holder_of(w, lease);

        if (!h || h->reserved_bytes == bytes)
                return;
        world_holder_writing(w, h);
        h->reserved_bytes = bytes;
        world_holder_written(w, h);
}

/* What is not there has nobody beside it. */
static void set_exclusive(struct world *w, struct lease *lease, bool exclusive)
{
        struct holder *h = holder_of(w, lease);

        world_holder_writing(w, h);
        h->exclusive = exclusive;
        world_holder_written(w, h);
}

static void enter(struct world *w, struct lease *lease, enum park_step step, uint64_t for_ms)
{
        lease->park.step = (uint8_t) step;
        lease->park.step_ms = w->now_ms;
        lease->park.deadline_ms = for_ms != 0 ? w->now_ms + for_ms : 0;
        lease->park.told = false;
}

static void count_as_held(struct world *w, struct lease *lease, bool held)
{
        struct user *user = &w->users[lease->user];
        uint64_t bytes = held ? u64_add_sat(user->held_bytes, lease->bytes) : u64_sub0(user->held_bytes, lease->bytes);

        usage_set_held(&w->config, user, bytes, w->now_ms);
}

bool park_has_away(struct world *w, const struct lease *lease)
{
        struct members m;

        if (lease->park.step == PARK_NONE)
                return false;
        members_count(w, lease, &m);
        return m.n > m.at[MEMBER_RUNNING];
}

void park_forget(struct world *w, struct lease *lease)
{
        struct ref ref = world_lease_ref(w, lease);

        for (uint32_t i = 0; i < w->n_processes; i++)
                if (ref_equal(w->processes[i].lease, ref))
                        member_leave(w, lease, &w->processes[i]);
        w->ledger_charged_bytes = u64_sub0(w->ledger_charged_bytes, lease->park.charged_bytes);
        lease->park = (struct park){ 0 };
}

/* ---- the end of an attempt ---- */

/* What it gave back may have been granted meanwhile, to whoever it was for or, after that one had left, to others: that is
 * not promised a second time. What heads claim is lent. */
static uint64_t can_have_again_bytes(struct world *w, const struct lease *lease)
{
        const struct holder *h = holder_of(w, lease);
        struct sums sums;

        if (!h || !device_is_usable(&w->devices[lease->device]))
                return lease->bytes;
        sums_now(w, lease->device, &sums);
        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (w->holders[i].claim_kind == CLAIM_HEAD && w->holders[i].device == lease->device)
                        sums_take_out(&sums, &w->holders[i]);
        sums_take_out(&sums, h);
        return u64_min(lease->bytes, u64_max(u64_max(h->reserved_bytes, h->used_bytes), sums_free_bytes(&sums)));
}

/* It is at work, as before. What it was tried for does without it. */
static void back_to_work(struct world *w, struct lease *lease)
{
        struct park *k = &lease->park;

        park_reserve(w, lease, can_have_again_bytes(w, lease));
        life_change_state(w, lease, LEASE_EVENT_RETURN);
        k->step = PARK_NONE;
        k->cause = PARK_FOR_NOBODY;
        k->planned_bytes = k->moved_bytes = k->deadline_ms = 0;
        k->for_lease_id = 0;
        k->failed_ways = 0;
        k->yielded = k->lost_one = k->wants_back = false;
        if (lease->owner_gone)
                life_change_state(w, lease, LEASE_EVENT_OWNER_GONE);
}

static void stick(struct world *w, struct lease *lease, enum hand_why why, struct actions *out)
{
        plan_fail_of(w, lease, out);
        if (lease->state != LEASE_STUCK)
                life_change_state(w, lease, LEASE_EVENT_STICK);
        lease->park.planned_bytes = 0;
        if (lease->park.told)
                return;
        lease->park.told = true;
        park_say(w, lease, ACTION_STUCK, RULE_STUCK, why, out);
}

static void undo_members(struct world *w, struct lease *lease, struct actions *out);

/* Nothing is known against it: what had begun is undone, and it is left alone for some time. */
static void undo(struct world *w, struct lease *lease, enum hand_why why, struct actions *out)
{
        struct park *k = &lease->park;

        plan_fail_of(w, lease, out);
        park_reserve(w, lease, can_have_again_bytes(w, lease));
        k->planned_bytes = 0;
        k->not_before_ms = w->now_ms + w->config.back_off_ms;
        park_say(w, lease, ACTION_WARNING, RULE_PARK_BLOCKED, why, out);
        enter(w, lease, PARK_UNDOING, settle_ms(k->used_bytes));
        undo_members(w, lease, out);
}

/* ---- off the device ---- */

static void ask_members(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        enter(w, lease, PARK_LOCKING, w->config.lock_ms + HANDS_LATE_MS);
        for
                each_member(w, lease, p)
                {
                        const struct occupancy *o = world_occupancy_find(w, lease->device, p->identity);
                        p->device_bytes = o ? o->used_bytes : 0;
                        member_order(w, lease, p, HAND_LOCK, MEMBER_LOCKING, 0, w->config.lock_ms, out);
                }
}

static void begin_way(struct world *w, struct lease *lease, enum way_out_kind way, struct actions *out)
{
        struct holder *h = holder_of(w, lease);
        struct park *k = &lease->park;

        k->way = (uint8_t) way;
        k->yielded = false;
        k->planned_bytes = way == WAY_OUT_CHECKPOINT ? h->used_bytes : 0;
        park_say(w, lease, ACTION_ASKED, RULE_ASKED, way, out);
        switch (way) {
        case WAY_OUT_CHECKPOINT:
                ask_members(w, lease, out);
                break;
        case WAY_OUT_KILL:
                lease->ending = true;
                enter(w, lease, PARK_ASKING,
                      w->config.end_grace_ms + w->config.end_give_up_ms + settle_ms(h->used_bytes));
                ending_tick(w, lease, out);
                break;
        case WAY_OUT_RESTART:
                enter(w, lease, PARK_ASKING, w->config.yield_grace_ms + settle_ms(h->used_bytes));
                break;
        case WAY_OUT_COOPERATE:
        case WAY_OUT_RELEASE:
        case WAY_OUT_N:
                enter(w, lease, PARK_ASKING, w->config.ask_ms);
                break;
        }
}

void park_begin(struct world *w, struct lease *lease, enum way_out_kind way, enum park_cause cause, uint64_t for_id,
                uint32_t by_uid, struct actions *out)
{
        struct holder *h = holder_of(w, lease);
        struct park *k = &lease->park;

        assert(h && lease->state == LEASE_ACTIVE && k->step == PARK_NONE);
        k->cause = (uint8_t) cause;
        k->for_lease_id = for_id;
        k->by_uid = by_uid;
        k->failed_ways = 0;
        k->undo_group = k->until_ms = k->moved_bytes = 0;
        k->undo_order = 0;
        k->lost_one = k->broke_promise = k->wants_back = false;
        k->used_bytes = h->used_bytes;
        k->idle = h->idle_since_ms != 0;
        k->started_ms = w->now_ms;
        life_change_state(w, lease, LEASE_EVENT_ASK);
        begin_way(w, lease, way, out);
}

/* What it left is there for it still: nobody stood in the queue for that within this step. The device's own figure may lag. */
static bool fits_again(struct world *w, const struct lease *lease)
{
        struct sums sums;
        struct reason why;

        sums_now(w, lease->device, &sums);
        return thaw_demand_bytes(w, lease) <= sums_free_bytes(&sums) && device_is_fresh(w, lease->device) &&
               thaw_keeps_waiting(w, lease, &why) == RULE_NONE;
}

/* The device shows that it is off. */
static void is_out(struct world *w, struct lease *lease, struct actions *out)
{
        struct holder *h = holder_of(w, lease);
        struct park *k = &lease->park;

        enter(w, lease, PARK_OUT, 0);
        k->parked_ms = w->now_ms;
        k->out_ms = w->now_ms - k->started_ms;
        k->planned_bytes = 0;
        if (k->way != WAY_OUT_COOPERATE) /* of that one only what it kept until its return is a success */
                k->strikes[k->way] = 0;
        life_change_state(w, lease, LEASE_EVENT_PARK);
        park_reserve(w, lease, 0);
        count_as_held(w, lease, false);
        /* What stays of it there nobody counts on again: a plan that it made too small would be begun anew without end. */
        lease->ways.floor_bytes[k->way] = h->used_bytes;
        world_holder_writing(w, h);
        h->idle_since_ms = 0;
        h->ways = lease->ways;
        world_holder_written(w, h);
        set_exclusive(w, lease, false);
        lease->backfilled = false;
        lease->backfill_for = (struct ref){ 0 };
        lease->ledger_set_aside_bytes = 0;
        world_device_changed(w, lease->device);
        cost_learn_out(w, lease, (enum way_out_kind) k->way, k->out_ms, k->used_bytes);
        if (k->way == WAY_OUT_COOPERATE)
                cost_learn_asked(w, lease, true);
        park_say(w, lease, ACTION_PARKED, RULE_PARKED, k->way, out);
        if (k->cause == PARK_REHEARSAL && fits_again(w, lease))
                thaw_begin(w, lease, out); /* it was proven: nobody stood in the queue for it meanwhile */
        else if (thaw_is_wanted(w, lease))
                thaw_enqueue(w, lease);
}

static void stop_members(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        if (lease->no_stop) {
                enter(w, lease, PARK_SETTLING, settle_ms(lease->park.used_bytes));
                actions_read_soon(w, out, lease->device);
                return;
        }
        enter(w, lease, PARK_STOPPING, HANDS_LATE_MS);
        for
                each_member(w, lease, p) if (p->member == MEMBER_CHECKPOINTED)
                        member_order(w, lease, p, HAND_STOP, MEMBER_STOPPING, 0, 0, out);
}

static void checkpoint_members(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        enter(w, lease, PARK_CHECKPOINTING, settle_ms(lease->park.used_bytes));
        for
                each_member(w, lease, p) if (p->member == MEMBER_LOCKED)
                        member_order(w, lease, p, HAND_CHECKPOINT, MEMBER_CHECKPOINTING, 0, 0, out);
}

/* Is anybody still waiting for it? A person's park is for itself. */
static bool is_still_wanted(struct world *w, const struct lease *lease)
{
        return lease->park.cause != PARK_FOR_PLAN || lease->park.broke_promise || plan_of_victim(w, lease) != NULL;
}

/* All that is known of its members, after one of them came a step further. */
static void go_on_out(struct world *w, struct lease *lease, struct actions *out)
{
        struct members m;

        members_count(w, lease, &m);
        if (m.n_busy != 0 || !actions_have_room(out, ACTIONS_PER_TREE + m.n))
                return;
        switch ((unsigned) lease->park.step) {
        case PARK_LOCKING:
                if (m.at[MEMBER_RUNNING] != 0 || m.n == 0)
                        undo(w, lease, HAND_WHY_GONE, out);
                else if (!is_still_wanted(w, lease))
                        undo(w, lease, HAND_WHY_NONE, out);
                else
                        checkpoint_members(w, lease, out);
                break;
        case PARK_CHECKPOINTING:
                if (m.at[MEMBER_LOCKED] == 0)
                        stop_members(w, lease, out);
                break;
        case PARK_STOPPING:
                enter(w, lease, PARK_SETTLING, settle_ms(lease->park.used_bytes));
                actions_read_soon(w, out, lease->device);
                break;
        default:
                break;
        }
}

/* ---- undone ---- */

static uint64_t slack_bytes(const struct world *w, uint32_t device)
{
        return w->devices[device].total_bytes / 1000 * w->config.slack_milli;
}

static uint64_t member_limit_bytes(struct world *w, const struct lease *lease, const struct process *p)
{
        uint64_t total_bytes = w->devices[lease->device].total_bytes;

        return u64_sub0(total_bytes, u64_add_sat(p->device_bytes, slack_bytes(w, lease->device)));
}

static void finish_undo(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        for
                each_member(w, lease, p) if (p->member == MEMBER_RUNNING) member_leave(w, lease, p);
        if (lease->park.lost_one) {
                stick(w, lease, HAND_WHY_DRIVER, out);
                lease->park.step = PARK_UNDOING;
                return;
        }
        back_to_work(w, lease); /* also who was taken for stuck, for an answer came late: nobody of it is away */
        park_say(w, lease, ACTION_THAWED, RULE_PARK_UNDONE, lease->park.way, out);
        reading_outdated(w, lease->device, out);
}

/* Whoever is further than running is brought back, as far as he can be ordered now. */
static void undo_members(struct world *w, struct lease *lease, struct actions *out)
{
        struct members m;
        struct process *p;

        for
                each_member(w, lease, p)
                {
                        if (!actions_have_room(out, ACTIONS_PER_TREE))
                                return;
                        if (p->member == MEMBER_LOCKED || p->member == MEMBER_RESTORED)
                                member_order(w, lease, p, HAND_UNLOCK, MEMBER_UNLOCKING, 0, 0, out);
                        else if (p->member == MEMBER_CHECKPOINTED || p->member == MEMBER_STOPPED)
                                member_order(w, lease, p, HAND_RESTORE, MEMBER_RESTORING,
                                             member_limit_bytes(w, lease, p), 0, out);
                }
        members_count(w, lease, &m);
        if (m.n == m.at[MEMBER_RUNNING] + m.at[MEMBER_FAILED])
                finish_undo(w, lease, out);
}

/* ---- back on the device ---- */

uint64_t thaw_need_bytes(struct world *w, const struct lease *lease)
{
        uint64_t bytes = lease->bytes;

        if (lease->park.way != WAY_OUT_CHECKPOINT)
                return bytes;
        uint64_t ceiling_bytes = device_ceiling_now(w, lease->device);
        return u64_max(bytes, u64_min(u64_add_sat(bytes, slack_bytes(w, lease->device)), ceiling_bytes));
}

uint64_t thaw_demand_bytes(struct world *w, const struct lease *lease)
{
        const struct holder *h = holder_of(w, lease);
        uint64_t need_bytes = thaw_need_bytes(w, lease);

        if (lease->park.way == WAY_OUT_CHECKPOINT || !h || !holder_reading_is_known(h))
                return need_bytes;
        return u64_max(u64_sub0(need_bytes, h->used_bytes), 1);
}

bool thaw_is_wanted(const struct world *w, const struct lease *lease)
{
        const struct park *k = &lease->park;

        if (k->wants_back || k->cause == PARK_REHEARSAL)
                return true;
        if (k->cause == PARK_BY_PERSON)
                return k->until_ms != 0 && w->now_ms >= k->until_ms;
        /* What was checkpointed cannot say that it has work again, so it comes back when there is room. */
        return !k->idle || k->way != WAY_OUT_COOPERATE;
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
        e->devices = UINT64_C(1) << lease->device;
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
        struct sums sums;

        if (lease->state == LEASE_THAWING)
                return true;
        if (lease->state != LEASE_PARKED || ref_is_none(lease->entry) || w->now_ms < lease->park.again_ms)
                return false;
        sums_now(w, lease->device, &sums);
        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (w->holders[i].claim_kind == CLAIM_HEAD && w->holders[i].device == lease->device)
                        sums_take_out(&sums, &w->holders[i]);
        return thaw_need_bytes(w, lease) <= sums_free_bytes(&sums);
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

static uint32_t returns_within_hour(const struct world *w, const struct park *k, uint64_t *ret_oldest_ms)
{
        uint32_t n = 0;

        *ret_oldest_ms = 0;
        for (uint32_t i = 0; i < k->n_returns; i++)
                if (w->now_ms - u64_min(k->returns_ms[i], w->now_ms) < HOUR_MS) {
                        if (n++ == 0)
                                *ret_oldest_ms = k->returns_ms[i];
                }
        return n;
}

enum rule thaw_keeps_waiting(struct world *w, const struct lease *lease, struct reason *why)
{
        const struct device *dev = &w->devices[lease->device];
        const struct park *k = &lease->park;
        uint64_t oldest_ms;

        if (w->now_ms < k->again_ms) {
                why->start_ms = k->again_ms;
                return RULE_THAW_AGAIN;
        }
        if (k->undo_group != 0 && waits_for_another(w, lease))
                return RULE_UNDO_ORDER;
        uint32_t n = returns_within_hour(w, k, &oldest_ms);
        if (k->undo_group == 0 && n >= w->config.returns_max && k->cause == PARK_FOR_PLAN) {
                why->limit = n;
                why->start_ms = oldest_ms + HOUR_MS;
                return RULE_RETURNS_LIMIT;
        }
        if (k->way != WAY_OUT_CHECKPOINT)
                return RULE_NONE;
        if (dev->foreign_grew_ms != 0 && w->now_ms - u64_min(dev->foreign_grew_ms, w->now_ms) < w->config.card_quiet_ms)
                return RULE_CARD_MOVES;
        /* The last look: the device's own figure, whatever the sums say. */
        if (!dev->used_known || dev->used_bytes > u64_sub0(dev->total_bytes, thaw_need_bytes(w, lease)))
                return RULE_NO_ROOM;
        return RULE_NONE;
}

static void is_back(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;
        struct process *p;
        bool undone = k->undo_group != 0;

        for
                each_member(w, lease, p) member_leave(w, lease, p);
        if (k->way == WAY_OUT_COOPERATE && !k->broke_promise)
                k->strikes[k->way] = 0;
        k->back_ms = w->now_ms - k->started_ms;
        cost_learn_back(w, lease, (enum way_out_kind) k->way, k->back_ms);
        if (k->way == WAY_OUT_CHECKPOINT)
                ways_prove(w, lease);
        if (lease->slot_end_ms != 0) { /* a slot does not run while its lease is parked */
                lease->slot_end_ms += u64_sub0(w->now_ms, k->parked_ms);
                world_device_changed(w, lease->device);
        }
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
        back_to_work(w, lease);
        k->parked_ms = k->again_ms = 0;
        park_say(w, lease, ACTION_THAWED, RULE_THAWED, k->way, out);
        reading_outdated(w, lease->device, out);
}

/* One after another, the last locked first: the look before each tells what the one before it took. */
static void restore_next(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p, *next = NULL;
        struct members m;

        members_count(w, lease, &m);
        if (m.n_busy != 0)
                return;
        for
                each_member(w, lease, p) if (p->member == MEMBER_CHECKPOINTED || p->member == MEMBER_STOPPED) next = p;
        if (next) {
                uint64_t limit_bytes = member_limit_bytes(w, lease, next);
                if (m.at[MEMBER_RESTORED] == 0)
                        limit_bytes = u64_sub0(w->devices[lease->device].total_bytes, thaw_need_bytes(w, lease));
                member_order(w, lease, next, HAND_RESTORE, MEMBER_RESTORING, limit_bytes, 0, out);
                return;
        }
        if (m.at[MEMBER_FAILED] != 0) {
                lease->park.step = PARK_UNDOING;
                lease->park.lost_one = true;
                undo_members(w, lease, out);
                return;
        }
        enter(w, lease, PARK_UNLOCKING, HANDS_LATE_MS);
        for
                each_member(w, lease, p) if (p->member == MEMBER_RESTORED || p->member == MEMBER_LOCKED)
                        member_order(w, lease, p, HAND_UNLOCK, MEMBER_UNLOCKING, 0, 0, out);
        members_count(w, lease, &m);
        if (m.n_busy == 0)
                is_back(w, lease, out); /* nobody of it is left to be brought back */
}

void thaw_begin(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;

        life_change_state(w, lease, LEASE_EVENT_THAW);
        park_reserve(w, lease, lease->bytes); /* from here on it counts in full */
        set_exclusive(w, lease, lease->exclusive);
        count_as_held(w, lease, true);
        k->started_ms = w->now_ms;
        k->wants_back = false;
        k->yielded = false;
        park_say(w, lease, ACTION_THAWING, RULE_THAW_BEGAN, k->way, out);
        if (k->way == WAY_OUT_CHECKPOINT) {
                enter(w, lease, PARK_RESTORING, settle_ms(k->used_bytes));
                restore_next(w, lease, out);
        } else {
                enter(w, lease, PARK_RETURNING, w->config.collect_ms);
                if (lease->owner_gone)
                        is_back(w, lease, out); /* nobody is left to say so */
        }
}

/* Could not be tried: it stays parked, nothing is counted against it. */
static void thaw_blocked(struct world *w, struct lease *lease, enum hand_why why, struct actions *out)
{
        struct park *k = &lease->park;

        bool lasts = why != HAND_WHY_HEADROOM && why != HAND_WHY_RATE && why != HAND_WHY_LOST;

        k->again_ms = w->now_ms + (lasts ? u64_max(w->config.back_off_ms, AGAIN_MS) : AGAIN_MS);
        park_reserve(w, lease, 0);
        set_exclusive(w, lease, false);
        count_as_held(w, lease, false);
        life_change_state(w, lease, LEASE_EVENT_PARK);
        enter(w, lease, PARK_OUT, 0);
        park_say(w, lease, ACTION_PARKED, RULE_THAW_BLOCKED, why, out);
        thaw_enqueue(w, lease);
        reading_outdated(w, lease->device, out);
}

void park_activated(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->park.step == PARK_RETURNING && lease->park.way != WAY_OUT_CHECKPOINT)
                is_back(w, lease, out);
}

/* ---- what the hands say ---- */

static void member_failed(struct world *w, struct lease *lease, struct process *p, enum hand_why why,
                          struct actions *out)
{
        p->member = MEMBER_FAILED;
        lease->park.lost_one = true;
        stick(w, lease, why, out);
        park_reserve(w, lease, lease->bytes);
        lease->park.step = PARK_UNDOING;
        undo_members(w, lease, out);
}

static bool may_be_asked_again(enum hand_why why)
{
        return why == HAND_WHY_RATE || why == HAND_WHY_AWAY || why == HAND_WHY_LOST;
}

static void on_locked(struct world *w, struct lease *lease, struct process *p, const struct hand_outcome *o,
                      struct actions *out)
{
        bool locked = o->outcome == OUTCOME_DONE;

        p->member = locked ? MEMBER_LOCKED : MEMBER_RUNNING;
        if (locked && lease->state == LEASE_STUCK && lease->park.step == PARK_LOCKING)
                life_change_state(w, lease, LEASE_EVENT_ASK); /* it came late, and it came */
        if (o->program != 0)
                p->program = o->program;
        if (lease->state == LEASE_STUCK && lease->park.step == PARK_HOLDING)
                lease->park.step = PARK_UNDOING; /* too late to be held */
        if (lease->park.step == PARK_UNDOING)
                undo_members(w, lease, out);
        else if (locked && lease->park.step == PARK_HOLDING)
                hold_went_on(w, lease, out);
        else if (!locked)
                undo(w, lease, (enum hand_why) o->why, out);
        else if (!(ways_of_lease(w, lease) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT)) && lease->park.cause == PARK_FOR_PLAN)
                undo(w, lease, HAND_WHY_CANNOT, out); /* it runs another program than the one that was proven */
        else
                go_on_out(w, lease, out);
}

static void on_checkpointed(struct world *w, struct lease *lease, struct process *p, const struct hand_outcome *o,
                            struct actions *out)
{
        if (o->outcome == OUTCOME_FAILED) {
                member_failed(w, lease, p, (enum hand_why) o->why, out);
                return;
        }
        if (o->outcome == OUTCOME_BLOCKED) {
                p->member = MEMBER_LOCKED;
                if (lease->park.step == PARK_UNDOING)
                        undo_members(w, lease, out);
                else if (!may_be_asked_again((enum hand_why) o->why) || lease->state == LEASE_STUCK)
                        undo(w, lease, (enum hand_why) o->why, out); /* late, and in vain */
                else
                        lease->park.again_ms = w->now_ms + AGAIN_MS;
                return;
        }
        p->member = MEMBER_CHECKPOINTED;
        if (w->host.read_ms <= lease->park.step_ms) /* what the host said is from before: this is not there any more */
                w->host.available_bytes = u64_sub0(w->host.available_bytes, o->host_bytes);
        member_charge(w, lease, p, o->host_bytes);
        lease->park.planned_bytes = u64_sub0(lease->park.planned_bytes, p->device_bytes);
        if (lease->park.step == PARK_UNDOING) {
                undo_members(w, lease, out);
                return;
        }
        if (lease->state == LEASE_STUCK && !lease->park.lost_one) /* it came late, and it came */
                life_change_state(w, lease, LEASE_EVENT_ASK);
        go_on_out(w, lease, out);
}

static void on_restored(struct world *w, struct lease *lease, struct process *p, const struct hand_outcome *o,
                        struct actions *out)
{
        struct members m;

        if (o->outcome == OUTCOME_FAILED) {
                member_failed(w, lease, p, (enum hand_why) o->why, out);
                return;
        }
        if (lease->state == LEASE_STUCK && !lease->park.lost_one && lease->park.step != PARK_UNDOING)
                life_change_state(w, lease, LEASE_EVENT_THAW); /* it came late, and it came */
        if (o->outcome == OUTCOME_BLOCKED) {
                p->member = lease->no_stop ? MEMBER_CHECKPOINTED : MEMBER_STOPPED;
                members_count(w, lease, &m);
                if (lease->park.step == PARK_RESTORING && lease->state == LEASE_THAWING && m.at[MEMBER_RESTORED] == 0)
                        thaw_blocked(w, lease, (enum hand_why) o->why, out);
                else
                        lease->park.again_ms = w->now_ms + AGAIN_MS;
                return;
        }
        p->member = MEMBER_RESTORED;
        if (w->host.read_ms <= lease->park.step_ms)
                w->host.available_bytes = u64_add_sat(w->host.available_bytes, p->parked_bytes);
        member_charge(w, lease, p, 0);
        if (lease->park.step == PARK_UNDOING) {
                undo_members(w, lease, out);
                return;
        }
        restore_next(w, lease, out);
}

static void on_unlocked(struct world *w, struct lease *lease, struct process *p, const struct hand_outcome *o,
                        struct actions *out)
{
        struct members m;

        if (o->outcome != OUTCOME_DONE && o->why != HAND_WHY_STATE) {
                p->member = lease->park.step == PARK_UNDOING ? MEMBER_LOCKED : MEMBER_RESTORED;
                lease->park.again_ms = w->now_ms + AGAIN_MS;
                return;
        }
        p->member = MEMBER_RUNNING;
        p->device_bytes = 0;
        if (lease->park.step == PARK_UNDOING) {
                undo_members(w, lease, out);
                return;
        }
        if (lease->state == LEASE_HELD) {
                hold_went_on(w, lease, out);
                return;
        }
        members_count(w, lease, &m);
        if (m.n_busy != 0 || m.at[MEMBER_RESTORED] != 0 || m.at[MEMBER_LOCKED] != 0)
                return;
        if (lease->state == LEASE_STUCK && !lease->park.lost_one)
                life_change_state(w, lease, LEASE_EVENT_THAW);
        enter(w, lease, PARK_RETURNING, settle_ms(lease->park.used_bytes));
        actions_read_soon(w, out, lease->device);
}

bool park_outcome(struct world *w, const struct hand_outcome *o, struct actions *out)
{
        struct process *p = world_process_find(w, o->process);
        if (!p || p->order_id == 0 || p->order_id != o->order_id)
                return false; /* late, or of another kind */

        struct lease *lease = world_lease_get(w, p->lease);
        enum member_step step = (enum member_step) p->member;
        p->order_id = 0;
        if (!lease)
                return false;
        if (o->outcome != OUTCOME_DONE && o->why == HAND_WHY_GONE) {
                p->member = MEMBER_RUNNING; /* it has ended: who watches it says so */
                park_process_ended(w, p->identity, out);
                return true;
        }
        switch ((unsigned) step) {
        case MEMBER_LOCKING:
                on_locked(w, lease, p, o, out);
                break;
        case MEMBER_CHECKPOINTING:
                on_checkpointed(w, lease, p, o, out);
                break;
        case MEMBER_STOPPING: /* not stopped is no harm: it is locked */
                p->member = o->outcome == OUTCOME_DONE ? MEMBER_STOPPED : MEMBER_CHECKPOINTED;
                if (lease->park.step == PARK_UNDOING)
                        undo_members(w, lease, out);
                else if (lease->park.step == PARK_RESTORING) /* late: it is on its way back already */
                        restore_next(w, lease, out);
                else
                        go_on_out(w, lease, out);
                break;
        case MEMBER_RESTORING:
                on_restored(w, lease, p, o, out);
                break;
        case MEMBER_UNLOCKING:
                on_unlocked(w, lease, p, o, out);
                break;
        default:
                return false;
        }
        return true;
}

/* ---- what the device says ---- */

/* What may stay of it there once it has given way. */
static uint64_t may_stay_bytes(struct world *w, const struct lease *lease, const struct holder *h)
{
        struct members m;

        if (lease->park.way == WAY_OUT_CHECKPOINT) {
                members_count(w, lease, &m);
                return trace_bytes * u64_max(m.n, 1);
        }
        if (lease->park.way == WAY_OUT_RESTART)
                return 0;
        return u64_max(h->ways.floor_bytes[lease->park.way], u64_min(context_bytes, lease->park.used_bytes / 4));
}

static bool is_off(struct world *w, const struct lease *lease, const struct holder *h)
{
        const struct device *dev = &w->devices[lease->device];

        if (!dev->settled || dev->reading_ms < lease->park.step_ms || !dev->per_process_known)
                return false;
        if (lease->park.way == WAY_OUT_RESTART)
                return h->n_processes == 0 && lease->park.yielded;
        return holder_reading_is_known(h) && h->used_bytes <= may_stay_bytes(w, lease, h) &&
               (lease->park.way == WAY_OUT_CHECKPOINT || lease->park.yielded);
}

/* It gave way, and then took its memory again: told once. It counts as what it is. */
static void watch_promise(struct world *w, struct lease *lease, const struct holder *h, struct actions *out)
{
        struct park *k = &lease->park;

        if (k->way != WAY_OUT_COOPERATE || k->broke_promise || !holder_reading_is_known(h) ||
            h->used_bytes <= may_stay_bytes(w, lease, h) + w->config.over_use_bytes)
                return;
        k->broke_promise = true;
        if (k->strikes[k->way] < STRIKES_MAX)
                k->strikes[k->way]++;
        cost_learn_asked(w, lease, false);
        actions_add_lease(w, out, ACTION_WARNING, lease,
                          &(struct reason){ .rule = RULE_BROKE_PROMISE, .used_bytes = h->used_bytes });
        uint8_t next;
        k->failed_ways = WAY_OUT_BIT(WAY_OUT_COOPERATE);
        if (reclaim_may_park(w, lease, k->failed_ways, &next) != RECLAIM_MAY)
                return; /* it counts as what it is, and comes back when all of it fits */
        struct entry *e = world_entry_get(w, lease->entry);
        if (e)
                admit_drop_entry(w, e);
        k->used_bytes = h->used_bytes;
        k->moved_bytes = 0;
        k->started_ms = w->now_ms;
        count_as_held(w, lease, true);
        life_change_state(w, lease, LEASE_EVENT_ASK);
        begin_way(w, lease, (enum way_out_kind) next, out);
}

static bool shows_it_back(const struct world *w, const struct lease *lease, const struct holder *h)
{
        const struct device *dev = &w->devices[lease->device];

        return dev->settled && dev->reading_ms >= lease->park.step_ms &&
               (!holder_reading_is_known(h) || h->used_bytes >= lease->park.used_bytes / 8 * 7);
}

/* Nobody of it is left, of those who were to be ended: then it has, whoever holds on to it. */
static bool is_killed(const struct world *w, const struct lease *lease, const struct holder *h)
{
        const struct device *dev = &w->devices[lease->device];

        return dev->settled && dev->per_process_known && dev->reading_ms >= lease->park.step_ms &&
               h->n_processes == 0 && !lease->root_living;
}

void park_after_reading(struct world *w, uint32_t device, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || lease->park.step == PARK_NONE || lease->device != device)
                        continue;
                if (lease->state == LEASE_DRAINING)
                        continue; /* it has ended: wherever it was on its way to, it arrives nowhere any more */
                struct holder *h = holder_of(w, lease);
                if (!h || !actions_have_room(out, ACTIONS_PER_TREE))
                        continue;
                switch ((unsigned) lease->park.step) {
                case PARK_ASKING:
                        if (lease->park.way == WAY_OUT_KILL) {
                                if (is_killed(w, lease, h))
                                        life_end(w, lease, END_WORKERS_GONE, 0, out);
                                break;
                        }
                        if (is_off(w, lease, h))
                                is_out(w, lease, out);
                        else if (lease->park.yielded)
                                actions_read_soon(w, out, device);
                        break;
                case PARK_SETTLING:
                        if (is_off(w, lease, h))
                                is_out(w, lease, out);
                        else
                                actions_read_soon(w, out, device);
                        break;
                case PARK_RETURNING:
                        if (lease->park.way != WAY_OUT_CHECKPOINT)
                                break;
                        if (shows_it_back(w, lease, h))
                                is_back(w, lease, out);
                        else
                                actions_read_soon(w, out, device);
                        break;
                case PARK_OUT:
                        watch_promise(w, lease, h, out);
                        break;
                default:
                        break;
                }
        }
}

/* ---- what time says ---- */

/* A way out that can be tried again was tried in vain: a strike, and the next one that it has. */
static void way_failed(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;
        uint8_t way = k->way, next;

        if (way == WAY_OUT_COOPERATE || way == WAY_OUT_RELEASE) {
                if (k->strikes[way] < STRIKES_MAX)
                        k->strikes[way]++;
                cost_learn_asked(w, lease, false);
                park_say(w, lease, ACTION_WARNING,
                         k->strikes[way] >= w->config.strikes_max ? RULE_STRUCK_OUT : RULE_PARK_FAILED, way, out);
        } else {
                park_say(w, lease, ACTION_WARNING, RULE_PARK_FAILED, way, out);
        }
        k->failed_ways |= WAY_OUT_BIT(way);
        if (reclaim_may_park(w, lease, k->failed_ways, &next) == RECLAIM_MAY && is_still_wanted(w, lease)) {
                begin_way(w, lease, (enum way_out_kind) next, out);
                return;
        }
        k->not_before_ms = w->now_ms + w->config.back_off_ms;
        plan_fail_of(w, lease, out);
        back_to_work(w, lease);
        park_say(w, lease, ACTION_THAWED, RULE_PARK_UNDONE, way, out);
}

static void try_again(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        switch ((unsigned) lease->park.step) {
        case PARK_CHECKPOINTING:
                for
                        each_member(w, lease, p) if (p->member == MEMBER_LOCKED && lease->state == LEASE_ASKING)
                                member_order(w, lease, p, HAND_CHECKPOINT, MEMBER_CHECKPOINTING, 0, 0, out);
                break;
        case PARK_RESTORING:
                if (lease->state == LEASE_THAWING)
                        restore_next(w, lease, out);
                break;
        case PARK_UNLOCKING:
                for
                        each_member(w, lease, p) if (p->member == MEMBER_RESTORED || p->member == MEMBER_LOCKED)
                                member_order(w, lease, p, HAND_UNLOCK, MEMBER_UNLOCKING, 0, 0, out);
                break;
        case PARK_UNDOING:
                undo_members(w, lease, out);
                break;
        default:
                break;
        }
}

static void deadline_passed(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;
        struct members m;

        switch ((unsigned) k->step) {
        case PARK_ASKING:
                if (k->way == WAY_OUT_KILL)
                        stick(w, lease, HAND_WHY_UNKILLABLE, out);
                else
                        way_failed(w, lease, out);
                break;
        case PARK_CHECKPOINTING:
                members_count(w, lease, &m);
                if (m.n_busy == 0) { /* the hands could not be had all the time */
                        undo(w, lease, HAND_WHY_AWAY, out);
                        break;
                }
                stick(w, lease, HAND_WHY_OTHER, out);
                break;
        case PARK_STOPPING: /* not stopped is no harm: it is locked */
                park_say(w, lease, ACTION_WARNING, RULE_PARK_BLOCKED, HAND_WHY_LOST, out);
                enter(w, lease, PARK_SETTLING, settle_ms(k->used_bytes));
                actions_read_soon(w, out, lease->device);
                break;
        case PARK_LOCKING:
        case PARK_HOLDING:
        case PARK_RESTORING:
        case PARK_UNLOCKING:
        case PARK_UNDOING:
                members_count(w, lease, &m);
                if (m.n_busy != 0) /* else it could not be tried, and is tried again */
                        stick(w, lease, HAND_WHY_OTHER, out);
                break;
        case PARK_SETTLING:
                stick(w, lease, HAND_WHY_OTHER, out);
                actions_read(w, out, lease->device);
                break;
        case PARK_RETURNING:
                if (k->way != WAY_OUT_CHECKPOINT)
                        park_say(w, lease, ACTION_WARNING, RULE_PARK_FAILED, k->way, out);
                /* Unlocked it is; who was told and says nothing has its device again, and may be asked for it again. */
                is_back(w, lease, out);
                break;
        default:
                break;
        }
}

void park_tick(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;

        if (k->step == PARK_NONE || !actions_have_room(out, ACTIONS_PER_TREE))
                return;
        if (k->step == PARK_OUT) {
                if (ref_is_none(lease->entry) && thaw_is_wanted(w, lease)) {
                        thaw_enqueue(w, lease);
                        if (!ref_is_none(lease->entry)) /* a tick that changes something says something */
                                park_say(w, lease, ACTION_WAITING, RULE_WANTS_BACK, 0, out);
                }
                return;
        }
        if (k->again_ms != 0 && w->now_ms >= k->again_ms) {
                uint32_t n_before = out->n;
                try_again(w, lease, out);
                if (out->n != n_before)
                        k->again_ms = 0;
        }
        if (k->deadline_ms != 0 && w->now_ms >= k->deadline_ms && !k->told) {
                deadline_passed(w, lease, out);
        } else if (k->step == PARK_SETTLING || (k->step == PARK_ASKING && k->yielded) ||
                   (k->step == PARK_RETURNING && k->way == WAY_OUT_CHECKPOINT)) {
                actions_read_soon(w, out, lease->device);
        }
}

void park_was_away(struct world *w, uint64_t away_ms)
{
        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && w->leases[i].park.deadline_ms != 0)
                        w->leases[i].park.deadline_ms += away_ms;
}

void park_process_ended(struct world *w, struct identity identity, struct actions *out)
{
        struct process *p = world_process_find(w, identity);
        struct lease *lease = p ? world_lease_get(w, p->lease) : NULL;
        struct members m;
        bool was_member = p && (p->member != MEMBER_RUNNING || p->parked_bytes != 0);

        if (!lease || lease->park.step == PARK_NONE)
                return;
        if (was_member)
                member_leave(w, lease, p);
        if (lease->state == LEASE_DRAINING)
                return;
        members_count(w, lease, &m);
        if (m.at[MEMBER_FAILED] == 0)
                lease->park.lost_one = false; /* who could not be brought back is gone: the others are as they were */
        if (p->state != PROCESS_ENDED) {      /* the hands found it gone; its end will be told, and is none of theirs */
                m.n -= m.n != 0 && world_occupancy_find(w, lease->device, identity);
        }
        if (lease->park.step == PARK_OUT) {
                if (m.n == 0 && lease->owner_gone && !lease->root_living)
                        life_end(w, lease, END_WORKERS_GONE, 0, out);
                return;
        }
        if (lease->park.way != WAY_OUT_CHECKPOINT)
                return;
        if (lease->state == LEASE_HELD && lease->park.step != PARK_UNDOING) {
                hold_went_on(w, lease, out);
                return;
        }
        if (m.n == 0 && (lease->state == LEASE_ASKING || lease->state == LEASE_STUCK)) {
                /* Nobody is left of it: what it had comes back by itself, and its client will say that it has ended. */
                enter(w, lease, PARK_SETTLING, settle_ms(lease->park.used_bytes));
                if (lease->state == LEASE_STUCK)
                        life_change_state(w, lease, LEASE_EVENT_ASK);
                actions_read_soon(w, out, lease->device);
                return;
        }
        if (lease->park.step == PARK_UNDOING)
                undo_members(w, lease, out);
        else if (lease->park.step == PARK_RESTORING || lease->park.step == PARK_UNLOCKING)
                restore_next(w, lease, out);
        else
                go_on_out(w, lease, out);
}
