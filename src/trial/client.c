/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks for a lease, starts a command under it, uses more or less than it said, and leaves, one way or another. A client
 * looks what its lease is now whenever it is told something, and after the daemon was away; nothing else tells it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "trial/trial.h"

uint32_t client_by_number(const struct trial *t, uint64_t n)
{
        for (uint32_t c = 0; c < t->n_clients; c++)
                if (t->clients[c].arg[ASK_N] == n)
                        return c;
        return NOBODY;
}

uint32_t client_of_lease(const struct trial *t, uint64_t lease_id)
{
        for (uint32_t c = t->n_clients; lease_id != 0 && c > 0; c--)
                if (t->clients[c - 1].lease_id == lease_id)
                        return c - 1;
        return NOBODY;
}

static bool flag(const struct client *c, enum ask_flag bit)
{
        return (c->arg[ASK_FLAGS] & bit) != 0;
}

/* ---- asking ---- */

uint32_t client_new(struct trial *t, const uint64_t *arg)
{
        if (t->n_clients == CLIENTS_MAX)
                trial_break(t, "the trial itself: more than %d clients", CLIENTS_MAX);
        struct client *c = &t->clients[t->n_clients++];
        *c = (struct client){ .owner = NOBODY, .root = NOBODY };
        memcpy(c->arg, arg, sizeof(c->arg));
        c->random = random_of(t->script->seed, 8, arg[ASK_N]);
        return t->n_clients - 1;
}

static void fill_request(struct trial *t, struct client *c, struct request *r)
{
        r->token = c->token;
        r->uid = (uint32_t) c->arg[ASK_UID];
        r->is_admin = flag(c, ASK_ADMIN);
        r->no_wait = flag(c, ASK_NO_WAIT);
        r->collected = flag(c, ASK_COLLECTED);
        r->managed = flag(c, ASK_MANAGED);
        r->kill_at_end = flag(c, ASK_KILL_AT_END);
        r->kill_left = flag(c, ASK_KILL_LEFT);
        r->exclusive = flag(c, ASK_EXCLUSIVE);
        r->filler = flag(c, ASK_FILLER);
        r->no_stop = flag(c, ASK_NO_STOP);
        r->learned = flag(c, ASK_LEARNED) && !r->exclusive && c->arg[ASK_CONSUMER] != 0;
        r->priority = (uint8_t) c->arg[ASK_PRIORITY];
        r->n_more = flag(c, ASK_GANG_3) ? 2 : flag(c, ASK_GANG_2) ? 1 : 0;
        r->bytes = c->arg[ASK_BYTES];
        r->percent_milli = c->arg[ASK_PERCENT];
        if (r->learned) {
                r->bytes = 0;
                r->percent_milli = 100000;
        }
        r->slot_ms = c->arg[ASK_SLOT_MS];
        r->wait_ms = c->arg[ASK_WAIT_MS];
        r->ways.named = (uint8_t) c->arg[ASK_WAYS];
        r->ways.proven = flag(c, ASK_PROVEN) ? WAY_OUT_BIT(WAY_OUT_CHECKPOINT) : 0;
        r->binding.kind = c->arg[ASK_TTL_MS] != 0 ? BINDING_HEARTBEAT : BINDING_PROCESS;
        r->binding.ttl_ms = c->arg[ASK_TTL_MS];
        r->binding.owner = t->procs[c->owner].identity;
        r->idempotency.key[0] = c->arg[ASK_N];
        r->idempotency.key[1] = 1;
        if (c->arg[ASK_CARD] != 0 && c->arg[ASK_CARD] <= t->n_cards)
                memcpy(r->device_uuid, t->cards[c->arg[ASK_CARD] - 1].uuid, sizeof(r->device_uuid));
        (void) snprintf(r->name, sizeof(r->name), "client-%" PRIu64, c->arg[ASK_N]);
        if (c->arg[ASK_START_MS] != 0)
                booking_fill(t, c, r);
        if (c->arg[ASK_CONSUMER] != 0)
                (void) snprintf(r->consumer, sizeof(r->consumer), "program-%" PRIu64, c->arg[ASK_CONSUMER]);
}

