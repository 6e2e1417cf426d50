/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How many of something there may be in a second. Reads no clock. */
#include <stdbool.h>
#include <stdint.h>

/* So many a second, as a bucket that fills. All zero = full. */
struct rate {
        uint64_t spent_milli; /* thousandths of one */
        uint64_t at_ms;
};

/* False = too many; refused ones count too, so that a mad brain is told no from one moment to the next. */
bool rate_take(struct rate *rate, uint32_t per_s, uint32_t burst, uint64_t now_ms);
