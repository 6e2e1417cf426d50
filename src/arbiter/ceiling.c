/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/ceiling.h"
#include "arbiter/free.h"
#include "base/number.h"

void reason_add_blocker(struct reason *why, const struct blocker *blocker)
{
        uint32_t n = why->n_blockers < BLOCKERS_MAX ? why->n_blockers : BLOCKERS_MAX;
        uint32_t at = n;

        why->n_blockers++;
        while (at > 0 && why->blockers[at - 1].bytes < blocker->bytes)
                at--;
        if (at >= BLOCKERS_MAX)
                return;
        for (uint32_t i = n < BLOCKERS_MAX ? n : BLOCKERS_MAX - 1; i > at; i--)
                why->blockers[i] = why->blockers[i - 1];
        why->blockers[at] = *blocker;
}

static uint64_t smallest_floor_bytes(const struct holder *h)
{
        uint64_t smallest = h->used_bytes; /* at most what it holds */

        for (unsigned kind = 0; kind < WAY_OUT_N; kind++)
                if (ways_out_usable(&h->ways) & WAY_OUT_BIT(kind))
                        smallest = u64_min(smallest, h->ways.floor_bytes[kind]);
        return smallest;
}

/* What this holder keeps back for ever, and as what. */
static uint64_t kept_back_bytes(const struct holder *h, enum blocker_kind *ret_kind)
{
        uint64_t whole = u64_max(h->reserved_bytes, h->used_bytes);

        if (h->kind == HOLDER_DISPLAY) {
                *ret_kind = BLOCKER_DISPLAY;
                return h->reserved_bytes; /* what it uses beyond may shrink again */
        }
        if (h->protected) {
                *ret_kind = BLOCKER_PROTECTED;
                return whole;
        }
        if (h->pinned && h->pin_end_ms == 0) {
                *ret_kind = BLOCKER_PINNED;
                return whole;
        }
        if (h->kind == HOLDER_TENANT) {
                *ret_kind = BLOCKER_TENANT;
                return ways_out_usable(&h->ways) == 0 ? whole : smallest_floor_bytes(h);
        }
        *ret_kind = BLOCKER_NONE;
        return 0;
}

static uint64_t lease_id_of(const struct world *w, struct ref ref)
{
        if (ref_is_none(ref) || ref.index >= w->n_leases || w->leases[ref.index].generation != ref.generation)
                return 0;
        return w->leases[ref.index].id;
}

static void take_away(uint64_t *ceiling, struct reason *why, enum blocker_kind kind, uint64_t bytes)
{
        if (bytes == 0)
                return;
        *ceiling = u64_sub0(*ceiling, bytes);
        if (why)
                reason_add_blocker(why, &(struct blocker){ .kind = (uint8_t) kind, .bytes = bytes });
}

uint64_t device_ceiling_bytes(const struct world *w, uint32_t device, struct reason *why)
{
        const struct device *dev = &w->devices[device];
        uint64_t ceiling = dev->budget_bytes != 0 ? dev->budget_bytes : dev->total_bytes;

        if (why)
                why->total_bytes = ceiling;
        take_away(&ceiling, why, BLOCKER_DRIVER, dev->driver_own_known ? dev->driver_own_bytes : 0);
        take_away(&ceiling, why, BLOCKER_KEPT_FREE, device_kept_free_bytes(w, device));
        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                enum blocker_kind kind;
                if (!holder_may_keep_back(h))
                        continue;
                uint64_t bytes = kept_back_bytes(h, &kind);
                if (bytes == 0)
                        continue;
                ceiling = u64_sub0(ceiling, bytes);
                if (why)
                        reason_add_blocker(why, &(struct blocker){ .kind = (uint8_t) kind,
                                                                   .bytes = bytes,
                                                                   .pid = h->process.pid,
                                                                   .lease_id = lease_id_of(w, h->lease) });
        }
        if (why)
                why->ceiling_bytes = ceiling;
        return ceiling;
}

uint64_t device_ceiling_now(struct world *w, uint32_t device)
{
        const struct device *dev = &w->devices[device];

        if (world_tally(w, device)->n_keepers != 0)
                return device_ceiling_bytes(w, device, NULL);
        return u64_sub0(u64_sub0(dev->budget_bytes != 0 ? dev->budget_bytes : dev->total_bytes,
                                 dev->driver_own_known ? dev->driver_own_bytes : 0),
                        device_kept_free_bytes(w, device));
}

