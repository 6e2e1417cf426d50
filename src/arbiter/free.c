/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/free.h"
#include "base/number.h"

bool device_is_usable(const struct device *dev)
{
        if (dev->budget_bytes != 0 && (dev->health == DEVICE_NO_MEMORY_READING || dev->health == DEVICE_OK))
                return true;
        return dev->health == DEVICE_OK && dev->used_known;
}

/* A claim and an uncollected grant have nothing on the device, which is known: they never hide in what nobody can
 * attribute (A5). */
static bool is_promise(const struct holder *h)
{
        return h->kind == HOLDER_CLAIM || h->uncollected;
}

static void grow(uint64_t *sum, uint64_t bytes)
{
        *sum = u64_add_sat(*sum, bytes);
}

static void shrink(uint64_t *sum, uint64_t bytes)
{
        *sum = u64_sub0(*sum, bytes);
}

/* Inline, so that the sums of a whole device stay in registers. */
static inline void add(struct sums *s, const struct holder *h)
{
        grow(&s->reserved_bytes, h->reserved_bytes);
        if (is_promise(h))
                grow(&s->promised_bytes, h->reserved_bytes);
        if (holder_reading_is_known(h)) {
                grow(&s->known_used_bytes, h->used_bytes);
                grow(&s->known_untaken_bytes, u64_sub0(h->reserved_bytes, h->used_bytes));
        } else {
                grow(&s->unknown_reserved_bytes, h->reserved_bytes);
        }
}

void sums_add(struct sums *s, const struct holder *h)
{
        add(s, h);
}

void sums_take_out(struct sums *s, const struct holder *h)
{
        uint64_t gone_bytes;

        if (!s->per_process_known)
                gone_bytes =
                        is_promise(h) ? 0 : u64_min(h->reserved_bytes, u64_sub0(s->used_bytes, s->driver_own_bytes));
        else if (holder_reading_is_known(h))
                gone_bytes = h->used_bytes;
        else
                gone_bytes = u64_min(h->reserved_bytes, sums_residue_bytes(s));

        shrink(&s->reserved_bytes, h->reserved_bytes);
        if (is_promise(h))
                shrink(&s->promised_bytes, h->reserved_bytes);
        if (holder_reading_is_known(h)) {
                shrink(&s->known_used_bytes, h->used_bytes);
                shrink(&s->known_untaken_bytes, u64_sub0(h->reserved_bytes, h->used_bytes));
        } else {
                shrink(&s->unknown_reserved_bytes, h->reserved_bytes);
        }
        shrink(&s->used_bytes, gone_bytes);
}

void sums_of_device(const struct world *world, uint32_t device, struct sums *ret)
{
        const struct device *dev = &world->devices[device];

        struct sums sums = {
                .total_bytes = dev->budget_bytes != 0 ? dev->budget_bytes
                               : dev->used_known      ? dev->total_bytes
                                                      : 0,
                .used_bytes = dev->used_bytes,
                .used_known = dev->used_known,
                .per_process_known = dev->per_process_known,
                .driver_own_bytes = dev->driver_own_known ? dev->driver_own_bytes : 0,
                .kept_free_bytes = device_kept_free_bytes(world, device),
        };
        world_each_holder_on (world, i, device)
                add(&sums, &world->holders[i]);
        *ret = sums;
}

uint64_t sums_residue_bytes(const struct sums *s)
{
        return u64_sub0(s->used_bytes, u64_add_sat(s->driver_own_bytes, s->known_used_bytes));
}

static uint64_t taken_and_promised_bytes(const struct sums *s)
{
        if (!s->used_known)
                return s->reserved_bytes; /* against an administrator's budget, or for show */

        if (!s->per_process_known)
                return u64_add_sat(u64_max(s->used_bytes, u64_sub0(s->reserved_bytes, s->promised_bytes)),
                                   s->promised_bytes);

        uint64_t hidden_bytes = u64_sub0(s->unknown_reserved_bytes, sums_residue_bytes(s));
        return u64_max(s->reserved_bytes,
                       u64_add_sat(s->used_bytes, u64_add_sat(s->known_untaken_bytes, hidden_bytes)));
}

uint64_t sums_committed_bytes(const struct sums *s)
{
        return u64_add_sat(taken_and_promised_bytes(s), s->kept_free_bytes);
}

uint64_t sums_free_bytes(const struct sums *s)
{
        return u64_sub0(s->total_bytes, sums_committed_bytes(s));
}

uint64_t device_committed_bytes(const struct world *world, uint32_t device)
{
        struct sums sums;

        sums_of_device(world, device, &sums);
        return sums_committed_bytes(&sums);
}

uint64_t device_free_bytes(const struct world *world, uint32_t device)
{
        struct sums sums;

        if (!device_is_usable(&world->devices[device]))
                return 0; /* no answer from the driver is no room, not an empty card */
        sums_of_device(world, device, &sums);
        return sums_free_bytes(&sums);
}

uint64_t device_unattributed_bytes(const struct world *world, uint32_t device)
{
        struct sums sums;
        uint64_t listed_bytes = 0;

        sums_of_device(world, device, &sums);
        if (!sums.used_known)
                return 0;
        world_each_holder_on (world, i, device)
                grow(&listed_bytes, world->holders[i].used_bytes);
        return u64_sub0(sums.used_bytes, u64_add_sat(sums.driver_own_bytes, listed_bytes));
}

uint64_t device_display_bytes(const struct world *world, uint32_t device)
{
        world_each_holder_of (world, i, HOLDER_DISPLAY) {
                const struct holder *h = &world->holders[i];
                if (h->device == device)
                        return u64_max(h->reserved_bytes, h->used_bytes);
        }
        return 0;
}

uint64_t device_kept_free_bytes(const struct world *world, uint32_t device)
{
        return world->devices[device].budget_bytes != 0 ? 0 : world->config.kept_free_bytes;
}
