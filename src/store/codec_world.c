/* SPDX-License-Identifier: Apache-2.0 */
#include "store/codec_world.h"

#include "store/codec.h"

CODEC_GUARDS_ON

void put_device(struct put *c, const struct device *p);
void get_device(struct get *c, struct device *p);
void put_lease(struct put *c, const struct lease *p);
void get_lease(struct get *c, struct lease *p);
void put_entry(struct put *c, const struct entry *p);
void get_entry(struct get *c, struct entry *p);
void put_holder(struct put *c, const struct holder *p);
void get_holder(struct get *c, struct holder *p);
void put_user(struct put *c, const struct user *p);
void get_user(struct get *c, struct user *p);
void put_habit(struct put *c, const struct habit *p);
void get_habit(struct get *c, struct habit *p);

void put_park(struct put *c, const struct park *p);
void get_park(struct get *c, struct park *p);
void put_part(struct put *c, const struct part *p);
void get_part(struct get *c, struct part *p);
void put_way_cost(struct put *c, const struct way_cost *p);
void get_way_cost(struct get *c, struct way_cost *p);
void put_victim(struct put *c, const struct victim *p);
void get_victim(struct get *c, struct victim *p);
void put_approval(struct put *c, const struct approval *p);
void get_approval(struct get *c, struct approval *p);
void put_audit(struct put *c, const struct audit *p);
void get_audit(struct get *c, struct audit *p);
void put_enforce(struct put *c, const struct enforce *p);
void get_enforce(struct get *c, struct enforce *p);
void put_plan(struct put *c, const struct plan *p);
void get_plan(struct get *c, struct plan *p);

#define DEVICE_FIELDS(F, S)                                                                                            \
        F(S, BELOW8, health, DEVICE_HEALTH_N)                                                                          \
        F(S, BOOL, used_known, 0)                                                                                      \
        F(S, BOOL, per_process_known, 0)                                                                               \
        F(S, BOOL, settled, 0)                                                                                         \
        F(S, BOOL, driver_own_known, 0)                                                                                \
        F(S, TEXT, uuid, 0)                                                                                            \
        F(S, TEXT, name, 0)                                                                                            \
        F(S, TEXT, pci_bus_id, 0)                                                                                      \
        F(S, U32, minor, 0)                                                                                            \
        F(S, U64, total_bytes, 0)                                                                                      \
        F(S, U64, used_bytes, 0)                                                                                       \
        F(S, U64, driver_own_bytes, 0)                                                                                 \
        F(S, U64, budget_bytes, 0)                                                                                     \
        F(S, U64, reading_ms, 0)                                                                                       \
        F(S, U64, changed_ms, 0)                                                                                       \
        F(S, SINCE, foreign_bytes, (4, U64, 0))                                                                        \
        F(S, SINCE, foreign_grew_ms, (4, U64, 0))                                                                      \
        F(S, U64, read_asked_ms, 0)                                                                                    \
        F(S, U32, error_code, 0)
CODEC_STRUCT(device, DEVICE_FIELDS, 320)

