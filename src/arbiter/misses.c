/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/misses.h"
#include "arbiter/actions.h"
#include "arbiter/enforce_judge.h"
#include "model/lease.h"

/* Long enough at work, tied to a process, and nothing was ever seen of it, although that could be seen. */
static bool is_unused(const struct world *w, const struct lease *lease)
{
        uint64_t used_bytes;
        bool known = world_lease_used(w, lease, &used_bytes);

        return lease->state == LEASE_ACTIVE && lease->binding.kind == BINDING_PROCESS && !lease->adopted &&
               lease->peak_bytes == 0 && lease->active_ms != 0 && w->now_ms - lease->active_ms >= MISSES_AFTER_MS &&
               world_lease_listed(w, lease) == 0 && used_bytes == 0 && known;
}

/* Could this be its work? Not where somebody allowed that program to have none. */
static bool may_be_its(const struct world *w, const struct lease *lease, const struct holder *h,
                       const struct process *p)
{
        return h->kind == HOLDER_STRANGER && p && p->state == PROCESS_LIVE && p->uid == lease->uid && h->used_known &&
               h->used_bytes >= w->config.enforce_min_bytes && p->seen_ms >= lease->active_ms &&
               w->now_ms - p->seen_ms >= MISSES_AFTER_MS && !enforce_approval_of(w, p);
}

void misses_tick(struct world *w, struct lease *lease, struct actions *out)
{
        const struct holder *found = NULL;
        uint64_t found_ms = 0;

        if (lease->misses_told || !is_unused(w, lease))
                return;
        for (uint32_t i = 0; i < w->n_holders; i++) { /* who came first after it */
                const struct holder *h = &w->holders[i];
                const struct process *p = h->kind == HOLDER_STRANGER ? world_process_find(w, h->process) : NULL;
                if (may_be_its(w, lease, h, p) && (!found || p->seen_ms < found_ms)) {
                        found = h;
                        found_ms = p->seen_ms;
                }
        }
        if (!found)
                return;
        lease->misses_told = true;
        actions_add_lease(w, out, ACTION_WARNING, lease,
                          &(struct reason){ .rule = RULE_MISSES_WORK,
                                            .n_blockers = 1,
                                            .blockers = { { .kind = BLOCKER_STRANGER,
                                                            .pid = found->process.pid,
                                                            .bytes = found->used_bytes } } });
}
