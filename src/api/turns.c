/* SPDX-License-Identifier: Apache-2.0 */
#include "api/turns.h"

bool turns_enter(struct turns *t, uint32_t slot, uint32_t uid)
{
        if (t->n_waiting == 0 && t->served < TURNS_AT_ONCE) {
                t->served++;
                t->last_uid = uid;
                return true;
        }
        t->slots[slot] = (struct turns_slot){ .arrival = ++t->next, .uid = uid };
        t->n_waiting++;
        return false;
}

void turns_leave(struct turns *t, uint32_t slot)
{
        if (t->slots[slot].arrival == 0)
                return;
        t->slots[slot].arrival = 0;
        t->n_waiting--;
}

void turns_begin(struct turns *t)
{
        t->served = 0;
}

/* How far behind the one served last, in the circle of uids: 2^32 for himself. */
static uint64_t distance(const struct turns *t, uint32_t uid)
{
        uint32_t d = uid - t->last_uid;
        return d == 0 ? UINT64_C(1) << 32 : d;
}

bool turns_next(struct turns *t, uint32_t *ret_slot)
{
        const struct turns_slot *best = 0;

        if (t->n_waiting == 0 || t->served >= TURNS_AT_ONCE)
                return false;
        for (uint32_t i = 0; i < TURNS_SLOTS; i++) {
                const struct turns_slot *s = &t->slots[i];
                if (s->arrival == 0)
                        continue;
                uint64_t d = distance(t, s->uid), best_d = best ? distance(t, best->uid) : UINT64_MAX;
                if (d < best_d || (d == best_d && s->arrival < best->arrival))
                        best = s;
        }
        if (!best)
                return false;
        *ret_slot = (uint32_t) (best - t->slots);
        t->last_uid = best->uid;
        t->served++;
        turns_leave(t, *ret_slot);
        return true;
}
