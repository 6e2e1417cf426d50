/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Amounts of memory as text (design 2): `12G` = `12GiB` = 12·2^30, `12GB` = 12·10^9, likewise K M T; a fraction is fine
 * ("1.5G"); a bare number is bytes; `all` and `90%` are of a device's ceiling and resolved by who knows it.
 * Edges: 0, negative, blanks inside ("12 G"), exponents, NaN, hex, above 2^63-1 bytes, 0%, above 100% are errors that
 * name the field, what was given, what is allowed and the cure.
 */
#include <stdint.h>
#include "base/error.h"

enum size_kind { SIZE_BYTES, SIZE_PERCENT }; /* `all` is 100 percent */
struct size {
        enum size_kind kind;
        uint64_t bytes;         /* SIZE_BYTES: 1 … 2^63-1 */
        uint64_t percent_milli; /* SIZE_PERCENT: 1 … 100000, thousandths of a percent ("0.5%" = 500) */
};

#define SIZE_BYTES_MAX ((uint64_t) INT64_MAX)
enum { SIZE_TEXT_MAX = 64 };

/* -EINVAL with words in @err. @what is the field's name as the person typed it ("--vram", "bytes"). */
int size_parse(const char *what, const char *text, struct size *ret, struct error *err);
/* Both units, as the product echoes sizes everywhere: "12 GiB (12.9 GB)", "1500 MiB (1.57 GB)", "0 B". Exact binary
 * multiples print exact ("1500 MiB"); others with two decimals. Returns @buf. */
const char *size_text(uint64_t bytes, char buf[SIZE_TEXT_MAX]);
/* The binary half alone, for tables: "1500 MiB", "22.5 GiB". */
const char *size_text_short(uint64_t bytes, char buf[SIZE_TEXT_MAX]);
