/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whole decimal numbers as text. Signs, blanks, trailing garbage, an empty text and overflow are errors; the words name
 * what was given and what is allowed. */
#include <stdint.h>
#include "base/error.h"

/* @what names the field in the error ("--priority"). -EINVAL: not a number; -ERANGE: outside [min, max]. */
int parse_u64(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct error *err);
/* Sums that may not wrap. True = fits and *ret is written. */
static inline int u64_add(uint64_t a, uint64_t b, uint64_t *ret)
{
        return !__builtin_add_overflow(a, b, ret);
}
static inline uint64_t u64_mul_sat(uint64_t a, uint64_t b)
{
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t u64_add_sat(uint64_t a, uint64_t b)
{
        uint64_t sum;
        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum; /* absurd figures stay absurd, they never wrap */
}
/* The larger and the smaller; a - b, or 0 where that would be negative (unsigned: subtract only after comparing). */
static inline uint64_t u64_max(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}
static inline uint64_t u64_min(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}
static inline uint64_t u64_sub0(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}
