/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/json_text.h"
#include "api/lease_json.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"
#include "model/lease.h"
#include "model/way_out.h"

#define ALLOWED_SIZE "1 … 2^63-1 bytes, or text such as \"1500M\", \"12G\", \"12GB\", \"90%\", \"all\""
#define ALLOWED_SPAN "1 ms … 365 days"

static void jsonp(json_t **value)
{
        json_decref(*value);
}

/* A field that is wrong, with the value as it was written. */
static int refuse(struct problem *p, const char *field, const json_t *value, const char *allowed, const char *cure)
{
        auto_free char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        const char *given = text ? text : "";

        return problem_field(p, field, given, strlen(given), allowed, cure);
}

/* The same where a parser of base/ has already found the words. */
static int refuse_in_words(struct problem *p, const char *field, const json_t *value, const char *allowed,
                           const char *cure, const struct error *err)
{
        (void) refuse(p, field, value, allowed, cure);
        (void) snprintf(p->detail, sizeof(p->detail), "%s", err->msg);
        return -1;
}

static int take_count(const json_t *value, const char *field, uint64_t min, uint64_t max, const char *allowed,
                      const char *cure, uint64_t *ret, struct problem *p)
{
        /* A real is refused even where it is whole: 1e3 and 1000.0 are typing errors more often than amounts. */
        if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t) json_integer_value(value) < min ||
            (uint64_t) json_integer_value(value) > max)
                return refuse(p, field, value, allowed, cure);
        *ret = (uint64_t) json_integer_value(value);
        return 0;
}

static int take_bytes(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const char cure[] = "write a whole number of bytes, or an amount with its unit and no blank: \"1500M\"";
        struct size size;
        struct error err = { 0 };

        if (json_is_integer(value))
                return take_count(value, "bytes", 1, SIZE_BYTES_MAX, ALLOWED_SIZE, cure, &ask->request.bytes, p);
        if (!json_is_string(value))
                return refuse(p, "bytes", value, ALLOWED_SIZE, cure);
        if (size_parse("bytes", json_string_value(value), &size, &err) < 0)
                return refuse_in_words(p, "bytes", value, ALLOWED_SIZE, cure, &err);

        ask->request.bytes = size.kind == SIZE_BYTES ? size.bytes : 0;
        ask->request.percent_milli = size.kind == SIZE_PERCENT ? size.percent_milli : 0;
        return 0;
}

static int take_priority(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const char allowed[] = "1 … 5, or urgent, interactive, normal, batch, filler";
        static const char cure[] = "leave it out for 3 (normal); smaller is more important";
        uint64_t n = 0;

        if (json_is_string(value)) {
                if (!priority_parse(json_string_value(value), &ask->request.priority))
                        return refuse(p, "priority", value, allowed, cure);
                return 0;
        }
        if (take_count(value, "priority", PRIORITY_URGENT, PRIORITY_FILLER, allowed, cure, &n, p) < 0)
                return -1;
        ask->request.priority = (uint8_t) n;
        return 0;
}

static int take_span_ms(const json_t *value, const char *field, uint64_t *ret, struct problem *p)
{
        return take_count(value, field, 1, DURATION_MAX_MS, ALLOWED_SPAN,
                          "write whole milliseconds, or use the field without _ms for text such as \"2h\"", ret, p);
}

static int take_span_text(const json_t *value, const char *field, uint64_t *ret, struct problem *p)
{
        static const char cure[] = "write 90s, 10m, 2h or 1h30m, or leave it out";
        struct error err = { 0 };
        uint64_t ms;

        if (!json_is_string(value))
                return refuse(p, field, value, ALLOWED_SPAN " as text",
                              "write it as text, \"2h\", or use the _ms field");
        if (duration_parse(field, json_string_value(value), &ms, &err) < 0)
                return refuse_in_words(p, field, value, ALLOWED_SPAN, cure, &err);
        if (ms == 0)
                return refuse(p, field, value, ALLOWED_SPAN, cure);
        *ret = ms;
        return 0;
}

static int take_for_ms(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_ms(value, "for_ms", &ask->request.slot_ms, p);
}

static int take_for(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_text(value, "for", &ask->request.slot_ms, p);
}

static int take_wait_ms(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_ms(value, "wait_ms", &ask->request.wait_ms, p);
}

static int take_wait(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_text(value, "wait", &ask->request.wait_ms, p);
}

static int take_mode(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const struct {
                const char *name;
                enum lease_ask_mode mode;
        } modes[] = { { "wait", LEASE_ASK_WAIT }, { "queue", LEASE_ASK_QUEUE }, { "now", LEASE_ASK_NOW } };

        for (size_t i = 0; json_is_string(value) && i < sizeof(modes) / sizeof(modes[0]); i++) {
                if (strcmp(json_string_value(value), modes[i].name) == 0) {
                        ask->mode = modes[i].mode;
                        return 0;
                }
        }
        return refuse(p, "mode", value, "wait, queue, now", "leave it out to wait for the grant");
}

