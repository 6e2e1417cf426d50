/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/parts.h"
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "tenants/tenant.h"

/* ---- match ---- */

static const struct read_key program_keys[] = {
        { "program", offsetof(struct tenant_program, program), read_text },
        { "title", offsetof(struct tenant_program, title), read_text },
        { "arguments", offsetof(struct tenant_program, arguments), read_list },
};

static int read_ancestor(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, program_keys, ret, &given);
        if (code == 0 && given == 0)
                return read_refuse(r, value, "program, title, arguments", "say by what an ancestor is recognised");
        return code;
}

static const struct read_key rule_keys[] = {
        { "role", offsetof(struct tenant_rule, role), read_role },
        { "program", offsetof(struct tenant_rule, self.program), read_text },
        { "title", offsetof(struct tenant_rule, self.title), read_text },
        { "arguments", offsetof(struct tenant_rule, self.arguments), read_list },
        { "ancestor", offsetof(struct tenant_rule, ancestor), read_ancestor },
        { "unit", offsetof(struct tenant_rule, unit), read_text },
        { "container", offsetof(struct tenant_rule, container), read_text },
        { "image", offsetof(struct tenant_rule, image), read_text },
        { "compose_service", offsetof(struct tenant_rule, compose_service), read_text },
        { "compose_project", offsetof(struct tenant_rule, compose_project), read_text },
};

static int read_rule(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, rule_keys, ret, &given);
        if (code == 0 && (given & ~BIT(0)) == 0)
                return read_refuse(r, value,
                                   "program, title, arguments, ancestor, unit, container, image, compose_service, "
                                   "compose_project",
                                   "a rule without a condition would fit every process: add one");
        return code;
}

int part_match(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant *t = ret;

        return read_items(r, value, TENANT_RULES_MAX, read_rule, t->rules, sizeof(t->rules[0]), &t->n_rules);
}

/* ---- need ---- */

static const struct read_key request_keys[] = {
        { "path", offsetof(struct tenant_request, path), read_http_path },
        { "model", offsetof(struct tenant_request, model), read_pointer },
};

static int read_request(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, request_keys, ret, &given);
        return code < 0 ? code : CHECK_GIVEN(r, value, request_keys, given, BIT(0) | BIT(1), 0, "a request");
}

static int read_requests(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_need *need = ret;

        return read_items(r, value, TENANT_LIST_MAX, read_request, need->requests, sizeof(need->requests[0]),
                          &need->n_requests);
}

static const struct read_key need_keys[] = {
        { "flat", offsetof(struct tenant_need, flat_bytes), read_bytes },
        { "per_request", 0, read_requests },
};

int part_need(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, need_keys, ret, &given);
        if (code == 0 && given != BIT(0) && given != BIT(1))
                return read_refuse(r, value, "either flat or per_request",
                                   "flat where it always needs the same, per_request where it depends on the model");
        return code;
}

/* ---- busy ---- */

static const char *const busy_froms[] = { "http", "metrics", "slots", "memory", "memory-change", "exec", NULL };

static int read_busy_from(struct reading_json *r, const json_t *value, void *ret)
{
        return read_word(r, value, busy_froms, ret);
}

enum {
        BUSY_FROM,
        BUSY_ROLE,
        BUSY_PATH,
        BUSY_POINTER,
        BUSY_LINES,
        BUSY_ABOVE,
        BUSY_EQUALS,
        BUSY_NOT_EMPTY,
        BUSY_ABOVE_BYTES,
        BUSY_STALE,
        BUSY_ARGV,
        BUSY_USER,
        BUSY_CODE,
        BUSY_PORT,
};

struct busy_reading {
        struct tenant_busy busy;
        bool not_empty;
};

