/* SPDX-License-Identifier: Apache-2.0 */
#include "model/config.h"
#include "model/limits.h"

#define SECONDS_MS(n) (UINT64_C(1000) * (n))
#define MINUTES_MS(n) (UINT64_C(60000) * (n))
#define HOURS_MS(n) (UINT64_C(3600000) * (n))
#define MIB(n) (UINT64_C(1024) * 1024 * (n))
#define GIB(n) (UINT64_C(1024) * 1024 * 1024 * (n))

void config_defaults(struct config *config)
{
        *config = (struct config){
                .aging_ms = SECONDS_MS(600),
                .usage_half_life_ms = HOURS_MS(24),
                .usage_forgiven_ms = MINUTES_MS(30),
                .keep_rank_ms = MINUTES_MS(30),
                .block_after_ms = MINUTES_MS(30),
                .block_max_ms = HOURS_MS(12),
                .collect_ms = SECONDS_MS(60),
                .reading_max_age_ms = SECONDS_MS(1),
                .slot_warning_ms = MINUTES_MS(10),
                .over_use_bytes = MIB(256),
                .over_use_ms = SECONDS_MS(30),
                .display_bytes = GIB(1),
                .ledger_cap_bytes = GIB(32),
                .margin = 1,
                .ceiling_user = 2,
                .ceiling_admin = 1,
                .leases_per_user_max = 1024,
                .leases_max = LEASES_MAX,
                .entries_max = ENTRIES_MAX,
                .waiting_per_user_max = 256,
        };
}
