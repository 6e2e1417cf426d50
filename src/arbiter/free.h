/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is free (design 4.1): "what is used, plus what is promised and not yet taken".
 *
 *   committed = max( Σ r,  U + Σ_known max(0, r − u) + max(0, R_unknown − residue) )    residue = max(0, U − driver − Σ_known u)
 *
 * plus what is kept free on this platform (F33).
 * With no per-process figures at all: max(U, Σ r of holders) + claims + uncollected grants. Without a device figure: Σ r
 * against an administrator's budget, or nothing. Worked examples: tests/unit/test_free.c (A1 … A10).
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/world.h"

/* The sums over one device's holders from which everything else follows; a holder can be taken out of them again, which is
 * how a later time is looked at. */
struct sums {
        uint64_t total_bytes; /* T, or the budget */
        uint64_t used_bytes;  /* U */
        bool used_known;
        bool per_process_known;
        uint64_t driver_own_bytes;
        uint64_t kept_free_bytes;        /* committed to nobody, and never granted */
        uint64_t reserved_bytes;         /* Σ r, claims and uncollected grants included */
        uint64_t promised_bytes;         /* of it: claims and uncollected grants */
        uint64_t known_used_bytes;       /* Σ_known u */
        uint64_t known_untaken_bytes;    /* Σ_known max(0, r − u) */
        uint64_t unknown_reserved_bytes; /* R_unknown */
};

void sums_of_device(const struct world *world, uint32_t device, struct sums *ret);
void sums_add(struct sums *sums, const struct holder *holder);
/* As if @holder had left and its memory had come back: U falls by what is proven to be its own (its known u, else at most
 * what of the residue its reservation can explain). */
void sums_take_out(struct sums *sums, const struct holder *holder);

uint64_t sums_residue_bytes(const struct sums *sums);
uint64_t sums_committed_bytes(const struct sums *sums); /* may exceed the total: a debt */
uint64_t sums_free_bytes(const struct sums *sums);      /* never below 0; 0 without a device figure or budget */
/* Unattributed: used by nobody that is known, the driver's own share aside. */
uint64_t device_unattributed_bytes(const struct world *world, uint32_t device);
uint64_t device_free_bytes(const struct world *world, uint32_t device);
uint64_t device_committed_bytes(const struct world *world, uint32_t device);
uint64_t device_display_bytes(const struct world *world, uint32_t device);
/* Kept free by configuration; nothing where an administrator's budget says what may be given. */
uint64_t device_kept_free_bytes(const struct world *world, uint32_t device);
/* Usable for grants at all: healthy, with a figure or a budget. */
bool device_is_usable(const struct device *device);
