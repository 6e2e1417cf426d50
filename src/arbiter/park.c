/* SPDX-License-Identifier: Apache-2.0 */
/* Off its device, step by step, and what had begun undone. */
#include <assert.h>
#include "arbiter/park_steps.h"
#include "arbiter/actions.h"
#include "arbiter/cost.h"
#include "arbiter/ending.h"
#include "arbiter/idle.h"
#include "arbiter/lane.h"
#include "arbiter/life.h"
#include "arbiter/manage.h"
#include "arbiter/member.h"
#include "arbiter/plan.h"
#include "arbiter/reading.h"
#include "arbiter/usage.h"
#include "base/number.h"

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

static void reserve_part(struct world *w, struct holder *h, uint64_t bytes)
{
        if (h->reserved_bytes == bytes)
                return;
        world_holder_writing(w, h);
        h->reserved_bytes = bytes;
        world_holder_written(w, h);
}

void park_reserve(struct world *w, struct lease *lease, uint64_t bytes)
{
        struct holder *h;

        each_part (w, lease, h)
                reserve_part(w, h, bytes);
}

/* Nothing of its reservations is in the claim of a plan, or counts as that, any more. */
void park_forget_moved(struct world *w, struct lease *lease)
{
        struct holder *h;

        lease->park.moved_bytes = 0;
        each_part (w, lease, h)
                h->moved_bytes = 0;
}

/* What it uses now is what it is taken off its devices with. */
void park_note_used(struct world *w, struct lease *lease)
{
        struct holder *h;

        (void) world_lease_used(w, lease, &lease->park.used_bytes);
        each_part (w, lease, h)
                h->began_used_bytes = h->used_bytes;
        park_forget_moved(w, lease);
}

/* What is not there has nobody beside it. */
void park_set_exclusive(struct world *w, struct lease *lease, bool exclusive)
{
        struct holder *h;

        each_part (w, lease, h) {
                world_holder_writing(w, h);
                h->exclusive = exclusive;
                world_holder_written(w, h);
        }
}

void park_enter(struct world *w, struct lease *lease, enum park_step step, uint64_t for_ms)
{
        lease->park.step = (uint8_t) step;
        lease->park.step_ms = w->now_ms;
        lease->park.deadline_ms = for_ms != 0 ? w->now_ms + for_ms : 0;
        lease->park.told = false;
}

void park_count_as_held(struct world *w, struct lease *lease, bool held)
{
        struct user *user = &w->users[lease->user];
        uint64_t all_bytes = lease_whole_bytes(lease);
        uint64_t bytes = held ? u64_add_sat(user->held_bytes, all_bytes) : u64_sub0(user->held_bytes, all_bytes);

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

void park_plan_room(struct world *w, struct lease *lease, uint64_t bytes)
{
        if (lease->park.planned_bytes == bytes)
                return;
        lease->park.planned_bytes = bytes;
        world_ledger_changed(w);
}

void park_forget(struct world *w, struct lease *lease)
{
        struct ref ref = world_lease_ref(w, lease);

        for (uint32_t i = 0; i < w->n_processes; i++)
                if (ref_equal(w->processes[i].lease, ref))
                        member_leave(w, lease, &w->processes[i]);
        w->ledger_charged_bytes = u64_sub0(w->ledger_charged_bytes, lease->park.charged_bytes);
        park_plan_room(w, lease, 0);
        lease->park = (struct park){ 0 };
}

/* ---- the end of an attempt ---- */

/* What it gave back may have been granted meanwhile, to whoever it was for or, after that one had left, to others: that is
 * not promised a second time. What heads claim is lent. */
static uint64_t can_have_again_bytes(struct world *w, const struct lease *lease, const struct holder *h)
{
        struct sums sums;

        if (!device_is_usable(&w->devices[h->device]))
                return lease->bytes;
        sums_now(w, h->device, &sums);
        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (w->holders[i].claim_kind == CLAIM_HEAD && w->holders[i].device == h->device)
                        sums_take_out(&sums, &w->holders[i]);
        sums_take_out(&sums, h);
        return u64_min(lease->bytes, u64_max(u64_max(h->reserved_bytes, h->used_bytes), sums_free_bytes(&sums)));
}

static void reserve_again(struct world *w, const struct lease *lease)
{
        struct holder *h;

        each_part (w, lease, h)
                reserve_part(w, h, can_have_again_bytes(w, lease, h));
}

static void all_changed(struct world *w, const struct lease *lease)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                world_device_changed(w, lease_part(lease, i).device);
}

