/* SPDX-License-Identifier: Apache-2.0 */
/* What its device and the time say of a lease that is on its way, or away. */
#include "arbiter/park_steps.h"
#include "arbiter/actions.h"
#include "arbiter/admit.h"
#include "arbiter/cost.h"
#include "arbiter/hold.h"
#include "arbiter/life.h"
#include "arbiter/manage.h"
#include "arbiter/member.h"
#include "arbiter/plan.h"
#include "arbiter/reclaim.h"
#include "base/number.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* What a process that was checkpointed may still show of itself (F09), and what stays of a program that frees what it has: its
 * context, unless its floor is known. */
static const uint64_t trace_bytes = 64 * MIB, context_bytes = GIB;

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

static bool is_off_there(struct world *w, const struct lease *lease, const struct holder *h)
{
        const struct device *dev = &w->devices[h->device];

        if (!dev->settled || dev->reading_ms < lease->park.step_ms || !dev->per_process_known)
                return false;
        if (lease->park.way == WAY_OUT_RESTART)
                return h->n_processes == 0 && lease->park.yielded;
        return holder_reading_is_known(h) && h->used_bytes <= may_stay_bytes(w, lease, h) &&
               (lease->park.way == WAY_OUT_CHECKPOINT || lease->park.yielded);
}

bool park_is_off(struct world *w, const struct lease *lease)
{
        const struct holder *h;

        each_part (w, lease, h)
                if (!is_off_there(w, lease, h))
                        return false;
        return true;
}

/* It gave way, and then took its memory again: told once. It counts as what it is. */
static void watch_promise(struct world *w, struct lease *lease, const struct holder *h, struct actions *out)
{
        struct park *k = &lease->park;

        if (!park_is_a_promise(lease) || k->broke_promise || !holder_reading_is_known(h) ||
            h->used_bytes <= may_stay_bytes(w, lease, h) + w->config.over_use_bytes)
                return;
        k->broke_promise = true;
        if (k->strikes[k->way] < STRIKES_MAX)
                k->strikes[k->way]++;
        if (k->way == WAY_OUT_COOPERATE)
                cost_learn_asked(w, lease, false);
        actions_add_lease(w, out, ACTION_WARNING, lease,
                          &(struct reason){ .rule = RULE_BROKE_PROMISE, .used_bytes = h->used_bytes });
        uint8_t next;
        k->failed_ways = WAY_OUT_BIT(k->way);
        if (reclaim_may_park(w, lease, k->failed_ways, &next) != RECLAIM_MAY)
                return; /* it counts as what it is, and comes back when all of it fits */
        struct entry *e = world_entry_get(w, lease->entry);
        if (e)
                admit_drop_entry(w, e);
        park_note_used(w, lease);
        k->started_ms = w->now_ms;
        park_count_as_held(w, lease, true);
        life_change_state(w, lease, LEASE_EVENT_ASK);
        park_begin_way(w, lease, (enum way_out_kind) next, out);
}

static bool shows_it_back(const struct world *w, const struct lease *lease)
{
        uint64_t used_bytes;
        bool known = world_lease_used(w, lease, &used_bytes);

        for (uint32_t i = 0; i < lease_n_parts(lease); i++) {
                const struct device *dev = &w->devices[lease_part(lease, i).device];
                if (!dev->settled || dev->reading_ms < lease->park.step_ms)
                        return false;
        }
        return !known || used_bytes >= lease->park.used_bytes / 8 * 7;
}

/* Nobody of it is left, of those who were to be ended: then it has, whoever holds on to it. */
static bool is_killed(const struct world *w, const struct lease *lease)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++) {
                const struct device *dev = &w->devices[lease_part(lease, i).device];
                if (!dev->settled || !dev->per_process_known || dev->reading_ms < lease->park.step_ms)
                        return false;
        }
        return world_lease_listed(w, lease) == 0 && !lease->root_living;
}