static void ask(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];
        struct input input = { .kind = INPUT_REQUEST };

        c->token = ++t->next_token;
        fill_request(t, c, &input.request);
        if (c->adopts) {
                input.request.adopt = input.request.collected = true;
                input.request.binding.root = input.request.binding.owner;
        }
        c->lost_answer = false;
        c->phase = CLIENT_ASKED;
        if (!daemon_submit(t, &input)) {
                timer_add(t, 2000, TIMER_CLIENT, i, 0);
                c->lost_answer = true;
        } else {
                t->count.requests++;
        }
        if (!t->up)
                c->lost_answer = true;
}

void client_begins(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];

        c->owner = proc_new(t, i, (uint32_t) c->arg[ASK_UID], 0, NOBODY);
        t->procs[c->owner].is_owner = true;
        t->procs[c->owner].ignores_term = false;
        c->never_collects = fault_strikes(&t->faults, FAULT_NEVER_COLLECTED, &c->random);
        trial_say(t, "client %" PRIu64 " asks for %" PRIu64 " MiB, priority %" PRIu64, c->arg[ASK_N],
                  c->arg[ASK_BYTES] >> 20, c->arg[ASK_PRIORITY]);
        t->count.bookings += c->arg[ASK_START_MS] != 0;
        t->count.cleared += flag(c, ASK_NO_COMMAND);
        ask(t, i);
}

void client_ask(struct trial *t, const struct event *e)
{
        client_begins(t, client_new(t, e->arg));
}

/* Over the first stranger that works. */
void client_adopt(struct trial *t, const struct event *e)
{
        uint64_t arg[EVENT_ARGS] = { [ASK_N] = e->arg[0], [ASK_SLOT_MS] = e->arg[2], [ASK_PRIORITY] = 3 };
        uint32_t p = 0;

        while (p < t->n_procs && (!t->procs[p].used || !t->procs[p].alive || t->procs[p].client != NOBODY ||
                                  t->procs[p].graphics || !t->procs[p].told))
                p++;
        if (p == t->n_procs)
                return;
        arg[ASK_UID] = t->procs[p].uid;
        arg[ASK_FLAGS] = e->arg[1] ? ASK_KILL_LEFT : 0;
        struct client *c = &t->clients[client_new(t, arg)];
        c->adopts = true;
        c->owner = c->root = p;
        ask(t, t->n_clients - 1);
}

void client_answer(struct trial *t, const struct action *a)
{
        uint32_t c = client_of_lease(t, a->lease_id);

        if (a->token != 0 && a->kind != ACTION_ENDED)
                for (uint32_t i = t->n_clients; i > 0 && c == NOBODY; i--)
                        if (t->clients[i - 1].token == a->token && t->clients[i - 1].phase == CLIENT_ASKED)
                                c = i - 1;
        if (c == NOBODY)
                return;
        struct client *client = &t->clients[c];
        if (a->kind == ACTION_REFUSED) {
                if (client->phase == CLIENT_ASKED && client->token == a->token) {
                        client->phase = CLIENT_GONE;
                        if (!client->adopts)
                                proc_die(t, client->owner);
                }
                return;
        }
        timer_add(t, 1 + random_below(&client->random, 10), TIMER_CLIENT, c, 0);
}

/* ---- its command ---- */

static uint32_t spawn(struct trial *t, uint32_t i, uint32_t parent, const struct lease *lease, uint32_t card,
                      uint64_t bytes)
{
        struct client *c = &t->clients[i];
        uint32_t p = proc_new(t, i, (uint32_t) c->arg[ASK_UID], card, parent);

        t->procs[p].cgroup = c->cgroup;
        t->procs[p].target_bytes = bytes;
        if (fault_strikes(&t->faults, FAULT_ON_ANOTHER_CARD, &c->random)) {
                t->procs[p].card = (card + 1) % t->n_cards;
                t->procs[p].misplaced = !lease_is_on(lease, t->procs[p].card);
        }
        timer_add(t, 50 + random_below(&c->random, 2000), TIMER_PROC_GROWS, p, t->procs[p].identity.pid);
        return p;
}