/* A slot does not run while its lease is parked: it ends that much later. */
static void slot_runs_again(struct world *w, struct lease *lease)
{
        if (park_slot_stands(lease) && lease->slot_end_ms != 0) {
                lease->slot_end_ms = u64_add_sat(lease->slot_end_ms, u64_sub0(w->now_ms, lease->park.parked_ms));
                all_changed(w, lease);
        }
        lease->park.parked_ms = 0;
}

/* It is at work, as before. What it was tried for does without it. */
void park_back_to_work(struct world *w, struct lease *lease)
{
        struct park *k = &lease->park;

        slot_runs_again(w, lease);
        reserve_again(w, lease);
        life_change_state(w, lease, LEASE_EVENT_RETURN);
        k->step = PARK_NONE;
        k->cause = PARK_FOR_NOBODY;
        park_plan_room(w, lease, 0);
        park_forget_moved(w, lease);
        k->deadline_ms = 0;
        k->for_lease_id = 0;
        k->failed_ways = 0;
        k->yielded = k->lost_one = k->wants_back = false;
        if (lease->owner_gone)
                life_change_state(w, lease, LEASE_EVENT_OWNER_GONE);
}

void park_stays_out(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;

        k->way = WAY_OUT_COOPERATE;
        park_plan_room(w, lease, 0);
        park_forget_moved(w, lease);
        k->failed_ways = 0;
        k->yielded = false;
        park_enter(w, lease, PARK_OUT, 0);
        life_change_state(w, lease, LEASE_EVENT_PARK);
        park_reserve(w, lease, 0);
        park_count_as_held(w, lease, false);
        park_say(w, lease, ACTION_PARKED, RULE_PARK_UNDONE, k->way, out);
        if (thaw_is_wanted(w, lease))
                thaw_enqueue(w, lease);
}

void park_stick(struct world *w, struct lease *lease, enum hand_why why, struct actions *out)
{
        plan_fail_of(w, lease, out);
        if (lease->state != LEASE_STUCK)
                life_change_state(w, lease, LEASE_EVENT_STICK);
        park_plan_room(w, lease, 0);
        if (lease->park.told)
                return;
        lease->park.told = true;
        park_say(w, lease, ACTION_STUCK, RULE_STUCK, why, out);
}

/* Nothing is known against it: what had begun is undone, and it is left alone for some time. */
void park_undo(struct world *w, struct lease *lease, enum hand_why why, struct actions *out)
{
        struct park *k = &lease->park;

        plan_fail_of(w, lease, out);
        reserve_again(w, lease);
        park_plan_room(w, lease, 0);
        k->not_before_ms = w->now_ms + w->config.back_off_ms;
        park_say(w, lease, ACTION_WARNING, RULE_PARK_BLOCKED, why, out);
        park_enter(w, lease, PARK_UNDOING, settle_ms(k->used_bytes));
        park_undo_members(w, lease, out);
}

/* ---- off the device ---- */

static void ask_members(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        park_enter(w, lease, PARK_LOCKING, w->config.lock_ms + HANDS_LATE_MS);
        each_member (w, lease, p) {
                member_note_memory(w, lease, p);
                member_order(w, lease, p, HAND_LOCK, MEMBER_LOCKING, 0, w->config.lock_ms, out);
        }
}

void park_begin_way(struct world *w, struct lease *lease, enum way_out_kind way, struct actions *out)
{
        struct park *k = &lease->park;
        uint64_t used_bytes;

        (void) world_lease_used(w, lease, &used_bytes);
        k->way = (uint8_t) way;
        k->yielded = false;
        park_plan_room(w, lease, way == WAY_OUT_CHECKPOINT ? used_bytes : 0);
        park_say(w, lease, ACTION_ASKED, RULE_ASKED, way, out);
        if (manage_goes_by(lease)) {
                manage_stop(w, lease, out);
                return;
        }
        switch (way) {
        case WAY_OUT_CHECKPOINT:
                ask_members(w, lease, out);
                break;
        case WAY_OUT_KILL:
                lease->ending = true;
                park_enter(w, lease, PARK_ASKING,
                           w->config.end_grace_ms + w->config.end_give_up_ms + settle_ms(used_bytes));
                ending_tick(w, lease, out);
                break;
        case WAY_OUT_RESTART:
                park_enter(w, lease, PARK_ASKING, w->config.yield_grace_ms + settle_ms(used_bytes));
                break;
        case WAY_OUT_COOPERATE:
        case WAY_OUT_RELEASE:
        case WAY_OUT_N:
                park_enter(w, lease, PARK_ASKING, w->config.ask_ms);
                break;
        }
}