/* Copies into a field of @size bytes; longer texts and control characters are refused, never cut. */
static int take_text(const json_t *value, const char *field, char *to, size_t size, const char *allowed,
                     struct problem *p)
{
        size_t n = json_string_length(value);

        if (!json_is_string(value) || n == 0 || n >= size || !text_is_plain(json_string_value(value), n))
                return refuse(p, field, value, allowed, "shorten it, or leave it out");
        memcpy(to, json_string_value(value), n);
        to[n] = '\0';
        return 0;
}

static int take_name(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_text(value, "name", ask->request.name, sizeof(ask->request.name),
                         "1 … 63 bytes without control characters", p);
}

static int take_consumer(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_text(value, "consumer", ask->request.consumer, sizeof(ask->request.consumer),
                         "1 … 63 bytes without control characters", p);
}

static int take_device(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_text(value, "device", ask->request.device_uuid, sizeof(ask->request.device_uuid),
                         "a device's UUID or the beginning of one (see /api/devices), or null for any", p);
}

static int take_bool(const json_t *value, const char *field, bool *ret, struct problem *p)
{
        if (!json_is_boolean(value))
                return refuse(p, field, value, "true, false", "write it without quotes, or leave it out");
        *ret = json_is_true(value);
        return 0;
}

static int take_managed(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "managed", &ask->request.managed, p);
}

static int take_kill_at_end(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "kill_at_end", &ask->request.kill_at_end, p);
}

static int take_yield_by(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const char allowed[] = "a list of cooperate, checkpoint, release, restart, kill; or text with commas";
        static const char cure[] = "leave it out if it may not be taken back at all";
        uint8_t mask = 0;
        uint32_t bad_at;

        if (json_is_string(value)) {
                if (!ways_out_parse(json_string_value(value), &mask, &bad_at))
                        return refuse(p, "yield_by", value, allowed, cure);
                ask->request.ways.named = mask;
                return 0;
        }
        if (!json_is_array(value))
                return refuse(p, "yield_by", value, allowed, cure);

        size_t i;
        json_t *word;
        json_array_foreach(value, i, word)
        {
                uint8_t bit = 0;
                if (!json_is_string(word) || strchr(json_string_value(word), ',') ||
                    !ways_out_parse(json_string_value(word), &bit, &bad_at))
                        return refuse(p, "yield_by", value, allowed, cure);
                mask |= bit;
        }
        ask->request.ways.named = mask;
        return 0;
}

static int take_bind(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const char allowed[] = "{\"to\":\"process\",\"pid\":N}, {\"to\":\"connection\"}, "
                                      "{\"to\":\"heartbeat\",\"ttl_ms\":60000}";
        static const char cure[] = "leave it out to bind the lease to the calling process";
        struct binding *binding = &ask->request.binding;
        const json_t *pid = NULL, *ttl = NULL;
        const char *to = json_is_object(value) ? json_string_value(json_object_get(value, "to")) : NULL;
        const char *key;
        json_t *inner;

        if (!to)
                return refuse(p, "bind", value, allowed, cure);
        json_object_foreach((json_t *) (uintptr_t) value, key, inner)
        {
                if (strcmp(key, "pid") == 0)
                        pid = json_is_null(inner) ? NULL : inner;
                else if (strcmp(key, "ttl_ms") == 0)
                        ttl = json_is_null(inner) ? NULL : inner;
                else if (strcmp(key, "to") != 0)
                        return refuse(p, "bind", value, allowed, cure);
        }

        uint64_t n = 0;
        if (strcmp(to, "process") == 0 && !ttl) {
                binding->kind = BINDING_PROCESS;
                if (pid &&
                    take_count(pid, "bind.pid", 1, LEASE_PID_MAX, "1 … 4194304, a living process of the same user",
                               "leave it out for the calling process", &n, p) < 0)
                        return -1;
                ask->bind_pid = (uint32_t) n;
                return 0;
        }
        if (strcmp(to, "connection") == 0 && !pid && !ttl) {
                binding->kind = BINDING_CONNECTION;
                return 0;
        }
        if (strcmp(to, "heartbeat") == 0 && !pid) {
                binding->kind = BINDING_HEARTBEAT;
                binding->ttl_ms = LEASE_TTL_DEFAULT_MS;
                return ttl ? take_count(ttl, "bind.ttl_ms", LEASE_TTL_MIN_MS, LEASE_TTL_MAX_MS,
                                        "1000 … 86400000 (1 s … 1 day)", "leave it out for 60000", &binding->ttl_ms, p)
                           : 0;
        }
        return refuse(p, "bind", value, allowed, cure);
}

