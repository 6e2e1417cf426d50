/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/free.h"
#include "base/number.h"

bool device_is_usable(const struct device *dev)
{
        if (dev->budget_bytes != 0 && (dev->health == DEVICE_NO_MEMORY_READING || dev->health == DEVICE_OK))
                return true;
        return dev->health == DEVICE_OK && dev->used_known;
}

static void shrink(uint64_t *sum, uint64_t bytes)
{
        *sum = u64_sub0(*sum, bytes);
}

void sums_take_out(struct sums *s, const struct holder *h)
{
        uint64_t gone_bytes;

        if (!s->per_process_known)
                gone_bytes = holder_is_promise(h)
                                     ? 0
                                     : u64_min(h->reserved_bytes, u64_sub0(s->used_bytes, s->driver_own_bytes));
        else if (holder_reading_is_known(h))
                gone_bytes = h->used_bytes;
        else
                gone_bytes = u64_min(h->reserved_bytes, sums_residue_bytes(s));

        shrink(&s->reserved_bytes, h->reserved_bytes);
        if (holder_is_promise(h))
                shrink(&s->promised_bytes, h->reserved_bytes);
        if (holder_reading_is_known(h)) {
                shrink(&s->known_used_bytes, h->used_bytes);
                shrink(&s->known_untaken_bytes, u64_sub0(h->reserved_bytes, h->used_bytes));
        } else {
                shrink(&s->unknown_reserved_bytes, h->reserved_bytes);
        }
        shrink(&s->used_bytes, gone_bytes);
}

void sums_give_back(struct sums *s, const struct holder *h, uint64_t floor_bytes)
{
        if (s->per_process_known && holder_reading_is_known(h)) {
                uint64_t stays_bytes = u64_min(floor_bytes, h->used_bytes);
                sums_take_out(s, h);
                s->used_bytes = u64_add_sat(s->used_bytes, stays_bytes);
                s->known_used_bytes = u64_add_sat(s->known_used_bytes, stays_bytes);
                return;
        }

        uint64_t used_bytes = s->used_bytes;
        sums_take_out(s, h);
        s->used_bytes = used_bytes;
}

static struct sums with_device(const struct world *world, uint32_t device, const struct sums *holders)
{
        const struct device *dev = &world->devices[device];
        struct sums sums = *holders;

        sums.total_bytes = dev->budget_bytes != 0 ? dev->budget_bytes : dev->used_known ? dev->total_bytes : 0;
        sums.used_bytes = dev->used_bytes;
        sums.used_known = dev->used_known;
        sums.per_process_known = dev->per_process_known;
        sums.driver_own_bytes = dev->driver_own_known ? dev->driver_own_bytes : 0;
        sums.kept_free_bytes = device_kept_free_bytes(world, device);
        return sums;
}

void sums_of_device(const struct world *world, uint32_t device, struct sums *ret)
{
        struct tally tally;

        tally_make(world, device, &tally);
        *ret = with_device(world, device, &tally.sums);
}

void sums_now(struct world *world, uint32_t device, struct sums *ret)
{
        *ret = with_device(world, device, &world_tally(world, device)->sums);
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

static uint64_t unattributed_bytes(const struct device *dev, uint64_t listed_bytes)
{
        uint64_t driver_own_bytes = dev->driver_own_known ? dev->driver_own_bytes : 0;

        return dev->used_known ? u64_sub0(dev->used_bytes, u64_add_sat(driver_own_bytes, listed_bytes)) : 0;
}

uint64_t device_unattributed_bytes(const struct world *world, uint32_t device)
{
        struct tally tally;

        tally_make(world, device, &tally);
        return unattributed_bytes(&world->devices[device], tally.listed_bytes);
}

uint64_t device_unattributed_now(struct world *world, uint32_t device)
{
        return unattributed_bytes(&world->devices[device], world_tally(world, device)->listed_bytes);
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
