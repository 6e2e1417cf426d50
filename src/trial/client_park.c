/* SPDX-License-Identifier: Apache-2.0 */
/* A client that is asked to give way: obeys, lies, is slow, says nothing, takes its memory back; and comes back, or does not. */
#include "trial/trial.h"

void client_park_call(struct trial *t, uint32_t i, enum park_call_what what, uint64_t for_ms, uint32_t uid, bool admin)
{
        struct client *c = &t->clients[i];
        struct input input = { .kind = INPUT_PARK };

        input.park = (struct park_call){ .token = ++t->next_token,
                                         .lease_id = c->lease_id,
                                         .uid = uid,
                                         .is_admin = admin,
                                         .what = (uint8_t) what,
                                         .for_ms = for_ms,
                                         .keep_alive_ms = what == PARK_CALL_IDLE ? c->arg[ASK_IDLE_MS] : 0 };
        (void) daemon_submit(t, &input);
}

static void says(struct trial *t, uint32_t i, enum park_call_what what)
{
        client_park_call(t, i, what, 0, (uint32_t) t->clients[i].arg[ASK_UID], false);
}

static bool is_its_process(const struct trial *t, uint32_t i, uint32_t p)
{
        return t->procs[p].used && t->procs[p].alive && t->procs[p].client == i && !t->procs[p].is_owner;
}

static void give_memory(struct trial *t, uint32_t i)
{
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (is_its_process(t, i, p))
                        proc_give(t, p, t->procs[p].bytes);
        t->clients[i].gave = GAVE_MEMORY;
}

static void take_memory(struct trial *t, uint32_t i, uint64_t bytes)
{
        uint64_t n[CARDS_MAX] = { 0 };

        for (uint32_t p = 0; p < t->n_procs; p++)
                n[t->procs[p].card] += is_its_process(t, i, p);
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (is_its_process(t, i, p)) {
                        t->procs[p].target_bytes = bytes / n[t->procs[p].card];
                        timer_add(t, 100, TIMER_PROC_GROWS, p, t->procs[p].identity.pid);
                }
}

static void asked_to_cooperate(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];
        uint64_t started_ms = c->reacted_to_ms, in_ms = 100 + random_below(&c->random, 3000);

        if (fault_strikes(&t->faults, FAULT_COOPERATE_SILENT, &c->random))
                return;
        if (fault_strikes(&t->faults, FAULT_COOPERATE_LIES, &c->random)) {
                timer_add(t, in_ms, TIMER_CLIENT_YIELDED, i, started_ms);
                return;
        }
        if (fault_strikes(&t->faults, FAULT_COOPERATE_SLOW, &c->random))
                in_ms += t->config.ask_ms;
        timer_add(t, in_ms, TIMER_CLIENT_YIELDS, i, started_ms);
        if (fault_strikes(&t->faults, FAULT_COOPERATE_TAKES_BACK, &c->random))
                timer_add(t, in_ms + 4000 + random_below(&c->random, 60000), TIMER_CLIENT_TAKES_BACK, i, started_ms);
}

void client_asked(struct trial *t, uint32_t i, const struct lease *lease)
{
        struct client *c = &t->clients[i];

        if (c->phase != CLIENT_RUNS || (c->reacted_to_ms == lease->park.started_ms && c->reacted_state == LEASE_ASKING))
                return;
        c->reacted_to_ms = lease->park.started_ms;
        c->reacted_state = LEASE_ASKING;
        if (lease->park.way == WAY_OUT_COOPERATE)
                asked_to_cooperate(t, i);
        if (lease->park.way == WAY_OUT_RESTART) {
                uint64_t in_ms = 200 + random_below(&c->random, 3000);
                if (fault_strikes(&t->faults, FAULT_RESTART_IGNORES_TERM, &c->random))
                        in_ms += t->config.yield_grace_ms; /* then it is killed, by who began it */
                timer_add(t, in_ms, TIMER_CLIENT_YIELDS, i, lease->park.started_ms);
        }
}