#define PARK_FIELDS(F, S)                                                                                              \
        F(S, BELOW8, step, PARK_STEP_N)                                                                                \
        F(S, BELOW8, way, WAY_OUT_N)                                                                                   \
        F(S, BELOW8, cause, PARK_CAUSE_N)                                                                              \
        F(S, BELOW8, failed_ways, 1U << WAY_OUT_N)                                                                     \
        F(S, BYTES, strikes, WAY_OUT_N)                                                                                \
        F(S, BELOW8, n_returns, RETURNS_KEPT + 1)                                                                      \
        F(S, BELOW8, undo_order, VICTIMS_MAX + 1)                                                                      \
        F(S, BOOL, yielded, 0)                                                                                         \
        F(S, BOOL, lost_one, 0)                                                                                        \
        F(S, BOOL, broke_promise, 0)                                                                                   \
        F(S, BOOL, told, 0)                                                                                            \
        F(S, BOOL, wants_back, 0)                                                                                      \
        F(S, BOOL, idle, 0)                                                                                            \
        F(S, U64, undo_group, 0)                                                                                       \
        F(S, U64, started_ms, 0)                                                                                       \
        F(S, U64, step_ms, 0)                                                                                          \
        F(S, U64, deadline_ms, 0)                                                                                      \
        F(S, U64, again_ms, 0)                                                                                         \
        F(S, U64, parked_ms, 0)                                                                                        \
        F(S, U64, until_ms, 0)                                                                                         \
        F(S, ID, for_lease_id, 0)                                                                                      \
        F(S, U32, by_uid, 0)                                                                                           \
        F(S, U64, used_bytes, 0)                                                                                       \
        F(S, U64, moved_bytes, 0)                                                                                      \
        F(S, U64, planned_bytes, 0)                                                                                    \
        F(S, U64, charged_bytes, 0)                                                                                    \
        F(S, U64, out_ms, 0)                                                                                           \
        F(S, U64, back_ms, 0)                                                                                          \
        F(S, U64, returned_ms, 0)                                                                                      \
        F(S, U64, not_before_ms, 0)                                                                                    \
        F(S, U64S, returns_ms, RETURNS_KEPT)                                                                           \
        F(S, SINCE, order_id, (4, U64, 0))                                                                             \
        F(S, SINCE, may_be_done, (4, BOOL, 0))
CODEC_STRUCT(park, PARK_FIELDS, 240)

#define PART_FIELDS(F, S)                                                                                              \
        F(S, BELOW32, device, DEVICES_MAX)                                                                             \
        F(S, REF, holder, HOLDERS_MAX)
CODEC_STRUCT(part, PART_FIELDS, 12)

#define LEASE_FIELDS(F, S)                                                                                             \
        F(S, U32, generation, 0)                                                                                       \
        F(S, BELOW8, state, LEASE_STATE_N)                                                                             \
        F(S, BELOW8, priority, CODEC_PRIORITY_END)                                                                     \
        F(S, BELOW8, kept_rank, CODEC_PRIORITY_END)                                                                    \
        F(S, BELOW8, end_reason, END_REASON_N)                                                                         \
        F(S, BELOW8, absent_looks, 255)                                                                                \
        F(S, BOOL, managed, 0)                                                                                         \
        F(S, BOOL, kill_at_end, 0)                                                                                     \
        F(S, BOOL, slot_warned, 0)                                                                                     \
        F(S, BOOL, over_time, 0)                                                                                       \
        F(S, BELOW8, over_use_told, 256)                                                                               \
        F(S, SINCE, leaving_told, (4, BELOW8, 256))                                                                    \
        F(S, BOOL, misplaced, 0)                                                                                       \
        F(S, BOOL, root_living, 0)                                                                                     \
        F(S, BOOL, owner_gone, 0)                                                                                      \
        F(S, BOOL, backfilled, 0)                                                                                      \
        F(S, SINCE, exclusive, (4, BOOL, 0))                                                                           \
        F(S, SINCE, adopted, (4, BOOL, 0))                                                                             \
        F(S, SINCE, kill_left, (4, BOOL, 0))                                                                           \
        F(S, SINCE, filler, (4, BOOL, 0))                                                                              \
        F(S, SINCE, no_stop, (4, BOOL, 0))                                                                             \
        F(S, SINCE, ending, (4, BOOL, 0))                                                                              \
        F(S, SINCE, ending_told, (4, BELOW8, ENDING_TOLD_N))                                                           \
        F(S, SINCE, misses_told, (4, BOOL, 0))                                                                         \
        F(S, SINCE, failed, (4, BOOL, 0))                                                                              \
        F(S, SINCE, sized, (4, BELOW8, SIZED_N))                                                                       \
        F(S, SINCE, sized_by, (4, BELOW8, PEAKS_MAX + 1))                                                              \
        F(S, SINCE, n_more, (4, BELOW8, GANG_MAX))                                                                     \
        F(S, ID, id, 0)                                                                                                \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BELOW32, user, USERS_MAX)                                                                                 \
        F(S, U64, bytes, 0)                                                                                            \
        F(S, SINCE, asked_bytes, (4, U64, 0))                                                                          \
        F(S, SINCE, peak_bytes, (4, U64, 0))                                                                           \
        F(S, U64, devices, 0)                                                                                          \
        F(S, INDEX, device, DEVICES_MAX)                                                                               \
        F(S, SINCE, booked_ms, (4, U64, 0))                                                                            \
        F(S, SINCE, booked_wall_ms, (4, U64, 0))                                                                       \
        F(S, SINCE, daily, (4, BOOL, 0))                                                                               \
        F(S, SINCE, day_s, (4, U32, 0))                                                                                \
        F(S, U64, slot_ms, 0)                                                                                          \
        F(S, U64, arrived_ms, 0)                                                                                       \
        F(S, U64, granted_ms, 0)                                                                                       \
        F(S, U64, active_ms, 0)                                                                                        \
        F(S, U64, ended_ms, 0)                                                                                         \
        F(S, U64, slot_end_ms, 0)                                                                                      \
        F(S, U64, renewed_ms, 0)                                                                                       \
        F(S, U64, waited_ms, 0)                                                                                        \
        F(S, U64, over_use_since_ms, 0)                                                                                \
        F(S, U64, ledger_set_aside_bytes, 0)                                                                           \
        F(S, SINCE, root_term_ms, (4, U64, 0))                                                                         \
        F(S, SINCE, tree_kill_ms, (4, U64, 0))                                                                         \
        F(S, SINCE, ending_again_ms, (4, U64, 0))                                                                      \
        F(S, SINCE, idempotency, (4, STRUCT, idempotency))                                                             \
        F(S, STRUCT, binding, binding)                                                                                 \
        F(S, STRUCT, ways, ways_out)                                                                                   \
        F(S, SINCE, park, (4, STRUCT, park))                                                                           \
        F(S, REF, holder, HOLDERS_MAX)                                                                                 \
        F(S, SINCE, more, (4, ROWS, part))                                                                             \
        F(S, REF, entry, ENTRIES_MAX)                                                                                  \
        F(S, REF, backfill_for, ENTRIES_MAX)                                                                           \
        F(S, TEXT, name, 0)                                                                                            \
        F(S, TEXT, consumer, 0)
