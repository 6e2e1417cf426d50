/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How important something is (design 4.2). Priorities 1 and 5 keep theirs; the others gain one level per 600 s of waiting,
 * but never reach 1: ⌈e⌉ = max(2, priority − ⌊waited / 600 s⌋), in whole numbers.
 */
#include <stdbool.h>
#include "base/number.h"
#include "model/world.h"

static inline unsigned rank_of(const struct config *config, unsigned priority, uint64_t waited_ms)
{
        if (priority <= PRIORITY_URGENT || priority >= PRIORITY_FILLER || waited_ms < config->aging_ms)
                return priority;

        uint64_t levels = waited_ms / config->aging_ms;
        if (levels >= priority)
                return PRIORITY_INTERACTIVE;
        return (unsigned) u64_max(PRIORITY_INTERACTIVE, priority - levels);
}

/* Time on hold does not count. */
static inline uint64_t entry_waited_ms(const struct entry *e, uint64_t now_ms)
{
        uint64_t held_ms = e->held_ms + (e->held_since_ms != 0 ? u64_sub0(now_ms, e->held_since_ms) : 0);
        return u64_sub0(u64_sub0(now_ms, e->arrived_ms), held_ms);
}

/* A booking that is due stands behind priority 1 alone, and only that passes it. */
static inline unsigned entry_rank(const struct config *config, const struct entry *e, uint64_t now_ms)
{
        if (e->kind == ENTRY_BOOKING)
                return PRIORITY_INTERACTIVE;
        return rank_of(config, e->priority, entry_waited_ms(e, now_ms));
}

/* A holder keeps the ⌈e⌉ of its grant for 30 min, or its slot if shorter, then its base; over time it ranks as a filler. */
unsigned lease_rank(const struct config *config, const struct lease *lease, uint64_t now_ms);
/* May something of base @priority go past, or interrupt, something of this rank? */
static inline bool rank_passes(const struct config *config, unsigned priority, unsigned rank)
{
        return priority + config->margin <= rank;
}
