/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rate.h"

enum { MILLI = 1000 };

bool rate_take(struct rate *rate, uint32_t per_s, uint32_t burst, uint64_t now_ms)
{
        uint64_t most = (uint64_t) burst * MILLI;
        uint64_t passed_ms = now_ms > rate->at_ms ? now_ms - rate->at_ms : 0;
        uint64_t back = passed_ms < most ? passed_ms * per_s : most; /* per_s a second is per_s thousandths a ms */

        rate->at_ms = now_ms;
        rate->spent_milli = rate->spent_milli > back ? rate->spent_milli - back : 0;
        if (rate->spent_milli + MILLI > most)
                return false;
        rate->spent_milli += MILLI;
        return true;
}
