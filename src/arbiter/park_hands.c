/* SPDX-License-Identifier: Apache-2.0 */
/* What the hands say of the processes of a lease that is on its way. */
#include "arbiter/park_steps.h"
#include "arbiter/actions.h"
#include "arbiter/cost.h"
#include "arbiter/hold.h"
#include "arbiter/life.h"
#include "arbiter/member.h"
#include "arbiter/plan.h"
#include "base/number.h"

static void member_failed(struct world *w, struct lease *lease, struct process *p, enum hand_why why,
                          struct actions *out)
{
        p->member = MEMBER_FAILED;
        lease->park.lost_one = true;
        park_stick(w, lease, why, out);
        park_reserve(w, lease, lease->bytes);
        lease->park.step = PARK_UNDOING;
        park_undo_members(w, lease, out);
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
                park_undo_members(w, lease, out);
        else if (locked && lease->park.step == PARK_HOLDING)
                hold_went_on(w, lease, out);
        else if (!locked)
                park_undo(w, lease, (enum hand_why) o->why, out);
        else if (!(ways_of_lease(w, lease) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT)) && lease->park.cause == PARK_FOR_PLAN)
                park_undo(w, lease, HAND_WHY_CANNOT, out); /* it runs another program than the one that was proven */
        else
                park_go_on_out(w, lease, out);
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
                        park_undo_members(w, lease, out);
                else if (!may_be_asked_again((enum hand_why) o->why) || lease->state == LEASE_STUCK)
                        park_undo(w, lease, (enum hand_why) o->why, out); /* late, and in vain */
                else
                        lease->park.again_ms = w->now_ms + AGAIN_MS;
                return;
        }
        p->member = MEMBER_CHECKPOINTED;
        if (w->host.read_ms <= lease->park.step_ms) /* what the host said is from before: this is not there any more */
                w->host.available_bytes = u64_sub0(w->host.available_bytes, o->host_bytes);
        member_grew_to(lease, p, o->host_bytes); /* what it was read to have may be of before */
        member_charge(w, lease, p, o->host_bytes);
        park_plan_room(w, lease, u64_sub0(lease->park.planned_bytes, p->device_bytes));
        if (lease->park.step == PARK_UNDOING) {
                park_undo_members(w, lease, out);
                return;
        }
        if (lease->state == LEASE_STUCK && !lease->park.lost_one) /* it came late, and it came */
                life_change_state(w, lease, LEASE_EVENT_ASK);
        park_go_on_out(w, lease, out);
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
                park_undo_members(w, lease, out);
                return;
        }
        thaw_restore_next(w, lease, out);
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
        member_forget_memory(p);
        if (lease->park.step == PARK_UNDOING) {
                park_undo_members(w, lease, out);
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
        park_enter(w, lease, PARK_RETURNING, settle_ms(lease->park.used_bytes));
        actions_read_soon_of(w, out, lease);
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
                if (o->outcome == OUTCOME_BLOCKED && may_be_asked_again((enum hand_why) o->why) &&
                    lease->park.step == PARK_STOPPING)
                        lease->park.again_ms = w->now_ms + AGAIN_MS;
                if (lease->park.step == PARK_UNDOING)
                        park_undo_members(w, lease, out);
                else if (lease->park.step == PARK_RESTORING) /* late: it is on its way back already */
                        thaw_restore_next(w, lease, out);
                else
                        park_go_on_out(w, lease, out);
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
