/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/rank.h"
#include "base/number.h"

unsigned lease_rank(const struct config *config, const struct lease *lease, uint64_t now_ms)
{
        if (lease->over_time)
                return PRIORITY_FILLER;

        uint64_t keep_ms = config->keep_rank_ms;
        if (lease->slot_ms != 0)
                keep_ms = u64_min(keep_ms, lease->slot_ms);
        return now_ms - lease->granted_ms < keep_ms ? lease->kept_rank : lease->priority;
}
