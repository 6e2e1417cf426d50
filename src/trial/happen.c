/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a script: what people do, and what the weather is. */
#include <inttypes.h>
#include <string.h>
#include "trial/trial.h"

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

static void hide(struct trial *t, const struct event *e)
{
        struct card *card = &t->cards[e->arg[0] % t->n_cards];

        if (t->faults.quiet) /* the clock leapt over it */
                return;
        card->hidden_bytes = e->arg[1];
        card->dirty = true;
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

void eyes_back(struct trial *t, const struct timer *timer)
{
        struct input input = { .kind = INPUT_EYES, .eyes = { .answering = true } };

        if (!t->up || t->eyes_open || timer->b != t->count.restarts)
                return;
        t->eyes_open = true;
        for (uint32_t p = 0; p < t->n_procs; p++)
                t->procs[p].told = t->procs[p].known = false;
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

void host_back(struct trial *t)
{
        t->host.available_bytes = t->host.total_bytes / 4 * 3;
        t->host.pressure = false;
        t->host.checkpoint = CHECKPOINT_CAN;
        daemon_tell_host(t);
}

static void configure(struct trial *t, const struct event *e)
{
        t->config.ledger_cap_bytes = e->arg[0];
        t->config.hold_in_place = e->arg[2] != 0;
        daemon_tell_config(t);
        if (e->arg[1] == 0)
                return;
        t->host.checkpoint = CHECKPOINT_NO_HANDS;
        daemon_tell_host(t);
        timer_add(t, MINUTES(10), TIMER_HOST_BACK, 0, 0);
}

/* Somebody sets his clock: the world's goes on as it was. */
static void set_clock(struct trial *t, const struct event *e)
{
        struct random r = random_of(t->script->seed, 17, e->at_ms);

        if (!fault_strikes(&t->faults, FAULT_CLOCK_SET, &r))
                return;
        t->wall_ahead_ms += e->arg[0];
        t->wall_behind_ms += e->arg[1];
}

static void suspend(struct trial *t, const struct event *e)
{
        struct random r = random_of(t->script->seed, 15, e->at_ms);

        if (!fault_strikes(&t->faults, FAULT_SUSPENDED, &r))
                return;
        t->now_ms += e->arg[0];
        if (t->up) /* else it is part of the time that lessord was away, which counts when it is back */
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

void happen(struct trial *t, const struct event *e)
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
                stranger_comes(t, e);
                break;
        case EVENT_ENFORCE:
                stranger_call(t, e);
                break;
        case EVENT_HIDDEN:
                hide(t, e);
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
        case EVENT_CLOCK_SET:
                set_clock(t, e);
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
