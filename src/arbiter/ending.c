/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include "arbiter/actions.h"
#include "arbiter/ending.h"
#include "arbiter/park.h"
#include "base/number.h"

enum { ENDING_AGAIN_MS = 10000, ENDING_AGAIN_LATER_MS = 600000 };

static uint64_t stamp(const struct world *w)
{
        return w->now_ms != 0 ? w->now_ms : 1; /* 0 means "not" */
}

/* What is left is what its command left behind: only when that is known to be gone. Without a command of its own, who asked
 * is the command; a connection that closed or a heartbeat that stopped says nothing of a process that is seen to live. */
static bool command_is_gone(struct world *w, const struct lease *lease)
{
        if (!identity_is_none(lease->binding.root))
                return !lease->root_living;
        if (!lease->owner_gone)
                return false;
        const struct process *owner = world_process_find(w, lease->binding.owner);
        return lease->binding.kind == BINDING_PROCESS || !owner || owner->state == PROCESS_ENDED;
}

static bool is_due(struct world *w, const struct lease *lease)
{
        enum lease_state state = (enum lease_state) lease->state;

        if (lease->kill_at_end && lease->over_time && (state == LEASE_ACTIVE || state == LEASE_ORPHANED))
                return true;
        /* Its command may outlive who waited for it: that is not what it left behind. */
        return lease->kill_left && (state == LEASE_DRAINING || state == LEASE_ORPHANED) && command_is_gone(w, lease);
}

/* Who waits for the command, or is gone: not what the command left, nor the command. */
static bool is_owner(const struct lease *lease, struct identity identity)
{
        return identity_equal(identity, lease->binding.owner) &&
               (lease->owner_gone || !identity_is_none(lease->binding.root));
}

/* It works under another lease too, on another card: that one has not ended. */
static bool works_elsewhere(const struct world *w, const struct lease *lease, struct identity identity)
{
        for (uint32_t i = 0; i < w->n_occupancies; i++) {
                const struct occupancy *row = &w->occupancies[i];
                const struct holder *h = &w->holders[row->holder.index];
                if (!identity_equal(row->identity, identity) || ref_equal(h->lease, world_lease_ref(w, lease)))
                        continue;
                if (h->kind == HOLDER_LEASE && w->leases[h->lease.index].state != LEASE_DRAINING)
                        return true;
        }
        return false;
}

/* Only who is known to live, now: what was seen before the eyes or the daemon came back is not confirmed yet. */
static bool is_target(const struct world *w, const struct lease *lease, const struct process *p)
{
        return p->state == PROCESS_LIVE && ref_equal(p->lease, world_lease_ref(w, lease)) &&
               !identity_equal(p->identity, lease->binding.root) && !is_owner(lease, p->identity) &&
               (lease->over_time || !works_elsewhere(w, lease, p->identity));
}

static bool has_target(const struct world *w, const struct lease *lease)
{
        if (lease->root_living)
                return true;
        for (uint32_t i = 0; i < w->n_processes; i++)
                if (is_target(w, lease, &w->processes[i]))
                        return true;
        return false;
}

/* Is it ended with the whole of the cgroup that was made for this lease? What was adopted is in one that somebody else made
 * for more than this (F52), and what left it has to be ended alone. */
static bool is_in_tree(struct world *w, const struct lease *lease, struct identity identity)
{
        const struct process *p = world_process_find(w, identity);

        return lease->binding.cgroup_id != 0 && !lease->adopted && (!p || p->cgroup_id == lease->binding.cgroup_id);
}

static void order(struct world *w, struct actions *out, const struct lease *lease, struct identity process,
                  enum hand_verb verb, int signal)
{
        struct action *a = actions_add_lease(
                w, out, ACTION_HAND, lease,
                &(struct reason){ .rule = RULE_END_ORDERED, .start_ms = w->now_ms + w->config.end_grace_ms });
        a->hand = (uint8_t) verb;
        a->signal = (uint8_t) signal;
        a->process = process;
        a->cgroup_id = is_in_tree(w, lease, process) ? lease->binding.cgroup_id : 0;
}

static void tell_unkillable(struct world *w, struct lease *lease, struct identity process, struct actions *out)
{
        if (lease->ending_told >= ENDING_TOLD_UNKILLABLE)
                return;
        lease->ending_told = ENDING_TOLD_UNKILLABLE;
        actions_add_lease(w, out, ACTION_WARNING, lease, &(struct reason){ .rule = RULE_UNKILLABLE })->process =
                process;
}

/* One process a step further. @kill_ms: where the kill is noted; the lease's own for all of its tree. */
static void push(struct world *w, struct lease *lease, struct identity process, uint64_t *term_ms, uint64_t *kill_ms,
                 struct actions *out)
{
        if (!actions_have_room(out, 2))
                return;
        if (*term_ms == 0) {
                *term_ms = stamp(w);
                order(w, out, lease, process, HAND_SIGNAL, SIGTERM);
                return;
        }
        if (w->now_ms - u64_min(*term_ms, w->now_ms) < w->config.end_grace_ms)
                return;

