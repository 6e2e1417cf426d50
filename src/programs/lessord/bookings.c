/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/bookings.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "arbiter/booking.h"
#include "base/duration.h"
#include "base/local_time.h"
#include "base/number.h"

bool bookings_owes_next(const struct world *w, const struct lease *l, uint64_t now_ms)
{
        if (l->booked_ms == 0 || !l->daily)
                return false;
        /* From the moment it may be granted: it may be over soon after. */
        return l->state != LEASE_QUEUED || now_ms + w->config.booking_lead_ms >= l->booked_ms;
}

/* "" = it may be on any. */
static const char *only_device(const struct world *w, const struct lease *l)
{
        uint32_t index = l->devices != 0 ? (uint32_t) __builtin_ctzll(l->devices) : DEVICES_MAX;

        if (l->devices == 0 || (l->devices & (l->devices - 1)) != 0 || index >= w->n_devices)
                return "";
        return w->devices[index].uuid;
}

bool bookings_next(const struct world *w, const struct lease *l, struct clocks now, uint32_t day, struct request *ret)
{
        int64_t start_s, last_s = (int64_t) (l->booked_wall_ms / 1000), now_s = (int64_t) (now.wall_ms / 1000);
        enum local_kind kind;

        tzset(); /* this machine may be in another zone since */
        do {
                if (!local_next_day(last_s, l->day_s, now_s, &start_s, &kind))
                        return false;
                last_s = start_s;
        } while (day-- > 0);

        *ret = (struct request){
                .uid = l->uid,
                .is_admin = true, /* that there may be a series was decided when it was made */
                .managed = l->managed,
                .kill_at_end = l->kill_at_end,
                .kill_left = l->kill_left,
                .no_stop = l->no_stop,
                .priority = l->priority,
                .bytes = l->bytes,
                .slot_ms = l->slot_ms,
                .start_wall_ms = (uint64_t) start_s * 1000,
                .daily = true,
                .day_s = l->day_s,
                .follows_id = l->id,
                .ways = { .named = l->ways.named, .declared = l->ways.declared },
                .binding = { .kind = BINDING_HEARTBEAT, .ttl_ms = DURATION_MAX_MS },
        };
        ret->start_ms = now.world_ms + (ret->start_wall_ms - now.wall_ms);
        (void) snprintf(ret->device_uuid, sizeof(ret->device_uuid), "%s", only_device(w, l));
        memcpy(ret->name, l->name, sizeof(ret->name));
        memcpy(ret->consumer, l->consumer, sizeof(ret->consumer));
        return true;
}

bool bookings_moved(const struct lease *l, struct clocks now, struct change *ret)
{
        if (l->booked_ms == 0 || l->state != LEASE_QUEUED)
                return false;

        uint64_t at_ms = l->booked_wall_ms > now.wall_ms
                                 ? now.world_ms + (l->booked_wall_ms - now.wall_ms)
                                 : u64_max(u64_sub0(now.world_ms, now.wall_ms - l->booked_wall_ms), 1);
        uint64_t apart_ms = at_ms > l->booked_ms ? at_ms - l->booked_ms : l->booked_ms - at_ms;
        *ret = (struct change){
                .lease_id = l->id, .uid = l->uid, .is_admin = true, .what = CHANGE_START, .start_ms = at_ms
        };
        return apart_ms > BOOKINGS_STEP_MS;
}
