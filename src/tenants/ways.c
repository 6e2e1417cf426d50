/* SPDX-License-Identifier: Apache-2.0 */
/* Ways out, and the calls they are made of. */
#include <stddef.h>
#include <string.h>
#include "tenants/parts.h"
#include "tenants/tenant.h"

/* ---- calls ---- */

static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", NULL };

static int read_method(struct reading_json *r, const json_t *value, void *ret)
{
        return read_word(r, value, methods, ret);
}

static int read_body(struct reading_json *r, const json_t *value, void *ret)
{
        if (!json_is_object(value))
                return read_refuse(r, value, "an object, which is sent as it is", "write { … }");
        *(const json_t **) ret = value;
        return 0;
}

static int read_status(struct reading_json *r, const json_t *value, void *ret)
{
        int64_t n = 0;

        if (read_number(r, value, &n) < 0 || n < 200 || n > 599)
                return read_refuse(r, value, "a status, 200 … 599", "correct it");
        *(uint16_t *) ret = (uint16_t) n;
        return 0;
}

static int read_statuses(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_expect *expect = ret;

        return read_items(r, value, TENANT_LIST_MAX, read_status, expect->status, sizeof(expect->status[0]),
                          &expect->n_status);
}

static const struct read_key expect_keys[] = {
        { "status", 0, read_statuses },
        { "pointer", offsetof(struct tenant_expect, pointer), read_pointer },
        { "equals", offsetof(struct tenant_expect, equals), read_scalar },
};

static int read_expect(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, expect_keys, ret, &given);
        if (code < 0)
                return code;
        return CHECK_GIVEN(r, value, expect_keys, given, BIT(0) | (given & BIT(2) ? BIT(1) : 0), BIT(1) | BIT(2),
                           "what is expected");
}

static const struct read_key each_keys[] = {
        { "path", offsetof(struct tenant_each, path), read_http_path },
        { "items", offsetof(struct tenant_each, items), read_pointer },
        { "pointer", offsetof(struct tenant_each, pointer), read_pointer },
        { "where", offsetof(struct tenant_each, where), read_pointer },
        { "equals", offsetof(struct tenant_each, equals), read_scalar },
};

static int read_each(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, each_keys, ret, &given);
        if (code < 0)
                return code;
        uint32_t both = given & (BIT(3) | BIT(4)) ? BIT(3) | BIT(4) : 0;
        return CHECK_GIVEN(r, value, each_keys, given, BIT(0) | BIT(1) | BIT(2) | both, 0, "for_each");
}

static const struct read_key call_keys[] = {
        { "method", offsetof(struct tenant_call, method), read_method },
        { "path", offsetof(struct tenant_call, path), read_http_path },
        { "body", offsetof(struct tenant_call, body), read_body },
        { "expect", offsetof(struct tenant_call, expect), read_expect },
        { "for_each", offsetof(struct tenant_call, each), read_each },
};

static int read_call(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, call_keys, ret, &given);
        return code < 0 ? code
                        : CHECK_GIVEN(r, value, call_keys, given, BIT(0) | BIT(1) | BIT(3), BIT(2) | BIT(4), "a call");
}

static int read_calls(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_calls *calls = ret;

        return read_items(r, value, TENANT_CALLS_MAX, read_call, calls->items, sizeof(calls->items[0]), &calls->n);
}

/* ---- ways out ---- */

static const char *const way_bys[] = { "http", "exec", "restart", "checkpoint", NULL };
static const char *const way_whens[] = { "idle", "any", NULL };

static int read_way_by(struct reading_json *r, const json_t *value, void *ret)
{
        return read_word(r, value, way_bys, ret);
}

static int read_way_when(struct reading_json *r, const json_t *value, void *ret)
{
        return read_word(r, value, way_whens, ret);
}

struct way_floor {
        bool known;
        uint64_t bytes;
};

static int read_floor(struct reading_json *r, const json_t *value, void *ret)
{
        struct way_floor *floor = ret;
        const char *text = json_string_value(value);

        floor->known = true;
        return text && strcmp(text, "0") == 0 ? 0 : read_bytes(r, value, &floor->bytes);
}

