/* SPDX-License-Identifier: Apache-2.0 */
/* One life, from event to event. Where nothing waits and nothing is under way the clock takes bigger steps: no deadline of the
 * core lies in between, since a tick is never later than the next of them (next_tick). */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "trial/trial.h"

enum { SWEEP_MS = 15000, LONG_TICK_MS = 30000, DRAIN_HOURS = 14, AT_ONCE_MS = 1000, LAST_MINUTES = 3 };

static void unquiet(struct trial *t)
{
        t->unquiet_ms = t->now_ms;
}

/* ---- timers ---- */

static bool is_same_proc(const struct trial *t, const struct timer *timer)
{
        return t->procs[timer->a].used && t->procs[timer->a].identity.pid == timer->b;
}

static bool is_same_order(const struct trial *t, const struct timer *timer)
{
        return t->orders[timer->a].order.id == timer->b;
}

static void ring(struct trial *t, const struct timer *timer)
{
        switch ((enum timer_kind) timer->kind) {
        case TIMER_SWEEP:
                card_sweep(t);
                proc_forget_dead(t);
                timer_add(t, SWEEP_MS, TIMER_SWEEP, 0, 0);
                break;
        case TIMER_LOOK:
                card_look(t, timer->a);
                break;
        case TIMER_LOOK_ARRIVES:
                card_look_arrives(t, timer->a);
                break;
        case TIMER_ORDER_DONE:
                if (is_same_order(t, timer))
                        hands_done(t, timer->a);
                break;
        case TIMER_ORDER_TOLD:
                if (is_same_order(t, timer))
                        hands_told(t, timer->a);
                break;
        case TIMER_PROC_GROWS:
                if (is_same_proc(t, timer))
                        proc_grow(t, timer->a);
                break;
        case TIMER_PROC_DIES:
                if (is_same_proc(t, timer))
                        proc_die(t, timer->a);
                break;
        case TIMER_EXIT_SEEN:
                if (is_same_proc(t, timer))
                        proc_exit_seen(t, timer->a);
                break;
        case TIMER_CLIENT:
                client_look(t, timer->a);
                break;
        case TIMER_CLIENT_ENDS:
                client_ends(t, timer->a);
                break;
        case TIMER_CLIENT_RENEWS:
                client_renews(t, timer->a);
                break;
        case TIMER_CLIENT_YIELDS:
        case TIMER_CLIENT_YIELDED:
        case TIMER_CLIENT_TAKES_BACK:
        case TIMER_CLIENT_RETURNS:
        case TIMER_CLIENT_IDLE:
                client_park_timer(t, timer);
                break;
        case TIMER_STRANGER_RETURNS:
                if (is_same_proc(t, timer))
                        stranger_returns(t, timer->a);
                break;
        case TIMER_DAEMON_UP:
                daemon_start(t, false);
                unquiet(t);
                break;
        case TIMER_EYES_BACK:
                eyes_back(t, timer);
                unquiet(t);
                break;
        case TIMER_HANDS_BACK:
                hands_back(t);
                unquiet(t);
                break;
        case TIMER_CARD_BACK:
                t->cards[timer->a].lost = false;
                if (t->up)
                        card_tell(t, timer->a);
                t->cards[timer->a].dirty = true;
                break;
        case TIMER_HOST_BACK:
                host_back(t);
                break;
        case TIMER_TICK:
        case TIMER_NONE:
        case TIMER_KIND_N:
                break;
        }
}

/* ---- time ---- */

/* A booking that has been told what it waits for. */
static bool is_for_later(const struct trial *t, const struct entry *e)
{
        return e->kind == ENTRY_BOOKING && t->now_ms + t->config.booking_lead_ms < e->due_ms;
}

/* Is anything under way that time alone moves on? */
static bool is_busy(const struct trial *t)
{
        if (t->now_ms < t->busy_until_ms || t->world->n_plans != 0)
                return true;
        for (uint32_t i = 0; i < t->world->n_entries; i++) {
                const struct entry *e = &t->world->entries[i];
                if (e->kind != ENTRY_NONE && !is_for_later(t, e))
                        return true;
        }
        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                const struct lease *l = &t->world->leases[i];
                const struct entry *e = world_entry_get(t->world, l->entry);
                if (t->world->lease_ids[i] == 0 || (l->state == LEASE_QUEUED && e && is_for_later(t, e)))
                        continue;
                if (l->state != LEASE_ACTIVE || l->ending || l->over_use_since_ms != 0)
                        return true;
        }
        return false;
}

