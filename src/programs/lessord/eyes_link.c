/* SPDX-License-Identifier: Apache-2.0 */
/* The eyes' life: start, deadline, end, back-off. What is said with them: eyes_talk.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "programs/lessord/eyes_private.h"

enum { REAP_LOOK_MS = 250 };

static void start(struct eyes_link *e);

/* ---- failing and starting again ---- */

static void on_sock_closed(uv_handle_t *handle)
{
        free(handle);
}

static void close_sock(struct eyes_link *e)
{
        if (!e->now)
                return;
        uv_close((uv_handle_t *) e->sock_poll, on_sock_closed); /* takes it out of the loop's set at once */
        e->sock_poll = NULL;
        (void) close(e->now->child.sock);
        e->now->child.sock = -1;
        e->now = NULL;
}

static uint32_t n_alive(const struct eyes_link *e)
{
        uint32_t n = 0;
        for (size_t i = 0; i < EYES_ALIVE_MAX; i++)
                n += e->slots[i].child.pid != 0;
        return n;
}

static void on_restart(uv_timer_t *timer)
{
        struct eyes_link *e = timer->data;
        uint64_t now_ms = clock_now_ms();
        bool stuck = true;

        if (e->now || e->stopping)
                return;
        for (size_t i = 0; i < EYES_ALIVE_MAX; i++)
                if (e->slots[i].child.pid != 0 && now_ms - e->slots[i].killed_ms < EYES_REAP_PATIENCE_MS)
                        stuck = false; /* it may yet go: one after the other */
        if (n_alive(e) == EYES_ALIVE_MAX || !stuck) {
                (void) uv_timer_start(&e->restart, on_restart, REAP_LOOK_MS, 0);
                return;
        }
        start(e);
}

static void plan_restart(struct eyes_link *e)
{
        if (e->stopping)
                return;
        (void) uv_timer_start(&e->restart, on_restart, e->backoff_ms, 0);
        e->backoff_ms = e->backoff_ms * 2 < EYES_BACKOFF_MOST_MS ? e->backoff_ms * 2 : EYES_BACKOFF_MOST_MS;
}

void eyes_fail(struct eyes_link *e, const char *why)
{
        struct eyes_slot *slot = e->now;

        if (!slot || e->stopping)
                return;
        log_warning("event=eyes-failed pid=%d why=\"%s\" again_in_ms=%" PRIu64, (int) slot->child.pid, why,
                    e->backoff_ms);
        close_sock(e);
        (void) uv_timer_stop(&e->deadline);
        (void) uv_timer_stop(&e->ping);
        slot->killed_ms = clock_now_ms();
        eyes_child_kill(&slot->child);
        eyes_talk_answering(e, false);
        plan_restart(e);
        eyes_talk_first_look(e);
}

static void on_deadline(uv_timer_t *timer)
{
        struct eyes_link *e = timer->data;

        eyes_fail(e, e->has_hello ? "the driver does not answer" : "no hello within the deadline");
}

void eyes_arm_deadline(struct eyes_link *e)
{
        uint64_t oldest = e->has_hello ? UINT64_MAX : e->started_ms, now_ms = clock_now_ms();

        for (size_t i = 0; i < EYES_READS_MAX; i++)
                if (e->reads[i].id != 0 && e->reads[i].sent_ms < oldest)
                        oldest = e->reads[i].sent_ms;
        if (oldest == UINT64_MAX || e->paused || !e->now) {
                (void) uv_timer_stop(&e->deadline);
                return;
        }
        uint64_t due = oldest + e->deadline_ms;
        (void) uv_timer_start(&e->deadline, on_deadline, due > now_ms ? due - now_ms : 0, 0);
}

static void on_exit_closed(uv_handle_t *handle)
{
        struct eyes_slot *slot = handle->data;

        (void) close(slot->child.pidfd);
        slot->child = (struct eyes_child){ .pidfd = -1, .sock = -1 };
        slot->polled = false;
}

