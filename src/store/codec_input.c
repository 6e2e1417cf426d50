/* SPDX-License-Identifier: Apache-2.0 */
#include "store/codec_input.h"

#include "store/codec.h"

CODEC_GUARDS_ON

void put_request(struct put *c, const struct request *p);
void get_request(struct get *c, struct request *p);
void put_lease_call(struct put *c, const struct lease_call *p);
void get_lease_call(struct get *c, struct lease_call *p);
void put_device_facts(struct put *c, const struct device_facts *p);
void get_device_facts(struct get *c, struct device_facts *p);
void put_eyes_state(struct put *c, const struct eyes_state *p);
void get_eyes_state(struct get *c, struct eyes_state *p);
void put_change(struct put *c, const struct change *p);
void get_change(struct get *c, struct change *p);
void put_hand_outcome(struct put *c, const struct hand_outcome *p);
void get_hand_outcome(struct get *c, struct hand_outcome *p);
void put_restart_facts(struct put *c, const struct restart_facts *p);
void get_restart_facts(struct get *c, struct restart_facts *p);

void put_park_call(struct put *c, const struct park_call *p);
void get_park_call(struct get *c, struct park_call *p);
void put_enforce_call(struct put *c, const struct enforce_call *p);
void get_enforce_call(struct get *c, struct enforce_call *p);
void put_park_record(struct put *c, const struct park_record *p);
void get_park_record(struct get *c, struct park_record *p);
void put_manager_outcome(struct put *c, const struct manager_outcome *p);
void get_manager_outcome(struct get *c, struct manager_outcome *p);
void put_pause(struct put *c, const struct pause *p);
void get_pause(struct get *c, struct pause *p);

#define REQUEST_FIELDS(F, S)                                                                                           \
        F(S, U64, token, 0)                                                                                            \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BOOL, is_admin, 0)                                                                                        \
        F(S, BOOL, no_wait, 0)                                                                                         \
        F(S, BOOL, collected, 0)                                                                                       \
        F(S, BOOL, managed, 0)                                                                                         \
        F(S, BOOL, kill_at_end, 0)                                                                                     \
        F(S, SINCE, kill_left, (4, BOOL, 0))                                                                           \
        F(S, SINCE, exclusive, (4, BOOL, 0))                                                                           \
        F(S, SINCE, filler, (4, BOOL, 0))                                                                              \
        F(S, SINCE, no_stop, (4, BOOL, 0))                                                                             \
        F(S, SINCE, adopt, (4, BOOL, 0))                                                                               \
        F(S, SINCE, learned, (4, BOOL, 0))                                                                             \
        F(S, SINCE, quota, (4, BELOW32, QUOTAS_MAX + 1))                                                               \
        F(S, BELOW8, priority, CODEC_PRIORITY_END)                                                                     \
        F(S, SINCE, n_more, (4, BELOW8, GANG_MAX))                                                                     \
        F(S, U64, bytes, 0)                                                                                            \
        F(S, U64, percent_milli, 0)                                                                                    \
        F(S, U64, slot_ms, 0)                                                                                          \
        F(S, U64, wait_ms, 0)                                                                                          \
        F(S, SINCE, start_ms, (4, U64, 0))                                                                             \
        F(S, SINCE, start_wall_ms, (4, U64, 0))                                                                        \
        F(S, SINCE, daily, (4, BOOL, 0))                                                                               \
        F(S, SINCE, day_s, (4, U32, 0))                                                                                \
        F(S, SINCE, follows_id, (4, U64, 0))                                                                           \
        F(S, TEXT, device_uuid, 0)                                                                                     \
        F(S, STRUCT, ways, ways_out)                                                                                   \
        F(S, STRUCT, binding, binding)                                                                                 \
        F(S, SINCE, idempotency, (4, STRUCT, idempotency))                                                             \
        F(S, TEXT, name, 0)                                                                                            \
        F(S, TEXT, consumer, 0)
CODEC_STRUCT(request, REQUEST_FIELDS, 584)

