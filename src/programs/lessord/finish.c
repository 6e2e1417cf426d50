/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/finish.h"
#include <inttypes.h>
#include <stdio.h>
#include "arbiter/manage.h"
#include "base/log.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/notify.h"

/* Half way, by the hands: nobody else would end it. Who is only asked to give way does that, or does not, without us. */
static bool is_half_way(const struct lease *lease)
{
        switch ((enum park_step) lease->park.step) {
        case PARK_LOCKING:
        case PARK_CHECKPOINTING:
        case PARK_STOPPING:
        case PARK_RESTORING:
        case PARK_UNLOCKING:
        case PARK_UNDOING:
        case PARK_HOLDING:
                return true;
        case PARK_SETTLING:
        case PARK_RETURNING:
        case PARK_ASKING:
                return (lease->park.way == WAY_OUT_CHECKPOINT && lease->park.step != PARK_ASKING) ||
                       (manage_is_under_way(lease) && lease->state != LEASE_STUCK);
        case PARK_NONE:
        case PARK_OUT:
        case PARK_HELD_HERE:
        case PARK_STEP_N:
                break;
        }
        return false;
}

uint32_t finish_half_way(const struct world *w)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < w->n_leases; i++)
                n += w->lease_ids[i] != 0 && is_half_way(&w->leases[i]);
        return n;
}

static void stop(struct daemon *d)
{
        const struct world *w = d->world;
        uint32_t n_parked = 0;
        uint64_t bytes = 0;

        for (uint32_t i = 0; w && i < w->n_leases; i++) {
                if (w->lease_ids[i] == 0 || w->leases[i].park.step != PARK_OUT)
                        continue;
                n_parked++;
                bytes += w->leases[i].park.charged_bytes;
        }
        if (n_parked > 0)
                log_info("event=left-parked leases=%u host_bytes=%" PRIu64
                         " words=\"they stay parked until lessord is back; lessor rescue brings them back without it\"",
                         n_parked, bytes);
        if (d->finish.begun)
                uv_close((uv_handle_t *) &d->finish.timer, NULL);
        d->finish.begun = false;
        d->stopping = true;
        uv_stop(&d->loop);
}

static void on_over(uv_timer_t *timer)
{
        struct daemon *d = timer->data;

        log_warning("event=stopping-anyway half_way=%u after_ms=%d", finish_half_way(d->world), FINISH_MOST_MS);
        stop(d);
}

void finish_begin(struct daemon *d, int signal)
{
        uint32_t n = d->world && !d->store_failed ? finish_half_way(d->world) : 0;
        char words[64];

        log_info("event=stopping signal=%d half_way=%u", signal, n);
        (void) snprintf(words, sizeof(words), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%d000", FINISH_MOST_MS + 5000);
        notify_service_manager(n > 0 ? words : "STOPPING=1");
        if (n == 0 || d->finish.begun) {
                stop(d);
                return;
        }
        d->finish.begun = true;
        (void) uv_timer_init(&d->loop, &d->finish.timer);
        d->finish.timer.data = d;
        (void) uv_timer_start(&d->finish.timer, on_over, FINISH_MOST_MS, 0);
}

void finish_look(struct daemon *d)
{
        if (d->finish.begun && !d->stopping && !d->store_failed && finish_half_way(d->world) == 0)
                stop(d);
}