struct way_reading {
        struct tenant_way way;
        struct way_floor floor;
};

enum {
        WAY_BY,
        WAY_CALLS,
        WAY_BACK,
        WAY_ROLE,
        WAY_ARGV,
        WAY_USER,
        WAY_WHEN,
        WAY_FLOOR,
        WAY_DEADLINE,
        WAY_TO_RAM,
        WAY_DOCUMENTED,
        WAY_DROPS,
        WAY_PORT
};

static const struct read_key way_keys[] = {
        [WAY_BY] = { "by", offsetof(struct way_reading, way.by), read_way_by },
        [WAY_CALLS] = { "calls", offsetof(struct way_reading, way.calls), read_calls },
        [WAY_BACK] = { "back", offsetof(struct way_reading, way.back), read_calls },
        [WAY_ROLE] = { "role", offsetof(struct way_reading, way.role), read_role },
        [WAY_ARGV] = { "argv", offsetof(struct way_reading, way.argv), read_argv },
        [WAY_USER] = { "user", offsetof(struct way_reading, way.user), read_user },
        [WAY_WHEN] = { "when", offsetof(struct way_reading, way.when), read_way_when },
        [WAY_FLOOR] = { "floor", offsetof(struct way_reading, floor), read_floor },
        [WAY_DEADLINE] = { "deadline", offsetof(struct way_reading, way.deadline_ms), read_span_ms },
        [WAY_TO_RAM] = { "to_ram", offsetof(struct way_reading, way.to_ram), read_bool },
        [WAY_DOCUMENTED] = { "documented", offsetof(struct way_reading, way.documented), read_text },
        [WAY_DROPS] = { "drops", offsetof(struct way_reading, way.drops), read_text },
        [WAY_PORT] = { "port", offsetof(struct way_reading, way.port), read_port },
};

static const struct {
        uint32_t required, allowed;
        const char *what;
} way_rows[] = {
        [TENANT_WAY_HTTP] = { BIT(WAY_CALLS), BIT(WAY_BACK) | BIT(WAY_ROLE) | BIT(WAY_TO_RAM) | BIT(WAY_PORT),
                              "a way out by http" },
        [TENANT_WAY_EXEC] = { BIT(WAY_ARGV) | BIT(WAY_USER), BIT(WAY_TO_RAM), "a way out by exec" },
        [TENANT_WAY_RESTART] = { 0, 0, "a way out by restart" },
        [TENANT_WAY_CHECKPOINT] = { 0, 0, "a way out by checkpoint" },
};
_Static_assert(sizeof(way_rows) / sizeof(way_rows[0]) == TENANT_WAY_BY_N, "each way out has its row");

static int read_way(struct reading_json *r, const json_t *value, void *ret)
{
        const uint32_t always =
                BIT(WAY_BY) | BIT(WAY_WHEN) | BIT(WAY_FLOOR) | BIT(WAY_DEADLINE) | BIT(WAY_DOCUMENTED) | BIT(WAY_DROPS);
        struct way_reading w = { 0 };
        uint32_t given;

        int code = READ_OBJECT(r, value, way_keys, &w, &given);
        if (code == 0 && !(given & BIT(WAY_BY)))
                code = CHECK_GIVEN(r, value, way_keys, given, BIT(WAY_BY), UINT32_MAX, "a way out");
        if (code == 0)
                code = CHECK_GIVEN(r, value, way_keys, given, way_rows[w.way.by].required,
                                   way_rows[w.way.by].allowed | always, way_rows[w.way.by].what);
        if (code < 0)
                return code;
        w.way.floor_known = w.floor.known;
        w.way.floor_bytes = w.floor.bytes;
        w.way.to_ram = w.way.to_ram || w.way.by == TENANT_WAY_CHECKPOINT;
        *(struct tenant_way *) ret = w.way;
        return 0;
}

int part_ways(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_ways *ways = ret;

        return read_items(r, value, TENANT_WAYS_MAX, read_way, ways->items, sizeof(ways->items[0]), &ways->n);
}
