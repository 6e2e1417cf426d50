/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "arbiter/member.h"
#include "arbiter/actions.h"
#include "base/number.h"

struct process *member_next(struct world *w, const struct lease *lease, uint32_t *at)
{
        struct ref ref = world_lease_ref(w, lease);

        for (; *at < w->n_processes; ++*at) {
                struct process *p = &w->processes[*at];
                if (!ref_equal(p->lease, ref) || p->state == PROCESS_ENDED)
                        continue;
                if (p->member == MEMBER_RUNNING && !world_has_memory_of(w, lease, p->identity))
                        continue;
                ++*at;
                return p;
        }
        return NULL;
}

void members_count(struct world *w, const struct lease *lease, struct members *ret)
{
        struct process *p;

        *ret = (struct members){ 0 };
        each_member (w, lease, p) {
                ret->n++;
                ret->at[p->member]++;
                ret->n_busy += member_is_busy(p->member);
                ret->n_away += member_is_away(p->member);
        }
}

void member_order(struct world *w, const struct lease *lease, struct process *p, enum hand_verb verb,
                  enum member_step step, uint64_t limit_bytes, uint64_t wait_ms, struct actions *out)
{
        struct action *a = actions_add_lease(w, out, ACTION_HAND, lease,
                                             &(struct reason){ .rule = RULE_ASKED,
                                                               .limit = lease->park.way,
                                                               .head_lease_id = lease->park.for_lease_id });
        a->hand = (uint8_t) verb;
        a->process = p->identity;
        a->bytes = p->device_bytes;
        a->limit_bytes = limit_bytes;
        a->wait_ms = wait_ms;
        a->no_stop = lease->no_stop;
        p->member = (uint8_t) step;
        p->order_id = a->id;
}

void member_forget_memory(struct process *p)
{
        p->device_bytes = 0;
        memset(p->part_bytes, 0, sizeof(p->part_bytes));
}

void member_note_memory(struct world *w, const struct lease *lease, struct process *p)
{
        member_forget_memory(p);
        for (uint32_t i = 0; i < lease_n_parts(lease); i++) {
                const struct occupancy *o = world_occupancy_find(w, lease_part(lease, i).device, p->identity);
                p->part_bytes[i] = o ? o->used_bytes : 0;
                p->device_bytes = u64_add_sat(p->device_bytes, p->part_bytes[i]);
        }
}

void member_grew_to(const struct lease *lease, struct process *p, uint64_t bytes)
{
        uint64_t more_bytes = u64_sub0(bytes, p->device_bytes);
        bool was_seen = p->device_bytes != 0;

        if (more_bytes == 0)
                return;
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                if (p->part_bytes[i] != 0 || !was_seen)
                        p->part_bytes[i] = u64_add_sat(p->part_bytes[i], more_bytes);
        p->device_bytes = bytes;
}

void member_charge(struct world *w, struct lease *lease, struct process *p, uint64_t bytes)
{
        w->ledger_charged_bytes = u64_sub0(w->ledger_charged_bytes, p->parked_bytes);
        lease->park.charged_bytes = u64_sub0(lease->park.charged_bytes, p->parked_bytes);
        p->parked_bytes = bytes;
        w->ledger_charged_bytes = u64_add_sat(w->ledger_charged_bytes, bytes);
        lease->park.charged_bytes = u64_add_sat(lease->park.charged_bytes, bytes);
}

void member_leave(struct world *w, struct lease *lease, struct process *p)
{
        member_charge(w, lease, p, 0);
        p->member = MEMBER_RUNNING;
        p->order_id = 0;
        member_forget_memory(p);
}