static const struct key {
        const char *name;
        int (*take)(const json_t *value, struct lease_ask *ask, struct problem *p);
} keys[] = {
        { "bytes", take_bytes },
        { "priority", take_priority },
        { "for_ms", take_for_ms },
        { "for", take_for },
        { "mode", take_mode },
        { "wait_ms", take_wait_ms },
        { "wait", take_wait },
        { "device", take_device },
        { "name", take_name },
        { "consumer", take_consumer },
        { "managed", take_managed },
        { "yield_by", take_yield_by },
        { "kill_at_end", take_kill_at_end },
        { "bind", take_bind },
};

static const struct key *key_by_name(const char *name)
{
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (strcmp(keys[i].name, name) == 0)
                        return &keys[i];
        return NULL;
}

static bool is_given(const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);
        return value && !json_is_null(value);
}

/* Two fields that say the same thing, or the opposite: nobody knows which was meant. */
static int refuse_pairs(const json_t *object, const struct lease_ask *ask, struct problem *p)
{
        static const char *const pairs[][2] = { { "for", "for_ms" }, { "wait", "wait_ms" } };

        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
                if (is_given(object, pairs[i][0]) && is_given(object, pairs[i][1]))
                        return refuse(p, pairs[i][1], json_object_get(object, pairs[i][1]), "one of the two fields",
                                      "leave one of them out");

        const char *wait = is_given(object, "wait") ? "wait" : is_given(object, "wait_ms") ? "wait_ms" : NULL;
        if (wait && ask->mode == LEASE_ASK_NOW)
                return refuse(p, wait, json_object_get(object, wait), "nothing, with mode now",
                              "leave it out, or use mode wait");
        if (ask->mode == LEASE_ASK_QUEUE && ask->request.binding.kind == BINDING_CONNECTION)
                return refuse(p, "bind", json_object_get(object, "bind"), "process or heartbeat, with mode queue",
                              "use mode wait, or another binding");
        return 0;
}

int lease_json_parse(const char *data, size_t n, struct lease_ask *ret, struct problem *reterr)
{
        struct lease_ask ask = { .request = { .priority = PRIORITY_NORMAL, .binding = { .kind = BINDING_PROCESS } } };
        __attribute__((__cleanup__(jsonp))) json_t *object = json_text_object(data, n, reterr);
        const char *name;
        json_t *value;

        if (!object)
                return -1;
        if (!is_given(object, "bytes"))
                return problem_field(reterr, "bytes", "", 0, ALLOWED_SIZE, "say how much memory it needs");

        json_object_foreach(object, name, value)
        {
                const struct key *key = key_by_name(name);
                if (!key)
                        return refuse(reterr, name, value,
                                      "bytes priority for for_ms mode wait wait_ms device name consumer managed "
                                      "yield_by kill_at_end bind",
                                      "there is no such field here; check its spelling");
                if (!json_is_null(value) && key->take(value, &ask, reterr) < 0)
                        return -1;
        }
        if (refuse_pairs(object, &ask, reterr) < 0)
                return -1;

        ask.request.no_wait = ask.mode == LEASE_ASK_NOW;
        ask.request.collected = ask.mode != LEASE_ASK_QUEUE;
        *ret = ask;
        return 0;
}

int activate_json_parse(const char *data, size_t n, struct activate_ask *ret, struct problem *reterr)
{
        struct activate_ask ask = { 0 };
        uint64_t pid = 0;
        const char *name;
        json_t *value;

        if (n == 0) {
                *ret = ask;
                return 0;
        }
        __attribute__((__cleanup__(jsonp))) json_t *object = json_text_object(data, n, reterr);
        if (!object)
                return -1;
        json_object_foreach(object, name, value)
        {
                if (strcmp(name, "pid") == 0) {
                        if (!json_is_null(value) &&
                            take_count(value, "pid", 1, LEASE_PID_MAX, "1 … 4194304, a living process of the same user",
                                       "leave it out if nothing runs yet", &pid, reterr) < 0)
                                return -1;
                } else if (strcmp(name, "cgroup_id") == 0) {
                        if (!json_is_null(value) &&
                            take_count(value, "cgroup_id", 1, INT64_MAX, "1 … 2^63-1, the inode of the cgroup's folder",
                                       "leave it out if the command has no cgroup of its own", &ask.cgroup_id,
                                       reterr) < 0)
                                return -1;
                } else {
                        return refuse(reterr, name, value, "pid, cgroup_id",
                                      "there is no such field here; check its spelling");
                }
        }
        ask.pid = (uint32_t) pid;
        *ret = ask;
        return 0;
}

int empty_json_parse(const char *data, size_t n, struct problem *reterr)
{
        if (n == 0)
                return 0;

        __attribute__((__cleanup__(jsonp))) json_t *object = json_text_object(data, n, reterr);
        if (!object)
                return -1;
        const char *name = json_object_iter_key(json_object_iter(object));
        if (name)
                return refuse(reterr, name, json_object_get(object, name), "nothing", "send no body, or {}");
        return 0;
}