static uint64_t later_ms(const struct trial *t, uint64_t since_ms, uint64_t span_ms)
{
        return since_ms != 0 && since_ms + span_ms > t->now_ms ? since_ms + span_ms : UINT64_MAX;
}

/* What is overdue waits for what is in doubt, and a long tick is soon enough. */
static uint64_t enforcer_is_due_ms(const struct trial *t)
{
        const struct config *c = &t->world->config;
        uint64_t next = UINT64_MAX;

        for (uint32_t i = 0; i < t->world->n_audits; i++) {
                const struct audit *a = &t->world->audits[i];
                if (a->gone_ms != 0)
                        continue;
                next = u64_min(next, later_ms(t, a->over_ms, c->enforce_stay_ms));
                next = u64_min(next, later_ms(t, a->noticed_ms, c->enforce_notice_ms));
                next = u64_min(next, later_ms(t, a->term_ms, c->enforce_grace_ms[0]));
                next = u64_min(next, later_ms(t, a->kill_ms, c->enforce_give_up_ms));
                next = u64_min(next, later_ms(t, a->again_ms, 0));
        }
        for (uint32_t i = 0; i < t->world->n_approvals; i++)
                next = u64_min(next, later_ms(t, t->world->approvals[i].until_ms, 0));
        return next;
}

/* The next tick: a second away, or, where nothing is under way, at the first deadline there is. */
static uint64_t next_tick_ms(const struct trial *t)
{
        uint64_t next = t->now_ms + LONG_TICK_MS;

        if (is_busy(t))
                return t->now_ms + AT_ONCE_MS;
        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                const struct lease *l = &t->world->leases[i];
                if (t->world->lease_ids[i] == 0)
                        continue;
                if (l->booked_ms != 0 && l->state == LEASE_QUEUED)
                        next = u64_min(next, u64_sub0(l->booked_ms, t->config.booking_lead_ms));
                uint64_t lead = u64_min(t->config.slot_warning_ms, l->slot_ms / 2);
                if (l->slot_end_ms > t->now_ms)
                        next = u64_min(next,
                                       l->slot_end_ms - lead > t->now_ms ? l->slot_end_ms - lead : l->slot_end_ms);
                if (l->kill_left || l->kill_at_end)
                        next = u64_min(next, t->now_ms + AT_ONCE_MS);
        }
        next = u64_min(next, enforcer_is_due_ms(t));
        return u64_max(next, t->now_ms + AT_ONCE_MS);
}

static void begin(struct trial *t, const struct script *script, bool verbose)
{
        memset(t, 0, offsetof(struct trial, world));
        t->script = script;
        t->verbose = verbose;
        memcpy(t->faults.off, script->off, sizeof(t->faults.off));
        t->now_ms = TRIAL_START_MS;
        t->end_ms = t->now_ms + HOURS(script->hours);
        t->digest = UINT64_C(14695981039346656037);
        t->next_action_id = 1;
        t->next_pid = 5000;
        t->hands_up = true;
        t->cut = FAULT_N;
        config_defaults(&t->config);
        if (script->hurried) {
                t->config.aging_ms = SECONDS(20);
                t->config.block_after_ms = SECONDS(30);
                t->config.keep_rank_ms = SECONDS(60);
                t->config.usage_forgiven_ms = SECONDS(40);
        }
        t->host = (struct host){ .total_bytes = MIB(65536), .driver = 550, .checkpoint = CHECKPOINT_CAN };
        t->host.available_bytes = t->host.total_bytes / 4 * 3;
        t->cgroup_room_bytes = UINT64_MAX;
        t->n_cards = script->n_cards;
        for (uint32_t c = 0; c < t->n_cards; c++) {
                struct card *card = &t->cards[c];
                (void) snprintf(card->uuid, sizeof(card->uuid), "GPU-%u", c);
                card->total_bytes = script->cards[c].total_bytes;
                card->driver_bytes = script->cards[c].driver_bytes;
                card->random = random_of(script->seed, 2, c);
        }
        daemon_start(t, true);
        timer_add(t, 1000, TIMER_SWEEP, 0, 0);
}

