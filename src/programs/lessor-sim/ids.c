/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/ids.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "programs/lessor-sim/draw.h"

enum { SLOTS_FIRST = 1024 };

static uint64_t hash(const char *name)
{
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (const unsigned char *c = (const unsigned char *) name; *c; c++)
                h = (h ^ *c) * UINT64_C(0x100000001b3);
        h = draw_mix(h);
        return h == 0 ? 1 : h;
}

static uint64_t *slot_of(uint64_t *slots, size_t n_slots, uint64_t h)
{
        size_t i = (size_t) h & (n_slots - 1);

        while (slots[i] != 0 && slots[i] != h)
                i = (i + 1) & (n_slots - 1);
        return &slots[i];
}

static int grow(struct ids *ids)
{
        size_t n = ids->n_slots == 0 ? SLOTS_FIRST : 2 * ids->n_slots;
        uint64_t *slots = calloc(n, sizeof(*slots));

        if (!slots)
                return -ENOMEM;
        for (size_t i = 0; i < ids->n_slots; i++)
                if (ids->slots[i] != 0)
                        *slot_of(slots, n, ids->slots[i]) = ids->slots[i];
        free(ids->slots);
        ids->slots = slots;
        ids->n_slots = n;
        return 0;
}

int ids_add(struct ids *ids, const char *name)
{
        uint64_t h = hash(name);

        if (4 * (ids->n + 1) > 3 * ids->n_slots && grow(ids) < 0)
                return -ENOMEM;
        uint64_t *slot = slot_of(ids->slots, ids->n_slots, h);
        if (*slot != 0)
                return 0;
        *slot = h;
        ids->n++;
        return 1;
}

void ids_fini(struct ids *ids)
{
        free(ids->slots);
        *ids = (struct ids){ 0 };
}
