/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/looks.h"
#include "programs/lessord/daemon.h"

static void on_timer(uv_timer_t *timer);

static void arm(struct daemon *d)
{
        uint64_t first = 0, now = uv_now(&d->loop);

        for (uint32_t i = 0; i < DEVICES_MAX; i++)
                if (d->looks.due_ms[i] != 0 && (first == 0 || d->looks.due_ms[i] < first))
                        first = d->looks.due_ms[i];
        if (first == 0)
                (void) uv_timer_stop(&d->looks.timer);
        else
                (void) uv_timer_start(&d->looks.timer, on_timer, first > now ? first - now : 0, 0);
}

static void look(struct daemon *d, uint32_t device, uint64_t now)
{
        d->looks.last_ms[device] = now;
        eyes_link_read(d->eyes, d->world->devices[device].uuid);
}

static void on_timer(uv_timer_t *timer)
{
        struct daemon *d = timer->data;
        uint64_t now = uv_now(&d->loop);

        for (uint32_t i = 0; i < d->world->n_devices; i++)
                if (d->looks.due_ms[i] != 0 && d->looks.due_ms[i] <= now) {
                        d->looks.due_ms[i] = 0;
                        look(d, i, now);
                }
        arm(d);
}

void looks_start(struct daemon *d)
{
        (void) uv_timer_init(&d->loop, &d->looks.timer);
        d->looks.timer.data = d;
        d->looks.started = true;
}

void looks_order(struct daemon *d, uint32_t device, uint64_t wait_ms)
{
        struct looks *l = &d->looks;

        if (device >= d->world->n_devices)
                return;
        uv_update_time(&d->loop); /* the turn may have taken longer than the wait is */
        uint64_t now = uv_now(&d->loop);
        if (wait_ms == 0 || !l->started) {
                look(d, device, now);
                return;
        }
        uint64_t apart_ms = wait_ms > LOOKS_APART_MS ? wait_ms : LOOKS_APART_MS;
        uint64_t due = l->last_ms[device] + apart_ms;
        due = due > now ? due : now;
        if (l->due_ms[device] != 0 && l->due_ms[device] <= due)
                return;
        l->due_ms[device] = due;
        arm(d);
}

void looks_stop(struct daemon *d)
{
        if (d->looks.started)
                uv_close((uv_handle_t *) &d->looks.timer, NULL);
        d->looks.started = false;
}
