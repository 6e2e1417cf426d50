/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * World time: CLOCK_MONOTONIC plus an offset, so that it goes on over restarts of the daemon and never goes back over a
 * reboot, where CLOCK_MONOTONIC starts anew. The offset of a boot is kept in a small file beside the journal; where that
 * file is lost, the wall clock tells how long we were away.
 */
#include <stdint.h>
#include "base/error.h"

enum { WORLD_CLOCK_BOOT_ID_SIZE = 37 };

struct world_clock {
        uint64_t offset_ms;
        char boot_id[WORLD_CLOCK_BOOT_ID_SIZE];
};

/*
 * @boot_id       of now; "" = unknown
 * @world_ms      the world's time in the journal, 0 for a fresh one; @last_wall_ms: the wall time of that moment
 * The new offset is written to @path when it changed; a failure to write it is @err and not fatal.
 */
int world_clock_init(struct world_clock *c, const char *path, const char *boot_id, uint64_t world_ms,
                     uint64_t last_wall_ms, struct error *err);
uint64_t world_clock_now_ms(const struct world_clock *c);
/* Of a CLOCK_MONOTONIC time. */
uint64_t world_clock_of_monotonic(const struct world_clock *c, uint64_t monotonic_ms);
