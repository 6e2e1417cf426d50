/* SPDX-License-Identifier: Apache-2.0 */
/* The structs that inputs and worlds share. One row a field, in declaration order: see codec.h before changing any. */
#include "store/codec.h"

CODEC_GUARDS_ON

/* Enums travel as numbers that older journals hold too. One more at the end: raise the number here. None is ever taken out,
 * put between or moved (tests/unit/test_codec.c knows their names). */
_Static_assert(RULE_N == 136 && END_REASON_N == 13 && BLOCKER_KIND_N == 12 && ACTION_KIND_N == 27 &&
                       INPUT_KIND_N == 22 && HAND_VERB_N == 11 && OUTCOME_N == 4 && HAND_WHY_N == 23 &&
                       MANAGER_KIND_N == 4 && MANAGER_VERB_N == 3 && PAUSE_WHAT_N == 3,
               "an enum that the journal keeps has changed");
_Static_assert(LEASE_STATE_N == 13 && BINDING_KIND_N == 3 && ENTRY_KIND_N == 4 && WAIT_KIND_N == 14 &&
                       HOLDER_KIND_N == 6 && CLAIM_BOOKING == 3 && DEVICE_HEALTH_N == 6 && WAY_OUT_N == 5 &&
                       PROCESS_ENDED == 2 && PARK_STEP_N == 13 && PARK_CAUSE_N == 4 && MEMBER_STEP_N == 11 &&
                       RECLAIM_NO_N == 20 && VICTIM_STATE_N == 3 && CHECKPOINT_CANNOT_N == 8 && PARK_CALL_N == 8 &&
                       IDLE_TOLD_N == 5 && HOLDER_ACTIVITY_N == 3,
               "an enum that the journal keeps has changed");
_Static_assert(BLOCKERS_MAX == 8 && ANCESTORS_MAX == 16 && PEAKS_MAX == 20 && RETURNS_KEPT == 8 && VICTIMS_MAX == 32 &&
                       FLOORS_MAX == 5 && IDLE_CLASSES == 5 && GANG_MAX == 8,
               "an array that the journal keeps has another length");
_Static_assert(ENFORCE_MODE_N == 3 && VERDICT_WHY_N == 15 && DOUBT_N == 6 && ENFORCE_CALL_N == 4 &&
                       GRACE_CLASS_N == 3 && RUNS_N == 4,
               "an enum that the journal keeps of strangers has changed");

#define IDENTITY_FIELDS(F, S)                                                                                          \
        F(S, U32, pid, 0)                                                                                              \
        F(S, U64, start_ticks, 0)
CODEC_STRUCT(identity, IDENTITY_FIELDS, 16)

#define WAYS_OUT_FIELDS(F, S)                                                                                          \
        F(S, BELOW8, named, 1U << WAY_OUT_N)                                                                           \
        F(S, BELOW8, proven, 1U << WAY_OUT_N)                                                                          \
        F(S, SINCE, declared, (4, BELOW32, 1U << 15))                                                                  \
        F(S, U64S, floor_bytes, WAY_OUT_N)
CODEC_STRUCT(ways_out, WAYS_OUT_FIELDS, 48)

#define MANAGER_FIELDS(F, S)                                                                                           \
        F(S, BELOW8, kind, MANAGER_KIND_N)                                                                             \
        F(S, TEXT, name, 0)
CODEC_STRUCT(manager, MANAGER_FIELDS, 129)

#define BINDING_FIELDS(F, S)                                                                                           \
        F(S, BELOW8, kind, BINDING_KIND_N)                                                                             \
        F(S, STRUCT, owner, identity)                                                                                  \
        F(S, STRUCT, root, identity)                                                                                   \
        F(S, U64, cgroup_id, 0)                                                                                        \
        F(S, U64, ttl_ms, 0)                                                                                           \
        F(S, SINCE, manager, (4, STRUCT, manager))
CODEC_STRUCT(binding, BINDING_FIELDS, 192)

#define QUOTA_FIELDS(F, S)                                                                                             \
        F(S, U32, priority_min, 0)                                                                                     \
        F(S, U32, leases_max, 0)                                                                                       \
        F(S, U32, waiting_max, 0)                                                                                      \
        F(S, U32, pins_max, 0)                                                                                         \
        F(S, U64, bytes_max, 0)                                                                                        \
        F(S, U64, slot_max_ms, 0)                                                                                      \
        F(S, U64, pin_max_ms, 0)