static uint64_t wants_bytes(struct trial *t, struct client *c, uint64_t reserved)
{
        uint64_t bytes = (uint64_t) ((unsigned __int128) reserved * c->arg[ASK_USE_MILLI] / 1000);

        if (fault_strikes(&t->faults, FAULT_USES_TOO_MUCH, &c->random))
                bytes = reserved + reserved / 4;
        return bytes;
}

/* Said again until it is heard: the command waits for that (lessor run does not let it go on before). */
static void tell_root(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];
        struct input input = { .kind = INPUT_ACTIVATE };

        input.call = (struct lease_call){ .token = ++t->next_token,
                                          .lease_id = c->lease_id,
                                          .uid = (uint32_t) c->arg[ASK_UID],
                                          .root = t->procs[c->root].identity,
                                          .cgroup_id = c->cgroup };
        if (c->booked_ms != 0)
                input.call.owner = t->procs[c->owner].identity; /* who has it from now on */
        (void) daemon_submit(t, &input);
        c->at_barrier = !t->up;
        if (c->at_barrier)
                timer_add(t, 1000, TIMER_CLIENT, i, 0);
}

static void tell_root_again(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];
        const struct lease *lease = world_lease_by_id(t->world, c->lease_id);

        if (!lease || lease->state == LEASE_DRAINING)
                return; /* it was not waited for: the command never begins */
        if (c->phase == CLIENT_RUNS && t->procs[c->root].alive &&
            !identity_equal(lease->binding.root, t->procs[c->root].identity))
                tell_root(t, i);
        else
                c->at_barrier = false; /* only the answer was lost */
}

/* Of so many processes of a client, one after another over its devices: how many have their memory where the @k-th has. */
static uint64_t n_beside(const struct lease *lease, uint64_t n, uint64_t k)
{
        uint64_t parts = u64_max(lease_n_parts(lease), 1);

        return (n - k % parts + parts - 1) / parts;
}

/* Its command is made, told of, and then begins to take memory. */
void client_start(struct trial *t, uint32_t i, const struct lease *lease)
{
        struct client *c = &t->clients[i];
        uint64_t reserved = lease->bytes, bytes = wants_bytes(t, c, reserved);
        uint64_t n = u64_max(c->arg[ASK_PROCESSES], 1);
        uint32_t parts = lease_n_parts(lease);

        c->cgroup = random_one_in(&c->random, 2) ? 100000 + c->arg[ASK_N] : 0;
        c->root = spawn(t, i, c->owner, lease, lease->device, bytes / n_beside(lease, n, 0));
        t->procs[c->root].is_root = true;
        c->started = true;
        tell_root(t, i);
        for (uint64_t k = 1; k < n; k++)
                (void) spawn(t, i, c->root, lease,
                             parts == 0 ? lease->device : lease_part(lease, (uint32_t) (k % parts)).device,
                             bytes / n_beside(lease, n, k));
        if (fault_strikes(&t->faults, FAULT_CRASHES, &c->random))
                timer_add(t, 500 + random_below(&c->random, 30000), TIMER_PROC_DIES, c->root,
                          t->procs[c->root].identity.pid);
}

void client_processes_end(struct trial *t, uint32_t i, bool workers_too)
{
        for (uint32_t p = 0; p < t->n_procs; p++) {
                struct proc *proc = &t->procs[p];
                if (proc->used && proc->alive && proc->client == i && !proc->is_owner && (workers_too || proc->is_root))
                        proc_die(t, p);
        }
}

/* Its own child: a wrapper sees at once that it ended, and says so. */
void client_proc_died(struct trial *t, uint32_t i, uint32_t p)
{
        struct client *c = &t->clients[i];

        if (c->root == p && !c->adopts && c->gave != GAVE_COMMAND && c->phase == CLIENT_RUNS &&
            t->procs[c->owner].alive)
                timer_add(t, 200, TIMER_CLIENT_ENDS, i, 1);
}

/* ---- leaving ---- */

void client_call(struct trial *t, uint32_t i, enum input_kind kind, uint32_t uid, bool admin)
{
        struct client *c = &t->clients[i];
        struct input input = { .kind = (uint8_t) kind };

        input.call =
                (struct lease_call){ .token = ++t->next_token, .lease_id = c->lease_id, .uid = uid, .is_admin = admin };
        (void) daemon_submit(t, &input);
}