void park_after_reading(struct world *w, uint32_t device, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || lease->park.step == PARK_NONE || !lease_is_on(lease, device))
                        continue;
                if (lease->state == LEASE_DRAINING)
                        continue; /* it has ended: wherever it was on its way to, it arrives nowhere any more */
                struct holder *h = world_part_on(w, lease, device);
                if (!actions_have_room(out, ACTIONS_PER_TREE))
                        continue;
                switch ((unsigned) lease->park.step) {
                case PARK_ASKING:
                        if (lease->park.way == WAY_OUT_KILL) {
                                if (is_killed(w, lease))
                                        life_end(w, lease, END_WORKERS_GONE, 0, out);
                                break;
                        }
                        if (park_is_off(w, lease))
                                park_is_out(w, lease, out);
                        else if (lease->park.yielded)
                                actions_read_soon(w, out, device);
                        break;
                case PARK_SETTLING:
                        if (lease->park.way == WAY_OUT_KILL && is_killed(w, lease))
                                life_end(w, lease, END_WORKERS_GONE, 0, out);
                        else if (lease->park.way != WAY_OUT_KILL && park_is_off(w, lease))
                                park_is_out(w, lease, out);
                        else
                                actions_read_soon(w, out, device);
                        break;
                case PARK_RETURNING:
                        if (lease->park.way != WAY_OUT_CHECKPOINT)
                                break;
                        if (shows_it_back(w, lease))
                                thaw_is_back(w, lease, out);
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

void park_way_failed(struct world *w, struct lease *lease, struct actions *out)
{
        struct park *k = &lease->park;
        uint8_t way = k->way, next;

        if (park_is_a_promise(lease) || way == WAY_OUT_RELEASE) {
                if (k->strikes[way] < STRIKES_MAX)
                        k->strikes[way]++;
                if (way != WAY_OUT_RESTART)
                        cost_learn_asked(w, lease, false);
                park_say(w, lease, ACTION_WARNING,
                         k->strikes[way] >= w->config.strikes_max ? RULE_STRUCK_OUT : RULE_PARK_FAILED, way, out);
        } else {
                park_say(w, lease, ACTION_WARNING, RULE_PARK_FAILED, way, out);
        }
        k->failed_ways |= WAY_OUT_BIT(way);
        if (reclaim_may_park(w, lease, k->failed_ways, &next) == RECLAIM_MAY && park_is_still_wanted(w, lease)) {
                park_begin_way(w, lease, (enum way_out_kind) next, out);
                return;
        }
        k->not_before_ms = w->now_ms + w->config.back_off_ms;
        plan_fail_of(w, lease, out);
        if (k->broke_promise) {
                park_stays_out(w, lease, out);
                return;
        }
        park_back_to_work(w, lease);
        park_say(w, lease, ACTION_THAWED, RULE_PARK_UNDONE, way, out);
}

static void try_again(struct world *w, struct lease *lease, struct actions *out)
{
        struct process *p;

        switch ((unsigned) lease->park.step) {
        case PARK_CHECKPOINTING:
                each_member (w, lease, p)
                        if (p->member == MEMBER_LOCKED && lease->state == LEASE_ASKING)
                                member_order(w, lease, p, HAND_CHECKPOINT, MEMBER_CHECKPOINTING, 0, 0, out);
                break;
        case PARK_STOPPING:
                each_member (w, lease, p)
                        if (p->member == MEMBER_CHECKPOINTED)
                                member_order(w, lease, p, HAND_STOP, MEMBER_STOPPING, 0, 0, out);
                break;
        case PARK_RESTORING:
                if (lease->state == LEASE_THAWING)
                        thaw_restore_next(w, lease, out);
                break;
        case PARK_UNLOCKING:
                each_member (w, lease, p)
                        if (p->member == MEMBER_RESTORED || p->member == MEMBER_LOCKED)
                                member_order(w, lease, p, HAND_UNLOCK, MEMBER_UNLOCKING, 0, 0, out);
                break;
        case PARK_UNDOING:
                park_undo_members(w, lease, out);
                break;
        case PARK_ASKING:
        case PARK_RETURNING:
                manage_again(w, lease, out);
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
                if (manage_goes_by(lease))
                        manage_deadline(w, lease, out);
                else if (k->way == WAY_OUT_KILL)
                        park_stick(w, lease, HAND_WHY_UNKILLABLE, out);
                else
                        park_way_failed(w, lease, out);
                break;
        case PARK_CHECKPOINTING:
                members_count(w, lease, &m);
                if (m.n_busy == 0) { /* the hands could not be had all the time */
                        park_undo(w, lease, HAND_WHY_AWAY, out);
                        break;
                }
                park_stick(w, lease, HAND_WHY_OTHER, out);
                break;
        case PARK_STOPPING: /* not stopped is no harm: it is locked */
                park_say(w, lease, ACTION_WARNING, RULE_PARK_BLOCKED, HAND_WHY_LOST, out);
                park_enter(w, lease, PARK_SETTLING, settle_ms(k->used_bytes));
                actions_read_soon_of(w, out, lease);
                break;
        case PARK_LOCKING:
        case PARK_HOLDING:
        case PARK_RESTORING:
        case PARK_UNLOCKING:
        case PARK_UNDOING:
                members_count(w, lease, &m);
                if (m.n_busy != 0) /* else it could not be tried, and is tried again */
                        park_stick(w, lease, HAND_WHY_OTHER, out);
                break;
        case PARK_SETTLING:
                park_stick(w, lease, HAND_WHY_OTHER, out);
                actions_read_of(w, out, lease);
                break;
        case PARK_RETURNING:
                if (manage_goes_by(lease)) {
                        manage_deadline(w, lease, out);
                        break;
                }
                if (k->way != WAY_OUT_CHECKPOINT)
                        park_say(w, lease, ACTION_WARNING, RULE_PARK_FAILED, k->way, out);
                /* Unlocked it is; who was told and says nothing has its device again, and may be asked for it again. */
                thaw_is_back(w, lease, out);
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
                actions_read_soon_of(w, out, lease);
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
                m.n -= m.n != 0 && world_has_memory_of(w, lease, identity);
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
                park_enter(w, lease, PARK_SETTLING, settle_ms(lease->park.used_bytes));
                if (lease->state == LEASE_STUCK)
                        life_change_state(w, lease, LEASE_EVENT_ASK);
                actions_read_soon_of(w, out, lease);
                return;
        }
        if (lease->park.step == PARK_UNDOING)
                park_undo_members(w, lease, out);
        else if (lease->park.step == PARK_RESTORING || lease->park.step == PARK_UNLOCKING)
                thaw_restore_next(w, lease, out);
        else
                park_go_on_out(w, lease, out);
}
