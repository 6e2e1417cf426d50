/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/attribute.h"
#include "base/number.h"

static const struct process *process_at(const struct world *w, struct identity identity)
{
        return world_process_find((struct world *) (uintptr_t) w, identity); /* looks, and changes nothing */
}

static bool lease_covers(const struct lease *lease, struct identity id)
{
        return !identity_is_none(id) &&
               (identity_equal(lease->binding.root, id) || identity_equal(lease->binding.owner, id));
}

static uint64_t untaken_bytes(const struct world *w, const struct lease *lease)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < lease_n_parts(lease); i++) {
                const struct holder *h = &w->holders[lease_part(lease, i).holder.index];
                bytes = u64_add_sat(bytes, u64_sub0(h->reserved_bytes, h->used_bytes));
        }
        return bytes;
}

/* Among others' leases nobody chooses. */
static bool token_names(const struct process *p, const struct lease *lease)
{
        return p && p->token_id == lease->id && p->uid == lease->uid;
}

/* Of several that match equally near: the one that the process's token names, then on the right device before elsewhere,
 * then the emptiest, then the oldest. The token is a process's own word: it chooses, and proves nothing. */
static bool is_better(const struct world *w, const struct lease *a, const struct lease *b, uint32_t device,
                      const struct process *by_token)
{
        if (!b)
                return true;
        bool a_named = token_names(by_token, a), b_named = token_names(by_token, b);
        if (a_named != b_named)
                return a_named;
        if (lease_is_on(a, device) != lease_is_on(b, device))
                return lease_is_on(a, device);
        if (untaken_bytes(w, a) != untaken_bytes(w, b))
                return untaken_bytes(w, a) > untaken_bytes(w, b);
        return a->id < b->id;
}

/*
 * By identity, or with @cgroup_id by that: a cgroup is the client's word, so it counts for its own uid only. So does what
 * was adopted: the lease began none of it, and what runs there as somebody else is not its owner's (S09).
 */
static const struct lease *best_lease(const struct world *w, uint32_t device, struct identity id, uint64_t cgroup_id,
                                      const struct process *process, bool *ret_by_token)
{
        const struct lease *best = NULL, *without_token = NULL;
        uint32_t uid = process->uid;

        for (uint32_t i = 0; i < w->n_leases; i++) {
                if (w->lease_ids[i] == 0)
                        continue;
                const struct lease *lease = &w->leases[i];
                bool matches = cgroup_id != 0 ? lease->binding.cgroup_id == cgroup_id && lease->uid == uid
                                              : lease_covers(lease, id);
                if (!matches || !lease_state_holds((enum lease_state) lease->state) || lease->state == LEASE_DRAINING)
                        continue;
                if (lease->adopted && lease->uid != uid)
                        continue;
                if (is_better(w, lease, best, device, process))
                        best = lease;
                if (is_better(w, lease, without_token, device, NULL))
                        without_token = lease;
        }
        *ret_by_token = best != without_token;
        return best;
}

struct ref attribute_process(const struct world *w, const struct process *process, uint32_t device, uint8_t *ret_by)
{
        bool by_token;
        const struct lease *lease = best_lease(w, device, process->identity, 0, process, &by_token);

        *ret_by = ATTRIBUTED_ROOT;
        if (!lease && process->cgroup_id != 0) {
                lease = best_lease(w, device, process->identity, process->cgroup_id, process, &by_token);
                *ret_by = ATTRIBUTED_CGROUP;
        }
        for (uint32_t i = 0; !lease && i < process->n_ancestors; i++) {
                lease = best_lease(w, device, process->ancestors[i], 0, process, &by_token);
                *ret_by = process->links[i] == LINK_TOKEN ? ATTRIBUTED_TOKEN : ATTRIBUTED_ANCESTOR;
        }
        if (lease && by_token)
                *ret_by = ATTRIBUTED_TOKEN;
        if (!lease)
                *ret_by = ATTRIBUTED_NOT;
        return lease ? world_lease_ref(w, lease) : (struct ref){ 0 };
}

uint32_t attribute_count_workers(const struct world *w, const struct lease *lease)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < w->n_occupancies; i++) {
                const struct occupancy *o = &w->occupancies[i];
                const struct holder *h = &w->holders[o->holder.index];
                if (h->kind != HOLDER_LEASE || !ref_equal(h->lease, world_lease_ref(w, lease)) ||
                    identity_equal(o->identity, lease->binding.owner))
                        continue;

                const struct process *p = process_at(w, o->identity);
                n += p && p->state != PROCESS_ENDED;
        }
        return n;
}

/* Could it be this lease's at all? Asked first, since the whole answer compares with every lease. */
static bool lease_touches(const struct lease *lease, const struct process *p)
{
        if (lease_covers(lease, p->identity) || (p->cgroup_id != 0 && lease->binding.cgroup_id == p->cgroup_id))
                return true;
        for (uint32_t i = 0; i < p->n_ancestors; i++)
                if (lease_covers(lease, p->ancestors[i]))
                        return true;
        return false;
}

bool attribute_take(struct world *w, const struct lease *lease)
{
        struct ref ref = world_lease_ref(w, lease);
        bool taken = false;

        for (uint32_t i = 0; i < w->n_processes; i++) {
                struct process *p = &w->processes[i];
                if (ref_equal(p->lease, ref) || !lease_touches(lease, p))
                        continue;
                for (uint32_t d = 0; d < w->n_devices && !ref_equal(p->lease, ref); d++) {
                        uint8_t by;
                        if (world_occupancy_find(w, d, p->identity) &&
                            ref_equal(attribute_process(w, p, d, &by), ref)) {
                                process_put_under(p, ref, by);
                                taken = true;
                        }
                }
        }
        return taken;
}
