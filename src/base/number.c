/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "base/escape.h"

enum { SHOWN_MAX = 48 }; /* of what was given: enough to recognise it, whatever its length */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* What is wrong with a text that is not digits only; what was given is told by the caller. */
static const char *why_not_a_number(const char *text)
{
        if (text[0] == '-')
                return "is negative";
        if (text[0] == '+')
                return "has a sign";
        if (strpbrk(text, " \t\n\r\f\v"))
                return "has a blank in it";
        if (is_digit(text[0]) && strpbrk(text, ".,"))
                return "is not a whole number";
        return "is not a number";
}

int parse_u64(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct error *err)
{
        char shown[SHOWN_MAX];
        uint64_t value = 0;
        bool fits = true;

        if (!text || text[0] == '\0')
                return error_set(err, EINVAL,
                                 "%s is empty; give a whole number from %" PRIu64 " to %" PRIu64 ", digits only", what,
                                 min, max);
        (void) text_escape(text, strlen(text), shown, sizeof(shown));

        for (const char *c = text; *c != '\0'; c++) {
                if (!is_digit(*c))
                        return error_set(err, EINVAL,
                                         "%s: \"%s\" %s; give a whole number from %" PRIu64 " to %" PRIu64
                                         ", digits only",
                                         what, shown, why_not_a_number(text), min, max);
                uint64_t digit = (uint64_t) (*c - '0');
                fits = fits && !__builtin_mul_overflow(value, UINT64_C(10), &value) && u64_add(value, digit, &value);
        }
        if (!fits || value > max)
                return error_set(err, ERANGE, "%s: \"%s\" is too large; allowed are %" PRIu64 " to %" PRIu64, what,
                                 shown, min, max);
        if (value < min)
                return error_set(err, ERANGE, "%s: \"%s\" is too small; allowed are %" PRIu64 " to %" PRIu64, what,
                                 shown, min, max);
        *ret = value;
        return 0;
}
