/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a batch cannot be written (disk full, locked by somebody, file gone) the world is ahead of the disk. Chosen: throw
 * the batch away and read the world again from the journal, rather than copy the world before every batch. It costs nothing
 * while all is well, a copy cannot be forgotten to be taken, and what is read back is by construction what the disk has.
 *
 * Clients of the batch, and those who asked while it was being written, are told that nothing was changed; facts (readings,
 * exits, clients that left) stay in the queue in their order and are stepped again once a snapshot could be written. Until
 * then requests are refused before they become inputs, and the eyes' socket is not read: what they say waits in it, so
 * nothing grows here and nothing is lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/log.h"
#include "programs/lessord/daemon.h"

static void on_retry(uv_timer_t *timer);

static void note(struct daemon *d, int code, const struct error *why)
{
        d->store_code = code;
        (void) snprintf(d->store_words, sizeof(d->store_words), "%s", why->msg);
}

static void retry_later(struct daemon *d)
{
        (void) uv_timer_start(&d->retry, on_retry, d->store_retry_ms, 0);
        d->store_retry_ms = d->store_retry_ms * 2 < STORE_RETRY_MOST_MS ? d->store_retry_ms * 2 : STORE_RETRY_MOST_MS;
}

/* A snapshot is a good question: it writes for real, and on failure the world has not moved. */
static int ask_disk(struct daemon *d, struct error *err)
{
        const char *degraded = journal_degraded(d->journal);
        int r = journal_begin_anew(d->journal, err); /* where the file is gone; what it said is in the world */

        if (r == 0 && !degraded && journal_degraded(d->journal))
                log_warning("event=journal-degraded words=\"%s\"", journal_degraded(d->journal));
        d->now_ms = 0;
        if (r == 0)
                r = journal_snapshot_prepare(d->journal, d->world, d->clock.boot_id, daemon_wall_ms(d), err);
        if (r == 0)
                writer_order(d->writer, WRITER_SNAPSHOT);
        return r;
}

static void on_retry(uv_timer_t *timer)
{
        struct daemon *d = timer->data;
        struct error err = { 0 };

        int r = ask_disk(d, &err);
        if (r == 0)
                return; /* outage_answered() */
        note(d, -r, &err);
        retry_later(d);
}

static void refuse_clients(struct daemon *d, struct inputs *from)
{
        size_t kept = 0;

        for (size_t i = 0; i < from->n; i++) {
                struct input *input = &from->items[i];
                if (!input_is_refusable(input)) {
                        from->items[kept++] = *input;
                        continue;
                }
                uint64_t token = input->kind == INPUT_REQUEST ? input->request.token : input->call.token;
                if (d->api)
                        api_server_on_refused(d->api, token, d->store_code, d->store_words);
        }
        from->n = kept;
}

/* What came meanwhile stands behind what is tried again. */
static void keep_facts(struct daemon *d, struct inputs *taken)
{
        refuse_clients(d, taken);
        refuse_clients(d, &d->inputs);
        if (inputs_move(taken, &d->inputs) < 0) {
                struct error err = { 0 };
                (void) error_set(&err, ENOMEM, "no memory for inputs");
                daemon_give_up(d, "keeping inputs", &err);
                return;
        }
        free(d->inputs.items);
        d->inputs = *taken;
        d->inputs_can_wait = false;
        *taken = (struct inputs){ 0 };
}

void outage_begin(struct daemon *d, struct inputs *taken, int code, const struct error *why)
{
        struct journal_restored restored;
        struct error err = { 0 };

        log_error("event=journal-failed errno=%d words=\"%s\" inputs=%zu", code, why->msg, taken->n);
        journal_discard(d->journal);
        int r = turn_load_world(d, &restored, &err);
        if (r < 0) {
                daemon_give_up(d, "reading the journal again", &err);
                return;
        }
        d->store_failed = true;
        note(d, code, why);
        d->store_retry_ms = STORE_RETRY_FIRST_MS;
        journal_set_busy_ms(d->journal, STORE_RETRY_BUSY_MS);
        eyes_link_pause(d->eyes, true);
        (void) uv_idle_stop(&d->busy);
        keep_facts(d, taken);
        retry_later(d);
}

void outage_answered(struct daemon *d, int r, const struct error *err)
{
        if (r < 0) {
                note(d, -r, err);
                if (!d->stopping)
                        retry_later(d);
                return;
        }
        log_info("event=journal-back waiting_inputs=%zu", d->inputs.n);
        d->store_failed = false;
        journal_set_busy_ms(d->journal, STORE_BUSY_MS);
        eyes_link_pause(d->eyes, false);
        daemon_stay_awake(d);
}