static const struct read_key busy_keys[] = {
        [BUSY_FROM] = { "from", offsetof(struct busy_reading, busy.from), read_busy_from },
        [BUSY_ROLE] = { "role", offsetof(struct busy_reading, busy.role), read_role },
        [BUSY_PATH] = { "path", offsetof(struct busy_reading, busy.path), read_http_path },
        [BUSY_POINTER] = { "pointer", offsetof(struct busy_reading, busy.pointer), read_pointer },
        [BUSY_LINES] = { "lines", offsetof(struct busy_reading, busy.lines), read_list },
        [BUSY_ABOVE] = { "above", offsetof(struct busy_reading, busy.above), read_number },
        [BUSY_EQUALS] = { "equals", offsetof(struct busy_reading, busy.equals), read_scalar },
        [BUSY_NOT_EMPTY] = { "not_empty", offsetof(struct busy_reading, not_empty), read_true },
        [BUSY_ABOVE_BYTES] = { "above_bytes", offsetof(struct busy_reading, busy.above_bytes), read_bytes },
        [BUSY_STALE] = { "stale_after", offsetof(struct busy_reading, busy.stale_after_ms), read_span_ms },
        [BUSY_ARGV] = { "argv", offsetof(struct busy_reading, busy.argv), read_argv },
        [BUSY_USER] = { "user", offsetof(struct busy_reading, busy.user), read_user },
        [BUSY_CODE] = { "busy_code", offsetof(struct busy_reading, busy.busy_code), read_number },
        [BUSY_PORT] = { "port", offsetof(struct busy_reading, busy.port), read_port },
};

/* What each source needs, and what it may have besides "from", "role" and "stale_after". */
static const struct {
        uint32_t required, allowed;
        const char *what;
} busy_rows[] = {
        [TENANT_BUSY_HTTP] = { BIT(BUSY_PATH) | BIT(BUSY_POINTER),
                               BIT(BUSY_ABOVE) | BIT(BUSY_EQUALS) | BIT(BUSY_NOT_EMPTY) | BIT(BUSY_PORT),
                               "a probe from http" },
        [TENANT_BUSY_METRICS] = { BIT(BUSY_PATH) | BIT(BUSY_LINES) | BIT(BUSY_ABOVE), BIT(BUSY_PORT),
                                  "a probe from metrics" },
        [TENANT_BUSY_SLOTS] = { BIT(BUSY_PATH) | BIT(BUSY_POINTER),
                                BIT(BUSY_ABOVE) | BIT(BUSY_EQUALS) | BIT(BUSY_NOT_EMPTY) | BIT(BUSY_PORT),
                                "a probe from slots" },
        [TENANT_BUSY_MEMORY] = { BIT(BUSY_ABOVE_BYTES), 0, "a probe from memory" },
        [TENANT_BUSY_MEMORY_CHANGE] = { 0, 0, "a probe from memory-change" },
        [TENANT_BUSY_EXEC] = { BIT(BUSY_ARGV) | BIT(BUSY_USER) | BIT(BUSY_CODE), 0, "a probe from exec" },
};
_Static_assert(sizeof(busy_rows) / sizeof(busy_rows[0]) == TENANT_BUSY_FROM_N, "each source has its row");

static int read_busy(struct reading_json *r, const json_t *value, void *ret)
{
        const uint32_t tests = BIT(BUSY_ABOVE) | BIT(BUSY_EQUALS) | BIT(BUSY_NOT_EMPTY);
        const uint32_t always = BIT(BUSY_FROM) | BIT(BUSY_ROLE) | BIT(BUSY_STALE);
        struct busy_reading b = { 0 };
        uint32_t given;

        int code = READ_OBJECT(r, value, busy_keys, &b, &given);
        if (code == 0 && !(given & BIT(BUSY_FROM)))
                code = CHECK_GIVEN(r, value, busy_keys, given, BIT(BUSY_FROM), UINT32_MAX, "a probe");
        if (code == 0)
                code = CHECK_GIVEN(r, value, busy_keys, given, busy_rows[b.busy.from].required,
                                   busy_rows[b.busy.from].allowed | always, busy_rows[b.busy.from].what);
        if (code < 0)
                return code;
        if ((busy_rows[b.busy.from].allowed & tests) && __builtin_popcount(given & tests) != 1)
                return read_refuse(r, value, "one of above, equals, not_empty", "say which value means busy");
        if (given & BIT(BUSY_ABOVE))
                b.busy.test = TENANT_TEST_ABOVE;
        else if (given & tests)
                b.busy.test = given & BIT(BUSY_EQUALS) ? TENANT_TEST_EQUALS : TENANT_TEST_NOT_EMPTY;
        *(struct tenant_busy *) ret = b.busy;
        return 0;
}