CODEC_STRUCT(lease, LEASE_FIELDS, 960)

#define ENTRY_FIELDS(F, S)                                                                                             \
        F(S, U32, generation, 0)                                                                                       \
        F(S, BELOW8, kind, ENTRY_KIND_N)                                                                               \
        F(S, BELOW8, priority, CODEC_PRIORITY_END)                                                                     \
        F(S, BELOW8, wait_kind, WAIT_KIND_N)                                                                           \
        F(S, BOOL, is_head, 0)                                                                                         \
        F(S, BOOL, head_is_finite, 0)                                                                                  \
        F(S, BOOL, stepped_aside, 0)                                                                                   \
        F(S, BOOL, no_wait, 0)                                                                                         \
        F(S, BOOL, collected, 0)                                                                                       \
        F(S, SINCE, n_more, (4, BELOW8, GANG_MAX))                                                                     \
        F(S, U64, id, 0)                                                                                               \
        F(S, REF, lease, LEASES_MAX)                                                                                   \
        F(S, BELOW32, user, USERS_MAX)                                                                                 \
        F(S, U64, demand_bytes, 0)                                                                                     \
        F(S, SINCE, percent_milli, (4, U64, 0))                                                                        \
        F(S, SINCE, least_bytes, (4, U64, 0))                                                                          \
        F(S, U64, devices, 0)                                                                                          \
        F(S, U64, limit_ms, 0)                                                                                         \
        F(S, SINCE, due_ms, (4, U64, 0))                                                                               \
        F(S, U64, arrived_ms, 0)                                                                                       \
        F(S, U64, held_ms, 0)                                                                                          \
        F(S, U64, held_since_ms, 0)                                                                                    \
        F(S, U64, give_up_ms, 0)                                                                                       \
        F(S, STRUCT, ways, ways_out)                                                                                   \
        F(S, INDEX, head_device, DEVICES_MAX)                                                                          \
        F(S, SINCE, head_devices, (4, U64, 0))                                                                         \
        F(S, U64, head_since_ms, 0)                                                                                    \
        F(S, U64, start_ms, 0)                                                                                         \
        F(S, U64, block_since_ms, 0)                                                                                   \
        F(S, U64, block_until_ms, 0)
