/* SPDX-License-Identifier: Apache-2.0 */
#include "api/booking.h"
#include <time.h>
#include "base/duration.h"
#include "base/local_time.h"
#include "base/number.h"

void booking_fill(const struct conn *c, struct lease_ask *ask)
{
        const struct api_host *host = &c->server->host;
        struct request *r = &ask->request;
        struct local_time local = { 0 };

        if (!ask->books)
                return;
        uint64_t now_ms = host->now_ms(host->ctx), wall_ms = host->wall_of_ms(host->ctx, now_ms);
        if (ask->start_in_ms != 0)
                ask->start_wall_ms = wall_ms + ask->start_in_ms;
        r->start_wall_ms = ask->start_wall_ms;
        r->start_ms =
                u64_max(now_ms + u64_sub0(ask->start_wall_ms, wall_ms), 1); /* has passed: now, which is refused */
        if (r->daily) {
                tzset(); /* somebody may have moved this machine to another zone since */
                (void) local_time_at((int64_t) (ask->start_wall_ms / 1000), &local);
                r->day_s = local.second;
        }
        r->binding = (struct binding){ .kind = BINDING_HEARTBEAT, .ttl_ms = DURATION_MAX_MS };
}
