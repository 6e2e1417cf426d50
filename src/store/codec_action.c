/* SPDX-License-Identifier: Apache-2.0 */
#include "store/codec_action.h"

#include "store/codec.h"

CODEC_GUARDS_ON

void put_blocker(struct put *c, const struct blocker *p);
void get_blocker(struct get *c, struct blocker *p);
void put_reason(struct put *c, const struct reason *p);
void get_reason(struct get *c, struct reason *p);
void put_action(struct put *c, const struct action *p);
void get_action(struct get *c, struct action *p);

#define BLOCKER_FIELDS(F, S)                                                                                           \
        F(S, BELOW8, kind, BLOCKER_KIND_N)                                                                             \
        F(S, SINCE, no, (4, BELOW8, RECLAIM_NO_N))                                                                     \
        F(S, U32, pid, 0)                                                                                              \
        F(S, U64, lease_id, 0)                                                                                         \
        F(S, U64, bytes, 0)                                                                                            \
        F(S, U64, end_ms, 0)
CODEC_STRUCT(blocker, BLOCKER_FIELDS, 32)

#define REASON_FIELDS(F, S)                                                                                            \
        F(S, BELOW16, rule, RULE_N)                                                                                    \
        F(S, BELOW16, end, END_REASON_N)                                                                               \
        F(S, U32, place, 0)                                                                                            \
        F(S, U32, n_waiting, 0)                                                                                        \
        F(S, U32, limit, 0)                                                                                            \
        F(S, U64, need_bytes, 0)                                                                                       \
        F(S, U64, free_bytes, 0)                                                                                       \
        F(S, U64, lent_bytes, 0)                                                                                       \
        F(S, U64, ceiling_bytes, 0)                                                                                    \
        F(S, U64, total_bytes, 0)                                                                                      \
        F(S, U64, used_bytes, 0)                                                                                       \
        F(S, U64, reserved_bytes, 0)                                                                                   \
        F(S, U64, head_lease_id, 0)                                                                                    \
        F(S, U64, start_ms, 0)                                                                                         \
        F(S, U64, reading_age_ms, 0)                                                                                   \
        F(S, SINCE, earliest_ms, (4, U64, 0))                                                                          \
        F(S, U32, n_blockers, 0)                                                                                       \
        F(S, ROWS, blockers, blocker)
CODEC_STRUCT(reason, REASON_FIELDS, 368)

#define ACTION_FIELDS(F, S)                                                                                            \
        F(S, BELOW8, kind, ACTION_KIND_N)                                                                              \
        F(S, SINCE, hand, (4, BELOW8, HAND_VERB_N))                                                                    \
        F(S, SINCE, signal, (4, BELOW8, 65))                                                                           \
        F(S, SINCE, manage, (4, BELOW8, MANAGER_VERB_N))                                                               \
        F(S, INDEX, device, DEVICES_MAX)                                                                               \
        F(S, ID, id, 0)                                                                                                \
        F(S, U64, token, 0)                                                                                            \
        F(S, ID, lease_id, 0)                                                                                          \
        F(S, U32, uid, 0)                                                                                              \
        F(S, BELOW8, priority, CODEC_PRIORITY_END)                                                                     \
        F(S, U64, bytes, 0)                                                                                            \
        F(S, STRUCT, process, identity)                                                                                \
        F(S, SINCE, limit_bytes, (4, U64, 0))                                                                          \
        F(S, SINCE, wait_ms, (4, U64, 0))                                                                              \
        F(S, SINCE, no_stop, (4, BOOL, 0))                                                                             \
        F(S, SINCE, cgroup_id, (4, U64, 0))                                                                            \
        F(S, STRUCT, why, reason)
CODEC_STRUCT(action, ACTION_FIELDS, 464)

#define ACTIONS_FIELDS(F, S)                                                                                           \
        F(S, BELOW32, n, ACTIONS_MAX + 1)                                                                              \
        F(S, BOOL, more, 0)                                                                                            \
        F(S, ROWS, items, action)
CODEC_GUARD(actions, ACTIONS_FIELDS, 8 + ACTIONS_MAX * sizeof(struct action))

int codec_action_encode(const struct action *action, void *buf, size_t buf_size, size_t *ret_n, struct error *err)
{
        struct put c;

        put_begin(&c, buf, buf_size);
        put_action(&c, action);
        return put_end(&c, "action", ret_n, err);
}

int codec_action_decode(const void *data, size_t n_data, struct action *ret, struct error *err)
{
        struct get c;
        int r = get_begin(&c, "action", data, n_data, err);
        if (r < 0)
                return r;

        memset(ret, 0, sizeof(*ret));
        get_action(&c, ret);
        return get_end(&c, "action", err);
}

int codec_actions_encode(const struct actions *actions, void *buf, size_t buf_size, size_t *ret_n, struct error *err)
{
        struct put c;

        put_begin(&c, buf, buf_size);
        put_below(&c, "actions.n", actions->n, ACTIONS_MAX + 1, 4);
        bytes_put_bool(&c.w, actions->more);
        for (uint32_t i = 0; i < actions->n && !c.bad; i++)
                put_action(&c, &actions->items[i]);
        return put_end(&c, "actions", ret_n, err);
}

int codec_actions_decode(const void *data, size_t n_data, struct actions *ret, struct error *err)
{
        struct get c;
        int r = get_begin(&c, "actions", data, n_data, err);
        if (r < 0)
                return r;

        ret->n = (uint32_t) get_below(&c, "actions.n", ACTIONS_MAX + 1, 4);
        ret->more = bytes_get_bool(&c.r);
        for (uint32_t i = 0; i < ret->n && !c.r.failed; i++) {
                memset(&ret->items[i], 0, sizeof(ret->items[i]));
                get_action(&c, &ret->items[i]);
        }
        return get_end(&c, "actions", err);
}
