/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessord, as far as it is more than its core: every input is stored before what was decided leaves the process, and it may
 * die at each write, before it, after it, or in the middle of what leaves. Who comes back has the journal.
 */
#include <inttypes.h>
#include <string.h>
#include "store/codec_action.h"
#include "store/codec_input.h"
#include "trial/trial.h"

enum { BUSY_MS = 5000, MORE_MAX = 100, QUIET_TICKS_CHECKED = 13 };

static void digest(struct trial *t, const uint8_t *bytes, size_t n)
{
        for (size_t i = 0; i < n; i++)
                t->digest = (t->digest ^ bytes[i]) * UINT64_C(1099511628211);
}

/* ---- what leaves the process ---- */

static void act(struct trial *t, const struct action *a)
{
        switch ((enum action_kind) a->kind) {
        case ACTION_READ:
                timer_add(t, a->wait_ms, TIMER_LOOK, a->device, 0);
                break;
        case ACTION_HAND:
                hands_take(t, a);
                break;
        case ACTION_QUEUED:
        case ACTION_GRANTED:
        case ACTION_REFUSED:
        case ACTION_ACTIVE:
        case ACTION_RENEWED:
        case ACTION_DRAINING:
        case ACTION_ORPHANED:
        case ACTION_ENDED:
        case ACTION_CHANGED:
        case ACTION_ASKED:
        case ACTION_PARKED:
        case ACTION_THAWING:
        case ACTION_THAWED:
        case ACTION_STUCK:
                client_answer(t, a);
                break;
        case ACTION_NONE:
        case ACTION_WAITING:
        case ACTION_WARNING:
        case ACTION_DEVICE:
        case ACTION_STRANGER:
        case ACTION_EYES:
        case ACTION_RESTARTED:
        case ACTION_PLAN:
        case ACTION_IDLE:
        case ACTION_MANAGER:
        case ACTION_ENFORCE:
        case ACTION_KIND_N:
                break;
        }
}

static void go_down(struct trial *t)
{
        bool power = t->cut == FAULT_POWER_LOST;

        t->up = false;
        t->went_down_ms = t->now_ms;
        t->eyes_open = false;
        t->rebooted = t->rebooted || power;
        t->cut = FAULT_N;
        memset(t->looks, 0, sizeof(t->looks));
        for (uint32_t p = 0; p < t->n_procs; p++)
                t->procs[p].told = t->procs[p].known = false;
        if (power) {
                t->count.power_cuts++;
                hands_power_cut(t);
                for (uint32_t p = 0; p < t->n_procs; p++)
                        proc_die(t, p);
                for (uint32_t c = 0; c < t->n_cards; c++)
                        t->cards[c].n_lags = 0;
        }
        timer_add(t, u64_max(t->down_ms, 1), TIMER_DAEMON_UP, 0, 0);
        trial_say(t, "%s", power ? "the power is gone" : "lessord dies");
}

/* ---- one input ---- */

/* As it will be read again: what the journal cannot say, the core is not told. */
static size_t store_input(struct trial *t, struct input *input, struct occupancy *rows, uint8_t *to, size_t size)
{
        struct error err = { 0 };
        size_t n = 0;

        if (codec_input_encode(input, to, size, &n, &err) < 0)
                trial_break(t, "an input cannot be stored: %s", err.msg);
        if (codec_input_decode(to, n, input, rows, &err) < 0)
                trial_break(t, "an input that was stored cannot be read: %s", err.msg);
        return n;
}

static void note_actions(struct trial *t)
{
        struct error err = { 0 };
        size_t n = 0;

        for (uint32_t i = 0; i < t->out->n; i++) {
                const struct action *a = &t->out->items[i];
                if (codec_action_encode(a, t->scratch, t->scratch_size, &n, &err) < 0)
                        trial_break(t, "an action cannot be stored: %s", err.msg);
                digest(t, t->scratch, n);
                if (t->verbose && a->kind != ACTION_READ) {
                        char text[REASON_TEXT_MAX];
                        trial_say(t, "  L%" PRIu64 " %s %s: %s%s%s", a->lease_id,
                                  action_kind_name((enum action_kind) a->kind), rule_name((enum rule) a->why.rule),
                                  a->kind == ACTION_HAND ? hand_verb_name((enum hand_verb) a->hand) : "",
                                  a->kind == ACTION_HAND ? " " : "",
                                  reason_text(&a->why, t->world->now_ms, text, sizeof(text)));
                }
                book_action(t, a);
        }
        t->count.actions += t->out->n;
}

