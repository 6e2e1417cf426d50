/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at the end of each turn of the loop: step, commit, and only then act.
 *
 * When the commit fails (disk full, locked by somebody) the world would be ahead of the disk. Chosen: throw the batch away
 * and read the world again from the journal, rather than copy the world before every batch. It costs nothing while all is
 * well, a copy cannot be forgotten to be taken, and what is read back is by construction what the disk has. Clients of the
 * batch are told that nothing was changed; facts (readings, exits, clients that left) stay in the queue in their order and
 * are stepped again once a snapshot could be written. Until then requests are refused before they become inputs, and the
 * eyes' socket is not read: what they say waits in it, so nothing grows here and nothing is lost.
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

uint64_t daemon_now_ms(struct daemon *d)
{
        if (d->now_ms == 0) {
                d->now_ms = world_clock_now_ms(&d->clock);
                d->wall_ms = clock_now_wall_ms();
                notice_sleep(d); /* first of this turn: what it submits stands before what the turn brought */
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

void daemon_submit(struct daemon *d, const struct input *input)
{
        struct input copy = *input;

        if (copy.now_ms == 0)
                copy.now_ms = daemon_now_ms(d);
        if (inputs_add(&d->inputs, &copy) < 0) {
                struct error err = { 0 };
                (void) error_set(&err, ENOMEM, "no memory for an input");
                daemon_give_up(d, "collecting inputs", &err);
                return;
        }
        if (!d->store_failed)
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
        if (!ret->agreed)
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
                        if (keep_actions(&d->batch, &out) < 0)
                                return error_set(err, ENOMEM, "no memory for the actions of a turn");
                }
                again.now_ms = d->world->now_ms;
                now = &again;
        } while (out.more);
        return 0;
}

static int step_and_commit(struct daemon *d, const struct inputs *taken, struct error *err)
{
        for (size_t i = 0; i < taken->n; i++) {
                int r = step_one(d, &taken->items[i], err);
                if (r < 0)
                        return r;
        }
        return journal_commit(d->journal, err);
}

/* ---- when it cannot be written ---- */

static void on_retry(uv_timer_t *timer)
{
        struct daemon *d = timer->data;
        struct error err = { 0 };
        int r;

        /* A snapshot is a good question: it writes for real, and on failure the world has not moved. */
        d->now_ms = 0;
        r = journal_snapshot(d->journal, d->world, d->clock.boot_id, daemon_wall_ms(d), &err);
        if (r < 0) {
                d->store_code = -r;
                (void) snprintf(d->store_words, sizeof(d->store_words), "%s", err.msg);
                d->store_retry_ms =
                        d->store_retry_ms * 2 < STORE_RETRY_MOST_MS ? d->store_retry_ms * 2 : STORE_RETRY_MOST_MS;
                (void) uv_timer_start(&d->retry, on_retry, d->store_retry_ms, 0);
                return;
        }
        log_info("event=journal-back waiting_inputs=%zu", d->inputs.n);
        d->store_failed = false;
        eyes_link_pause(d->eyes, false);
        if (d->inputs.n > 0)
                (void) uv_idle_start(&d->busy, on_busy);
}

static void refuse_clients(struct daemon *d, struct inputs *taken, int code, const char *words)
{
        size_t kept = 0;

        for (size_t i = 0; i < taken->n; i++) {
                struct input *input = &taken->items[i];
                if (!input_is_refusable(input)) {
                        taken->items[kept++] = *input;
                        continue;
                }
                uint64_t token = input->kind == INPUT_REQUEST  ? input->request.token
                                 : input->kind == INPUT_CHANGE ? input->change.token
                                                               : input->call.token;
                api_server_on_refused(d->api, token, code, words);
        }
        taken->n = kept;
}