CODEC_STRUCT(quota, QUOTA_FIELDS, 40)

#define IDEMPOTENCY_FIELDS(F, S)                                                                                       \
        F(S, U64S, key, 2)                                                                                             \
        F(S, U64, body, 0)
CODEC_STRUCT(idempotency, IDEMPOTENCY_FIELDS, 24)

#define IDLE_LADDER_FIELDS(F, S)                                                                                       \
        F(S, U64, notice_ms, 0)                                                                                        \
        F(S, U64, reclaimable_ms, 0)                                                                                   \
        F(S, U64, listed_ms, 0)
CODEC_STRUCT(idle_ladder, IDLE_LADDER_FIELDS, 24)

#define CONFIG_FIELDS(F, S)                                                                                            \
        F(S, U64, aging_ms, 0)                                                                                         \
        F(S, U64, usage_half_life_ms, 0)                                                                               \
        F(S, U64, usage_forgiven_ms, 0)                                                                                \
        F(S, U64, keep_rank_ms, 0)                                                                                     \
        F(S, U64, block_after_ms, 0)                                                                                   \
        F(S, U64, block_max_ms, 0)                                                                                     \
        F(S, U64, collect_ms, 0)                                                                                       \
        F(S, U64, reading_max_age_ms, 0)                                                                               \
        F(S, U64, slot_warning_ms, 0)                                                                                  \
        F(S, U64, over_use_bytes, 0)                                                                                   \
        F(S, U64, over_use_ms, 0)                                                                                      \
        F(S, U64, display_bytes, 0)                                                                                    \
        F(S, U64, kept_free_bytes, 0)                                                                                  \
        F(S, U64, ledger_cap_bytes, 0)                                                                                 \
        F(S, U32, margin, 0)                                                                                           \
        F(S, U32, ceiling_user, 0)                                                                                     \
        F(S, U32, ceiling_admin, 0)                                                                                    \
        F(S, BELOW32, leases_per_user_max, LEASES_MAX + 1)                                                             \
        F(S, BELOW32, leases_max, LEASES_MAX + 1)                                                                      \
        F(S, BELOW32, entries_max, ENTRIES_MAX + 1)                                                                    \
        F(S, U32, waiting_per_user_max, 0)                                                                             \
        F(S, SINCE, pins_per_user_max, (4, U32, 0))                                                                    \
        F(S, SINCE, n_quotas, (4, BELOW32, QUOTAS_MAX + 1))                                                            \
        F(S, SINCE, bytes_per_user_max, (4, U64, 0))                                                                   \
        F(S, SINCE, slot_max_ms, (4, U64, 0))                                                                          \
        F(S, SINCE, pin_max_ms, (4, U64, 0))                                                                           \
        F(S, SINCE, end_grace_ms, (4, U64, 0))                                                                         \
        F(S, SINCE, end_give_up_ms, (4, U64, 0))                                                                       \
        F(S, SINCE, linger_ms, (4, U64, 0))                                                                            \
        F(S, SINCE, linger_filler_ms, (4, U64, 0))                                                                     \
        F(S, SINCE, immune_max_ms, (4, U64, 0))                                                                        \
        F(S, SINCE, immune_kill_ms, (4, U64, 0))                                                                       \
        F(S, SINCE, ask_ms, (4, U64, 0))                                                                               \
        F(S, SINCE, lock_ms, (4, U64, 0))                                                                              \
        F(S, SINCE, yield_grace_ms, (4, U64, 0))                                                                       \
        F(S, SINCE, back_off_ms, (4, U64, 0))                                                                          \
        F(S, SINCE, card_quiet_ms, (4, U64, 0))                                                                        \
        F(S, SINCE, host_reserve_bytes, (4, U64, 0))                                                                   \
        F(S, SINCE, host_reserve_milli, (4, U32, 0))                                                                   \
        F(S, SINCE, slack_milli, (4, U32, 0))                                                                          \
        F(S, SINCE, returns_max, (4, U32, 0))                                                                          \
        F(S, SINCE, strikes_max, (4, U32, 0))                                                                          \
        F(S, SINCE, bookings_per_user_max, (4, U32, 0))                                                                \
        F(S, SINCE, booking_lead_ms, (4, U64, 0))                                                                      \
        F(S, SINCE, booking_ahead_ms, (4, U64, 0))                                                                     \
        F(S, SINCE, hold_in_place, (4, BOOL, 0))                                                                       \
        F(S, SINCE, correct_sizes, (4, BOOL, 0))                                                                       \
        F(S, SINCE, hold_after_ms, (4, U64, 0))                                                                        \
        F(S, SINCE, quotas, (4, ROWS, quota))                                                                          \
        F(S, SINCE, idle, (4, ROWS, idle_ladder))                                                                      \
        F(S, SINCE, enforce_ceiling, (4, BELOW8, ENFORCE_MODE_N))                                                      \
        F(S, SINCE_OR, enforce_own_uid, (4, U32, 0, UINT32_MAX))                                                       \
        F(S, SINCE, enforce_sweep_ms, (4, U64, 0))                                                                     \
        F(S, SINCE, enforce_min_bytes, (4, U64, 0))                                                                    \
        F(S, SINCE, enforce_stay_ms, (4, U64, 0))                                                                      \
        F(S, SINCE, enforce_notice_ms, (4, U64, 0))                                                                    \
        F(S, SINCE, enforce_grace_ms, (4, U64S, GRACE_CLASS_N))                                                        \
        F(S, SINCE, enforce_give_up_ms, (4, U64, 0))
