/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A reference into one of the world's tables: an index with the generation of who sat there. A late timer or answer that
 * carries an older generation finds nobody. Generations start at 1, so a zeroed ref is "none".
 */
#include <stdbool.h>
#include <stdint.h>

struct ref {
        uint32_t index;
        uint32_t generation;
};

static inline bool ref_is_none(struct ref r)
{
        return r.generation == 0;
}

static inline bool ref_equal(struct ref a, struct ref b)
{
        return a.index == b.index && a.generation == b.generation;
}