CODEC_STRUCT(entry, ENTRY_FIELDS, 216)

#define HOLDER_FIELDS(F, S)                                                                                            \
        F(S, U32, generation, 0)                                                                                       \
        F(S, BELOW8, kind, HOLDER_KIND_N)                                                                              \
        F(S, BELOW8, claim_kind, CLAIM_BOOKING + 1)                                                                    \
        F(S, SINCE, priority, (4, BELOW8, CODEC_PRIORITY_END))                                                         \
        F(S, BOOL, used_known, 0)                                                                                      \
        F(S, BOOL, managed, 0)                                                                                         \
        F(S, BOOL, pinned, 0)                                                                                          \
        F(S, BOOL, protected, 0)                                                                                       \
        F(S, SINCE, exclusive, (4, BOOL, 0))                                                                           \
        F(S, SINCE, tells_idle, (4, BOOL, 0))                                                                          \
        F(S, BOOL, uncollected, 0)                                                                                     \
        F(S, SINCE, activity, (4, BELOW8, HOLDER_ACTIVITY_N))                                                          \
        F(S, SINCE, idle_told, (4, BELOW8, IDLE_TOLD_N))                                                               \
        F(S, BELOW32, device, DEVICES_MAX)                                                                             \
        F(S, U64, reserved_bytes, 0)                                                                                   \
        F(S, U64, used_bytes, 0)                                                                                       \
        F(S, U64, pin_end_ms, 0)                                                                                       \
        F(S, U64, idle_since_ms, 0)                                                                                    \
        F(S, SINCE, idle_bytes, (4, U64, 0))                                                                           \
        F(S, SINCE, keep_alive_ms, (4, U64, 0))                                                                        \
        F(S, SINCE, rests_since_ms, (4, U64, 0))                                                                       \
        F(S, SINCE, idle_told_ms, (4, U64, 0))                                                                         \
        F(S, U32, n_processes, 0)                                                                                      \
        F(S, SINCE, began_used_bytes, (4, U64, 0))                                                                     \
        F(S, SINCE, moved_bytes, (4, U64, 0))                                                                          \
        F(S, STRUCT, ways, ways_out)                                                                                   \
        F(S, REF, lease, LEASES_MAX)                                                                                   \
        F(S, REF, entry, ENTRIES_MAX)                                                                                  \
        F(S, STRUCT, process, identity)
CODEC_STRUCT(holder, HOLDER_FIELDS, 192)

#define USER_FIELDS(F, S)                                                                                              \
        F(S, U32, uid, 0)                                                                                              \
        F(S, U32, n_leases, 0)                                                                                         \
        F(S, U32, n_waiting, 0)                                                                                        \
        F(S, BOOL, in_use, 0)                                                                                          \
        F(S, U64, held_bytes, 0)                                                                                       \
        F(S, U64, usage_mib_s, 0)                                                                                      \
        F(S, U64, usage_at_ms, 0)
CODEC_STRUCT(user, USER_FIELDS, 40)

#define WAY_COST_FIELDS(F, S)                                                                                          \
        F(S, U64, n, 0)                                                                                                \
        F(S, U64, out_ms, 0)                                                                                           \
        F(S, U64, back_ms, 0)                                                                                          \
        F(S, U64, spread_ms, 0)                                                                                        \
        F(S, U64, bytes, 0)
CODEC_STRUCT(way_cost, WAY_COST_FIELDS, 40)

#define HABIT_FIELDS(F, S)                                                                                             \
        F(S, U32, uid, 0)                                                                                              \
        F(S, TEXT, consumer, 0)                                                                                        \
        F(S, U64, last_ms, 0)                                                                                          \
        F(S, U64, n_runs, 0)                                                                                           \
        F(S, U64S, peak_bytes, PEAKS_MAX)                                                                              \
        F(S, U64S, asked_bytes, PEAKS_MAX)                                                                             \
        F(S, BOOL, proven, 0)                                                                                          \
        F(S, U64, proof_program, 0)                                                                                    \
        F(S, U64, proof_driver, 0)                                                                                     \
        F(S, U64, n_cooperated, 0)                                                                                     \
        F(S, U64, n_ignored, 0)                                                                                        \
        F(S, ROWS, costs, way_cost)                                                                                    \
        F(S, U64S, floor_bytes, FLOORS_MAX)                                                                            \
        F(S, U32, n_floors, 0)