        bool tree = is_in_tree(w, lease, process);
        uint64_t *noted = tree ? &lease->tree_kill_ms : kill_ms;
        if (*noted == 0) {
                *noted = stamp(w);
                if (tree)
                        order(w, out, lease, process, HAND_KILL_TREE, SIGKILL);
                else
                        order(w, out, lease, process, HAND_SIGNAL, SIGKILL);
        } else if (w->now_ms - u64_min(*noted, w->now_ms) >= w->config.end_give_up_ms) {
                tell_unkillable(w, lease, process, out);
        }
}

void ending_tick(struct world *w, struct lease *lease, struct actions *out)
{
        if (!w->eyes_answering || w->degraded)
                return;
        if (!lease->ending) {
                if (!is_due(w, lease) || !has_target(w, lease))
                        return;
                lease->ending = true;
                actions_add_lease(
                        w, out, ACTION_WARNING, lease,
                        &(struct reason){ .rule = RULE_END_ORDERED, .start_ms = w->now_ms + w->config.end_grace_ms });
        }
        if (!is_due(w, lease) && park_kill_is_called_off(w, lease, out))
                return;
        if (w->now_ms < lease->ending_again_ms)
                return;
        if (lease->root_living)
                push(w, lease, lease->binding.root, &lease->root_term_ms, &lease->tree_kill_ms, out);
        for (uint32_t i = 0; i < w->n_processes; i++) {
                struct process *p = &w->processes[i];
                if (is_target(w, lease, p))
                        push(w, lease, p->identity, &p->term_ms, &p->kill_ms, out);
        }
}

/* The step that could not be tried is to be done again, later. Without its grace (hands that were started anew do not know
 * of it) it is the SIGTERM. */
static void take_back(struct world *w, struct lease *lease, struct process *p, enum hand_why why)
{
        bool is_root = !p;
        uint64_t *term_ms = is_root ? &lease->root_term_ms : &p->term_ms;
        uint64_t *kill_ms = is_root || is_in_tree(w, lease, p->identity) ? &lease->tree_kill_ms : &p->kill_ms;
        bool was_term = *kill_ms == 0;

        *kill_ms = 0;
        if (was_term || why == HAND_WHY_GRACE)
                *term_ms = 0;
}

/* What a person has to change is not asked every few seconds. */
static uint64_t again_after_ms(enum hand_why why)
{
        bool lasts = why == HAND_WHY_PROTECTED || why == HAND_WHY_OWNER || why == HAND_WHY_KERNEL;
        return lasts ? ENDING_AGAIN_LATER_MS : ENDING_AGAIN_MS;
}

void ending_outcome(struct world *w, const struct hand_outcome *o, struct actions *out)
{
        struct lease *lease = world_lease_by_id(w, o->lease_id);
        if (!lease || !lease->ending || o->outcome == OUTCOME_DONE || o->why == HAND_WHY_GONE)
                return; /* done, or there is nothing left to do: the device will show it */

        struct process *p = world_process_find(w, o->process);
        bool is_root = identity_equal(o->process, lease->binding.root);
        if (o->outcome == OUTCOME_FAILED) {
                tell_unkillable(w, lease, o->process, out);
                return;
        }
        if (!is_root && (!p || !ref_equal(p->lease, world_lease_ref(w, lease))))
                return;
        take_back(w, lease, is_root ? NULL : p, (enum hand_why) o->why);
        lease->ending_again_ms = w->now_ms + again_after_ms((enum hand_why) o->why);
        if (lease->ending_told != 0)
                return;
        lease->ending_told = ENDING_TOLD_BLOCKED;
        actions_add_lease(w, out, ACTION_WARNING, lease, &(struct reason){ .rule = RULE_END_BLOCKED, .limit = o->why })
                ->process = o->process;
}

void ending_new_root(struct lease *lease)
{
        lease->root_term_ms = 0;
        if (lease->binding.cgroup_id == 0 || lease->adopted)
                lease->tree_kill_ms = 0; /* it was the old one's */
}

/* Decided, stored, and then the daemon died: whether the order left it nobody knows, and what came of it was told to nobody.
 * A second SIGKILL harms nobody; none at all leaves a process that was to be ended for ever. A SIGTERM that never left is
 * found out by the hands: to them the kill comes without its grace. */
void ending_was_away(struct world *w)
{
        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0)
                        w->leases[i].tree_kill_ms = 0;
        for (uint32_t i = 0; i < w->n_processes; i++)
                w->processes[i].kill_ms = 0;
}

bool ending_has_killed(struct world *w, const struct lease *lease)
{
        if (lease->tree_kill_ms != 0)
                return true;
        for (uint32_t i = 0; i < w->n_processes; i++)
                if (w->processes[i].kill_ms != 0 && ref_equal(w->processes[i].lease, world_lease_ref(w, lease)))
                        return true;
        return false;
}

void ending_stop(struct world *w, struct lease *lease)
{
        lease->ending = false;
        lease->ending_told = 0;
        lease->root_term_ms = lease->tree_kill_ms = lease->ending_again_ms = 0;
        for (uint32_t i = 0; i < w->n_processes; i++)
                if (ref_equal(w->processes[i].lease, world_lease_ref(w, lease)))
                        w->processes[i].term_ms = w->processes[i].kill_ms = 0;
}

void ending_owner_is_back(struct world *w, struct lease *lease)
{
        if (lease->ending && !(lease->kill_at_end && lease->over_time))
                ending_stop(w, lease);
}
