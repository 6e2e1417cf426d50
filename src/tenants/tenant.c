/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/tenant.h"
#include <stddef.h>
#include <string.h>
#include "model/lease.h"
#include "tenants/parts.h"
#include "tenants/tenant_read.h"

static int read_priority(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = json_string_value(value);
        json_int_t n = json_integer_value(value);

        if (text && strlen(text) == json_string_length(value) && priority_parse(text, ret))
                return 0;
        if (!json_is_integer(value) || n < PRIORITY_URGENT || n > PRIORITY_FILLER)
                return read_refuse(r, value, "urgent, interactive, normal, batch, filler, or 1 … 5", "correct it");
        *(uint8_t *) ret = (uint8_t) n;
        return 0;
}

static const struct read_key keys[] = {
        [TENANT_TITLE] = { "title", offsetof(struct tenant, title), read_short },
        [TENANT_MATCH] = { "match", 0, part_match },
        [TENANT_PRIORITY] = { "priority", offsetof(struct tenant, priority), read_priority },
        [TENANT_NEED] = { "need", offsetof(struct tenant, need), part_need },
        [TENANT_RESERVE] = { "reserve", offsetof(struct tenant, reserve_bytes), read_bytes },
        [TENANT_BUSY] = { "busy", offsetof(struct tenant, busy), part_busy },
        [TENANT_WAYS_OUT] = { "ways_out", offsetof(struct tenant, ways), part_ways },
        [TENANT_LINGER] = { "linger", offsetof(struct tenant, linger_ms), read_span_ms },
        [TENANT_IDLE_RELEASE] = { "idle_release_after", offsetof(struct tenant, idle_release_ms), read_span_ms },
        [TENANT_QUIET_WINDOW] = { "quiet_window", offsetof(struct tenant, quiet_window_ms), read_span_ms },
        [TENANT_DEMAND_ON_START] = { "demand_on_start", offsetof(struct tenant, demand_on_start), part_demand },
        [TENANT_CLOCK_PROFILE] = { "clock_profile", offsetof(struct tenant, clock_profile), read_short },
        [TENANT_EVENTS] = { "events", offsetof(struct tenant, events), part_events },
        [TENANT_PROXY] = { "proxy", offsetof(struct tenant, proxy), part_proxy },
        [TENANT_HEADERS_FROM] = { "headers_from", offsetof(struct tenant, headers_from), read_file_path },
        [TENANT_PROTECTED] = { "protected", offsetof(struct tenant, is_protected), read_bool },
        [TENANT_DISABLED] = { "disabled", offsetof(struct tenant, disabled), read_bool },
        [TENANT_CHECKED_AGAINST] = { "checked_against", offsetof(struct tenant, checked_against), read_text },
        [TENANT_CANNOT] = { "cannot", offsetof(struct tenant, cannot), read_list },
        [TENANT_SOURCE] = { "source", offsetof(struct tenant, source), read_list },
};
_Static_assert(sizeof(keys) / sizeof(keys[0]) == TENANT_KEY_N, "each key has its row");

const char *tenant_key_name(enum tenant_key key)
{
        return key < TENANT_KEY_N ? keys[key].name : "?";
}

const char *tenant_way_name(enum tenant_way_by by)
{
        static const char *const names[] = { "http", "exec", "restart", "checkpoint" };
        return by < TENANT_WAY_BY_N ? names[by] : "?";
}

int tenant_read(struct reading_json *r, const char *name, const json_t *value, struct tenant *ret)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
        size_t n = strlen(name);

        memset(ret, 0, sizeof(*ret));
        ret->name = name;
        if (n == 0 || n >= TENANT_NAME_MAX || strspn(name, letters) != n || strchr("-_.", name[0]))
                return read_refuse(r, value, "a name of 1 … 47 lower-case letters, digits, '-', '_' and '.'",
                                   "begin it with a letter or digit");
        return READ_OBJECT(r, value, keys, ret, &ret->given);
}

void tenant_lay_over(struct tenant *t, const struct tenant *over, uint8_t file)
{
        static const size_t sizes[] = {
#define SIZE_OF(key, member) [key] = sizeof(((struct tenant *) 0)->member)
                SIZE_OF(TENANT_TITLE, title),
                SIZE_OF(TENANT_PRIORITY, priority),
                SIZE_OF(TENANT_NEED, need),
                SIZE_OF(TENANT_RESERVE, reserve_bytes),
                SIZE_OF(TENANT_BUSY, busy),
                SIZE_OF(TENANT_WAYS_OUT, ways),
                SIZE_OF(TENANT_LINGER, linger_ms),
                SIZE_OF(TENANT_IDLE_RELEASE, idle_release_ms),
                SIZE_OF(TENANT_QUIET_WINDOW, quiet_window_ms),
                SIZE_OF(TENANT_DEMAND_ON_START, demand_on_start),
                SIZE_OF(TENANT_CLOCK_PROFILE, clock_profile),
                SIZE_OF(TENANT_EVENTS, events),
                SIZE_OF(TENANT_PROXY, proxy),
                SIZE_OF(TENANT_HEADERS_FROM, headers_from),
                SIZE_OF(TENANT_PROTECTED, is_protected),
                SIZE_OF(TENANT_DISABLED, disabled),
                SIZE_OF(TENANT_CHECKED_AGAINST, checked_against),
                SIZE_OF(TENANT_CANNOT, cannot),
                SIZE_OF(TENANT_SOURCE, source),
#undef SIZE_OF
        };
        _Static_assert(sizeof(sizes) / sizeof(sizes[0]) == TENANT_KEY_N, "each key has its size");

        for (enum tenant_key key = 0; key < TENANT_KEY_N; key++) {
                if (!tenant_gives(over, key))
                        continue;
                if (key == TENANT_MATCH) {
                        t->n_rules = over->n_rules;
                        memcpy(t->rules, over->rules, sizeof(t->rules));
                } else {
                        memcpy((char *) t + keys[key].offset, (const char *) over + keys[key].offset, sizes[key]);
                }
                t->given |= 1U << key;
                t->from[key] = file;
        }
}
