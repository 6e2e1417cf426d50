/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hands: orders arrive, take their time, work or do not; records outlive everything but the power. What came of an order is
 * told until the daemon has stored it; what nobody knows any more is told by its record.
 */
#include <signal.h>
#include <string.h>
#include "arbiter/park.h"
#include "trial/trial.h"

enum { LOST_MS = 2000, SLOW_MS = 60000, BYTES_PER_MS = 2000000, GRACE_TOLERANCE_MS = 100 };

/* Taken with it: who asks writes its order there at once. */
static uint32_t free_order(struct trial *t)
{
        for (uint32_t i = 0; i < ORDERS_MAX; i++)
                if (t->orders[i].state == ORDER_FREE) {
                        t->n_orders++;
                        return i;
                }
        trial_break(t, "the trial itself: more than %d orders", ORDERS_MAX);
        return 0;
}

static void conclude(struct trial *t, uint32_t o, uint64_t in_ms, enum outcome outcome, enum hand_why why)
{
        struct order *order = &t->orders[o];
        struct random r = random_of(t->script->seed, 5, order->order.id);

        order->outcome.outcome = (uint8_t) outcome;
        order->outcome.why = (uint8_t) why;
        order->state = ORDER_TO_TELL;
        if (fault_strikes(&t->faults, FAULT_OUTCOME_LATE, &r))
                in_ms += random_below(&r, 20000);
        timer_add(t, in_ms, TIMER_ORDER_TOLD, o, order->order.id);
}

/* How long it takes, or why it cannot be tried. */
static enum hand_why look_first(struct trial *t, const struct action *a, struct proc *p, struct random *r)
{
        bool signals = a->hand == HAND_SIGNAL || a->hand == HAND_KILL_TREE;

        if (fault_strikes(&t->faults, FAULT_ORDER_RATE, r))
                return HAND_WHY_RATE;
        if (signals && p->away)
                return HAND_WHY_PARKED;
        if (signals && a->signal == SIGKILL &&
            (p->term_ms == 0 || t->now_ms - p->term_ms + GRACE_TOLERANCE_MS < t->config.yield_grace_ms))
                return HAND_WHY_GRACE;
        if (a->hand == HAND_STOP && fault_strikes(&t->faults, FAULT_STOP_BLOCKED, r))
                return HAND_WHY_OTHER;
        if (a->hand == HAND_UNLOCK && fault_strikes(&t->faults, FAULT_UNLOCK_BLOCKED, r))
                return HAND_WHY_OTHER;
        if (p->record == REC_FAILED && !signals)
                return HAND_WHY_DRIVER; /* no call is made any more */
        if ((a->hand == HAND_CHECKPOINT && (!p->locked || p->away)) || (a->hand == HAND_STOP && !p->away) ||
            (a->hand == HAND_RESTORE && !p->away) || (a->hand == HAND_UNLOCK && p->away))
                return HAND_WHY_STATE;
        if ((a->hand == HAND_LOCK || a->hand == HAND_HOLD) && t->cards[p->card].lost)
                return HAND_WHY_CANNOT;
        return HAND_WHY_NONE;
}

static uint64_t lasts_ms(struct trial *t, const struct action *a, struct proc *p, struct random *r)
{
        switch ((enum hand_verb) a->hand) {
        case HAND_LOCK:
        case HAND_HOLD:
                return 5 + random_below(r, 400);
        case HAND_CHECKPOINT:
                p->record = REC_CHECKPOINTING;
                return 50 + p->bytes / BYTES_PER_MS +
                       (fault_strikes(&t->faults, FAULT_CHECKPOINT_SLOW, r) ? SLOW_MS : 0);
        case HAND_RESTORE:
                p->record = REC_RESTORING;
                p->stopped = false;
                return 50 + p->bytes / BYTES_PER_MS;
        case HAND_NONE:
        case HAND_SIGNAL:
        case HAND_KILL_TREE:
        case HAND_FREEZE:
        case HAND_THAW:
        case HAND_STOP:
        case HAND_UNLOCK:
        case HAND_VERB_N:
                break;
        }
        return 2 + random_below(r, 10);
}

/* What the order says of the device that it has its memory on: of a gang's first in the order itself. */
uint64_t hands_limit_bytes(struct trial *t, const struct action *a, const struct proc *p)
{
        const struct lease *l = world_lease_by_id(t->world, a->lease_id);
        const struct process *known = world_process_find(t->world, a->process);

        for (uint32_t i = 1; l && known && i < lease_n_parts(l); i++)
                if (lease_part(l, i).device == p->card)
                        return thaw_limit_bytes(t->world, l, known, i);
        return a->limit_bytes;
}