CODEC_STRUCT(config, CONFIG_FIELDS, 1800)

#define HOST_FIELDS(F, S)                                                                                              \
        F(S, U64, total_bytes, 0)                                                                                      \
        F(S, U64, available_bytes, 0)                                                                                  \
        F(S, U64, read_ms, 0)                                                                                          \
        F(S, U64, driver, 0)                                                                                           \
        F(S, BOOL, pressure, 0)                                                                                        \
        F(S, BELOW8, checkpoint, CHECKPOINT_CANNOT_N)
CODEC_STRUCT(host, HOST_FIELDS, 40)

#define PROCESS_FIELDS(F, S)                                                                                           \
        F(S, STRUCT, identity, identity)                                                                               \
        F(S, BELOW8, state, PROCESS_ENDED + 1)                                                                         \
        F(S, U32, uid, 0)                                                                                              \
        F(S, U32, ppid, 0)                                                                                             \
        F(S, U64, cgroup_id, 0)                                                                                        \
        F(S, SINCE, term_ms, (4, U64, 0))                                                                              \
        F(S, SINCE, kill_ms, (4, U64, 0))                                                                              \
        F(S, SINCE, member, (4, BELOW8, MEMBER_STEP_N))                                                                \
        F(S, SINCE, order_id, (4, ID, 0))                                                                              \
        F(S, SINCE, device_bytes, (4, U64, 0))                                                                         \
        F(S, SINCE, part_bytes, (4, U64S, GANG_MAX))                                                                   \
        F(S, SINCE, parked_bytes, (4, U64, 0))                                                                         \
        F(S, SINCE, room_bytes, (4, U64, 0))                                                                           \
        F(S, SINCE, program, (4, U64, 0))                                                                              \
        F(S, SINCE, script, (4, U64, 0))                                                                               \
        F(S, SINCE, command, (4, U64, 0))                                                                              \
        F(S, SINCE, place, (4, U64, 0))                                                                                \
        F(S, SINCE, seen_ms, (4, U64, 0))                                                                              \
        F(S, SINCE, token_id, (4, ID, 0))                                                                              \
        F(S, SINCE, guard, (4, BELOW8, GUARD_N))                                                                       \
        F(S, SINCE, runs, (4, BELOW8, RUNS_N))                                                                         \
        F(S, SINCE, attributed_by, (4, BELOW8, ATTRIBUTED_N))                                                          \
        F(S, BELOW32, n_ancestors, ANCESTORS_MAX + 1)                                                                  \
        F(S, ROWS, ancestors, identity)                                                                                \
        F(S, SINCE, links, (4, BYTES, ANCESTORS_MAX))                                                                  \
        F(S, REF, lease, LEASES_MAX)                                                                                   \
        F(S, TEXT, comm, 0)
CODEC_STRUCT(process, PROCESS_FIELDS, 512)

#define OCCUPANCY_FIELDS(F, S)                                                                                         \
        F(S, STRUCT, identity, identity)                                                                               \
        F(S, U64, used_bytes, 0)                                                                                       \
        F(S, INDEX, device, DEVICES_MAX)                                                                               \
        F(S, U32, flags, 0)                                                                                            \
        F(S, REF, holder, HOLDERS_MAX)
CODEC_STRUCT(occupancy, OCCUPANCY_FIELDS, 40)