/* Some of what was decided leaves, and then it dies. */
static void leave(struct trial *t, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                act(t, &t->out->items[i]);
}

/* The core says all it has to say. False: a tick that said nothing, which changes nothing and is not kept (arbiter.h). */
static bool decide(struct trial *t, struct input *input)
{
        bool is_tick = input->kind == INPUT_TICK;
        bool sampled = is_tick && t->count.ticks % QUIET_TICKS_CHECKED == 0;

        if (sampled)
                journal_keep_books(t);
        t->count.steps++;
        memset(t->granted, 0, sizeof(t->granted));
        book_input(t, input);
        for (int again = 0;; again++) {
                t->input = *input;
                arbiter_step(t->world, input, t->out);
                if (is_tick && again == 0 && t->out->n == 0 && !t->out->more) {
                        if (sampled)
                                check_silent_tick(t);
                        return false;
                }
                if (t->written)
                        written_record(t->written, input, t->out);
                note_actions(t);
                if (!t->out->more)
                        return true;
                if (again == MORE_MAX)
                        trial_break(t, "there is always more");
                leave(t, t->out->n);
                input->kind = INPUT_TICK;
        }
}

/* What the next write does to it, if anything. */
static enum fault cut_now(struct trial *t, struct random *r)
{
        return t->cut != FAULT_N && fault_strikes(&t->faults, (enum fault) t->cut, r) ? (enum fault) t->cut : FAULT_N;
}

bool daemon_submit(struct trial *t, struct input *input)
{
        static struct occupancy rows[ROWS_MAX];
        static uint8_t stored[CODEC_INPUT_MAX];
        struct random r = random_of(t->script->seed, 3, t->count.inputs);

        if (!t->up)
                return false;
        input->now_ms = t->now_ms;
        bool is_tick = input->kind == INPUT_TICK;
        size_t n_stored = is_tick ? 0 : store_input(t, input, rows, stored, sizeof(stored));
        if (t->verbose && input->kind != INPUT_READING && input->kind != INPUT_TICK)
                trial_say(t, "> %s", input_kind_name((enum input_kind) input->kind));
        if (t->cut != FAULT_N)
                journal_keep_books(t);
        if (t->cut == FAULT_CUT_BEFORE_COMMIT && cut_now(t, &r) != FAULT_N) { /* known to nobody */
                go_down(t);
                return true;
        }
        if (!decide(t, input))
                return true;
        if (is_tick) { /* its time alone, and most of them are not kept */
                struct input tick = { .kind = INPUT_TICK, .now_ms = t->now_ms };
                n_stored = store_input(t, &tick, rows, stored, sizeof(stored));
        }
        t->count.inputs++;
        check_step(t);
        journal_add(t, stored, n_stored);
        t->busy_until_ms = t->now_ms + BUSY_MS;

        enum fault cut = cut_now(t, &r);
        if (cut == FAULT_N) {
                leave(t, t->out->n);
                return true;
        }
        journal_keep_books(t);
        if (cut == FAULT_CUT_BETWEEN_ACTIONS)
                leave(t, (uint32_t) random_below(&r, t->out->n));
        go_down(t);
        return true;
}

void daemon_tick(struct trial *t)
{
        struct input tick = { .kind = INPUT_TICK };

        t->count.ticks += t->up;
        (void) daemon_submit(t, &tick);
        bookings_tick(t);
}

/* ---- coming back ---- */

void daemon_tell_host(struct trial *t)
{
        struct input input = { .kind = INPUT_HOST, .host = t->host };

        input.host.read_ms = t->now_ms;
        (void) daemon_submit(t, &input);
}

static bool is_alive(const struct trial *t, struct identity identity)
{
        uint32_t p = proc_find(t, identity);
        return p != NOBODY && t->procs[p].alive;
}

void daemon_tell_config(struct trial *t)
{
        struct input input = { .kind = INPUT_CONFIG, .config = t->config };

        (void) daemon_submit(t, &input);
}