void client_thawing(struct trial *t, uint32_t i, const struct lease *lease)
{
        struct client *c = &t->clients[i];

        if (c->reacted_to_ms == lease->park.started_ms && c->reacted_state == LEASE_THAWING)
                return;
        c->reacted_to_ms = lease->park.started_ms;
        c->reacted_state = LEASE_THAWING;
        if (c->gave == GAVE_NOTHING || c->phase != CLIENT_RUNS)
                return;
        if (c->gave == GAVE_COMMAND && fault_strikes(&t->faults, FAULT_RESTART_STAYS_AWAY, &c->random))
                return;
        timer_add(t, 100 + random_below(&c->random, 4000), TIMER_CLIENT_RETURNS, i, lease->park.started_ms);
}

/* It was asked, and then it was not needed: it goes on. */
void client_back_at_work(struct trial *t, uint32_t i, const struct lease *lease)
{
        struct client *c = &t->clients[i];

        if (c->gave == GAVE_NOTHING || lease->state != LEASE_ACTIVE || c->phase != CLIENT_RUNS)
                return;
        enum gave gave = (enum gave) c->gave;
        c->gave = GAVE_NOTHING;
        if (gave == GAVE_COMMAND && !t->procs[c->root].alive)
                client_start(t, i, lease);
        else
                take_memory(t, i, lease->bytes / 1000 * c->arg[ASK_USE_MILLI]);
}

static void yields(struct trial *t, uint32_t i, const struct lease *lease)
{
        struct client *c = &t->clients[i];

        if (client_is_away(t, i))
                return; /* too late: it is locked by now, and its calls wait */
        if (lease->park.way == WAY_OUT_RESTART) {
                c->gave = GAVE_COMMAND;
                client_processes_end(t, i, true);
        } else {
                give_memory(t, i);
        }
        says(t, i, PARK_CALL_YIELDED);
}

static void returns(struct trial *t, uint32_t i, const struct lease *lease)
{
        struct client *c = &t->clients[i];
        struct input input = { .kind = INPUT_ACTIVATE };

        if (c->gave == GAVE_COMMAND) {
                c->gave = GAVE_NOTHING;
                client_start(t, i, lease);
                return;
        }
        c->gave = GAVE_NOTHING;
        take_memory(t, i, lease->bytes / 1000 * c->arg[ASK_USE_MILLI]);
        input.call = (struct lease_call){ .token = ++t->next_token,
                                          .lease_id = c->lease_id,
                                          .uid = (uint32_t) c->arg[ASK_UID],
                                          .root = t->procs[c->root].identity };
        (void) daemon_submit(t, &input);
}

void client_park_timer(struct trial *t, const struct timer *timer)
{
        uint32_t i = timer->a;
        struct client *c = &t->clients[i];
        const struct lease *lease = t->up ? world_lease_by_id(t->world, c->lease_id) : NULL;

        if (c->phase != CLIENT_RUNS)
                return;
        if (!t->up) {
                timer_add(t, 2000, (enum timer_kind) timer->kind, i, timer->b);
                return;
        }
        if (timer->kind == TIMER_CLIENT_IDLE) {
                bool idle = random_one_in(&c->random, 2);
                says(t, i, idle ? PARK_CALL_IDLE : PARK_CALL_BUSY);
                timer_add(t, 5000 + random_below(&c->random, MINUTES(10)), TIMER_CLIENT_IDLE, i, 0);
                return;
        }
        if (!lease || lease->park.started_ms != timer->b)
                return; /* that was another time */
        if (timer->kind == TIMER_CLIENT_YIELDED)
                says(t, i, PARK_CALL_YIELDED);
        else if (timer->kind == TIMER_CLIENT_YIELDS && lease->state == LEASE_ASKING)
                yields(t, i, lease);
        else if (timer->kind == TIMER_CLIENT_TAKES_BACK && lease->state == LEASE_PARKED && c->gave == GAVE_MEMORY)
                take_memory(t, i, lease->bytes / 2);
        else if (timer->kind == TIMER_CLIENT_RETURNS && lease->state == LEASE_THAWING)
                returns(t, i, lease);
}