#define LEASE_CALL_FIELDS(F, S)                                                                                        \
        F(S, U64, token, 0)                                                                                            \
        F(S, U64, lease_id, 0)                                                                                         \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BOOL, is_admin, 0)                                                                                        \
        F(S, BOOL, by_system, 0)                                                                                       \
        F(S, BELOW8, end_reason, END_REASON_N)                                                                         \
        F(S, SINCE, failed, (4, BOOL, 0))                                                                              \
        F(S, STRUCT, root, identity)                                                                                   \
        F(S, U64, cgroup_id, 0)                                                                                        \
        F(S, SINCE, owner, (4, STRUCT, identity))
CODEC_STRUCT(lease_call, LEASE_CALL_FIELDS, 64)

#define DEVICE_FACTS_FIELDS(F, S)                                                                                      \
        F(S, TEXT, uuid, 0)                                                                                            \
        F(S, TEXT, name, 0)                                                                                            \
        F(S, TEXT, pci_bus_id, 0)                                                                                      \
        F(S, U32, minor, 0)                                                                                            \
        F(S, U64, total_bytes, 0)                                                                                      \
        F(S, U64, budget_bytes, 0)                                                                                     \
        F(S, U32, error_code, 0)                                                                                       \
        F(S, BELOW8, health, DEVICE_HEALTH_N)
CODEC_STRUCT(device_facts, DEVICE_FACTS_FIELDS, 256)

#define EYES_STATE_FIELDS(F, S)                                                                                        \
        F(S, BOOL, answering, 0)                                                                                       \
        F(S, U64, silent_since_ms, 0)
CODEC_STRUCT(eyes_state, EYES_STATE_FIELDS, 16)

#define RESTART_FACTS_FIELDS(F, S)                                                                                     \
        F(S, BOOL, rebooted, 0)                                                                                        \
        F(S, SINCE, degraded, (4, BOOL, 0))
CODEC_STRUCT(restart_facts, RESTART_FACTS_FIELDS, 2)

#define CHANGE_FIELDS(F, S)                                                                                            \
        F(S, U64, token, 0)                                                                                            \
        F(S, U64, lease_id, 0)                                                                                         \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BELOW32, quota, QUOTAS_MAX + 1)                                                                           \
        F(S, BOOL, is_admin, 0)                                                                                        \
        F(S, BELOW8, what, CHANGE_ALL + 1)                                                                             \
        F(S, BELOW8, priority, CODEC_PRIORITY_END)                                                                     \
        F(S, U64, slot_ms, 0)                                                                                          \
        F(S, U64, pin_ms, 0)                                                                                           \
        F(S, SINCE, start_ms, (4, U64, 0))
CODEC_STRUCT(change, CHANGE_FIELDS, 56)

#define HAND_OUTCOME_FIELDS(F, S)                                                                                      \
        F(S, U64, order_id, 0)                                                                                         \
        F(S, U64, lease_id, 0)                                                                                         \
        F(S, STRUCT, process, identity)                                                                                \
        F(S, BELOW8, outcome, OUTCOME_N)                                                                               \
        F(S, BELOW8, why, HAND_WHY_N)                                                                                  \
        F(S, SINCE, host_bytes, (4, U64, 0))                                                                           \
        F(S, SINCE, program, (4, U64, 0))
CODEC_STRUCT(hand_outcome, HAND_OUTCOME_FIELDS, 56)

#define PARK_CALL_FIELDS(F, S)                                                                                         \
        F(S, U64, token, 0)                                                                                            \
        F(S, U64, lease_id, 0)                                                                                         \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BOOL, is_admin, 0)                                                                                        \
        F(S, BELOW8, what, PARK_CALL_N)                                                                                \
        F(S, U64, for_ms, 0)                                                                                           \
        F(S, U64, keep_alive_ms, 0)
CODEC_STRUCT(park_call, PARK_CALL_FIELDS, 40)