void hands_take(struct trial *t, const struct action *a)
{
        uint32_t o = free_order(t);
        struct order *order = &t->orders[o];
        struct random r = random_of(t->script->seed, 6, a->id);
        uint32_t i = proc_find(t, a->process);

        t->count.orders++;
        *order = (struct order){ .state = ORDER_WORKING, .order = *a };
        order->outcome = (struct hand_outcome){ .order_id = a->id, .lease_id = a->lease_id, .process = a->process };
        if (!t->hands_up) {
                conclude(t, o, 1, OUTCOME_BLOCKED, HAND_WHY_AWAY);
                return;
        }
        if (fault_strikes(&t->faults, FAULT_OUTCOME_LOST, &r)) {
                order->lost = true;
                timer_add(t, LOST_MS, TIMER_ORDER_DONE, o, a->id);
                return;
        }
        if (i == NOBODY || !t->procs[i].alive) {
                conclude(t, o, 1, OUTCOME_BLOCKED, HAND_WHY_GONE);
                return;
        }
        struct proc *p = &t->procs[i];
        enum hand_why why = look_first(t, a, p, &r);
        if (why != HAND_WHY_NONE) {
                conclude(t, o, 3, why == HAND_WHY_DRIVER ? OUTCOME_FAILED : OUTCOME_BLOCKED, why);
                return;
        }
        if (a->hand == HAND_RESTORE && card_used_bytes(t, p->card) > hands_limit_bytes(t, a, p)) {
                conclude(t, o, 5, OUTCOME_BLOCKED, HAND_WHY_HEADROOM);
                return;
        }
        if ((a->hand == HAND_LOCK || a->hand == HAND_HOLD) && fault_strikes(&t->faults, FAULT_LOCK_TIMEOUT, &r)) {
                conclude(t, o, a->wait_ms, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
                return;
        }
        p->record_lease_id = a->lease_id;
        p->record_bytes = p->bytes;
        timer_add(t, lasts_ms(t, a, p, &r), TIMER_ORDER_DONE, o, a->id);
}

/* ---- what the orders do ---- */

static void carry_signal(struct trial *t, uint32_t o, uint32_t i)
{
        const struct action *a = &t->orders[o].order;
        struct proc *p = &t->procs[i];

        check_signal_sent(t, a, i);
        if (a->signal == SIGTERM) {
                p->term_ms = t->now_ms;
                if (!p->ignores_term && !p->locked)
                        timer_add(t, 100 + random_below(&p->random, 3000), TIMER_PROC_DIES, i, p->identity.pid);
                conclude(t, o, 1, OUTCOME_DONE, HAND_WHY_NONE);
                return;
        }
        t->count.kills++;
        if (p->unkillable_once) {
                p->unkillable_once = false;
                conclude(t, o, 10000, OUTCOME_FAILED, HAND_WHY_UNKILLABLE);
                timer_add(t, 15000 + random_below(&p->random, 30000), TIMER_PROC_DIES, i, p->identity.pid);
                return;
        }
        if (a->hand == HAND_KILL_TREE)
                for (uint32_t k = 0; k < t->n_procs; k++)
                        if (t->procs[k].used && t->procs[k].alive && t->procs[k].cgroup == a->cgroup_id &&
                            !t->procs[k].is_owner)
                                proc_die(t, k);
        proc_die(t, i);
        conclude(t, o, 1, OUTCOME_DONE, HAND_WHY_NONE);
}

static void carry_checkpoint(struct trial *t, uint32_t o, struct proc *p, struct random *r)
{
        if (fault_strikes(&t->faults, FAULT_CHECKPOINT_FAILED, r)) {
                p->record = REC_FAILED;
                conclude(t, o, 1, OUTCOME_FAILED, HAND_WHY_DRIVER);
                return;
        }
        if (fault_strikes(&t->faults, FAULT_CHECKPOINT_NO_MEMORY, r)) {
                p->record = REC_LOCKED;
                conclude(t, o, 1, OUTCOME_BLOCKED, HAND_WHY_MEMORY);
                return;
        }
        p->away = true;
        p->record = REC_CHECKPOINTED;
        p->host_bytes = p->bytes + p->bytes / 50;
        card_lag(t, p, p->bytes);
        t->cards[p->card].dirty = true;
        t->orders[o].outcome.host_bytes = p->host_bytes;
        conclude(t, o, 1, OUTCOME_DONE, HAND_WHY_NONE);
}

static void carry_restore(struct trial *t, uint32_t o, uint32_t i, struct random *r)
{
        struct proc *p = &t->procs[i];
        uint64_t bytes = p->bytes;

        if (fault_strikes(&t->faults, FAULT_RESTORE_FAILED, r)) {
                p->record = REC_FAILED;
                conclude(t, o, 1, OUTCOME_FAILED, HAND_WHY_DRIVER);
                return;
        }
        p->bytes = 0;
        p->away = false;
        bool breaks = fault_strikes(&t->faults, FAULT_RESTORE_NO_MEMORY, r);
        bool fits = !breaks && proc_take(t, i, bytes);
        if (!breaks && !fits)
                check_memory(t, i, bytes);
        p->bytes = bytes;
        if (!fits) {
                p->away = true;
                p->record = REC_FAILED;
                conclude(t, o, 1, OUTCOME_FAILED, HAND_WHY_MEMORY);
                return;
        }
        p->host_bytes = 0;
        p->was_restored = true;
        p->record = REC_LOCKED;
        conclude(t, o, 1, OUTCOME_DONE, HAND_WHY_NONE);
}

/* What is not known to have been done: by the record, as lessord tells it. */
static void tell_by_record(struct trial *t, uint32_t o, enum hand_verb verb, const struct proc *p)
{
        struct hand_outcome *out = &t->orders[o].outcome;
        enum record_truth rec = p ? (enum record_truth) p->record : REC_NONE;
        bool done = false, failed = false;

        if (!p) {
                conclude(t, o, 1, OUTCOME_BLOCKED, HAND_WHY_GONE);
                return;
        }
        switch ((unsigned) verb) {
        case HAND_LOCK:
                done = rec == REC_LOCKED;
                break;
        case HAND_HOLD:
                done = rec == REC_HELD;
                break;
        case HAND_CHECKPOINT:
                done = rec == REC_CHECKPOINTED || rec == REC_STOPPED;
                failed = rec == REC_CHECKPOINTING || rec == REC_FAILED;
                out->host_bytes = done ? p->host_bytes : 0;
                break;
        case HAND_STOP:
                done = rec == REC_STOPPED;
                break;
        case HAND_RESTORE:
                done = rec == REC_LOCKED;
                failed = rec == REC_RESTORING || rec == REC_FAILED;
                break;
        case HAND_UNLOCK:
                done = rec == REC_NONE;
                break;
        }
        conclude(t, o, 1,
                 done     ? OUTCOME_DONE
                 : failed ? OUTCOME_FAILED
                          : OUTCOME_BLOCKED,
                 done     ? HAND_WHY_NONE
                 : failed ? HAND_WHY_LOST
                          : HAND_WHY_AWAY);
}

void hands_done(struct trial *t, uint32_t o)
{
        struct order *order = &t->orders[o];
        struct random r = random_of(t->script->seed, 7, order->order.id);
        uint32_t i = proc_find(t, order->order.process);
        struct proc *p = i != NOBODY && t->procs[i].alive ? &t->procs[i] : NULL;

        if (order->state != ORDER_WORKING)
                return;
        if (order->lost) {
                tell_by_record(t, o, (enum hand_verb) order->order.hand, p);
                return;
        }
        if (!p) {
                conclude(t, o, 1, OUTCOME_BLOCKED, HAND_WHY_GONE);
                return;
        }
        switch ((enum hand_verb) order->order.hand) {
        case HAND_SIGNAL:
        case HAND_KILL_TREE:
                carry_signal(t, o, i);
                return;
        case HAND_LOCK:
        case HAND_HOLD:
                p->locked = true;
                p->record = order->order.hand == HAND_HOLD ? REC_HELD : REC_LOCKED;
                order->outcome.program = 1000 + (p->client == NOBODY ? 0 : t->clients[p->client].arg[ASK_CONSUMER]);
                break;
        case HAND_CHECKPOINT:
                carry_checkpoint(t, o, p, &r);
                return;
        case HAND_STOP:
                p->stopped = true;
                p->record = REC_STOPPED;
                if (fault_strikes(&t->faults, FAULT_DIES_WHILE_PARKED, &r))
                        timer_add(t, random_below(&r, 60000), TIMER_PROC_DIES, i, p->identity.pid);
                break;
        case HAND_RESTORE:
                carry_restore(t, o, i, &r);
                return;
        case HAND_UNLOCK:
                p->locked = p->stopped = false;
                p->record = REC_NONE;
                break;
        case HAND_FREEZE:
        case HAND_THAW:
        case HAND_NONE:
        case HAND_VERB_N:
                break;
        }
        conclude(t, o, 1, OUTCOME_DONE, HAND_WHY_NONE);
}

/* ---- and what is told of them ---- */

void hands_told(struct trial *t, uint32_t o)
{
        struct order *order = &t->orders[o];
        struct input input = { .kind = INPUT_OUTCOME, .outcome = order->outcome };
        bool was_host = order->outcome.host_bytes != 0;

        if (order->state != ORDER_TO_TELL || !t->up || (!t->hands_up && order->outcome.why != HAND_WHY_AWAY))
                return; /* kept, until somebody can be told */
        trial_say(t, "order %u of pid %u: %s, %s", (unsigned) order->order.id, order->order.process.pid,
                  outcome_name((enum outcome) order->outcome.outcome),
                  hand_why_name((enum hand_why) order->outcome.why));
        t->count.blocked += order->outcome.outcome == OUTCOME_BLOCKED;
        t->count.failed += order->outcome.outcome == OUTCOME_FAILED;
        (void) daemon_submit(t, &input);
        if (!t->up)
                return; /* whether it was stored the next daemon will know: it is told again */
        order->state = ORDER_FREE;
        t->n_orders--;
        if (was_host)
                daemon_tell_host(t);
}

static enum record_truth record_seen(const struct proc *p)
{
        return p->used && p->alive ? (enum record_truth) p->record : REC_NONE;
}

void hands_tell_records(struct trial *t)
{
        static const uint8_t members[] = {
                [REC_LOCKED] = MEMBER_LOCKED,
                [REC_HELD] = MEMBER_LOCKED,
                [REC_CHECKPOINTING] = MEMBER_CHECKPOINTING,
                [REC_CHECKPOINTED] = MEMBER_CHECKPOINTED,
                [REC_STOPPED] = MEMBER_STOPPED,
                [REC_RESTORING] = MEMBER_RESTORING,
                [REC_FAILED] = MEMBER_FAILED,
        };
        for (uint32_t i = 0; i < t->n_procs && t->up; i++) {
                const struct proc *p = &t->procs[i];
                struct input input = { .kind = INPUT_RECORD };
                if (record_seen(p) == REC_NONE)
                        continue;
                struct park_record *rec = &input.record;
                rec->process = p->identity;
                rec->uid = p->uid;
                rec->member = members[p->record];
                rec->no_stop = p->away && !p->stopped;
                rec->lease_id = p->record_lease_id;
                rec->bytes = p->record_bytes;
                rec->host_bytes = p->host_bytes;
                memcpy(rec->uuid, t->cards[p->card].uuid, sizeof(rec->uuid));
                (void) daemon_submit(t, &input);
        }
}

static bool is_known(const struct trial *t, uint64_t order_id)
{
        for (uint32_t i = 0; i < ORDERS_MAX; i++)
                if (t->orders[i].state != ORDER_FREE && t->orders[i].order.id == order_id)
                        return true;
        return false;
}

static enum hand_verb verb_of(const struct trial *t, const struct process *p)
{
        const struct lease *l = world_lease_get(t->world, p->lease);

        switch (p->member) {
        case MEMBER_LOCKING:
                return l && l->park.step == PARK_HOLDING ? HAND_HOLD : HAND_LOCK;
        case MEMBER_CHECKPOINTING:
                return HAND_CHECKPOINT;
        case MEMBER_STOPPING:
                return HAND_STOP;
        case MEMBER_RESTORING:
                return HAND_RESTORE;
        case MEMBER_UNLOCKING:
                return HAND_UNLOCK;
        }
        return HAND_NONE;
}

void hands_tell_lost(struct trial *t)
{
        for (uint32_t i = 0; i < t->world->n_processes; i++) {
                const struct process *known = &t->world->processes[i];
                if (known->order_id == 0 || is_known(t, known->order_id))
                        continue;
                const struct lease *l = world_lease_get(t->world, known->lease);
                uint32_t o = free_order(t), at = proc_find(t, known->identity);
                struct order *order = &t->orders[o];
                *order = (struct order){ .state = ORDER_TO_TELL, .lost = true };
                order->order.id = known->order_id;
                order->order.process = known->identity;
                order->outcome = (struct hand_outcome){ .order_id = known->order_id,
                                                        .lease_id = l ? l->id : 0,
                                                        .process = known->identity };
                tell_by_record(t, o, verb_of(t, known), at != NOBODY && t->procs[at].alive ? &t->procs[at] : NULL);
        }
}

void hands_tell_kept(struct trial *t)
{
        for (uint32_t o = 0; o < ORDERS_MAX; o++)
                if (t->orders[o].state == ORDER_TO_TELL)
                        timer_add(t, 5, TIMER_ORDER_TOLD, o, t->orders[o].order.id);
}

void hands_back(struct trial *t)
{
        t->hands_up = true;
        if (!t->up)
                return;
        hands_tell_records(t);
        if (t->up)
                hands_tell_lost(t);
        hands_tell_kept(t);
}

/* Orders, and the records with /run. */
void hands_power_cut(struct trial *t)
{
        memset(t->orders, 0, sizeof(t->orders));
        t->n_orders = 0;
        for (uint32_t i = 0; i < t->n_procs; i++)
                t->procs[i].record = REC_NONE;
}