CODEC_STRUCT(habit, HABIT_FIELDS, 696)

#define VICTIM_FIELDS(F, S)                                                                                            \
        F(S, REF, lease, LEASES_MAX)                                                                                   \
        F(S, BELOW8, way, WAY_OUT_N)                                                                                   \
        F(S, BELOW8, state, VICTIM_STATE_N)
CODEC_STRUCT(victim, VICTIM_FIELDS, 12)

#define PLAN_FIELDS(F, S)                                                                                              \
        F(S, ID, id, 0)                                                                                                \
        F(S, BELOW32, device, DEVICES_MAX)                                                                             \
        F(S, BELOW32, n_victims, VICTIMS_MAX + 1)                                                                      \
        F(S, REF, entry, ENTRIES_MAX)                                                                                  \
        F(S, REF, claim, HOLDERS_MAX)                                                                                  \
        F(S, U64, need_bytes, 0)                                                                                       \
        F(S, U64, started_ms, 0)                                                                                       \
        F(S, ROWS, victims, victim)
CODEC_STRUCT(plan, PLAN_FIELDS, 432)

#define APPROVAL_FIELDS(F, S)                                                                                          \
        F(S, ID, id, 0)                                                                                                \
        F(S, U32, uid, 0)                                                                                              \
        F(S, U32, by_uid, 0)                                                                                           \
        F(S, U64, program, 0)                                                                                          \
        F(S, U64, script, 0)                                                                                           \
        F(S, U64, command, 0)                                                                                          \
        F(S, U64, place, 0)                                                                                            \
        F(S, U64, since_ms, 0)                                                                                         \
        F(S, U64, until_ms, 0)                                                                                         \
        F(S, BELOW8, runs, RUNS_N)                                                                                     \
        F(S, BOOL, lapse_told, 0)                                                                                      \
        F(S, TEXT, comm, 0)
CODEC_STRUCT(approval, APPROVAL_FIELDS, 88)

#define AUDIT_FIELDS(F, S)                                                                                             \
        F(S, STRUCT, identity, identity)                                                                               \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BELOW32, device, DEVICES_MAX)                                                                             \
        F(S, U64, bytes, 0)                                                                                            \
        F(S, U64, program, 0)                                                                                          \
        F(S, U64, script, 0)                                                                                           \
        F(S, U64, place, 0)                                                                                            \
        F(S, U64, over_ms, 0)                                                                                          \
        F(S, U64, audited_ms, 0)                                                                                       \
        F(S, U64, warned_ms, 0)                                                                                        \
        F(S, U64, noticed_ms, 0)                                                                                       \
        F(S, U64, term_ms, 0)                                                                                          \
        F(S, U64, kill_ms, 0)                                                                                          \
        F(S, U64, again_ms, 0)                                                                                         \
        F(S, ID, order_id, 0)                                                                                          \
        F(S, U64, gone_ms, 0)                                                                                          \
        F(S, BELOW8, n_signals, ENFORCE_SIGNALS_MAX + 1)                                                               \
        F(S, BELOW8, told, AUDIT_TOLD_ALL + 1)                                                                         \
        F(S, TEXT, comm, 0)
CODEC_STRUCT(audit, AUDIT_FIELDS, 152)

#define ENFORCE_FIELDS(F, S)                                                                                           \
        F(S, BELOW8, mode, ENFORCE_MODE_N)                                                                             \
        F(S, BELOW8, doubt_told, DOUBT_N)                                                                              \
        F(S, U32, mode_by_uid, 0)                                                                                      \
        F(S, U64, mode_ms, 0)                                                                                          \
        F(S, U64, began_ms, 0)                                                                                         \
        F(S, U64, swept_ms, 0)                                                                                         \
        F(S, U64, hidden_ms, 0)
CODEC_STRUCT(enforce, ENFORCE_FIELDS, 40)