void client_release(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];

        if (!t->up) {
                timer_add(t, 3000, TIMER_CLIENT_ENDS, i, 2); /* asks again */
                return;
        }
        client_call(t, i, INPUT_RELEASE, (uint32_t) c->arg[ASK_UID], false);
        if (fault_strikes(&t->faults, FAULT_RELEASED_TWICE, &c->random))
                client_call(t, i, INPUT_RELEASE, (uint32_t) c->arg[ASK_UID], false);
        if (!t->up)
                timer_add(t, 3000, TIMER_CLIENT_ENDS, i, 2);
}

bool client_is_away(const struct trial *t, uint32_t i)
{
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].alive && t->procs[p].client == i &&
                    (t->procs[p].locked || t->procs[p].away || t->procs[p].stopped))
                        return true;
        return false;
}

/* Its work is done, or its command crashed, or a release has to be said again. */
void client_ends(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];
        bool crashed = c->root != NOBODY && c->gave != GAVE_COMMAND && !t->procs[c->root].alive;

        if (c->phase == CLIENT_GONE || c->phase == CLIENT_AWAY)
                return;
        if (c->lease_id == 0) { /* its answer was lost: whoever began something for it sees that it is gone */
                c->phase = CLIENT_GONE;
                if (!c->adopts)
                        proc_die(t, c->owner);
                return;
        }
        if (c->phase == CLIENT_LEAVES) {
                client_release(t, i);
                return;
        }
        const struct lease *lease = t->up ? world_lease_by_id(t->world, c->lease_id) : NULL;
        bool moving = lease && (lease->state == LEASE_ASKING || lease->state == LEASE_PARKED ||
                                lease->state == LEASE_THAWING || lease->state == LEASE_HELD);
        if (!crashed && !t->faults.quiet && c->phase == CLIENT_RUNS && (moving || client_is_away(t, i))) {
                timer_add(t, 20000, TIMER_CLIENT_ENDS, i, 0); /* what is parked does not get on */
                return;
        }
        c->phase = CLIENT_LEAVES;
        bool early = fault_strikes(&t->faults, FAULT_RELEASED_BEFORE_EXIT, &c->random);
        bool left = fault_strikes(&t->faults, FAULT_WORKERS_LEFT, &c->random) && c->arg[ASK_PROCESSES] > 1;
        bool vanishes = fault_strikes(&t->faults, FAULT_VANISHES, &c->random) && c->arg[ASK_TTL_MS] == 0 && !c->adopts;
        if (c->adopts) {
                client_release(t, i);
                return;
        }
        if (flag(c, ASK_NO_COMMAND) && fault_strikes(&t->faults, FAULT_NEVER_GIVEN_BACK, &c->random)) {
                proc_die(t, c->owner);
                return;
        }
        if (early)
                client_release(t, i);
        client_processes_end(t, i, !left);
        for (uint32_t p = 0; left && p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].alive && t->procs[p].client == i && !t->procs[p].is_owner)
                        timer_add(t, 1000 + random_below(&c->random, MINUTES(20)), TIMER_PROC_DIES, p,
                                  t->procs[p].identity.pid);
        if (!early && !vanishes)
                client_release(t, i);
        proc_die(t, c->owner); /* who vanishes leaves it to its pidfd */
}

void client_renews(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];

        if (c->phase < CLIENT_WAITS || c->phase >= CLIENT_LEAVES)
                return;
        bool late = fault_strikes(&t->faults, FAULT_NOT_RENEWED, &c->random);
        if (!late)
                client_call(t, i, INPUT_RENEW, (uint32_t) c->arg[ASK_UID], false);
        timer_add(t, late ? c->arg[ASK_TTL_MS] : c->arg[ASK_TTL_MS] / 2, TIMER_CLIENT_RENEWS, i, 0);
}

/* ---- what is its lease now? ---- */

