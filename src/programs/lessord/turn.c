/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at the end of each turn of the loop: step, commit, and only then act.
 *
 *                     turn_run: inputs are stepped, encoded, handed to the writer
 *      SETTLED ------------------------------------------------------------------> COMMITTING
 *         ^  ^                                                                      |      |
 *         |  `---------- turn_answered: the actions are carried out <---- stored ---'      | failed
 *         |                                                                                v
 *         `---- a snapshot could be written <---- OUTAGE: the world is read again (outage.c)
 *
 * Where a gate is kept, the actions of a turn that changed leases wait for it too, behind the disk: a lease can open the device
 * before anybody is told that it began (gate.h).
 *
 * While a batch is under way the loop goes on: it takes connections, reads requests, hears the eyes. But it steps nothing
 * (what comes meanwhile is the next batch: the group commit), and nobody is shown a world that the disk does not have yet:
 * turn_is_settled() holds such answers back (api/host.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "arbiter/arbiter.h"
#include "base/clock.h"
#include "base/log.h"
#include "model/lease.h"
#include "programs/lessord/daemon.h"

static struct actions out; /* 2 MiB, mostly never touched; one thread */

/* World time stands still while the machine sleeps, so a reading of before would pass for a young one (F26). */
static void notice_sleep(struct daemon *d)
{
        uint64_t asleep_ms = clock_asleep_ms();
        bool slept = d->asleep_known && asleep_ms > d->asleep_ms + SLEPT_MS;

        d->asleep_known = true;
        if (slept)
                log_info("event=slept for_ms=%" PRIu64, asleep_ms - d->asleep_ms);
        d->asleep_ms = asleep_ms;
        if (slept && d->eyes)
                eyes_link_slept(d->eyes);
}

/* Nothing here goes by the wall clock; whoever reads the log by its times has to know that they jumped (F79). */
static void notice_clock_step(struct daemon *d)
{
        int64_t ahead_ms = (int64_t) (d->wall_ms - d->now_ms - d->asleep_ms);
        int64_t step_ms = ahead_ms - d->wall_ahead_ms;

        if (d->wall_ahead_ms != 0 && (step_ms > CLOCK_STEP_MS || step_ms < -CLOCK_STEP_MS))
                log_warning("event=clock-step by_ms=%" PRId64, step_ms);
        d->wall_ahead_ms = ahead_ms;
}

uint64_t daemon_now_ms(struct daemon *d)
{
        if (d->now_ms == 0) {
                d->now_ms = world_clock_now_ms(&d->clock);
                d->wall_ms = clock_now_wall_ms();
                notice_sleep(d); /* first of this turn: what it submits stands before what the turn brought */
                notice_clock_step(d);
        }
        return d->now_ms;
}

uint64_t daemon_wall_ms(struct daemon *d)
{
        (void) daemon_now_ms(d);
        return d->wall_ms;
}

void daemon_give_up(struct daemon *d, const char *what, const struct error *err)
{
        log_error("event=giving-up what=\"%s\" words=\"%s\"", what, err->msg);
        d->exit_status = EXIT_FAILURE;
        d->stopping = true;
        uv_stop(&d->loop);
}

static void on_busy(uv_idle_t *idle)
{
        (void) idle; /* its being active is all: the loop does not sleep while inputs wait */
}

static bool collect(struct daemon *d, const struct input *input)
{
        struct input copy = *input;

        if (copy.now_ms == 0)
                copy.now_ms = daemon_now_ms(d);
        if (inputs_add(&d->inputs, &copy) == 0) {
                d->n_untrimmed++;
                return true;
        }
        struct error err = { 0 };
        (void) error_set(&err, ENOMEM, "no memory for an input");
        daemon_give_up(d, "collecting inputs", &err);
        return false;
}

void daemon_submit(struct daemon *d, const struct input *input)
{
        if (!collect(d, input))
                return;
        d->inputs_can_wait = false;
        daemon_stay_awake(d);
}

void daemon_submit_patiently(struct daemon *d, const struct input *input)
{
        bool can_wait = (d->inputs.n == 0 || d->inputs_can_wait) && !pace_an_answer_is_awaited(d->world);

        if (!collect(d, input))
                return;
        d->inputs_can_wait = can_wait;
        if (can_wait)
                pace_wait_for_company(d);
        else
                daemon_stay_awake(d);
}

void daemon_stay_awake(struct daemon *d)
{
        if (d->inputs.n > 0 && !d->inputs_can_wait && !d->store_failed && !writer_is_busy(d->writer) && !gate_holds(d))
                (void) uv_idle_start(&d->busy, on_busy);
}

/* ---- the world ---- */

static void step(void *ctx, struct world *world, const struct input *input, struct actions *actions)
{
        (void) ctx;
        arbiter_step(world, input, actions);
}

int turn_load_world(struct daemon *d, struct journal_restored *ret, struct error *err)
{
        /* Fresh pages are zeroed pages, and rows that nobody uses stay untouched. */
        (void) madvise(d->world, sizeof(*d->world), MADV_DONTNEED);
        int r = journal_restore(d->journal, d->world, step, d, ret, err);
        if (r < 0)
                return r;
        if (ret->fresh) {
                world_init(d->world, &d->conf.core);
                if (ret->next_lease_id > d->world->next_lease_id)
                        d->world->next_lease_id = ret->next_lease_id;
                if (ret->next_action_id > d->world->next_action_id)
                        d->world->next_action_id = ret->next_action_id;
        }
        if (ret->degraded)
                log_warning("event=journal-degraded words=\"%s\"", journal_degraded(d->journal));
        if (journal_upgraded(d->journal) && !d->writer)
                log_info("event=journal-upgraded words=\"%s\"", journal_upgraded(d->journal));
        if (!ret->agreed && ret->same_core)
                log_warning("event=journal-disagrees seq=%" PRIu64 " core=%s", ret->differs_at_seq, ret->core_version);
        return 0;
}

/* ---- stepping ---- */

static int keep_actions(struct batch *b, const struct actions *actions)
{
        if (actions->n == 0)
                return 0;
        if (b->n + actions->n > b->cap) {
                size_t cap = b->cap ? b->cap : 32;
                while (cap < b->n + actions->n)
                        cap *= 2;
                void *grown = reallocarray(b->items, cap, sizeof(*b->items));
                if (!grown)
                        return -ENOMEM;
                b->items = grown;
                b->cap = cap;
        }
        memcpy(b->items + b->n, actions->items, actions->n * sizeof(*b->items));
        b->n += actions->n;
        return 0;
}

static void batch_reset(struct batch *b)
{
        b->n = 0;
        if (b->cap > 256) { /* one busy turn is no reason to keep its memory */
                free(b->items);
                *b = (struct batch){ 0 };
        }
}

static int step_one(struct daemon *d, const struct input *input, struct error *err)
{
        const struct input *now = input;
        struct input again = { .kind = INPUT_TICK };

        do {
                arbiter_step(d->world, now, &out);
                /* A tick that decided nothing changed nothing: not worth a record. */
                if (now->kind != INPUT_TICK || out.n > 0) {
                        int r = journal_append(d->journal, now, &out, daemon_wall_ms(d), err);
                        if (r < 0)
                                return r;
                        audits_stepped(d, now, &out);
                        if (keep_actions(&d->batch, &out) < 0)
                                return error_set(err, ENOMEM, "no memory for the actions of a turn");
                }
                again.now_ms = d->world->now_ms;
                now = &again;
        } while (out.more);
        return 0;
}

static int step_all(struct daemon *d, const struct inputs *taken, struct error *err)
{
        for (size_t i = 0; i < taken->n; i++) {
                int r = step_one(d, &taken->items[i], err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- acting ---- */

static void log_action(const struct action *a)
{
        /* A heartbeat is no news. */
        enum log_level level = a->kind == ACTION_RENEWED ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
        const char *kind = action_kind_name((enum action_kind) a->kind), *rule = rule_name((enum rule) a->why.rule);
        int device = a->device == UINT32_MAX ? -1 : (int) a->device;
        char lease[LEASE_ID_TEXT_MAX] = "-";

        if (a->lease_id != 0)
                lease_id_text(a->lease_id, lease);
        if (a->kind == ACTION_HAND)
                log_line(level, "event=%s id=%" PRIu64 " lease=%s verb=%s pid=%u rule=%s uid=%u device=%d", kind, a->id,
                         lease, hand_verb_name((enum hand_verb) a->hand), a->process.pid, rule, a->uid, device);
        else if (a->kind == ACTION_MANAGER)
                log_line(level, "event=%s id=%" PRIu64 " lease=%s verb=%s rule=%s uid=%u device=%d", kind, a->id, lease,
                         manager_verb_name((enum manager_verb) a->manage), rule, a->uid, device);
        else if (a->lease_id != 0 || a->kind == ACTION_REFUSED)
                log_line(level,
                         "event=%s id=%" PRIu64 " lease=%s rule=%s end=%s uid=%u priority=%u bytes=%" PRIu64
                         " need_bytes=%" PRIu64 " free_bytes=%" PRIu64 " device=%d",
                         kind, a->id, lease, rule,
                         a->why.end != END_NONE ? end_reason_name((enum end_reason) a->why.end) : "-", a->uid,
                         a->priority, a->bytes, a->why.need_bytes, a->why.free_bytes, device);
        else if (a->kind == ACTION_STRANGER)
                log_line(level, "event=%s id=%" PRIu64 " rule=%s pid=%u uid=%u bytes=%" PRIu64 " device=%d", kind,
                         a->id, rule, a->process.pid, a->uid, a->bytes, device);
        else
                log_line(level, "event=%s id=%" PRIu64 " rule=%s device=%d bytes=%" PRIu64, kind, a->id, rule, device,
                         a->bytes);
}

/* A look changes nothing and tells nobody anything: it need not wait for the disk, which mostly takes as long. */
static void order_looks(struct daemon *d)
{
        for (size_t i = 0; i < d->batch.n; i++) {
                const struct action *a = &d->batch.items[i];
                if (a->kind == ACTION_READ)
                        looks_order(d, a->device, a->wait_ms);
        }
}

static void act(struct daemon *d)
{
        struct batch *b = &d->batch;
        bool leases_changed = d->owners.incomplete, audit_changed = false;

        for (size_t i = 0; i < b->n; i++) {
                const struct action *a = &b->items[i];
                if (a->kind == ACTION_READ)
                        continue; /* while the disk wrote: order_looks() */
                log_action(a);
                if (a->kind == ACTION_HAND)
                        hands_act(d, a);
                else if (a->kind == ACTION_MANAGER)
                        managers_act(d, a);
                warn_act(d, a);
                told_action(&d->told, d->world, a);
                leases_changed = leases_changed || a->lease_id != 0;
                audit_changed = audit_changed || a->kind == ACTION_STRANGER;
        }
        if (d->api) /* not before the door is open (main.c) */
                api_server_on_actions(d->api, b->items, b->n);
        if (leases_changed) { /* behind the answers: who is gone by now is found to be gone */
                turn_watch_processes(d, END_OWNER_EXITED);
                facts_leases_changed(d);
        } else if (audit_changed) {
                parked_watch_sync(&d->parked, d->world); /* whoever is to be ended is held from his notice on */
        }
        batch_reset(b);
}

void turn_watch_processes(struct daemon *d, enum end_reason end)
{
        owners_sync(&d->roots, d->world, end);
        owners_sync(&d->owners, d->world, end);
        parked_watch_sync(&d->parked, d->world);
}

static void snapshot_when_due(struct daemon *d)
{
        struct error err = { 0 };

        if (!journal_wants_snapshot(d->journal))
                return;
        if (journal_snapshot_prepare(d->journal, d->world, d->clock.boot_id, daemon_wall_ms(d), &err) < 0)
                log_warning("event=snapshot-failed words=\"%s\"", err.msg); /* the old segment goes on */
        else
                writer_order(d->writer, WRITER_SNAPSHOT);
}

/* ---- the turn ---- */

/* Once it has given up the world may be read by half: nobody is shown that, and the end closes the connections. */
bool turn_is_settled(const struct daemon *d)
{
        return !writer_is_busy(d->writer) && !gate_holds(d) && d->exit_status == EXIT_SUCCESS;
}

static void batch_failed(struct daemon *d, int r, const struct error *err)
{
        batch_reset(&d->batch);
        outage_begin(d, &d->taken, -r, err);
        inputs_clear(&d->taken);
}

/* What is left to do with a batch that is on the disk, when nothing waits any more. */
static void finish_batch(struct daemon *d)
{
        act(d);
        bookings_look(d);
        inputs_clear(&d->taken);
        hands_resolve(d);
        finish_look(d);
        snapshot_when_due(d);
        if (!d->stopping)
                pace_set(d);
}

static bool changed_leases(const struct batch *b)
{
        for (size_t i = 0; i < b->n; i++)
                if (b->items[i].lease_id != 0)
                        return true;
        return false;
}

static void batch_stored(struct daemon *d)
{
        hands_settle(d, &d->taken);
        if (!gate_hold(d, changed_leases(&d->batch)))
                finish_batch(d);
}

void turn_let_out(struct daemon *d)
{
        finish_batch(d);
        daemon_stay_awake(d);
        if (d->api && turn_is_settled(d))
                api_server_on_settled(d->api);
}

void turn_run(struct daemon *d)
{
        struct error err = { 0 };

        (void) uv_idle_stop(&d->busy);
        if (d->inputs.n == 0 || d->inputs_can_wait || d->store_failed || d->stopping || !turn_is_settled(d)) {
                d->now_ms = 0;
                return;
        }

        struct inputs empty = d->taken; /* two arrays in turns */
        d->taken = d->inputs;
        d->inputs = empty;
        int r = step_all(d, &d->taken, &err);
        if (r < 0)
                batch_failed(d, r, &err);
        else if (journal_pending(d->journal) == 0)
                batch_stored(d); /* ticks that said nothing */
        else {
                writer_order(d->writer, WRITER_COMMIT);
                order_looks(d);
        }
        d->now_ms = 0;
}

void turn_answered(void *ctx, enum writer_order order, int r, const struct error *err)
{
        struct daemon *d = ctx;

        if (order == WRITER_COMMIT && r < 0)
                batch_failed(d, r, err);
        else if (order == WRITER_COMMIT)
                batch_stored(d);
        else if (d->store_failed)
                outage_answered(d, r, err);
        else if (r < 0) /* the old segment goes on; events wait longer */
                log_warning("event=%s words=\"%s\"", order == WRITER_SNAPSHOT ? "snapshot-failed" : "tidying-failed",
                            err->msg);
        daemon_stay_awake(d);
        if (d->api && turn_is_settled(d))
                api_server_on_settled(d->api);
}
