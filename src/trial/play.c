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

/* ---- the script ---- */

static void stranger(struct trial *t, const struct event *e)
{
        uint32_t card = (uint32_t) (e->arg[0] % t->n_cards);
        uint32_t p = proc_new(t, NOBODY, 1000 + (uint32_t) (e->arg[1] % 5), card, NOBODY);

        t->procs[p].graphics = e->arg[3] != 0;
        t->procs[p].target_bytes = e->arg[1];
        if (!e->arg[4] && proc_take(t, p, e->arg[1]))
                t->procs[p].target_bytes = 0;
        timer_add(t, 100, TIMER_PROC_GROWS, p, t->procs[p].identity.pid);
        timer_add(t, e->arg[2], TIMER_PROC_DIES, p, t->procs[p].identity.pid);
}

static void change(struct trial *t, const struct event *e, uint32_t c)
{
        struct input input = { .kind = INPUT_CHANGE };

        input.change = (struct change){ .token = ++t->next_token,
                                        .lease_id = t->clients[c].lease_id,
                                        .uid = (uint32_t) t->clients[c].arg[ASK_UID],
                                        .is_admin = e->arg[5] != 0,
                                        .what = (uint8_t) e->arg[1],
                                        .priority = (uint8_t) e->arg[2],
                                        .slot_ms = e->arg[3],
                                        .pin_ms = e->arg[4] };
        t->sent_change = input.change;
        (void) daemon_submit(t, &input);
}

/* Somebody calls for what is not his: nothing of it may change. */
static void intrude(struct trial *t, const struct event *e, uint32_t c)
{
        struct random r = random_of(t->script->seed, 9, e->at_ms);
        struct client *client = &t->clients[c];
        uint64_t lease_id = client->lease_id;

        if (!fault_strikes(&t->faults, FAULT_NOT_THE_OWNER, &r))
                return;
        if (e->arg[2] == 0)
                client_call(t, c, INPUT_RELEASE, (uint32_t) e->arg[1], false);
        if (e->arg[2] == 1)
                client_call(t, c, INPUT_RENEW, (uint32_t) e->arg[1], false);
        if (e->arg[2] == 2)
                client_park_call(t, c, PARK_CALL_PARK, 0, (uint32_t) e->arg[1], false);
        if (e->arg[2] == 3) {
                client->lease_id = 1000000; /* nobody's */
                client_call(t, c, INPUT_RELEASE, (uint32_t) e->arg[1], true);
                client->lease_id = lease_id;
        }
}

static void park_call(struct trial *t, const struct event *e, uint32_t c)
{
        static const enum park_call_what whats[] = { PARK_CALL_PARK, PARK_CALL_PARK,    PARK_CALL_REHEARSE,
                                                     PARK_CALL_THAW, PARK_CALL_FORGIVE, PARK_CALL_IDLE };

        client_park_call(t, c, whats[e->arg[1] % 6], e->arg[2], (uint32_t) t->clients[c].arg[ASK_UID], e->arg[3] != 0);
}

static void lose_card(struct trial *t, const struct event *e)
{
        uint32_t card = (uint32_t) (e->arg[0] % t->n_cards);
        struct random r = random_of(t->script->seed, 10, e->at_ms);

        if (t->cards[card].lost || !fault_strikes(&t->faults, FAULT_DEVICE_LOST, &r))
                return;
        t->cards[card].lost = true;
        for (uint32_t p = 0; p < t->n_procs; p++) /* what works there gets errors, and mostly ends */
                if (t->procs[p].used && t->procs[p].alive && t->procs[p].card == card && !t->procs[p].is_owner &&
                    proc_on_card_bytes(&t->procs[p]) != 0 && random_below(&r, 3) != 0)
                        timer_add(t, random_below(&r, 5000), TIMER_PROC_DIES, p, t->procs[p].identity.pid);
        if (t->up)
                card_tell(t, card);
        timer_add(t, e->arg[1], TIMER_CARD_BACK, card, 0);
}

static void silence(struct trial *t, const struct event *e)
{
        struct input input = { .kind = INPUT_EYES, .eyes = { .answering = false, .silent_since_ms = t->now_ms } };
        struct random r = random_of(t->script->seed, 12, e->at_ms);

        if (!t->eyes_open || !fault_strikes(&t->faults, FAULT_EYES_SILENT, &r))
                return;
        t->eyes_open = false;
        memset(t->looks, 0, sizeof(t->looks));
        (void) daemon_submit(t, &input);
        timer_add(t, e->arg[0], TIMER_EYES_BACK, 0, t->count.restarts);
}

static void eyes_back(struct trial *t, const struct timer *timer)
{
        struct input input = { .kind = INPUT_EYES, .eyes = { .answering = true } };

        if (!t->up || t->eyes_open || timer->b != t->count.restarts)
                return;
        t->eyes_open = true;
        for (uint32_t p = 0; p < t->n_procs; p++)
                t->procs[p].told = t->procs[p].listed = false;
        for (uint32_t c = 0; c < t->n_cards; c++) {
                t->cards[c].said.fresh = false;
                t->cards[c].said.changed_ms = t->now_ms;
                t->cards[c].dirty = true;
        }
        (void) daemon_submit(t, &input);
}

static void hands_leave(struct trial *t, const struct event *e, enum fault fault)
{
        struct random r = random_of(t->script->seed, 13, e->at_ms);

        if (!t->hands_up || !fault_strikes(&t->faults, fault, &r))
                return;
        t->hands_up = false;
        for (uint32_t p = 0; p < t->n_procs && fault == FAULT_HANDS_KILLED; p++)
                t->procs[p].term_ms = 0; /* the new ones know of no grace */
        timer_add(t, e->arg[0], TIMER_HANDS_BACK, 0, 0);
}

