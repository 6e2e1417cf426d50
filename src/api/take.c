/* SPDX-License-Identifier: Apache-2.0 */
#include "api/take.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/lease_json.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/local_time.h"
#include "base/size.h"
#include "model/lease.h"

#define ALLOWED_SPAN "1 ms … 365 days"

void take_jsonp(json_t **value)
{
        json_decref(*value);
}

/* A field that is wrong, with the value as it was written. */
int take_refuse(struct problem *p, const char *field, const json_t *value, const char *allowed, const char *cure)
{
        auto_free char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        const char *given = text ? text : "";

        return problem_field(p, field, given, strlen(given), allowed, cure);
}

/* The same where a parser of base/ has already found the words. */
static int refuse_in_words(struct problem *p, const char *field, const json_t *value, const char *allowed,
                           const char *cure, const struct error *err)
{
        (void) take_refuse(p, field, value, allowed, cure);
        (void) snprintf(p->detail, sizeof(p->detail), "%s", err->msg);
        return -1;
}

int take_count(const json_t *value, const char *field, uint64_t min, uint64_t max, const char *allowed,
               const char *cure, uint64_t *ret, struct problem *p)
{
        /* A real is refused even where it is whole: 1e3 and 1000.0 are typing errors more often than amounts. */
        if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t) json_integer_value(value) < min ||
            (uint64_t) json_integer_value(value) > max)
                return take_refuse(p, field, value, allowed, cure);
        *ret = (uint64_t) json_integer_value(value);
        return 0;
}

int take_amount(const json_t *value, const char *field, uint64_t *ret_bytes, uint64_t *ret_percent_milli,
                struct problem *p)
{
        static const char cure[] = "write a whole number of bytes, or an amount with its unit and no blank: \"1500M\"";
        struct size size;
        struct error err = { 0 };

        *ret_percent_milli = 0;
        if (json_is_integer(value))
                return take_count(value, field, 1, SIZE_BYTES_MAX, TAKE_ALLOWED_SIZE, cure, ret_bytes, p);
        if (!json_is_string(value))
                return take_refuse(p, field, value, TAKE_ALLOWED_SIZE, cure);
        if (size_parse(field, json_string_value(value), &size, &err) < 0)
                return refuse_in_words(p, field, value, TAKE_ALLOWED_SIZE, cure, &err);

        *ret_bytes = size.kind == SIZE_BYTES ? size.bytes : 0;
        *ret_percent_milli = size.kind == SIZE_PERCENT ? size.percent_milli : 0;
        return 0;
}

int take_priority(const json_t *value, uint8_t *ret, struct problem *p)
{
        static const char allowed[] = "1 … 5, or urgent, interactive, normal, batch, filler";
        static const char cure[] = "leave it out for 3 (normal); smaller is more important";
        uint64_t n = 0;

        if (json_is_string(value)) {
                if (!priority_parse(json_string_value(value), ret))
                        return take_refuse(p, "priority", value, allowed, cure);
                return 0;
        }
        if (take_count(value, "priority", PRIORITY_URGENT, PRIORITY_FILLER, allowed, cure, &n, p) < 0)
                return -1;
        *ret = (uint8_t) n;
        return 0;
}

int take_span_ms(const json_t *value, const char *field, uint64_t *ret, struct problem *p)
{
        return take_count(value, field, 1, DURATION_MAX_MS, ALLOWED_SPAN,
                          "write whole milliseconds, or use the field without _ms for text such as \"2h\"", ret, p);
}

int take_span_text(const json_t *value, const char *field, uint64_t *ret, struct problem *p)
{
        static const char cure[] = "write 90s, 10m, 2h or 1h30m, or leave it out";
        struct error err = { 0 };
        uint64_t ms;

        if (!json_is_string(value))
                return take_refuse(p, field, value, ALLOWED_SPAN " as text",
                                   "write it as text, \"2h\", or use the _ms field");
        if (duration_parse(field, json_string_value(value), &ms, &err) < 0)
                return refuse_in_words(p, field, value, ALLOWED_SPAN, cure, &err);
        if (ms == 0)
                return take_refuse(p, field, value, ALLOWED_SPAN, cure);
        *ret = ms;
        return 0;
}

int take_moment(const json_t *value, const char *field, uint64_t *ret_wall_ms, struct problem *p)
{
        if (json_is_string(value) && rfc3339_parse(json_string_value(value), ret_wall_ms) == 0)
                return 0;
        return take_refuse(p, field, value, "a date, a time and an offset: \"2026-12-01T22:00:00+01:00\"",
                           "only who asks knows in which zone 22:00 is meant; write the offset, or Z");
}

/* Copies into a field of @size bytes; longer texts and control characters are refused, never cut. */
int take_text(const json_t *value, const char *field, char *to, size_t size, const char *allowed, struct problem *p)
{
        size_t n = json_string_length(value);

        if (!json_is_string(value) || n == 0 || n >= size || !text_is_plain(json_string_value(value), n))
                return take_refuse(p, field, value, allowed, "shorten it, or leave it out");
        memcpy(to, json_string_value(value), n);
        to[n] = '\0';
        return 0;
}

int take_bool(const json_t *value, const char *field, bool *ret, struct problem *p)
{
        if (!json_is_boolean(value))
                return take_refuse(p, field, value, "true, false", "write it without quotes, or leave it out");
        *ret = json_is_true(value);
        return 0;
}

int take_pid(const json_t *value, const char *field, const char *cure, uint32_t *ret, struct problem *p)
{
        uint64_t n = 0;

        if (take_count(value, field, 1, LEASE_PID_MAX, "1 … 4194304, a living process of the same user", cure, &n, p) <
            0)
                return -1;
        *ret = (uint32_t) n;
        return 0;
}

bool take_is_given(const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);
        return value && !json_is_null(value);
}