void park_begin(struct world *w, struct lease *lease, enum way_out_kind way, enum park_cause cause, uint64_t for_id,
                uint32_t by_uid, struct actions *out)
{
        struct holder *h = park_holder_of(w, lease);
        struct park *k = &lease->park;

        assert(h && lease->state == LEASE_ACTIVE && k->step == PARK_NONE);
        k->cause = (uint8_t) cause;
        k->for_lease_id = for_id;
        k->by_uid = by_uid;
        k->failed_ways = 0;
        k->undo_group = k->until_ms = k->parked_ms = 0;
        k->undo_order = 0;
        k->lost_one = k->broke_promise = k->wants_back = false;
        park_note_used(w, lease);
        k->idle = idle_reclaimable_since_ms(w, h, NULL) != 0;
        k->started_ms = w->now_ms;
        life_change_state(w, lease, LEASE_EVENT_ASK);
        park_begin_way(w, lease, way, out);
}

/* What it left is there for it still: nobody stood in the queue for that within this step. The device's own figure may lag. */
static bool fits_again(struct world *w, const struct lease *lease)
{
        struct sums sums;

        for (uint32_t i = 0; i < lease_n_parts(lease); i++) {
                uint32_t device = lease_part(lease, i).device;
                sums_now(w, device, &sums);
                if (thaw_demand_bytes(w, lease) > sums_free_bytes(&sums) || !device_is_fresh(w, device))
                        return false;
        }
        return thaw_keeps_waiting(w, lease, NULL) == RULE_NONE;
}

/* The device shows that it is off. */
void park_is_out(struct world *w, struct lease *lease, struct actions *out)
{
        struct holder *h;
        struct park *k = &lease->park;

        park_enter(w, lease, PARK_OUT, 0);
        if (k->parked_ms == 0) /* else it broke its promise, and is off by another way now */
                k->parked_ms = w->now_ms;
        k->out_ms = w->now_ms - k->started_ms;
        park_plan_room(w, lease, 0);
        if (!park_is_a_promise(lease)) /* of that one only what it kept until its return is a success */
                k->strikes[k->way] = 0;
        life_change_state(w, lease, LEASE_EVENT_PARK);
        park_reserve(w, lease, 0);
        park_count_as_held(w, lease, false);
        /* What stays of it there nobody counts on again: a plan that it made too small would be begun anew without end. */
        lease->ways.floor_bytes[k->way] = 0;
        each_part (w, lease, h)
                lease->ways.floor_bytes[k->way] = u64_max(lease->ways.floor_bytes[k->way], h->used_bytes);
        lease->over_use_since_ms = 0;
        lease->over_use_told = 0;
        each_part (w, lease, h) {
                world_holder_writing(w, h);
                h->idle_since_ms = 0;
                h->rests_since_ms = 0;
                h->ways = lease->ways;
                world_holder_written(w, h);
        }
        park_set_exclusive(w, lease, false);
        lease->backfilled = false;
        lease->backfill_for = (struct ref){ 0 };
        lease->ledger_set_aside_bytes = 0;
        world_ledger_changed(w);
        all_changed(w, lease);
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
                park_enter(w, lease, PARK_SETTLING, settle_ms(lease->park.used_bytes));
                actions_read_soon_of(w, out, lease);
                return;
        }
        park_enter(w, lease, PARK_STOPPING, HANDS_LATE_MS);
        lease->park.again_ms = 0;
        each_member (w, lease, p)
                if (p->member == MEMBER_CHECKPOINTED)
                        member_order(w, lease, p, HAND_STOP, MEMBER_STOPPING, 0, 0, out);
        reading_outdated_of(w, lease, out); /* meanwhile: its memory is gone, or will be */
}

static void checkpoint_members(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        park_enter(w, lease, PARK_CHECKPOINTING, settle_ms(lease->park.used_bytes));
        each_member (w, lease, p)
                if (p->member == MEMBER_LOCKED)
                        member_order(w, lease, p, HAND_CHECKPOINT, MEMBER_CHECKPOINTING, 0, 0, out);
}

/* Is anybody still waiting for it? A person's park is for itself. */
bool park_is_still_wanted(struct world *w, const struct lease *lease)
{
        return lease->park.cause != PARK_FOR_PLAN || lease->park.broke_promise || plan_of_victim(w, lease) != NULL;
}