/* Everything in front of the tables, the numbers of their rows last. */
#define WORLD_FIELDS(F, S)                                                                                             \
        F(S, STRUCT, config, config)                                                                                   \
        F(S, U64, now_ms, 0)                                                                                           \
        F(S, ID, next_lease_id, 0)                                                                                     \
        F(S, ID, next_entry_id, 0)                                                                                     \
        F(S, ID, next_action_id, 0)                                                                                    \
        F(S, U64, ledger_charged_bytes, 0)                                                                             \
        F(S, SINCE_OR, next_plan_id, (4, ID, 0, 1))                                                                    \
        F(S, SINCE_OR, next_approval_id, (4, ID, 0, 1))                                                                \
        F(S, SINCE, host, (4, STRUCT, host))                                                                           \
        F(S, SINCE, pause, (4, BELOW8, PAUSE_WHAT_N))                                                                  \
        F(S, SINCE, pause_thaws, (4, BOOL, 0))                                                                         \
        F(S, SINCE, degraded, (4, BOOL, 0))                                                                            \
        F(S, BOOL, eyes_answering, 0)                                                                                  \
        F(S, U64, eyes_silent_since_ms, 0)                                                                             \
        F(S, SINCE, enforce, (4, STRUCT, enforce))                                                                     \
        F(S, BELOW32, n_devices, DEVICES_MAX + 1)                                                                      \
        F(S, BELOW32, n_leases, LEASES_MAX + 1)                                                                        \
        F(S, BELOW32, n_entries, ENTRIES_MAX + 1)                                                                      \
        F(S, BELOW32, n_holders, HOLDERS_MAX + 1)                                                                      \
        F(S, BELOW32, n_processes, PROCESSES_MAX + 1)                                                                  \
        F(S, BELOW32, n_occupancies, OCCUPANCIES_MAX + 1)                                                              \
        F(S, BELOW32, n_users, USERS_MAX + 1)                                                                          \
        F(S, SINCE, n_plans, (4, BELOW32, PLANS_MAX + 1))                                                              \
        F(S, SINCE, n_habits, (4, BELOW32, HABITS_MAX + 1))                                                            \
        F(S, SINCE, n_approvals, (4, BELOW32, APPROVALS_MAX + 1))                                                      \
        F(S, SINCE, n_audits, (4, BELOW32, AUDITS_MAX + 1))
/*      table, its struct, the number of its rows, its rows, do they start with a generation? */
#define WORLD_TABLES(T)                                                                                                \
        T(devices, device, n_devices, DEVICES_MAX, false)                                                              \
        T(leases, lease, n_leases, LEASES_MAX, true)                                                                   \
        T(entries, entry, n_entries, ENTRIES_MAX, true)                                                                \
        T(holders, holder, n_holders, HOLDERS_MAX, true)                                                               \
        T(users, user, n_users, USERS_MAX, false)                                                                      \
        T(occupancies, occupancy, n_occupancies, OCCUPANCIES_MAX, false)                                               \
        T(processes, process, n_processes, PROCESSES_MAX, false)                                                       \
        T(plans, plan, n_plans, PLANS_MAX, false)                                                                      \
        T(habits, habit, n_habits, HABITS_MAX, false)                                                                  \
        T(approvals, approval, n_approvals, APPROVALS_MAX, false)                                                      \
        T(audits, audit, n_audits, AUDITS_MAX, false)

#define TABLE_SIZE(table, S, n, max, has_generation) +(max) * sizeof(struct S)
#define WORLD_AND_TABLES(F, S)                                                                                         \
        WORLD_FIELDS(F, S)                                                                                             \
        F(S, ROWS, devices, device)                                                                                    \
        F(S, U64S, lease_ids, LEASES_MAX)                                                                              \
        F(S, ROWS, leases, lease)                                                                                      \
        F(S, ROWS, entries, entry)                                                                                     \
        F(S, ROWS, holders, holder)                                                                                    \
        F(S, ROWS, users, user)                                                                                        \
        F(S, ROWS, occupancies, occupancy)                                                                             \
        F(S, ROWS, processes, process)                                                                                 \
        F(S, ROWS, plans, plan)                                                                                        \
        F(S, ROWS, habits, habit)                                                                                      \
        F(S, ROWS, approvals, approval)                                                                                \
        F(S, ROWS, audits, audit)                                                                                      \
        F(S, U64S, holders_on, 0) /* the index: made from the rows, in no snapshot */                                  \
        F(S, U64S, holders_of, 0)                                                                                      \
        F(S, ROWS, tallies, tally) /* kept of the rows, likewise */                                                    \
        F(S, ROWS, leavings, leavings)                                                                                 \
        F(S, STRUCT, ledger, ledger_tally)                                                                             \
        F(S, STRUCT, line, line)                                                                                       \
        F(S, ROWS, usage_memos, usage_memo)
