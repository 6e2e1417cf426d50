/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Spans of time as text: "90s", "10m", "2h", "1h30m", "1d", "500ms"; a bare number is seconds. Units large to small,
 * each at most once. Edges: empty, negative, blanks inside, fractions, exponents, overflow above DURATION_MAX_MS are errors.
 */
#include <stdint.h>
#include "base/error.h"

#define DURATION_MAX_MS (UINT64_C(365) * 24 * 3600 * 1000) /* a year: longer is a typing error */
enum { DURATION_TEXT_MAX = 48 };

int duration_parse(const char *what, const char *text, uint64_t *ret_ms, struct error *err);
/* For people: "350 ms", "42 s", "10 min", "1 h 50 min", "2 d 3 h". Returns @buf. */
const char *duration_text(uint64_t ms, char buf[DURATION_TEXT_MAX]);