int part_busy(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_busies *busy = ret;

        return read_items(r, value, TENANT_BUSY_MAX, read_busy, busy->items, sizeof(busy->items[0]), &busy->n);
}

/* ---- the rest ---- */

static const struct read_key demand_keys[] = {
        { "leave_within", offsetof(struct tenant_demand, leave_within_ms), read_span_ms },
        { "return_after", offsetof(struct tenant_demand, return_after_ms), read_span_ms },
};

int part_demand(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, demand_keys, ret, &given);
        return code < 0 ? code : CHECK_GIVEN(r, value, demand_keys, given, BIT(0) | BIT(1), 0, "demand_on_start");
}

static const char *const event_froms[] = { "none", "websocket", "sse", NULL };

static int read_event_from(struct reading_json *r, const json_t *value, void *ret)
{
        int code = read_word(r, value, event_froms, ret);
        if (code == 0 && *(uint8_t *) ret == TENANT_EVENT_NONE)
                return read_refuse(r, value, "websocket, sse", "leave events out where there are none");
        return code;
}

static const struct read_key event_keys[] = {
        { "from", offsetof(struct tenant_events, from), read_event_from },
        { "role", offsetof(struct tenant_events, role), read_role },
        { "path", offsetof(struct tenant_events, path), read_http_path },
        { "port", offsetof(struct tenant_events, port), read_port },
};

int part_events(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, event_keys, ret, &given);
        return code < 0 ? code : CHECK_GIVEN(r, value, event_keys, given, BIT(0) | BIT(2), BIT(1) | BIT(3), "events");
}

/* "127.0.0.1:8080", "[::1]:8080" */
static bool is_address(const char *text)
{
        char host[INET6_ADDRSTRLEN];
        unsigned char bytes[16];
        uint64_t port;

        const char *colon = strrchr(text, ':');
        bool v6 = text[0] == '[';
        if (!colon || parse_u64("", colon + 1, 1, 65535, &port, NULL) < 0 ||
            (v6 && (colon == text || colon[-1] != ']')))
                return false;
        size_t n = (size_t) (colon - text) - (v6 ? 2 : 0);
        if (n >= sizeof(host))
                return false;
        memcpy(host, text + v6, n);
        host[n] = '\0';
        return inet_pton(v6 ? AF_INET6 : AF_INET, host, bytes) == 1;
}

static int read_address(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = NULL;

        int code = read_short(r, value, &text);
        if (code < 0)
                return code;
        if (!is_address(text))
                return read_refuse(r, value, "address and port, such as \"127.0.0.1:8188\" or \"[::1]:8188\"",
                                   "write a numeric address");
        *(const char **) ret = text;
        return 0;
}

static int read_paths(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_list *list = ret;

        return read_items(r, value, TENANT_LIST_MAX, read_http_path, list->items, sizeof(list->items[0]), &list->n);
}

static const struct read_key proxy_keys[] = {
        { "listen", offsetof(struct tenant_proxy, listen), read_address },
        { "hold", offsetof(struct tenant_proxy, hold), read_paths },
};

int part_proxy(struct reading_json *r, const json_t *value, void *ret)
{
        uint32_t given;

        int code = READ_OBJECT(r, value, proxy_keys, ret, &given);
        return code < 0 ? code : CHECK_GIVEN(r, value, proxy_keys, given, BIT(0), BIT(1), "a proxy");
}