static void host_short(struct trial *t, const struct event *e)
{
        struct random r = random_of(t->script->seed, 14, e->at_ms);

        if (!fault_strikes(&t->faults, FAULT_HOST_MEMORY_SHORT, &r))
                return;
        t->host.available_bytes = e->arg[0];
        t->host.pressure = e->arg[1] != 0;
        daemon_tell_host(t);
        timer_add(t, e->arg[2], TIMER_HOST_BACK, 0, 0);
}

static void host_back(struct trial *t)
{
        t->host.available_bytes = t->host.total_bytes / 4 * 3;
        t->host.pressure = false;
        t->host.checkpoint = CHECKPOINT_CAN;
        daemon_tell_host(t);
}

static void configure(struct trial *t, const struct event *e)
{
        t->config.ledger_cap_bytes = e->arg[0];
        daemon_tell_config(t);
        if (e->arg[1] == 0)
                return;
        t->host.checkpoint = CHECKPOINT_NO_HANDS;
        daemon_tell_host(t);
        timer_add(t, MINUTES(10), TIMER_HOST_BACK, 0, 0);
}

static void suspend(struct trial *t, const struct event *e)
{
        struct random r = random_of(t->script->seed, 15, e->at_ms);

        if (!fault_strikes(&t->faults, FAULT_SUSPENDED, &r))
                return;
        t->now_ms += e->arg[0];
        book_nobody_waited(t, e->arg[0]);
}

static void some_process_dies(struct trial *t, uint32_t c)
{
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].alive && t->procs[p].client == c && !t->procs[p].is_owner) {
                        proc_die(t, p);
                        return;
                }
}

static void cut(struct trial *t, const struct event *e)
{
        static const enum fault where[] = { FAULT_CUT_BEFORE_COMMIT, FAULT_CUT_AFTER_COMMIT,
                                            FAULT_CUT_BETWEEN_ACTIONS };

        t->cut = (uint8_t) (e->kind == EVENT_POWER ? FAULT_POWER_LOST : where[e->arg[0] % 3]);
        t->down_ms = e->arg[1];
}

static void happen(struct trial *t, const struct event *e)
{
        uint32_t c = client_by_number(t, e->arg[0]);
        bool has_lease = c != NOBODY && t->clients[c].lease_id != 0;

        if (t->verbose)
                trial_say(t, "* %s %" PRIu64, event_kind_name((enum event_kind) e->kind), e->arg[0]);
        switch ((enum event_kind) e->kind) {
        case EVENT_ASK:
                client_ask(t, e);
                break;
        case EVENT_ADOPT:
                client_adopt(t, e);
                break;
        case EVENT_RELEASE:
                if (c != NOBODY && t->clients[c].phase >= CLIENT_WAITS)
                        client_ends(t, c);
                break;
        case EVENT_CHANGE:
                if (has_lease)
                        change(t, e, c);
                break;
        case EVENT_INTRUDE:
                if (has_lease)
                        intrude(t, e, c);
                break;
        case EVENT_PARK_CALL:
                if (has_lease)
                        park_call(t, e, c);
                break;
        case EVENT_STRANGER:
                stranger(t, e);
                break;
        case EVENT_HIDDEN:
                t->cards[e->arg[0] % t->n_cards].hidden_bytes = e->arg[1];
                t->cards[e->arg[0] % t->n_cards].dirty = true;
                break;
        case EVENT_LOSE_CARD:
                lose_card(t, e);
                break;
        case EVENT_SILENCE:
                silence(t, e);
                break;
        case EVENT_HANDS_AWAY:
                hands_leave(t, e, FAULT_HANDS_AWAY);
                break;
        case EVENT_HANDS_KILLED:
                hands_leave(t, e, FAULT_HANDS_KILLED);
                break;
        case EVENT_CRASH:
        case EVENT_POWER:
                cut(t, e);
                break;
        case EVENT_SUSPEND:
                suspend(t, e);
                break;
        case EVENT_CLOCK_AHEAD:
                t->clock_ahead_ms = e->arg[0];
                break;
        case EVENT_HOST:
                host_short(t, e);
                break;
        case EVENT_CONFIG:
                configure(t, e);
                break;
        case EVENT_DIE:
                if (c != NOBODY)
                        some_process_dies(t, c);
                break;
        case EVENT_KIND_N:
                break;
        }
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

/* Is anything under way that time alone moves on? */
static bool is_busy(const struct trial *t)
{
        if (t->now_ms < t->busy_until_ms || t->world->n_plans != 0)
                return true;
        for (uint32_t i = 0; i < t->world->n_entries; i++)
                if (t->world->entries[i].kind != ENTRY_NONE)
                        return true;
        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                const struct lease *l = &t->world->leases[i];
                if (t->world->lease_ids[i] == 0)
                        continue;
                if (l->state != LEASE_ACTIVE || l->ending || l->over_use_since_ms != 0)
                        return true;
        }
        return false;
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
                uint64_t lead = u64_min(t->config.slot_warning_ms, l->slot_ms / 2);
                if (l->slot_end_ms > t->now_ms)
                        next = u64_min(next,
                                       l->slot_end_ms - lead > t->now_ms ? l->slot_end_ms - lead : l->slot_end_ms);
                if (l->kill_left || l->kill_at_end)
                        next = u64_min(next, t->now_ms + AT_ONCE_MS);
        }
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
                bool lasts = !l || l->state != LEASE_QUEUED || t->now_ms > t->end_ms + HOURS(DRAIN_HOURS - 1);
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
