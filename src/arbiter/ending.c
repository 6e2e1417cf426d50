/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include "arbiter/actions.h"
#include "arbiter/ending.h"
#include "base/number.h"

enum { ENDING_AGAIN_MS = 10000 };

static uint64_t stamp(const struct world *w)
{
        return w->now_ms != 0 ? w->now_ms : 1; /* 0 means "not" */
}

static bool is_due(const struct lease *lease)
{
        enum lease_state state = (enum lease_state) lease->state;

        if (lease->kill_at_end && lease->over_time && (state == LEASE_ACTIVE || state == LEASE_ORPHANED))
                return true;
        /* Its command may outlive who waited for it: that is not what it left behind. */
        return lease->kill_left && !lease->root_living && (state == LEASE_DRAINING || state == LEASE_ORPHANED);
}

static bool is_target(const struct world *w, const struct lease *lease, const struct process *p)
{
        return p->state != PROCESS_ENDED && ref_equal(p->lease, world_lease_ref(w, lease)) &&
               !identity_equal(p->identity, lease->binding.root);
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

static void order(struct world *w, struct actions *out, const struct lease *lease, struct identity process,
                  enum hand_verb verb, int signal)
{
        struct action *a = actions_add_lease(
                w, out, ACTION_HAND, lease,
                &(struct reason){ .rule = RULE_END_ORDERED, .start_ms = w->now_ms + w->config.end_grace_ms });
        a->hand = (uint8_t) verb;
        a->signal = (uint8_t) signal;
        a->process = process;
        a->cgroup_id = lease->binding.cgroup_id;
}

static void tell_unkillable(struct world *w, struct lease *lease, struct identity process, struct actions *out)
{
        if (lease->ending_told)
                return;
        lease->ending_told = true;
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

        uint64_t *noted = lease->binding.cgroup_id != 0 ? &lease->tree_kill_ms : kill_ms;
        if (*noted == 0) {
                *noted = stamp(w);
                if (lease->binding.cgroup_id != 0)
                        order(w, out, lease, process, HAND_KILL_TREE, SIGKILL);
                else
                        order(w, out, lease, process, HAND_SIGNAL, SIGKILL);
        } else if (w->now_ms - u64_min(*noted, w->now_ms) >= w->config.end_give_up_ms) {
                tell_unkillable(w, lease, process, out);
        }
}

void ending_tick(struct world *w, struct lease *lease, struct actions *out)
{
        if (!lease->ending) {
                if (!is_due(lease) || !has_target(w, lease))
                        return;
                lease->ending = true;
                actions_add_lease(
                        w, out, ACTION_WARNING, lease,
                        &(struct reason){ .rule = RULE_END_ORDERED, .start_ms = w->now_ms + w->config.end_grace_ms });
        }
        if (!w->eyes_answering || w->degraded || w->now_ms < lease->ending_again_ms)
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
static void take_back(struct lease *lease, struct process *p, enum hand_why why)
{
        bool is_root = !p;
        uint64_t *term_ms = is_root ? &lease->root_term_ms : &p->term_ms;
        uint64_t *kill_ms = is_root || lease->tree_kill_ms != 0 ? &lease->tree_kill_ms : &p->kill_ms;
        bool was_term = *kill_ms == 0;

        *kill_ms = 0;
        if (was_term || why == HAND_WHY_GRACE)
                *term_ms = 0;
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
        take_back(lease, is_root ? NULL : p, (enum hand_why) o->why);
        lease->ending_again_ms = w->now_ms + ENDING_AGAIN_MS;
        if (lease->ending_told)
                return;
        lease->ending_told = true;
        actions_add_lease(w, out, ACTION_WARNING, lease, &(struct reason){ .rule = RULE_END_BLOCKED, .limit = o->why })
                ->process = o->process;
}
