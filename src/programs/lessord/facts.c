/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/facts.h"
#include <inttypes.h>
#include "base/log.h"
#include "base/number.h"
#include "model/lease.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/records.h"
#include "senses/driver.h"

/* ---- can it be done here? ---- */

static void note_driver(struct daemon *d, const char *version, const struct driver_known *note)
{
        uint64_t number = driver_number(version);

        if (number == d->facts.noted)
                return;
        d->facts.noted = number;
        if (note)
                log_line(note->broken ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                         "event=driver-known version=%s broken=%d words=\"%s\" reference=\"%s\"", version, note->broken,
                         note->words, note->reference);
}

static enum checkpoint_cannot checkpoint_now(struct daemon *d)
{
        bool anyway = d->conf.checkpoint == CONF_CHECKPOINT_ON;
        const char *version = eyes_link_driver(d->eyes);
        const struct driver_known *note;
        enum driver_verdict verdict = driver_judge(version, &note);

        note_driver(d, version, note);
        if (d->conf.checkpoint == CONF_CHECKPOINT_OFF)
                return CHECKPOINT_OFF;
#ifndef __x86_64__
        return CHECKPOINT_NO_MACHINE;
#endif
        if (!hands_can_checkpoint(d))
                return CHECKPOINT_NO_HANDS;
        if (d->facts.cannot != CHECKPOINT_UNKNOWN)
                return (enum checkpoint_cannot) d->facts.cannot;
        switch (verdict) {
        case DRIVER_UNKNOWN:
                return anyway ? CHECKPOINT_CAN : CHECKPOINT_UNKNOWN;
        case DRIVER_OLD:
                return anyway ? CHECKPOINT_CAN : CHECKPOINT_OLD_DRIVER;
        case DRIVER_BROKEN:
                return anyway ? CHECKPOINT_CAN : CHECKPOINT_BAD_DRIVER;
        case DRIVER_FINE:
                break;
        }
        return CHECKPOINT_CAN;
}

void facts_heard(struct daemon *d, enum warden_why why)
{
        uint8_t before = d->facts.cannot;

        if (why == WARDEN_WHY_CANNOT_MACHINE)
                d->facts.cannot = CHECKPOINT_NO_MACHINE;
        else if (why == WARDEN_WHY_CANNOT_LIBRARY)
                d->facts.cannot = CHECKPOINT_NO_LIBRARY;
        else if (why == WARDEN_WHY_CANNOT_DRIVER)
                d->facts.cannot = CHECKPOINT_OLD_DRIVER;
        if (d->facts.cannot != before)
                facts_look_soon(d);
}

/* ---- host memory ---- */

static bool moved(uint64_t a, uint64_t b)
{
        return (a > b ? a - b : b - a) > FACTS_CHANGE_BYTES;
}

static bool below_reserve(const struct config *config, const struct host *host)
{
        uint64_t share = host->total_bytes / 1000 * config->host_reserve_milli;
        return host->available_bytes < (share > config->host_reserve_bytes ? share : config->host_reserve_bytes);
}

/* Host memory moves all the time: while there is no lease nobody would do anything about it. */
static bool is_news(const struct daemon *d, const struct host *now)
{
        const struct host *told = &d->facts.told;

        if (!d->facts.told_once || now->checkpoint != told->checkpoint || now->driver != told->driver ||
            now->total_bytes != told->total_bytes)
                return true;
        return pace_has_leases(d->world) &&
               (moved(now->available_bytes, told->available_bytes) || now->pressure != told->pressure ||
                below_reserve(&d->conf.core, now) != below_reserve(&d->conf.core, told));
}

static void look_at_host(struct daemon *d)
{
        struct input input = { .kind = INPUT_HOST };
        struct host_memory memory = { 0 };
        uint64_t some_milli = 0;

        (void) host_read_memory("/proc", &memory); /* not to be had: all 0, nothing is moved into host memory */
        bool known = host_read_pressure("/proc", &some_milli) == 0;
        input.host = (struct host){ .total_bytes = memory.total_bytes,
                                    .available_bytes = memory.available_bytes,
                                    .read_ms = daemon_now_ms(d),
                                    .driver = driver_number(eyes_link_driver(d->eyes)),
                                    .pressure = host_is_short(d->facts.told.pressure, known, some_milli),
                                    .checkpoint = (uint8_t) checkpoint_now(d) };
        if (!is_news(d, &input.host))
                return;
        if (!d->facts.told_once || input.host.checkpoint != d->facts.told.checkpoint)
                log_info("event=checkpoint can=%s driver=\"%s\"",
                         checkpoint_cannot_name((enum checkpoint_cannot) input.host.checkpoint),
                         eyes_link_driver(d->eyes));
        if (input.host.pressure != d->facts.told.pressure)
                log_line(input.host.pressure ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                         "event=host-memory-%s some_milli=%" PRIu64 " available_bytes=%" PRIu64,
                         input.host.pressure ? "short" : "eased", some_milli, input.host.available_bytes);
        d->facts.told_once = true;
        d->facts.told = input.host;
        daemon_submit_patiently(d, &input);
}

