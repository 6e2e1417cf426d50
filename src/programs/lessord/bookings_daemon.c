/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings, where the daemon asks the core for them. */
#include <inttypes.h>
#include <stdio.h>
#include "base/log.h"
#include "programs/lessord/bookings.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/plan.h"

/* The next day it can be: others may have booked tomorrow. Asked on a copy of the world: a refusal is nobody's answer here. */
static bool find_next(struct daemon *d, const struct lease *l, struct clocks now, struct request *ret)
{
        struct api_planned planned;

        for (uint32_t day = 0; day < BOOKINGS_DAYS_TRIED; day++) {
                if (!bookings_next(d->world, l, now, day, ret) || !plan_request(d->world, now.world_ms, ret, &planned))
                        return false;
                if (planned.answer.kind != ACTION_REFUSED)
                        return true;
                log_warning("event=booking-not-again lease=L%" PRIu64 " day=%u rule=%s", l->id, day + 1,
                            rule_name((enum rule) planned.answer.why.rule));
        }
        return false;
}

static void make_again(struct daemon *d, uint32_t row, struct clocks now)
{
        const struct lease *l = &d->world->leases[row];
        struct bookings *b = &d->bookings;
        struct input input = { .kind = INPUT_REQUEST };

        if (b->lease_id[row] == l->id && now.world_ms < b->again_ms[row])
                return;
        if (find_next(d, l, now, &input.request)) {
                daemon_submit(d, &input);
                return;
        }
        log_error("event=booking-given-up-for-now lease=L%" PRIu64, l->id);
        b->lease_id[row] = l->id;
        b->again_ms[row] = now.world_ms + BOOKINGS_AGAIN_MS;
}

static struct clocks clocks_of(struct daemon *d)
{
        return (struct clocks){ .world_ms = daemon_now_ms(d), .wall_ms = daemon_wall_ms(d) };
}

void bookings_look(struct daemon *d)
{
        struct clocks now = clocks_of(d);

        for (uint32_t i = 0; i < d->world->n_leases; i++)
                if (d->world->lease_ids[i] != 0 && bookings_owes_next(d->world, &d->world->leases[i], now.world_ms))
                        make_again(d, i, now);
}

void bookings_tick(struct daemon *d)
{
        struct clocks now = clocks_of(d);

        if (d->inputs.n != 0) /* what is being asked for already is not asked for twice */
                return;
        for (uint32_t i = 0; i < d->world->n_leases; i++) {
                struct input input = { .kind = INPUT_CHANGE };
                if (d->world->lease_ids[i] != 0 && bookings_moved(&d->world->leases[i], now, &input.change))
                        daemon_submit(d, &input);
        }
        bookings_look(d);
}
