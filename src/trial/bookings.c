/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises for later, as lessord keeps them beside its core (lessord/bookings.h): a daily one is made again when it begins, and
 * one that waits goes with people's clock when that is set. A day of this world is what the script says. Who booked has no
 * process until its time has come, and may come late.
 */
#include <string.h>
#include "trial/trial.h"

enum { STEP_MS = 1500, DAYS_TRIED = 3, AGAIN_MS = 300000, SERIES_FIRST = 100000, CLIENTS_KEPT = 100 };

static uint64_t wall_ms(const struct trial *t)
{
        return t->now_ms + t->wall_ahead_ms - t->wall_behind_ms;
}

/* Nobody's process, until it is collected; the same moment however often it is asked for. */
void booking_fill(struct trial *t, struct client *c, struct request *r)
{
        if (c->booked_ms == 0)
                c->booked_ms = t->now_ms + c->arg[ASK_START_MS];
        r->start_ms = c->booked_ms;
        r->start_wall_ms = u64_sub0(wall_ms(t) + c->booked_ms, t->now_ms);
        r->daily = c->arg[ASK_EVERY_MS] != 0;
        r->follows_id = c->follows_id;
        r->is_admin = r->is_admin || c->follows_id != 0;
        r->binding.kind = BINDING_HEARTBEAT;
        r->binding.ttl_ms = HOURS(24 * 365);
        r->binding.owner = (struct identity){ 0 };
        r->collected = r->no_wait = r->exclusive = r->filler = r->learned = false;
        r->wait_ms = 0;
}

/* Whoever booked may have gone home, or lost the machine under him: he comes again. */
void booking_owner_comes(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];

        if (c->booked_ms == 0 || c->phase > CLIENT_WAITS || (t->procs[c->owner].used && t->procs[c->owner].alive))
                return;
        c->owner = proc_new(t, i, (uint32_t) c->arg[ASK_UID], 0, NOBODY);
        t->procs[c->owner].is_owner = true;
        t->procs[c->owner].ignores_term = false;
}

/* ---- the next of a series ---- */

static bool owes_next(const struct trial *t, const struct lease *l)
{
        return l->booked_ms != 0 && l->daily &&
               (l->state != LEASE_QUEUED || t->now_ms + t->config.booking_lead_ms >= l->booked_ms);
}

static bool make_next(struct trial *t, const struct lease *l, uint32_t of, uint32_t day)
{
        const struct client *before = &t->clients[of];
        uint64_t every_ms = before->arg[ASK_EVERY_MS], arg[EVENT_ARGS];
        uint64_t days = u64_sub0(wall_ms(t), l->booked_wall_ms) / every_ms + 1 + day;

        memcpy(arg, before->arg, sizeof(arg));
        arg[ASK_N] = SERIES_FIRST + t->n_clients;
        uint32_t i = client_new(t, arg);
        struct client *c = &t->clients[i];
        c->follows_id = l->id;
        c->booked_ms = t->now_ms + u64_sub0(l->booked_wall_ms + days * every_ms, wall_ms(t));
        client_begins(t, i);
        t->count.series += c->phase != CLIENT_GONE;
        return c->phase != CLIENT_GONE;
}

static void make_again(struct trial *t, uint64_t lease_id)
{
        struct book *b = book_of(t, lease_id);
        uint32_t of = client_of_lease(t, lease_id);

        if (!b || of == NOBODY || t->now_ms < b->series_again_ms || t->n_clients + CLIENTS_KEPT > CLIENTS_MAX)
                return;
        for (uint32_t day = 0; day < DAYS_TRIED && t->up; day++) {
                const struct lease *l = world_lease_by_id(t->world, lease_id);
                if (!l || make_next(t, l, of, day))
                        return;
        }
        b->series_again_ms = t->now_ms + AGAIN_MS;
}

/* ---- people's clock ---- */

static void follow_clock(struct trial *t, const struct lease *l)
{
        uint64_t now = wall_ms(t);
        uint64_t at_ms = l->booked_wall_ms > now ? t->now_ms + (l->booked_wall_ms - now)
                                                 : u64_max(u64_sub0(t->now_ms, now - l->booked_wall_ms), 1);
        uint64_t apart_ms = at_ms > l->booked_ms ? at_ms - l->booked_ms : l->booked_ms - at_ms;
        struct input input = { .kind = INPUT_CHANGE };

        if (apart_ms <= STEP_MS)
                return;
        input.change = (struct change){ .token = ++t->next_token,
                                        .lease_id = l->id,
                                        .uid = l->uid,
                                        .is_admin = true,
                                        .what = CHANGE_START,
                                        .start_ms = at_ms };
        t->sent_change = input.change;
        (void) daemon_submit(t, &input);
}

void bookings_tick(struct trial *t)
{
        for (uint32_t i = 0; t->up && i < t->world->n_leases; i++) {
                const struct lease *l = &t->world->leases[i];
                if (t->world->lease_ids[i] == 0 || l->booked_ms == 0)
                        continue;
                if (l->state == LEASE_QUEUED)
                        follow_clock(t, l);
                if (t->up && t->world->lease_ids[i] != 0 && owes_next(t, l) && !t->faults.quiet)
                        make_again(t, l->id);
        }
}