/* The answer was lost with the daemon that gave it: whoever asks again under the same key finds what came of it. */
static void find_again(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];

        for (uint32_t l = 0; l < t->world->n_leases; l++) {
                const struct lease *lease = &t->world->leases[l];
                if (lease->state == LEASE_NONE || lease->idempotency.key[0] != c->arg[ASK_N] ||
                    lease->idempotency.key[1] != 1)
                        continue;
                c->lease_id = lease->id;
                c->phase = CLIENT_WAITS;
                c->lost_answer = false;
                return;
        }
        if (c->follows_id == 0 && t->procs[c->owner].used && t->procs[c->owner].alive)
                ask(t, i);
        else
                c->phase = CLIENT_GONE;
}

static void gone(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];

        if (c->phase == CLIENT_GONE)
                return;
        bool ran = c->phase == CLIENT_RUNS && !c->at_barrier;
        c->phase = CLIENT_GONE;
        if (c->adopts)
                return;
        /* Its lease has ended under it. A wrapper ends with its command; some go on without. */
        if (!ran || random_one_in(&c->random, 2)) {
                client_processes_end(t, i, true);
                proc_die(t, c->owner);
                return;
        }
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].alive && t->procs[p].client == i)
                        timer_add(t, random_below(&c->random, MINUTES(5)), TIMER_PROC_DIES, p,
                                  t->procs[p].identity.pid);
}

static void collect(struct trial *t, uint32_t i, const struct lease *lease)
{
        struct client *c = &t->clients[i];

        if (c->phase == CLIENT_RUNS || c->phase == CLIENT_LEAVES)
                return;
        if (lease->state == LEASE_GRANTED && c->never_collects) {
                c->phase = CLIENT_GRANTED;
                return;
        }
        if (c->booked_ms != 0 && !c->came_late) {
                c->came_late = true;
                if (fault_strikes(&t->faults, FAULT_BOOKED_COMES_LATE, &c->random)) {
                        timer_add(t, random_below(&c->random, MINUTES(10)), TIMER_CLIENT, i, 0);
                        return;
                }
        }
        c->phase = CLIENT_RUNS;
        timer_add(t, u64_max(c->arg[ASK_RUN_MS], 1000), TIMER_CLIENT_ENDS, i, 0);
        if (c->arg[ASK_IDLE_MS] != 0)
                timer_add(t, c->arg[ASK_IDLE_MS], TIMER_CLIENT_IDLE, i, 0);
        if (!c->adopts && !flag(c, ASK_NO_COMMAND))
                client_start(t, i, lease);
}

void client_look(struct trial *t, uint32_t i)
{
        struct client *c = &t->clients[i];

        if (c->phase == CLIENT_GONE)
                return;
        if (!t->up) {
                timer_add(t, 1000, TIMER_CLIENT, i, 0);
                return;
        }
        if (c->lease_id == 0) {
                find_again(t, i);
                if (c->lease_id == 0)
                        return;
        }
        if (c->at_barrier)
                tell_root_again(t, i);
        if (!t->up)
                return; /* and comes again */
        const struct lease *lease = world_lease_by_id(t->world, c->lease_id);
        if (!lease || lease->state == LEASE_DRAINING) {
                gone(t, i);
                return;
        }
        if (c->phase <= CLIENT_ASKED) {
                c->phase = CLIENT_WAITS;
                if (c->arg[ASK_TTL_MS] != 0 && !flag(c, ASK_NO_COMMAND))
                        timer_add(t, c->arg[ASK_TTL_MS] / 2, TIMER_CLIENT_RENEWS, i, 0);
        }
        booking_owner_comes(t, i);
        switch ((enum lease_state) lease->state) {
        case LEASE_GRANTED:
        case LEASE_ACTIVE:
                collect(t, i, lease);
                client_back_at_work(t, i, lease);
                break;
        case LEASE_ASKING:
                client_asked(t, i, lease);
                break;
        case LEASE_THAWING:
                client_thawing(t, i, lease);
                break;
        case LEASE_NONE:
        case LEASE_QUEUED:
        case LEASE_HELD:
        case LEASE_PARKED:
        case LEASE_DRAINING:
        case LEASE_ORPHANED:
        case LEASE_STUCK:
        case LEASE_LOST:
        case LEASE_ENDED:
        case LEASE_STATE_N:
                break;
        }
}
