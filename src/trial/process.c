/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "trial/trial.h"

enum { FORGOTTEN_MS = 60000 }; /* a dead one is remembered for so long: somebody may still speak of it */

uint32_t proc_find(const struct trial *t, struct identity identity)
{
        for (uint32_t i = 0; i < t->n_procs; i++)
                if (t->procs[i].used && identity_equal(t->procs[i].identity, identity))
                        return i;
        return NOBODY;
}

void proc_forget_dead(struct trial *t)
{
        for (uint32_t i = 0; i < t->n_procs; i++) {
                struct proc *p = &t->procs[i];
                bool spoken_of = p->client != NOBODY && t->clients[p->client].phase != CLIENT_GONE;
                if (p->used && !p->alive && !spoken_of && t->now_ms - p->died_ms > FORGOTTEN_MS)
                        p->used = false;
        }
}

static uint32_t free_row(struct trial *t)
{
        for (uint32_t i = 0; i < t->n_procs; i++)
                if (!t->procs[i].used)
                        return i;
        if (t->n_procs == PROCS_MAX)
                trial_break(t, "the trial itself: more than %d processes", PROCS_MAX);
        return t->n_procs++;
}

/* A number that was somebody's a while ago is given out again, with another start. */
static uint32_t some_pid(struct trial *t, struct random *r)
{
        if (!fault_strikes(&t->faults, FAULT_PID_REUSED, r))
                return t->next_pid++;
        for (uint32_t i = 0; i < t->n_procs; i++) {
                uint32_t pid = t->procs[i].identity.pid;
                bool taken = false;
                if (!t->procs[i].used || t->procs[i].alive)
                        continue;
                for (uint32_t k = 0; k < t->n_procs; k++)
                        taken = taken || (t->procs[k].used && t->procs[k].alive && t->procs[k].identity.pid == pid);
                if (!taken)
                        return pid;
        }
        return t->next_pid++;
}

uint32_t proc_new(struct trial *t, uint32_t client, uint32_t uid, uint32_t card, uint32_t parent)
{
        uint32_t i = free_row(t);
        struct proc *p = &t->procs[i];
        struct random r = random_of(t->script->seed, 11, t->next_pid);

        memset(p, 0, sizeof(*p));
        p->identity.pid = some_pid(t, &r);
        p->identity.start_ticks = t->now_ms / 10 + ++t->n_started; /* never the same twice */
        p->used = p->alive = true;
        p->client = client;
        p->uid = uid;
        p->card = card;
        for (uint32_t at = 0; parent != NOBODY && at < ANCESTORS_KEPT; at++) {
                const struct proc *of = &t->procs[parent];
                if (at > of->n_ancestors)
                        break;
                p->ancestors[p->n_ancestors++] = at == 0 ? of->identity : of->ancestors[at - 1];
        }
        p->random = r;
        p->no_figure = random_one_in(&p->random, 60);
        p->ignores_term = fault_strikes(&t->faults, FAULT_IGNORES_TERM, &p->random);
        p->unkillable_once = fault_strikes(&t->faults, FAULT_UNKILLABLE, &p->random);
        return i;
}

/* ---- memory ---- */

bool proc_take(struct trial *t, uint32_t i, uint64_t bytes)
{
        struct proc *p = &t->procs[i];
        const struct card *card = &t->cards[p->card];

        if (card->lost || card_used_bytes(t, p->card) + bytes > card->total_bytes)
                return false;
        p->bytes += bytes;
        t->cards[p->card].dirty = true;
        if (p->client == NOBODY || p->misplaced) /* under no lease there */
                t->cards[p->card].foreign_grew_ms = t->now_ms;
        return true;
}

void proc_give(struct trial *t, uint32_t i, uint64_t bytes)
{
        struct proc *p = &t->procs[i];

        bytes = u64_min(bytes, p->bytes);
        p->bytes -= bytes;
        p->target_bytes = u64_min(p->target_bytes, p->bytes);
        card_lag(t, p, bytes);
        t->cards[p->card].dirty = true;
}

