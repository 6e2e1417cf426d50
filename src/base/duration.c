/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"

enum { SHOWN_MAX = 48, UNIT_MAX = 8 };

static const struct unit {
        const char *name;
        uint64_t ms;
} units[] = {
        /* large to small */
        { "d", UINT64_C(86400000) }, { "h", 3600000 }, { "m", 60000 }, { "min", 60000 }, { "s", 1000 }, { "ms", 1 },
};

static const struct unit *unit_by_name(const char *name, size_t n_name)
{
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (strlen(units[i].name) == n_name && strncmp(units[i].name, name, n_name) == 0)
                        return &units[i];
        return NULL;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int refuse(const char *what, const char *text, const char *why, struct error *err)
{
        char shown[SHOWN_MAX];
        return error_set(err, EINVAL,
                         "%s: \"%s\" is not a span of time: %s; write 90s, 10m, 2h, 1h30m, 1d or 500ms (a bare number "
                         "is seconds), 365d at most",
                         what, text_escape(text, strlen(text), shown, sizeof(shown)), why);
}

/* What stands where a digit or a unit should; NULL = nothing known, the caller says it in general words. */
static const char *why_not_here(char c)
{
        if (c == '-')
                return "it is negative";
        if (c == '+')
                return "it has a sign";
        if (c == ' ' || (c >= '\t' && c <= '\r'))
                return "it has a blank in it";
        if (c == '.' || c == ',')
                return "it has a fraction; use the next smaller unit (90m for 1.5h)";
        return NULL;
}

int duration_parse(const char *what, const char *text, uint64_t *ret_ms, struct error *err)
{
        uint64_t total = 0, smallest = UINT64_MAX;
        bool fits = true;
        const char *c = text;

        if (!text || text[0] == '\0')
                return error_set(err, EINVAL,
                                 "%s is empty; write 90s, 10m, 2h, 1h30m, 1d or 500ms (a bare number is seconds)",
                                 what);

        while (*c != '\0') {
                uint64_t n = 0;
                if (!is_digit(*c)) {
                        const char *why = why_not_here(*c);
                        return refuse(what, text, why ? why : "a number must stand before each unit", err);
                }
                for (; is_digit(*c); c++)
                        fits = fits && !__builtin_mul_overflow(n, UINT64_C(10), &n) &&
                               u64_add(n, (uint64_t) (*c - '0'), &n);

                const char *name = c;
                while (is_letter(*c))
                        c++;
                const struct unit *unit;
                if (c > name)
                        unit = unit_by_name(name, (size_t) (c - name));
                else if (*c != '\0')
                        return refuse(what, text, why_not_here(*c) ? why_not_here(*c) : "it has no such unit", err);
                else if (smallest != UINT64_MAX)
                        return refuse(what, text, "its last number has no unit", err);
                else
                        unit = unit_by_name("s", 1);
                if (!unit)
                        return refuse(what, text, "it has no such unit", err);
                if (unit->ms >= smallest)
                        return refuse(what, text, "its units must go from large to small, each once", err);
                smallest = unit->ms;
                fits = fits && !__builtin_mul_overflow(n, unit->ms, &n) && u64_add(total, n, &total);
        }
        if (!fits || total > DURATION_MAX_MS)
                return refuse(what, text, "it is too long", err);
        *ret_ms = total;
        return 0;
}

const char *duration_text(uint64_t ms, char buf[DURATION_TEXT_MAX])
{
        static const struct {
                const char *name;
                uint64_t ms;
        } shown[] = { { "d", UINT64_C(86400000) }, { "h", 3600000 }, { "min", 60000 }, { "s", 1000 } };

        if (ms > 0 && ms < 1000) {
                (void) snprintf(buf, DURATION_TEXT_MAX, "%" PRIu64 " ms", ms);
                return buf;
        }
        for (size_t i = 0; i < 3; i++) {
                if (ms < shown[i].ms)
                        continue;
                uint64_t rest = ms % shown[i].ms / shown[i + 1].ms;
                if (rest > 0)
                        (void) snprintf(buf, DURATION_TEXT_MAX, "%" PRIu64 " %s %" PRIu64 " %s", ms / shown[i].ms,
                                        shown[i].name, rest, shown[i + 1].name);
                else
                        (void) snprintf(buf, DURATION_TEXT_MAX, "%" PRIu64 " %s", ms / shown[i].ms, shown[i].name);
                return buf;
        }
        (void) snprintf(buf, DURATION_TEXT_MAX, "%" PRIu64 " s", ms / 1000);
        return buf;
}