#define PARK_RECORD_FIELDS(F, S)                                                                                       \
        F(S, STRUCT, process, identity)                                                                                \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BELOW8, member, MEMBER_STEP_N)                                                                            \
        F(S, BOOL, no_stop, 0)                                                                                         \
        F(S, U64, lease_id, 0)                                                                                         \
        F(S, U64, bytes, 0)                                                                                            \
        F(S, U64, host_bytes, 0)                                                                                       \
        F(S, TEXT, uuid, 0)
CODEC_STRUCT(park_record, PARK_RECORD_FIELDS, 144)

#define MANAGER_OUTCOME_FIELDS(F, S)                                                                                   \
        F(S, U64, order_id, 0)                                                                                         \
        F(S, U64, lease_id, 0)                                                                                         \
        F(S, BELOW8, outcome, OUTCOME_N)                                                                               \
        F(S, BELOW8, why, HAND_WHY_N)                                                                                  \
        F(S, STRUCT, root, identity)                                                                                   \
        F(S, U64, cgroup_id, 0)
CODEC_STRUCT(manager_outcome, MANAGER_OUTCOME_FIELDS, 48)

#define PAUSE_FIELDS(F, S)                                                                                             \
        F(S, BELOW8, what, PAUSE_WHAT_N)                                                                               \
        F(S, BOOL, thaws, 0)
CODEC_STRUCT(pause, PAUSE_FIELDS, 2)

#define ENFORCE_CALL_FIELDS(F, S)                                                                                      \
        F(S, U64, token, 0)                                                                                            \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BOOL, is_admin, 0)                                                                                        \
        F(S, BELOW8, what, ENFORCE_CALL_N)                                                                             \
        F(S, BELOW8, mode, ENFORCE_MODE_N)                                                                             \
        F(S, BOOL, here, 0)                                                                                            \
        F(S, STRUCT, process, identity)                                                                                \
        F(S, U64, for_ms, 0)                                                                                           \
        F(S, ID, approval_id, 0)
CODEC_STRUCT(enforce_call, ENFORCE_CALL_FIELDS, 48)

/* Without its rows: their number is the last field, they follow. */
#define READING_FIELDS(F, S)                                                                                           \
        F(S, TEXT, uuid, 0)                                                                                            \
        F(S, U64, taken_ms, 0)                                                                                         \
        F(S, U64, total_bytes, 0)                                                                                      \
        F(S, U64, used_bytes, 0)                                                                                       \
        F(S, BOOL, used_known, 0)                                                                                      \
        F(S, BOOL, per_process_known, 0)                                                                               \
        F(S, BOOL, settled, 0)                                                                                         \
        F(S, BELOW32, n_rows, ROWS_MAX + 1)
#define READING_AND_ROWS(F, S) READING_FIELDS(F, S) F(S, U64, rows, 0)
CODEC_GUARD(reading, READING_AND_ROWS, 136)

static void put_reading(struct put *c, const struct reading *p)
{
        READING_FIELDS(CODEC_PUT, reading)
        for (uint32_t i = 0; i < p->n_rows && !c->bad; i++)
                put_occupancy(c, &p->rows[i]);
}

static void get_reading(struct get *c, struct reading *p, struct occupancy *rows)
{
        READING_FIELDS(CODEC_GET, reading)
        for (uint32_t i = 0; i < p->n_rows && !c->r.failed; i++) {
                memset(&rows[i], 0, sizeof(rows[i]));
                get_occupancy(c, &rows[i]);
        }
        p->rows = rows;
}

/* kind, now_ms, and the union as its largest member. */
_Static_assert(sizeof(struct input) == 16 + sizeof(struct config) || UINTPTR_MAX != UINT64_MAX,
               "struct input changed: look at codec_input_encode and _decode, then correct this size");

