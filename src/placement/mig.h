/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Instances of a GPU that is divided into slices of memory (MIG): which ones may start at which slice, and where one goes so that
 * what is left stays of use. A mask has a bit for each slice in use. Sets that memory allows never need more than 7 compute
 * slices, so that the mask alone decides. The tables are what nvidia-smi mig -lgipp prints for A100 and H100, and for A30; where
 * there is a driver, it is asked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIG_SLICES_MAX = 8, MIG_MASKS = 1 << MIG_SLICES_MAX, MIG_STARTS_MAX = 7, MIG_PROFILES_MAX = 8 };

struct mig_profile {
        const char *name;
        uint8_t slices, compute;
        uint8_t n_starts, starts[MIG_STARTS_MAX];
};

struct mig_geometry {
        const char *name;
        uint8_t slices, n_profiles;
        struct mig_profile profiles[MIG_PROFILES_MAX];
};

extern const struct mig_geometry mig_a100, mig_a30; /* H100, H200 and B200 divide like A100 */

/* NULL: it has none of that name. */
const struct mig_profile *mig_profile_find(const struct mig_geometry *geometry, const char *name);
/* The slices that it takes there, as bits. */
uint8_t mig_slices(const struct mig_profile *profile, unsigned start);
/* How many of it still fit. */
unsigned mig_fit(const struct mig_profile *profile, uint8_t mask);

/* Free slices that are of no use: for each profile those beyond what would fit of it, by its weight. */
struct mig_fragment {
        int32_t of[MIG_MASKS]; /* times the sum of the weights */
};

/* @weights: of each profile, how much it is asked for; NULL: all alike. */
void mig_fragment_build(struct mig_fragment *fragment, const struct mig_geometry *geometry, const uint32_t *weights);

/* Where the fragment grows least; then the fuller GPU, then the highest start. False: it fits on none. */
bool mig_choose(const struct mig_fragment *fragment, const struct mig_profile *profile, const uint8_t *masks, size_t n,
                size_t *gpu, unsigned *start);
