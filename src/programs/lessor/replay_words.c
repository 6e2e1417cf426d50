/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/replay_words.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "model/hand.h"
#include "model/lease.h"

const char *replay_time(uint64_t wall_ms, char buf[REPLAY_TIME_MAX])
{
        time_t seconds = (time_t) (wall_ms / 1000);
        struct tm tm;

        if (!localtime_r(&seconds, &tm) || strftime(buf, REPLAY_TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                (void) snprintf(buf, REPLAY_TIME_MAX, "?");
        return buf;
}

static const char *what(const struct action *a, char *buf, size_t size)
{
        if (a->kind == ACTION_READ)
                (void) snprintf(buf, size, "a look at device %" PRIu32, a->device);
        else if (a->kind == ACTION_HAND)
                (void) snprintf(buf, size, "order to the hands: %s%s pid %" PRIu32,
                                hand_verb_name((enum hand_verb) a->hand),
                                a->signal == 9    ? " KILL to"
                                : a->signal == 15 ? " TERM to"
                                                  : " on",
                                a->process.pid);
        else
                (void) snprintf(buf, size, "%s", action_kind_name((enum action_kind) a->kind));
        return buf;
}

const char *replay_action_words(const struct action *a, uint64_t now_ms, char buf[REPLAY_WORDS_MAX])
{
        char kind[96], lease[LEASE_ID_TEXT_MAX], reason[REASON_TEXT_MAX] = "";

        if (!a) {
                (void) snprintf(buf, REPLAY_WORDS_MAX, "nothing");
                return buf;
        }
        if (a->why.rule != RULE_NONE)
                (void) reason_text(&a->why, now_ms, reason, sizeof(reason));
        (void) snprintf(buf, REPLAY_WORDS_MAX, "event %" PRIu64 ", %s%s%s%s%s", a->id,
                        a->lease_id != 0 ? lease_id_text(a->lease_id, lease) : "", a->lease_id != 0 ? " " : "",
                        what(a, kind, sizeof(kind)), reason[0] ? ": " : "", reason);
        return buf;
}

json_t *replay_action_json(const struct action *a, uint64_t now_ms)
{
        char words[REPLAY_WORDS_MAX], lease[LEASE_ID_TEXT_MAX];

        if (!a)
                return json_null();
        (void) reason_text(&a->why, now_ms, words, sizeof(words));
        return json_pack("{s:I, s:s, s:o, s:o, s:I, s:I, s:s, s:s}", "id", (json_int_t) a->id, "kind",
                         action_kind_name((enum action_kind) a->kind), "lease",
                         a->lease_id != 0 ? json_string(lease_id_text(a->lease_id, lease)) : json_null(), "device",
                         a->device == UINT32_MAX ? json_null() : json_integer((json_int_t) a->device), "uid",
                         (json_int_t) a->uid, "bytes", (json_int_t) a->bytes, "rule",
                         rule_name((enum rule) a->why.rule), "text", words);
}

/* ---- figures ---- */

#define FIELD(f)                                                                                                       \
        {                                                                                                              \
#f, offsetof(struct action, f), sizeof(((struct action *) 0)->f)                                       \
        }
static const struct field {
        const char *name;
        size_t at, n_bytes; /* all of them are unsigned numbers */
} fields[] = {
        FIELD(id),
        FIELD(kind),
        FIELD(lease_id),
        FIELD(device),
        FIELD(token),
        FIELD(uid),
        FIELD(priority),
        FIELD(bytes),
        FIELD(hand),
        FIELD(signal),
        FIELD(process.pid),
        FIELD(process.start_ticks),
        FIELD(cgroup_id),
        FIELD(why.rule),
        FIELD(why.end),
        FIELD(why.place),
        FIELD(why.n_waiting),
        FIELD(why.limit),
        FIELD(why.need_bytes),
        FIELD(why.free_bytes),
        FIELD(why.lent_bytes),
        FIELD(why.ceiling_bytes),
        FIELD(why.total_bytes),
        FIELD(why.used_bytes),
        FIELD(why.reserved_bytes),
        FIELD(why.head_lease_id),
        FIELD(why.start_ms),
        FIELD(why.reading_age_ms),
        FIELD(why.n_blockers),
};
#undef FIELD

static uint64_t value_of(const struct action *a, const struct field *field)
{
        const unsigned char *p = (const unsigned char *) a + field->at;
        uint64_t v = 0;
        uint32_t v32;
        uint16_t v16;

        if (field->n_bytes == sizeof(v))
                memcpy(&v, p, sizeof(v));
        else if (field->n_bytes == sizeof(v32))
                v = (memcpy(&v32, p, sizeof(v32)), v32);
        else if (field->n_bytes == sizeof(v16))
                v = (memcpy(&v16, p, sizeof(v16)), v16);
        else
                v = *p;
        return v;
}

const char *replay_action_fields(const struct action *was, const struct action *is, char *buf, size_t size)
{
        size_t len = 0;

        buf[0] = '\0';
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && len + 1 < size; i++) {
                uint64_t a = value_of(was, &fields[i]), b = value_of(is, &fields[i]);
                if (a == b)
                        continue;
                int n = snprintf(buf + len, size - len, "%s%s was %" PRIu64 ", is %" PRIu64, len > 0 ? "; " : "",
                                 fields[i].name, a, b);
                len = n > 0 && (size_t) n < size - len ? len + (size_t) n : size - 1;
        }
        if (len == 0) /* who is in the way is no number */
                (void) snprintf(buf, size, "other blockers");
        return buf;
}
