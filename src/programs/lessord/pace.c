/* SPDX-License-Identifier: Apache-2.0 */
/* How often the eyes look, when the seconds tick, how long an input waits that nobody waits for, and when memory goes back. */
#include <malloc.h>

#include "arbiter/enforce.h"
#include "base/log.h"
#include "model/lease.h"
#include "programs/lessord/daemon.h"

enum {
        COMPANY_MS = 20,
        UNTRIMMED_MAX = 200, /* inputs */
};

/* ---- the eyes ---- */

/* One whose time has not come waits for the clock alone. */
static bool is_for_later(const struct world *w, const struct lease *l)
{
        return l->state == LEASE_QUEUED && l->booked_ms > w->now_ms + w->config.booking_lead_ms;
}

bool pace_somebody_waits(const struct world *w)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                uint8_t state = w->leases[i].state;
                if (w->lease_ids[i] != 0 &&
                    (state == LEASE_QUEUED || state == LEASE_GRANTED || state == LEASE_DRAINING ||
                     state == LEASE_ASKING || state == LEASE_THAWING) &&
                    !is_for_later(w, &w->leases[i]))
                        return true;
        }
        return false;
}

/* Who is parked waits for room, hours maybe: no reason to look all the time, but what was looked for is wanted at once. */
bool pace_an_answer_is_awaited(const struct world *w)
{
        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && w->leases[i].state == LEASE_PARKED && !ref_is_none(w->leases[i].entry))
                        return true;
        return pace_somebody_waits(w);
}

bool pace_has_leases(const struct world *w)
{
        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0)
                        return true;
        return false;
}

static uint64_t wanted_interval_ms(const struct daemon *d)
{
        return pace_somebody_waits(d->world) ? d->conf.poll_busy_ms
               : pace_has_leases(d->world)   ? d->conf.poll_ms
                                             : d->conf.poll_idle_ms;
}

/* ---- ticks ---- */

/* Somebody waits for each step of that, and the journal can be tidied later: it is over soon. */
static bool memory_moves(const struct world *w)
{
        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && (w->leases[i].state == LEASE_ASKING || w->leases[i].state == LEASE_THAWING))
                        return true;
        return false;
}

static bool tidy(struct daemon *d)
{
        if (!d->tidying_is_late || d->inputs.n != 0 || writer_is_busy(d->writer) || gate_holds(d) ||
            memory_moves(d->world))
                return false;
        d->tidying_is_late = false;
        if (!journal_wants_tidying(d->journal))
                return false;
        writer_order(d->writer, WRITER_TIDY);
        return true;
}

/* A crowd that came at once leaves a heap full of holes, which glibc gives back only from its end. */
static void give_memory_back(struct daemon *d)
{
        if (d->n_untrimmed < UNTRIMMED_MAX || pace_an_answer_is_awaited(d->world) || memory_moves(d->world))
                return;
        d->n_untrimmed = 0;
        (void) malloc_trim(0);
}

static void on_tick(uv_timer_t *timer)
{
        struct daemon *d = timer->data;
        struct input tick = { .kind = INPUT_TICK };
        struct error err = { 0 };

        log_catch_up();
        if (d->store_failed || !turn_is_settled(d))
                return; /* what is due is due at the next one too */
        int r = journal_look(d->journal, &err);
        if (r < 0) {
                outage_begin(d, &(struct inputs){ 0 }, -r, &err);
                return;
        }
        eyes_link_interval(d->eyes, d->eyes_ms = wanted_interval_ms(d), d->conf.poll_activity_ms);
        give_memory_back(d);
        if (!pace_has_leases(d->world) && !enforce_needs_ticks(d->world))
                (void) uv_timer_stop(&d->tick);
        d->tidying_is_late = true;
        if (tidy(d)) {
                daemon_submit(d, &tick);
                return;
        }
        if (d->owners.incomplete || d->roots.incomplete || d->parked.incomplete)
                turn_watch_processes(d, END_OWNER_EXITED);
        bookings_tick(d);
        daemon_submit(d, &tick);
}

/* Faster at once, slower with the next tick: leases that come and go are no reason to tell the eyes so each time. */
void pace_set(struct daemon *d)
{
        uint64_t ms = wanted_interval_ms(d);

        if (d->eyes_ms == 0 || ms < d->eyes_ms)
                eyes_link_interval(d->eyes, d->eyes_ms = ms, d->conf.poll_activity_ms);
        if (!uv_is_active((uv_handle_t *) &d->tick) &&
            (pace_has_leases(d->world) || enforce_needs_ticks(d->world) || ms != d->eyes_ms))
                (void) uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
        (void) tidy(d);
}

/* ---- inputs that can wait ---- */

static void on_company(uv_timer_t *timer)
{
        struct daemon *d = timer->data;

        d->inputs_can_wait = false;
        daemon_stay_awake(d);
}

void pace_wait_for_company(struct daemon *d)
{
        if (!uv_is_active((uv_handle_t *) &d->company))
                (void) uv_timer_start(&d->company, on_company, COMPANY_MS, 0);
}