static bool is_over(const struct trial *t)
{
        if (t->next_event < t->script->n_events || !t->up)
                return false;
        for (uint32_t c = 0; c < t->n_clients; c++)
                if (t->clients[c].phase != CLIENT_GONE && t->clients[c].phase != CLIENT_AWAY)
                        return false;
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].alive)
                        return false;
        for (uint32_t i = 0; i < t->world->n_leases; i++)
                if (t->world->lease_ids[i] != 0)
                        return false;
        return true;
}

/* Nothing goes wrong any more; who hangs on is sent home, and whoever waited must have had his turn. */
static void go_quiet(struct trial *t)
{
        t->faults.quiet = true;
        t->cut = FAULT_N;
        for (uint32_t c = 0; c < t->n_cards; c++)
                t->cards[c].hidden_bytes = 0;
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].alive && t->procs[p].client == NOBODY)
                        proc_die(t, p);
        host_back(t);
}

static void send_home(struct trial *t)
{
        for (uint32_t c = 0; c < t->n_clients; c++) {
                const struct client *client = &t->clients[c];
                const struct lease *l = t->up ? world_lease_by_id(t->world, client->lease_id) : NULL;
                if (client->phase == CLIENT_GONE || client->phase == CLIENT_AWAY)
                        continue;
                bool lasts = !l || l->state != LEASE_QUEUED || l->booked_ms != 0 ||
                             t->now_ms > t->end_ms + HOURS(DRAIN_HOURS - 1);
                if (lasts && random_one_in(&t->clients[c].random, 3))
                        client_ends(t, c);
        }
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].alive && t->procs[p].client != NOBODY && !t->procs[p].is_owner &&
                    t->clients[t->procs[p].client].phase == CLIENT_GONE)
                        proc_die(t, p);
}

static void live(struct trial *t)
{
        uint64_t tick_ms = t->now_ms + 1000, home_ms = 0, over_ms = t->end_ms;

        while (t->now_ms < u64_max(over_ms, t->unquiet_ms) + MINUTES(LAST_MINUTES)) {
                const struct event *e = t->next_event < t->script->n_events ? &t->script->events[t->next_event] : NULL;
                uint64_t event_ms = e ? TRIAL_START_MS + e->at_ms : UINT64_MAX;
                uint64_t next_ms = u64_min(u64_min(event_ms, timer_next_ms(t)), tick_ms);
                struct timer timer;

                t->now_ms = u64_max(t->now_ms, next_ms);
                if (event_ms <= next_ms) {
                        t->next_event++;
                        happen(t, e);
                } else if (timer_take(t, t->now_ms, &timer)) {
                        ring(t, &timer);
                } else {
                        daemon_tick(t);
                        check_time(t);
                }
                if (t->now_ms >= tick_ms || t->now_ms < t->busy_until_ms)
                        tick_ms = u64_min(tick_ms > t->now_ms ? tick_ms : UINT64_MAX, next_tick_ms(t));
                if (t->stop_ms != 0 && t->now_ms >= TRIAL_START_MS + t->stop_ms)
                        return;
                if (t->now_ms < t->end_ms)
                        continue;
                if (!t->faults.quiet)
                        go_quiet(t);
                if (!is_over(t))
                        over_ms = t->now_ms;
                if (t->now_ms >= home_ms) {
                        home_ms = t->now_ms + MINUTES(1);
                        send_home(t);
                        card_sweep(t);
                }
                if (t->now_ms > t->end_ms + HOURS(DRAIN_HOURS))
                        return;
        }
}

/* An assertion of the core is a violation like any other. */
static struct trial *playing;

static void on_abort(int signal)
{
        (void) signal;
        if (!playing)
                return;
        playing->broken = true;
        playing->broken_ms = playing->now_ms;
        (void) snprintf(playing->what, sizeof(playing->what), "an assertion failed");
        siglongjmp(playing->out_of_here, 1);
}

bool trial_play(struct trial *t, const struct script *script, bool verbose)
{
        journal_forget(t);
        playing = t;
        (void) signal(SIGABRT, on_abort);
        if (sigsetjmp(t->out_of_here, 1) == 0) {
                begin(t, script, verbose);
                live(t);
                t->count.virtual_ms = t->now_ms - TRIAL_START_MS;
                if (t->stop_ms == 0)
                        check_end(t);
        }
        (void) signal(SIGABRT, SIG_DFL);
        playing = NULL;
        t->count.virtual_ms = t->now_ms - TRIAL_START_MS;
        return !t->broken;
}