static void batch_failed(struct daemon *d, struct inputs *taken, int code, const struct error *why)
{
        struct journal_restored restored;
        struct error err = { 0 };

        log_error("event=journal-failed errno=%d words=\"%s\" inputs=%zu", code, why->msg, taken->n);
        batch_reset(&d->batch);
        journal_discard(d->journal);
        int r = turn_load_world(d, &restored, &err);
        if (r < 0) {
                daemon_give_up(d, "reading the journal again", &err);
                return;
        }
        d->store_failed = true;
        d->store_code = code;
        d->store_retry_ms = STORE_RETRY_FIRST_MS;
        (void) snprintf(d->store_words, sizeof(d->store_words), "%s", why->msg);
        eyes_link_pause(d->eyes, true);
        (void) uv_idle_stop(&d->busy);
        (void) uv_timer_start(&d->retry, on_retry, d->store_retry_ms, 0);

        refuse_clients(d, taken, code, d->store_words);
        /* What came meanwhile stands behind what is tried again. */
        if (inputs_move(taken, &d->inputs) < 0) {
                (void) error_set(&err, ENOMEM, "no memory for inputs");
                daemon_give_up(d, "keeping inputs", &err);
                return;
        }
        free(d->inputs.items);
        d->inputs = *taken;
        *taken = (struct inputs){ 0 };
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
        if (a->lease_id != 0 || a->kind == ACTION_REFUSED)
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

static void act(struct daemon *d)
{
        struct batch *b = &d->batch;
        bool leases_changed = d->owners.incomplete;

        for (size_t i = 0; i < b->n; i++) {
                const struct action *a = &b->items[i];
                if (a->kind == ACTION_READ) {
                        if (a->device < d->world->n_devices)
                                eyes_link_read(d->eyes, d->world->devices[a->device].uuid);
                        continue;
                }
                log_action(a);
                told_action(&d->told, d->world, a);
                leases_changed = leases_changed || a->lease_id != 0;
        }
        if (leases_changed)
                turn_watch_processes(d, END_OWNER_EXITED);
        if (d->api) /* not before the door is open (main.c) */
                api_server_on_actions(d->api, b->items, b->n);
        batch_reset(b);
}

void turn_watch_processes(struct daemon *d, enum end_reason end)
{
        owners_sync(&d->roots, d->world, end);
        owners_sync(&d->owners, d->world, end);
}

/* ---- how often to look ---- */

static void on_tick(uv_timer_t *timer)
{
        struct daemon *d = timer->data;
        struct input tick = { .kind = INPUT_TICK };

        if (d->store_failed)
                return;
        if (d->owners.incomplete || d->roots.incomplete)
                turn_watch_processes(d, END_OWNER_EXITED);
        daemon_submit(d, &tick);
}

static void set_pace(struct daemon *d)
{
        const struct world *w = d->world;
        bool any = false, busy = false;

        for (uint32_t i = 0; i < w->n_leases; i++) {
                if (w->lease_ids[i] == 0)
                        continue;
                uint8_t state = w->leases[i].state;
                any = true;
                busy = busy || state == LEASE_QUEUED || state == LEASE_GRANTED || state == LEASE_DRAINING;
        }
        eyes_link_interval(d->eyes, busy ? d->conf.poll_busy_ms : any ? d->conf.poll_ms : d->conf.poll_idle_ms);
        if (!any)
                (void) uv_timer_stop(&d->tick);
        else if (!uv_is_active((uv_handle_t *) &d->tick))
                (void) uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
}

static void snapshot_when_due(struct daemon *d)
{
        struct error err = { 0 };

        if (!journal_wants_snapshot(d->journal))
                return;
        if (journal_snapshot(d->journal, d->world, d->clock.boot_id, daemon_wall_ms(d), &err) < 0)
                log_warning("event=snapshot-failed words=\"%s\"", err.msg); /* the old segment goes on */
}

void turn_run(struct daemon *d)
{
        struct error err = { 0 };

        if (d->inputs.n == 0 || d->store_failed || d->stopping) {
                (void) uv_idle_stop(&d->busy);
                d->now_ms = 0;
                return;
        }

        struct inputs taken = d->inputs;
        d->inputs = (struct inputs){ 0 };
        (void) uv_idle_stop(&d->busy);
        int r = step_and_commit(d, &taken, &err);
        if (r < 0) {
                batch_failed(d, &taken, -r, &err);
        } else {
                act(d);
                snapshot_when_due(d);
        }
        if (!d->stopping)
                set_pace(d);

        /* The array serves the next turn, unless something came meanwhile. */
        inputs_clear(&taken);
        if (d->inputs.items)
                inputs_fini(&taken);
        else
                d->inputs = taken;
        d->now_ms = 0;
}
