/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/mig.h"
#include <string.h>

const struct mig_geometry mig_a100 = {
        .name = "a100",
        .slices = 8,
        .n_profiles = 6,
        .profiles = { { "1g", 1, 1, 7, { 0, 1, 2, 3, 4, 5, 6 } },
                      { "2g", 2, 2, 3, { 0, 2, 4 } },
                      { "3g", 4, 3, 2, { 0, 4 } },
                      { "4g", 4, 4, 1, { 0 } },
                      { "7g", 8, 7, 1, { 0 } },
                      { "1g-double", 2, 1, 4, { 0, 2, 4, 6 } } },
};

const struct mig_geometry mig_a30 = {
        .name = "a30",
        .slices = 4,
        .n_profiles = 3,
        .profiles = { { "1g", 1, 1, 4, { 0, 1, 2, 3 } }, { "2g", 2, 2, 2, { 0, 2 } }, { "4g", 4, 4, 1, { 0 } } },
};

const struct mig_profile *mig_profile_find(const struct mig_geometry *geometry, const char *name)
{
        for (unsigned p = 0; p < geometry->n_profiles; p++)
                if (strcmp(geometry->profiles[p].name, name) == 0)
                        return &geometry->profiles[p];
        return NULL;
}

uint8_t mig_slices(const struct mig_profile *profile, unsigned start)
{
        return (uint8_t) (((1U << profile->slices) - 1) << start);
}

/* The starts of a profile never overlap. */
unsigned mig_fit(const struct mig_profile *profile, uint8_t mask)
{
        unsigned fit = 0;

        for (unsigned i = 0; i < profile->n_starts; i++)
                fit += !(mask & mig_slices(profile, profile->starts[i]));
        return fit;
}

void mig_fragment_build(struct mig_fragment *fragment, const struct mig_geometry *geometry, const uint32_t *weights)
{
        memset(fragment, 0, sizeof(*fragment));
        for (unsigned mask = 0; mask < 1U << geometry->slices; mask++)
                for (unsigned p = 0; p < geometry->n_profiles; p++) {
                        const struct mig_profile *profile = &geometry->profiles[p];
                        int32_t free = geometry->slices - __builtin_popcount(mask);
                        int32_t fit = (int32_t) mig_fit(profile, (uint8_t) mask);
                        fragment->of[mask] += (int32_t) (weights ? weights[p] : 1) * (free - profile->slices * fit);
                }
}

bool mig_choose(const struct mig_fragment *fragment, const struct mig_profile *profile, const uint8_t *masks, size_t n,
                size_t *gpu, unsigned *start)
{
        int32_t least = INT32_MAX;
        int fullest = -1;

        for (size_t g = 0; g < n; g++)
                for (unsigned i = 0; i < profile->n_starts; i++) {
                        uint8_t slices = mig_slices(profile, profile->starts[i]);
                        int full = __builtin_popcount(masks[g]);
                        if (masks[g] & slices)
                                continue;
                        int32_t growth = fragment->of[masks[g] | slices] - fragment->of[masks[g]];
                        /* starts rise: of those alike on one GPU the last wins */
                        if (growth > least || (growth == least && (full < fullest || (full == fullest && g != *gpu))))
                                continue;
                        least = growth;
                        fullest = full;
                        *gpu = g;
                        *start = profile->starts[i];
                }
        return fullest >= 0;
}