static void on_child_exit(uv_poll_t *poll, int status, int events)
{
        struct eyes_slot *slot = poll->data;
        struct eyes_link *e = slot->link;
        int code = 0, value = 0;
        pid_t pid = slot->child.pid;

        (void) status;
        (void) events;
        if (!eyes_child_reap(&slot->child, &code, &value))
                return;
        (void) uv_poll_stop(poll);
        log_info("event=eyes-ended pid=%d %s=%d", (int) pid, code == CLD_EXITED ? "status" : "signal", value);
        if (e->now == slot)
                eyes_fail(e, code == CLD_EXITED && value == 127 ? "it could not be started"
                             : code == CLD_EXITED && value == 3 ? "it speaks another version"
                                                                : "it ended by itself");
        uv_close((uv_handle_t *) poll, on_exit_closed);
}

/* ---- life ---- */

static void start(struct eyes_link *e)
{
        struct eyes_slot *slot = NULL;
        struct error err = { 0 };
        uv_poll_t *poll = calloc(1, sizeof(*poll));

        for (size_t i = 0; i < EYES_ALIVE_MAX && !slot; i++)
                if (!e->slots[i].polled)
                        slot = &e->slots[i];
        if (!poll || !slot || eyes_child_start(e->program, e->accounting, &slot->child, &err) < 0) {
                free(poll);
                if (slot)
                        log_error("event=eyes-not-started words=\"%s\"", err.msg);
                eyes_talk_answering(e, false);
                eyes_talk_first_look(e);
                plan_restart(e);
                return;
        }
        log_info("event=eyes-started pid=%d", (int) slot->child.pid);
        (void) uv_poll_init(e->loop, &slot->exit_poll, slot->child.pidfd);
        slot->exit_poll.data = slot;
        slot->polled = true;
        (void) uv_poll_start(&slot->exit_poll, UV_READABLE, on_child_exit);

        e->now = slot;
        e->started_ms = clock_now_ms();
        (void) uv_poll_init(e->loop, poll, slot->child.sock);
        poll->data = e;
        e->sock_poll = poll;
        if (!e->paused)
                (void) uv_poll_start(poll, UV_READABLE, eyes_talk_on_sock);
        eyes_talk_begin(e);
        eyes_arm_deadline(e);
}

int eyes_link_new(struct eyes_link **ret, uv_loop_t *loop, const char *program, const char *accounting,
                  uint64_t deadline_ms, const struct eyes_host *host, struct error *err)
{
        struct eyes_link *e = calloc(1, sizeof(*e));
        if (!e)
                return error_set(err, ENOMEM, "no memory for the eyes");

        e->loop = loop;
        e->host = *host;
        e->deadline_ms = deadline_ms;
        e->interval_ms = EYES_INTERVAL_DEFAULT_MS;
        e->activity_ms = EYES_ACTIVITY_DEFAULT_MS;
        e->backoff_ms = EYES_BACKOFF_FIRST_MS;
        e->next_read_id = 1;
        (void) snprintf(e->program, sizeof(e->program), "%s", program);
        (void) snprintf(e->accounting, sizeof(e->accounting), "%s", accounting);
        for (size_t i = 0; i < EYES_ALIVE_MAX; i++) {
                e->slots[i].link = e;
                e->slots[i].child = (struct eyes_child){ .pidfd = -1, .sock = -1 };
        }
        uv_timer_t *timers[] = { &e->deadline, &e->restart, &e->ping };
        for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
                (void) uv_timer_init(loop, timers[i]);
                timers[i]->data = e;
        }
        *ret = e;
        return 0;
}

void eyes_link_start(struct eyes_link *e)
{
        start(e);
}

