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
                .correct_sizes = true,
                .display_bytes = GIB(1),
                .ledger_cap_bytes = GIB(32),
                .margin = 1,
                .ceiling_user = 2,
                .ceiling_admin = 1,
                .leases_per_user_max = 1024,
                .leases_max = LEASES_MAX,
                .entries_max = ENTRIES_MAX,
                .waiting_per_user_max = 256,
                .pins_per_user_max = 2,
                .pin_max_ms = HOURS_MS(24),
                .end_grace_ms = SECONDS_MS(60),
                .end_give_up_ms = SECONDS_MS(60),
                .linger_ms = SECONDS_MS(60),
                .linger_filler_ms = MINUTES_MS(5),
                .immune_max_ms = SECONDS_MS(120),
                .immune_kill_ms = SECONDS_MS(600),
                .ask_ms = SECONDS_MS(30),
                .lock_ms = SECONDS_MS(10),
                .yield_grace_ms = SECONDS_MS(30),
                .back_off_ms = SECONDS_MS(30),
                .card_quiet_ms = SECONDS_MS(2),
                .host_reserve_bytes = GIB(2),
                .host_reserve_milli = 100,
                .slack_milli = 20,
                .returns_max = 6,
                .strikes_max = 5,
                .bookings_per_user_max = 4,
                .booking_lead_ms = SECONDS_MS(30),
                .booking_ahead_ms = HOURS_MS(24 * 14),
                .hold_after_ms = SECONDS_MS(2),
                .enforce_ceiling = ENFORCE_ENFORCE,
                .enforce_own_uid = UINT32_MAX,
                .enforce_sweep_ms = SECONDS_MS(15),
                .enforce_min_bytes = MIB(256),
                .enforce_stay_ms = SECONDS_MS(30),
                .enforce_notice_ms = SECONDS_MS(60),
                .enforce_grace_ms = { SECONDS_MS(300), SECONDS_MS(300), SECONDS_MS(300) },
                .enforce_give_up_ms = SECONDS_MS(60),
        };
        for (unsigned class = 0; class < IDLE_CLASSES; class ++)
                config->idle[class] = (struct idle_ladder){ .notice_ms = MINUTES_MS(30),
                                                            .reclaimable_ms = MINUTES_MS(60),
                                                            .listed_ms = HOURS_MS(24) };
}

struct quota config_quota(const struct config *config, uint32_t row)
{
        if (row != QUOTA_EVERYONE && row <= config->n_quotas && row <= QUOTAS_MAX)
                return config->quotas[row - 1];
        return (struct quota){
                .priority_min = config->ceiling_user,
                .leases_max = config->leases_per_user_max,
                .waiting_max = config->waiting_per_user_max,
                .pins_max = config->pins_per_user_max,
                .bytes_max = config->bytes_per_user_max,
                .slot_max_ms = config->slot_max_ms,
                .pin_max_ms = config->pin_max_ms,
        };
}
