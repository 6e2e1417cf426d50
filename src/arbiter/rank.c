/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/rank.h"
#include "base/number.h"

unsigned rank_of(const struct config *config, unsigned priority, uint64_t waited_ms)
{
        if (priority <= PRIORITY_URGENT || priority >= PRIORITY_FILLER)
                return priority;

        uint64_t levels = waited_ms / config->aging_ms;
        if (levels >= priority)
                return PRIORITY_INTERACTIVE;
        return (unsigned) u64_max(PRIORITY_INTERACTIVE, priority - levels);
}

uint64_t entry_waited_ms(const struct entry *e, uint64_t now_ms)
{
        uint64_t held_ms = e->held_ms + (e->held_since_ms != 0 ? u64_sub0(now_ms, e->held_since_ms) : 0);
        return u64_sub0(u64_sub0(now_ms, e->arrived_ms), held_ms);
}

unsigned entry_rank(const struct config *config, const struct entry *e, uint64_t now_ms)
{
        return rank_of(config, e->priority, entry_waited_ms(e, now_ms));
}

unsigned lease_rank(const struct config *config, const struct lease *lease, uint64_t now_ms)
{
        if (lease->over_time)
                return PRIORITY_FILLER;

        uint64_t keep_ms = config->keep_rank_ms;
        if (lease->slot_ms != 0)
                keep_ms = u64_min(keep_ms, lease->slot_ms);
        return now_ms - lease->granted_ms < keep_ms ? lease->kept_rank : lease->priority;
}

bool rank_passes(const struct config *config, unsigned priority, unsigned rank)
{
        return priority + config->margin <= rank;
}