void eyes_link_stop(struct eyes_link *e)
{
        e->stopping = true;
        close_sock(e); /* which ends it by itself; a driver call that hangs would not let it */
        for (size_t i = 0; i < EYES_ALIVE_MAX; i++) {
                struct eyes_slot *slot = &e->slots[i];
                if (!slot->polled)
                        continue;
                if (slot->child.pid != 0)
                        eyes_child_kill(&slot->child);
                if (!uv_is_closing((uv_handle_t *) &slot->exit_poll))
                        uv_close((uv_handle_t *) &slot->exit_poll, on_exit_closed);
        }
        uv_close((uv_handle_t *) &e->deadline, NULL);
        uv_close((uv_handle_t *) &e->restart, NULL);
        uv_close((uv_handle_t *) &e->ping, NULL);
}

void eyes_link_free(struct eyes_link *e)
{
        if (!e)
                return;
        for (uint32_t i = 0; i < e->n_devices; i++)
                free(e->devices[i].last);
        free(e);
}

void eyes_link_pause(struct eyes_link *e, bool pause)
{
        if (e->paused == pause)
                return;
        e->paused = pause;
        if (!e->sock_poll)
                return;
        if (pause) {
                (void) uv_poll_stop(e->sock_poll);
        } else {
                uint64_t now_ms = clock_now_ms(); /* it could not be heard meanwhile: its time begins anew */
                e->started_ms = now_ms;
                for (size_t i = 0; i < EYES_READS_MAX; i++)
                        e->reads[i].sent_ms = now_ms;
                (void) uv_poll_start(e->sock_poll, UV_READABLE, eyes_talk_on_sock);
        }
        eyes_arm_deadline(e);
}

/* ---- health ---- */

const char *eyes_link_gpu(const struct eyes_link *e)
{
        if (!e->now || !e->answered)
                return "stale";
        switch (e->hello.driver_state) {
        case EYES_DRIVER_OK:
                return e->hello.n_devices > 0 ? "ok" : "none";
        case EYES_DRIVER_MISMATCH:
                return "mismatch";
        case EYES_DRIVER_NO_LIBRARY:
        case EYES_DRIVER_OLD_LIBRARY:
        case EYES_DRIVER_NOT_LOADED:
                return "none";
        case EYES_DRIVER_FAILED:
        case EYES_DRIVER_STATE_N:
                break;
        }
        return "stale";
}

const char *eyes_link_driver(const struct eyes_link *e)
{
        return e->hello.driver_state == EYES_DRIVER_OK ? e->hello.driver_version : "";
}

bool eyes_link_age_ms(const struct eyes_link *e, uint64_t *ret)
{
        uint64_t now_ms = clock_now_ms();

        if (e->answered_ms == 0)
                return false;
        *ret = now_ms > e->answered_ms ? now_ms - e->answered_ms : 0;
        return true;
}

enum process_guard eyes_link_guard(struct eyes_link *e, const struct eyes_process *facts, enum process_guard known)
{
        guards_look(&e->guards, e->program, uv_now(e->loop));
        return guards_of(&e->guards, facts, known);
}

bool eyes_link_accounting(const struct eyes_link *e, bool *ret)
{
        *ret = e->hello.accounting;
        return e->hello.version != 0;
}

bool eyes_link_host_pids(const struct eyes_link *e, bool *ret)
{
        *ret = e->hello.host_pids;
        return e->hello.version != 0;
}

const char *eyes_link_process_events(const struct eyes_link *e, int *ret_errno)
{
        *ret_errno = e->hello.events_errno;
        return e->hello.version != 0 ? eyes_events_name(e->hello.events) : NULL;
}

bool eyes_link_looked_ms(const struct eyes_link *e, const char *uuid, uint64_t *ret)
{
        uint64_t now_ms = clock_now_ms();

        for (uint32_t i = 0; i < e->n_devices; i++) {
                const struct eyes_seen_device *d = &e->devices[i];
                if (strcmp(d->uuid, uuid) != 0 || d->looked_ms == 0)
                        continue;
                *ret = now_ms > d->looked_ms ? now_ms - d->looked_ms : 0;
                return true;
        }
        return false;
}