/* All that is known of its members, after one of them came a step further. */
void park_go_on_out(struct world *w, struct lease *lease, struct actions *out)
{
        struct members m;

        members_count(w, lease, &m);
        if (m.n_busy != 0 || !actions_have_room(out, ACTIONS_PER_TREE + m.n))
                return;
        switch ((unsigned) lease->park.step) {
        case PARK_LOCKING:
                if (m.at[MEMBER_RUNNING] != 0 || m.n == 0)
                        park_undo(w, lease, HAND_WHY_GONE, out);
                else if (!park_is_still_wanted(w, lease))
                        park_undo(w, lease, HAND_WHY_NONE, out);
                else
                        checkpoint_members(w, lease, out);
                break;
        case PARK_CHECKPOINTING:
                if (m.at[MEMBER_LOCKED] == 0)
                        stop_members(w, lease, out);
                break;
        case PARK_STOPPING: {
                if (lease->park.again_ms != 0 && m.at[MEMBER_CHECKPOINTED] != 0)
                        return; /* one that the hands were not there to stop */
                uint64_t checkpointed_ms = lease->park.step_ms;
                park_enter(w, lease, PARK_SETTLING, settle_ms(lease->park.used_bytes));
                lease->park.step_ms = checkpointed_ms; /* what was seen since then counts */
                if (park_is_off(w, lease))
                        park_is_out(w, lease, out);
                else
                        actions_read_soon_of(w, out, lease);
                break;
        }
        default:
                break;
        }
}

/* ---- undone ---- */

bool park_kill_is_called_off(struct world *w, struct lease *lease, struct actions *out)
{
        const struct park *k = &lease->park;

        if (k->step != PARK_ASKING || k->way != WAY_OUT_KILL || park_is_still_wanted(w, lease) ||
            ending_has_killed(w, lease))
                return false;
        ending_stop(w, lease);
        park_back_to_work(w, lease);
        park_say(w, lease, ACTION_THAWED, RULE_PARK_UNDONE, WAY_OUT_KILL, out);
        return true;
}

uint64_t park_slack_bytes(const struct world *w, uint32_t device)
{
        return w->devices[device].total_bytes / 1000 * w->config.slack_milli;
}

uint64_t park_member_limit_bytes(const struct world *w, const struct lease *lease, const struct process *p,
                                 uint32_t part)
{
        uint32_t device = lease_part(lease, part).device;

        if (lease->n_more != 0 && p->part_bytes[part] == 0)
                return UINT64_MAX; /* nothing of it comes back there */
        uint64_t bytes = lease->n_more == 0 ? p->device_bytes : p->part_bytes[part];
        return u64_sub0(w->devices[device].total_bytes, u64_add_sat(bytes, park_slack_bytes(w, device)));
}

static void finish_undo(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        each_member (w, lease, p)
                if (p->member == MEMBER_RUNNING)
                        member_leave(w, lease, p);
        if (lease->park.lost_one) {
                park_stick(w, lease, HAND_WHY_DRIVER, out);
                lease->park.step = PARK_UNDOING;
                return;
        }
        if (lease->park.broke_promise) {
                park_stays_out(w, lease, out);
                return;
        }
        park_back_to_work(w, lease); /* also who was taken for stuck, for an answer came late: nobody of it is away */
        park_say(w, lease, ACTION_THAWED, RULE_PARK_UNDONE, lease->park.way, out);
        reading_outdated_of(w, lease, out);
}

/* Whoever is further than running is brought back, as far as he can be ordered now. */
void park_undo_members(struct world *w, struct lease *lease, struct actions *out)
{
        struct members m;
        struct process *p;

        each_member (w, lease, p) {
                if (!actions_have_room(out, ACTIONS_PER_TREE))
                        return;
                if (p->member == MEMBER_LOCKED || p->member == MEMBER_RESTORED)
                        member_order(w, lease, p, HAND_UNLOCK, MEMBER_UNLOCKING, 0, 0, out);
                else if (p->member == MEMBER_CHECKPOINTED || p->member == MEMBER_STOPPED)
                        member_order(w, lease, p, HAND_RESTORE, MEMBER_RESTORING,
                                     park_member_limit_bytes(w, lease, p, 0), 0, out);
        }
        members_count(w, lease, &m);
        if (m.n == m.at[MEMBER_RUNNING] + m.at[MEMBER_FAILED])
                finish_undo(w, lease, out);
}
