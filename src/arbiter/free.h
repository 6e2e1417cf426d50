/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is free (design 4.1): "what is used, plus what is promised and not yet taken".
 *
 *   committed = max( Σ r,  U + Σ_known max(0, r − u) + max(0, R_unknown − residue) )    residue = max(0, U − driver − Σ_known u)
 *
 * plus what is kept free on this platform (F33).
 * With no per-process figures at all: max(U, driver + Σ r of holders) + claims + uncollected grants. Without a device figure: Σ r
 * against an administrator's budget, or nothing. Worked examples: tests/unit/test_free.c (A1 … A10).
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/number.h"
#include "model/world.h"

/* What is free on one device, by what it says of itself and by its holders (model/tally.h): from the tables as they are, and
 * from what the world keeps of them, which is the same and quicker. */
void sums_of_device(const struct world *world, uint32_t device, struct sums *ret);
void sums_now(struct world *world, uint32_t device, struct sums *ret);
/* As if @holder had left and its memory had come back: U falls by what is proven to be its own (its known u, else at most
 * what of the residue its reservation can explain). */
void sums_take_out(struct sums *sums, const struct holder *holder);

/* As if @holder had given its memory back down to @floor_bytes, promises and all. Only what is known to be its own comes back: of
 * an unknown reading nothing does. */
void sums_give_back(struct sums *sums, const struct holder *holder, uint64_t floor_bytes);

static inline uint64_t sums_residue_bytes(const struct sums *s)
{
        return u64_sub0(s->used_bytes, u64_add_sat(s->driver_own_bytes, s->known_used_bytes));
}

static inline uint64_t sums_taken_and_promised_bytes(const struct sums *s)
{
        if (!s->used_known)
                return s->reserved_bytes; /* against an administrator's budget, or for show */

        if (!s->per_process_known)
                return u64_add_sat(u64_max(s->used_bytes, u64_add_sat(s->driver_own_bytes,
                                                                      u64_sub0(s->reserved_bytes, s->promised_bytes))),
                                   s->promised_bytes);

        uint64_t hidden_bytes = u64_sub0(s->unknown_reserved_bytes, sums_residue_bytes(s));
        return u64_max(s->reserved_bytes,
                       u64_add_sat(s->used_bytes, u64_add_sat(s->known_untaken_bytes, hidden_bytes)));
}

/* May exceed the total: a debt. */
static inline uint64_t sums_committed_bytes(const struct sums *s)
{
        return u64_add_sat(sums_taken_and_promised_bytes(s), s->kept_free_bytes);
}

/* Never below 0; 0 without a device figure or budget. */
static inline uint64_t sums_free_bytes(const struct sums *s)
{
        return u64_sub0(s->total_bytes, sums_committed_bytes(s));
}

/* Unattributed: used by nobody that is known, the driver's own share aside. */
uint64_t device_unattributed_bytes(const struct world *world, uint32_t device);
uint64_t device_unattributed_now(struct world *world, uint32_t device); /* from what the world keeps */
uint64_t device_free_bytes(const struct world *world, uint32_t device);
uint64_t device_committed_bytes(const struct world *world, uint32_t device);
uint64_t device_display_bytes(const struct world *world, uint32_t device);
/* Kept free by configuration; nothing where an administrator's budget says what may be given. */
uint64_t device_kept_free_bytes(const struct world *world, uint32_t device);
/* Usable for grants at all: healthy, with a figure or a budget. */
bool device_is_usable(const struct device *device);