uint64_t device_whole_bytes(const struct world *w, uint32_t device)
{
        uint64_t bytes = device_ceiling_bytes(w, device, NULL);

        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                enum blocker_kind kind;
                if (h->kind == HOLDER_LEASE)
                        bytes = u64_add_sat(bytes, kept_back_bytes(h, &kind));
                else if (h->kind == HOLDER_DISPLAY)
                        bytes = u64_sub0(bytes, u64_sub0(h->used_bytes, h->reserved_bytes));
        }
        return bytes;
}

bool device_is_kept_for_ever(const struct world *w, uint32_t device)
{
        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                enum blocker_kind kind;
                if (h->kind == HOLDER_LEASE && kept_back_bytes(h, &kind) != 0)
                        return true;
        }
        return false;
}

static enum blocker_kind blocker_of(const struct holder *h)
{
        if (h->protected)
                return BLOCKER_PROTECTED;
        if (h->pinned)
                return BLOCKER_PINNED;
        if (h->exclusive)
                return BLOCKER_EXCLUSIVE;
        switch ((enum holder_kind) h->kind) {
        case HOLDER_DISPLAY:
                return BLOCKER_DISPLAY;
        case HOLDER_LEASE:
                return BLOCKER_LEASE;
        case HOLDER_TENANT:
                return BLOCKER_TENANT;
        case HOLDER_CLAIM:
                return BLOCKER_CLAIM;
        case HOLDER_STRANGER:
                return BLOCKER_STRANGER;
        case HOLDER_NONE:
        case HOLDER_KIND_N:
                break;
        }
        return BLOCKER_NONE;
}

static struct blocker blocker_from(const struct world *w, const struct holder *h)
{
        struct blocker b = {
                .kind = (uint8_t) blocker_of(h),
                .bytes = u64_max(h->reserved_bytes, h->used_bytes),
                .pid = h->process.pid,
                .lease_id = lease_id_of(w, h->lease),
        };
        if (h->kind == HOLDER_LEASE && b.lease_id != 0) {
                const struct lease *lease = &w->leases[h->lease.index];
                b.end_ms = lease->slot_end_ms > w->now_ms ? lease->slot_end_ms : 0;
        }
        if (h->kind == HOLDER_CLAIM && !ref_is_none(h->entry) && h->entry.index < w->n_entries)
                b.lease_id = lease_id_of(w, w->entries[h->entry.index].lease);
        return b;
}

/* The rows of the biggest there, biggest first, equals by row; *ret_n is how many there are. Returns how many rows. */
static uint32_t biggest_holders(const struct world *w, uint32_t device, struct ref except, uint32_t rows[BLOCKERS_MAX],
                                uint32_t *ret_n)
{
        uint64_t sizes[BLOCKERS_MAX];
        uint32_t n = 0;

        *ret_n = 0;
        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                uint64_t bytes = u64_max(h->reserved_bytes, h->used_bytes);
                if (bytes == 0 || (h->kind == HOLDER_CLAIM && ref_equal(h->entry, except)))
                        continue;
                ++*ret_n;
                if (n == BLOCKERS_MAX && bytes <= sizes[n - 1])
                        continue;
                uint32_t at = n < BLOCKERS_MAX ? n++ : n - 1;
                for (; at > 0 && sizes[at - 1] < bytes; at--) {
                        sizes[at] = sizes[at - 1];
                        rows[at] = rows[at - 1];
                }
                sizes[at] = bytes;
                rows[at] = i;
        }
        return n;
}

void reason_add_holders(struct reason *why, struct world *w, uint32_t device, struct ref except)
{
        const struct device *dev = &w->devices[device];
        uint64_t unattributed = device_unattributed_now(w, device), kept_free = device_kept_free_bytes(w, device);

        uint32_t rows[BLOCKERS_MAX], n = biggest_holders(w, device, except, rows, &why->n_blockers);
        for (uint32_t i = 0; i < n; i++)
                why->blockers[i] = blocker_from(w, &w->holders[rows[i]]);
        if (dev->driver_own_known && dev->driver_own_bytes != 0)
                reason_add_blocker(why, &(struct blocker){ .kind = BLOCKER_DRIVER, .bytes = dev->driver_own_bytes });
        if (kept_free != 0)
                reason_add_blocker(why, &(struct blocker){ .kind = BLOCKER_KEPT_FREE, .bytes = kept_free });
        if (unattributed != 0)
                reason_add_blocker(why, &(struct blocker){ .kind = BLOCKER_UNATTRIBUTED, .bytes = unattributed });
}