/* ---- memory cgroups ---- */

static bool may_be_parked(const struct lease *lease)
{
        return lease->filler || (lease->ways.named == 0 && lease_state_holds((enum lease_state) lease->state)) ||
               (ways_out_usable(&lease->ways) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT)) != 0;
}

static bool is_wanted(const struct world *w, const struct process *p)
{
        if (ref_is_none(p->lease) || p->lease.index >= w->n_leases || p->state != PROCESS_LIVE ||
            p->member != MEMBER_RUNNING || p->order_id != 0)
                return false;
        return may_be_parked(&w->leases[p->lease.index]);
}

uint64_t facts_room_of(const struct daemon *d, uint32_t pid)
{
        return d->facts.started ? host_room_of(&d->facts.limits, "/proc", pid) : 0;
}

/* The facts are told again whole: only while nothing is on its way that could change them meanwhile. */
static void look_at_processes(struct daemon *d)
{
        uint32_t n = d->world->n_processes, n_read = 0;

        for (uint32_t i = 0; i < n && n_read < FACTS_PROCESSES_A_LOOK; i++) {
                const struct process *p = &d->world->processes[d->facts.next_process++ % n];
                if (!is_wanted(d->world, p))
                        continue;
                n_read++;
                uint64_t room = facts_room_of(d, p->identity.pid);
                if (room == 0 || room == p->room_bytes || !moved(room, p->room_bytes))
                        continue;
                struct input input = { .kind = INPUT_PROCESS, .process = *p };
                input.process.room_bytes = room;
                input.process.lease = (struct ref){ 0 };
                daemon_submit_patiently(d, &input);
        }
}

/* ---- the timer ---- */

static bool something_could_be_parked(const struct daemon *d)
{
        const struct world *w = d->world;

        if (d->facts.told.checkpoint != CHECKPOINT_CAN)
                return false;
        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && (w->leases[i].park.step != PARK_NONE || may_be_parked(&w->leases[i])))
                        return true;
        return false;
}

static bool somebody_is_away(const struct daemon *d)
{
        for (uint32_t i = 0; i < d->world->n_processes; i++)
                if (d->world->processes[i].member != MEMBER_RUNNING)
                        return true;
        return false;
}

static void on_timer(uv_timer_t *timer)
{
        struct daemon *d = timer->data;

        if (!d->store_failed && turn_is_settled(d) && !d->stopping) {
                bool busy = something_could_be_parked(d);
                look_at_host(d);
                if (busy && d->inputs.n == 0)
                        look_at_processes(d);
                if (somebody_is_away(d))
                        records_find_running(d);
                d->facts.calm = !busy;
                (void) uv_timer_start(timer, on_timer, busy ? FACTS_BUSY_MS : FACTS_CALM_MS, 0);
        } else {
                (void) uv_timer_start(timer, on_timer, FACTS_BUSY_MS, 0);
        }
}

void facts_start(struct daemon *d)
{
        host_limits_find(&d->facts.limits, "/proc");
        (void) uv_timer_init(&d->loop, &d->facts.timer);
        d->facts.timer.data = d;
        d->facts.started = true;
        (void) uv_timer_start(&d->facts.timer, on_timer, 0, 0);
}

void facts_look_soon(struct daemon *d)
{
        if (d->facts.started && !d->stopping)
                (void) uv_timer_start(&d->facts.timer, on_timer, 0, 0);
}

void facts_leases_changed(struct daemon *d)
{
        if (!d->facts.started || !d->facts.calm || d->stopping)
                return;
        d->facts.calm = false;
        (void) uv_timer_start(&d->facts.timer, on_timer, FACTS_BUSY_MS, 0);
}

void facts_stop(struct daemon *d)
{
        if (d->facts.started)
                uv_close((uv_handle_t *) &d->facts.timer, NULL);
        d->facts.started = false;
}