/* What lessord watches by pidfds, whoever told it of them: who owns a lease, and what runs under it. */
void daemon_watch_owners(struct trial *t)
{
        for (uint32_t i = 0; i < t->world->n_leases && t->up; i++) {
                const struct lease *l = &t->world->leases[i];
                if (l->state == LEASE_NONE || l->state == LEASE_DRAINING)
                        continue;
                if (l->root_living && !is_alive(t, l->binding.root)) {
                        struct input input = { .kind = INPUT_PROCESS_ENDED, .process_ended = l->binding.root };
                        (void) daemon_submit(t, &input);
                        if (!t->up || l->state == LEASE_NONE)
                                continue;
                }
                if (l->binding.kind == BINDING_PROCESS && !l->owner_gone && !is_alive(t, l->binding.owner)) {
                        struct input input = {
                                .kind = INPUT_OWNER_ENDED,
                                .call = { .lease_id = l->id, .by_system = true, .end_reason = END_OWNER_EXITED }
                        };
                        (void) daemon_submit(t, &input);
                }
        }
        /* The eyes do not list what is parked: its end is seen by its pidfd alone. */
        for (uint32_t i = 0; i < t->world->n_processes && t->up; i++) {
                const struct process *p = &t->world->processes[i];
                if (p->member == MEMBER_RUNNING || p->state == PROCESS_ENDED || is_alive(t, p->identity))
                        continue;
                struct input input = { .kind = INPUT_PROCESS_ENDED, .process_ended = p->identity };
                uint32_t n = t->world->n_processes;
                (void) daemon_submit(t, &input);
                i -= t->up && t->world->n_processes < n ? 1U : 0U;
        }
}

static void tell_restart(struct trial *t)
{
        struct random r = random_of(t->script->seed, 4, t->count.restarts);
        struct input input = { .kind = INPUT_RESTART, .restart = { .rebooted = t->rebooted } };

        input.restart.degraded = !t->rebooted && fault_strikes(&t->faults, FAULT_BOOKS_DAMAGED, &r);
        t->degraded = input.restart.degraded;
        t->rebooted = false;
        (void) daemon_submit(t, &input);
}

static void tell_eyes(struct trial *t)
{
        struct input input = { .kind = INPUT_EYES, .eyes = { .answering = true } };

        t->eyes_open = true;
        (void) daemon_submit(t, &input);
        for (uint32_t c = 0; c < t->n_cards && t->up; c++)
                card_tell(t, c);
        for (uint32_t c = 0; c < t->n_cards && t->up; c++)
                timer_add(t, 20, TIMER_LOOK, c, 0);
}

void daemon_start(struct trial *t, bool first)
{
        struct random r = random_of(t->script->seed, 16, t->count.restarts);

        /* World time never goes back, whatever the wall clock does (lessord/world_clock.h); it may leap ahead. */
        if (t->clock_ahead_ms != 0 && fault_strikes(&t->faults, FAULT_CLOCK_AHEAD, &r))
                t->now_ms += t->clock_ahead_ms;
        t->clock_ahead_ms = 0;
        t->up = true;
        t->cut = FAULT_N;
        for (uint32_t c = 0; c < t->n_cards; c++)
                t->cards[c].said = (struct said){ .changed_ms = t->now_ms };
        if (first) {
                world_init(t->world, &t->config);
                journal_begin(t);
        } else {
                t->count.restarts++;
                book_nobody_waited(t, t->now_ms - t->went_down_ms);
                journal_come_back(t);
                check_restored(t);
                journal_begin(t);
                trial_say(t, "lessord is back");
                tell_restart(t);
                daemon_tell_config(t); /* it may have changed while nobody read it */
                daemon_watch_owners(t);
        }
        tell_eyes(t);
        daemon_tell_host(t);
        if (first)
                return;
        hands_tell_records(t);
        hands_tell_lost(t);
        hands_tell_kept(t);
        for (uint32_t c = 0; c < t->n_clients && t->up; c++)
                if (t->clients[c].phase != CLIENT_AWAY && t->clients[c].phase != CLIENT_GONE)
                        timer_add(t, 50 + c % 400, TIMER_CLIENT, c, 0);
}