int codec_input_encode(const struct input *input, void *buf, size_t buf_size, size_t *ret_n, struct error *err)
{
        struct put put, *c = &put;

        put_begin(c, buf, buf_size);
        put_below(c, "input.kind", input->kind, INPUT_KIND_N, 1);
        bytes_put_u64(&c->w, input->now_ms);
        switch ((enum input_kind) input->kind) {
        case INPUT_NONE:
                put_bad(c, "input.kind");
                break;
        case INPUT_TICK:
                break;
        case INPUT_CONFIG:
                put_config(c, &input->config);
                break;
        case INPUT_DEVICE:
                put_device_facts(c, &input->device);
                break;
        case INPUT_READING:
                put_reading(c, &input->reading);
                break;
        case INPUT_PROCESS:
                put_process(c, &input->process);
                break;
        case INPUT_PROCESS_ENDED:
                put_identity(c, &input->process_ended);
                break;
        case INPUT_EYES:
                put_eyes_state(c, &input->eyes);
                break;
        case INPUT_REQUEST:
                put_request(c, &input->request);
                break;
        case INPUT_ACTIVATE:
        case INPUT_RENEW:
        case INPUT_RELEASE:
        case INPUT_OWNER_ENDED:
                put_lease_call(c, &input->call);
                break;
        case INPUT_RESTART:
                put_restart_facts(c, &input->restart);
                break;
        case INPUT_CHANGE:
                put_change(c, &input->change);
                break;
        case INPUT_OUTCOME:
                put_hand_outcome(c, &input->outcome);
                break;
        case INPUT_PARK:
                put_park_call(c, &input->park);
                break;
        case INPUT_HOST:
                put_host(c, &input->host);
                break;
        case INPUT_RECORD:
                put_park_record(c, &input->record);
                break;
        case INPUT_MANAGER:
                put_manager_outcome(c, &input->manager);
                break;
        case INPUT_PAUSE:
                put_pause(c, &input->pause);
                break;
        case INPUT_ENFORCE:
                put_enforce_call(c, &input->enforce);
                break;
        case INPUT_KIND_N:
                break;
        }
        return put_end(c, "input", ret_n, err);
}

int codec_input_decode(const void *data, size_t n_data, struct input *ret, struct occupancy *rows, struct error *err)
{
        struct get get, *c = &get;
        int r = get_begin(c, "input", data, n_data, err);
        if (r < 0)
                return r;

        memset(ret, 0, sizeof(*ret));
        ret->kind = (uint8_t) get_below(c, "input.kind", INPUT_KIND_N, 1);
        ret->now_ms = bytes_get_u64(&c->r);
        switch ((enum input_kind) ret->kind) {
        case INPUT_NONE:
        case INPUT_KIND_N:
                get_bad(c, "input.kind");
                break;
        case INPUT_TICK:
                break;
        case INPUT_CONFIG:
                get_config(c, &ret->config);
                break;
        case INPUT_DEVICE:
                get_device_facts(c, &ret->device);
                break;
        case INPUT_READING:
                get_reading(c, &ret->reading, rows);
                break;
        case INPUT_PROCESS:
                get_process(c, &ret->process);
                break;
        case INPUT_PROCESS_ENDED:
                get_identity(c, &ret->process_ended);
                break;
        case INPUT_EYES:
                get_eyes_state(c, &ret->eyes);
                break;
        case INPUT_REQUEST:
                get_request(c, &ret->request);
                break;
        case INPUT_ACTIVATE:
        case INPUT_RENEW:
        case INPUT_RELEASE:
        case INPUT_OWNER_ENDED:
                get_lease_call(c, &ret->call);
                break;
        case INPUT_RESTART:
                get_restart_facts(c, &ret->restart);
                break;
        case INPUT_CHANGE:
                get_change(c, &ret->change);
                break;
        case INPUT_OUTCOME:
                get_hand_outcome(c, &ret->outcome);
                break;
        case INPUT_PARK:
                get_park_call(c, &ret->park);
                break;
        case INPUT_HOST:
                get_host(c, &ret->host);
                break;
        case INPUT_RECORD:
                get_park_record(c, &ret->record);
                break;
        case INPUT_MANAGER:
                get_manager_outcome(c, &ret->manager);
                break;
        case INPUT_PAUSE:
                get_pause(c, &ret->pause);
                break;
        case INPUT_ENFORCE:
                get_enforce_call(c, &ret->enforce);
                break;
        }
        return get_end(c, "input", err);
}
