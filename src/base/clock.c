/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include <assert.h>
#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
        struct timespec ts;
        int r = clock_gettime(clock, &ts);
        assert(r == 0); /* these clocks exist on every Linux; a failure here is a bad pointer or a bad id */
        return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

uint64_t clock_now_ms(void)
{
        return read_ns(CLOCK_MONOTONIC) / 1000000;
}

uint64_t clock_now_ns(void)
{
        return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_now_wall_ms(void)
{
        return read_ns(CLOCK_REALTIME) / 1000000;
}

uint64_t clock_asleep_ms(void)
{
        uint64_t monotonic_ns = read_ns(CLOCK_MONOTONIC);
        uint64_t boottime_ns = read_ns(CLOCK_BOOTTIME); /* read last, so never the smaller */

        return (boottime_ns - monotonic_ns) / 1000000;
}