enum { WORLD_HEAD_SIZE = 2000 };
CODEC_GUARD(world, WORLD_AND_TABLES,
            WORLD_HEAD_SIZE + (LEASES_MAX + (DEVICES_MAX + HOLDER_KIND_N) * HOLDER_WORDS) * sizeof(uint64_t) +
                    DEVICES_MAX * (sizeof(struct tally) + sizeof(struct leavings)) + sizeof(struct ledger_tally) +
                    sizeof(struct line) + USERS_MAX * sizeof(struct usage_memo) WORLD_TABLES(TABLE_SIZE))

/* In bytes no field takes more than its place in memory, but for a number of 64 bits (10 of 8), a text's length, a row's
 * mark and, in a process, its ancestors' marks: 64 a row is more than all of the latter. */
#define TABLE_BOUND(table, S, n, max, has_generation) +(sizeof(struct S) * 5 / 4 + 64) * world->n

size_t codec_world_size_max(const struct world *world)
{
        return 2 + 2 * WORLD_HEAD_SIZE + (size_t) world->n_leases * 10 WORLD_TABLES(TABLE_BOUND);
}

#define TABLE_PUT(table, S, n, max, has_generation)                                                                    \
        for (uint32_t i = 0; i < p->n && !c->bad; i++) {                                                               \
                size_t begun = put_row_begin(c);                                                                       \
                put_##S(c, &p->table[i]);                                                                              \
                put_row_end(c, begun, has_generation);                                                                 \
        }

int codec_world_encode(const struct world *world, void *buf, size_t buf_size, size_t *ret_n, struct error *err)
{
        struct put put, *c = &put;
        const struct world *p = world;

        put_begin(c, buf, buf_size);
        WORLD_FIELDS(CODEC_PUT, world)
        for (uint32_t i = 0; i < p->n_leases && !c->bad; i++)
                put_below(c, "world.lease_ids", p->lease_ids[i], CODEC_ID_END, 8);
        WORLD_TABLES(TABLE_PUT)
        return put_end(c, "world", ret_n, err);
}

/* A row's generation is its first field (asserted below): what an empty row keeps is written straight there. */
#define TABLE_GET(table, S, n, max, has_generation)                                                                    \
        for (uint32_t i = 0; i < p->n && !c->r.failed; i++) {                                                          \
                uint32_t generation = 0;                                                                               \
                size_t begun;                                                                                          \
                if (get_row_begin(c, has_generation, &generation, &begun)) {                                           \
                        get_##S(c, &p->table[i]);                                                                      \
                        get_row_end(c, "world." #table, has_generation, begun);                                        \
                } else if (has_generation) {                                                                           \
                        memcpy(&p->table[i], &generation, sizeof(generation));                                         \
                }                                                                                                      \
        }
_Static_assert(offsetof(struct lease, generation) == 0 && offsetof(struct entry, generation) == 0 &&
                       offsetof(struct holder, generation) == 0,
               "a row's generation is its first field");

int codec_world_decode(const void *data, size_t n_data, struct world *ret, struct error *err)
{
        struct get get, *c = &get;
        struct world *p = ret;
        int r = get_begin(c, "world", data, n_data, err);
        if (r < 0)
                return r;

        WORLD_FIELDS(CODEC_GET, world)
        for (uint32_t i = 0; i < p->n_leases && !c->r.failed; i++)
                p->lease_ids[i] = get_below(c, "world.lease_ids", CODEC_ID_END, 8);
        WORLD_TABLES(TABLE_GET)
        r = get_end(c, "world", err);
        if (r == 0)
                world_index(p);
        return r;
}