/* A quarter of what it wants, and again in a while. */
void proc_grow(struct trial *t, uint32_t i)
{
        struct proc *p = &t->procs[i];

        if (!p->alive || p->bytes >= p->target_bytes)
                return;
        bool waits = p->client != NOBODY && t->clients[p->client].at_barrier;
        if (waits || p->locked || p->away || p->stopped) { /* its calls wait */
                timer_add(t, 2000, TIMER_PROC_GROWS, i, p->identity.pid);
                return;
        }
        uint64_t bytes = u64_min(p->target_bytes - p->bytes, u64_max(p->target_bytes / 4, MIB(64)));
        if (!proc_take(t, i, bytes)) {
                check_memory(t, i, bytes);
                t->count.out_of_memory++;
                p->target_bytes = p->bytes;
                if (p->client != NOBODY && random_one_in(&p->random, 2))
                        timer_add(t, 500, TIMER_PROC_DIES, i, p->identity.pid); /* as most programs do then */
                return;
        }
        timer_add(t, 300 + random_below(&p->random, 9000), TIMER_PROC_GROWS, i, p->identity.pid);
}

/* ---- its end ---- */

void proc_die(struct trial *t, uint32_t i)
{
        struct proc *p = &t->procs[i];
        uint64_t seen_ms = random_below(&p->random, 40);

        if (!p->used || !p->alive)
                return;
        trial_say(t, "pid %u ends (%s)", p->identity.pid, p->client == NOBODY ? "a stranger" : "a client's");
        p->alive = false;
        p->died_ms = t->last_death_ms = t->now_ms;
        if (!p->away && p->bytes != 0)
                card_lag(t, p, p->bytes);
        p->record = REC_NONE;
        p->locked = p->away = p->stopped = false;
        p->host_bytes = 0;
        t->cards[p->card].dirty = true;
        if (fault_strikes(&t->faults, FAULT_EXIT_SEEN_LATE, &p->random))
                seen_ms += random_below(&p->random, 20000);
        timer_add(t, seen_ms, TIMER_EXIT_SEEN, i, p->identity.pid);
        if (p->client != NOBODY)
                client_proc_died(t, p->client, i);
        else
                stranger_died(t, i);
}

/* Its pidfd says so: to who watched it. */
void proc_exit_seen(struct trial *t, uint32_t i)
{
        struct proc *p = &t->procs[i];
        struct input input = { .kind = INPUT_PROCESS_ENDED, .process_ended = p->identity };

        if (!t->up || !p->used || p->alive)
                return;
        if (p->told || p->is_root)
                (void) daemon_submit(t, &input);
        daemon_watch_owners(t);
}

void proc_facts(const struct trial *t, uint32_t i, struct process *ret)
{
        const struct proc *p = &t->procs[i];

        memset(ret, 0, sizeof(*ret));
        ret->identity = p->identity;
        ret->uid = p->uid;
        ret->cgroup_id = p->cgroup;
        ret->ppid = p->n_ancestors == 0 ? 1 : p->ancestors[0].pid;
        ret->room_bytes = t->cgroup_room_bytes;
        ret->program = p->looks_like.program != 0
                               ? p->looks_like.program
                               : 1000 + (p->client == NOBODY ? 0 : t->clients[p->client].arg[ASK_CONSUMER]);
        ret->script = p->looks_like.script;
        ret->command = p->looks_like.command;
        ret->runs = p->looks_like.program != 0 ? p->looks_like.runs : (uint8_t) RUNS_PROGRAM;
        ret->place = p->looks_like.place;
        ret->guard = p->looks_like.guard;
        ret->n_ancestors = p->n_ancestors;
        memcpy(ret->ancestors, p->ancestors, p->n_ancestors * sizeof(p->ancestors[0]));
        memcpy(ret->comm, "program", sizeof("program"));
}
