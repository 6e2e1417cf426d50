/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/escape.h"
#include "base/log.h"
#include "model/device.h"
#include "programs/lessord/eyes_child.h"
#include "programs/lessord/eyes_facts.h"
#include "programs/lessord/eyes_link.h"

enum { PING_LEAST_MS = 1000, REAP_LOOK_MS = 250 };

struct slot {
        struct eyes_link *link;
        struct eyes_child child; /* pid 0 = free */
        uv_poll_t exit_poll;
        bool polled; /* exit_poll is open */
        uint64_t killed_ms;
};

struct read_sent {
        uint64_t id; /* 0 = free */
        uint64_t sent_ms;
        bool ordered; /* by the core: its readings count even where nothing changed */
};

struct seen_device {
        char uuid[EYES_UUID_SIZE];
        uint64_t looked_ms;        /* CLOCK_MONOTONIC; 0 = never */
        bool named;                /* by the process that is alive */
        struct eyes_reading *last; /* what the core was told last */
};

struct eyes_link {
        uv_loop_t *loop;
        struct eyes_host host;
        char program[4096];
        uint64_t deadline_ms;
        uint64_t interval_ms;
        struct slot slots[EYES_ALIVE_MAX];
        struct slot *now;     /* whom we listen to; NULL between two */
        uv_poll_t *sock_poll; /* one for each process; freed when the loop has let go of it */
        bool paused, stopping, first_look_told;
        uv_timer_t deadline, restart, ping;
        uint64_t backoff_ms;

        bool has_hello;
        bool told, told_answering; /* the core, by us */
        bool answered;             /* this process has shown that the driver answers */
        bool looked;               /* and has looked at everything once */
        uint64_t started_ms;
        uint64_t answered_ms; /* CLOCK_MONOTONIC of the last answer of any process; 0 = never */
        struct eyes_hello hello;
        uint64_t next_read_id;
        struct read_sent reads[EYES_READS_MAX];
        uint32_t n_devices;
        struct seen_device devices[EYES_DEVICES_MAX];
        struct eyes_message msg, out;
        uint8_t buf[EYES_MESSAGE_MAX];
        struct occupancy rows[ROWS_MAX];
};

static void start(struct eyes_link *e);

/* ---- what the core is told ---- */

static bool driver_is_there(const struct eyes_link *e)
{
        return e->hello.driver_state == EYES_DRIVER_OK;
}

/* A driver that is not there has nothing to say about devices that are known; where none are known, that is an answer. */
static bool is_answering(const struct eyes_link *e)
{
        return driver_is_there(e) || e->host.world(e->host.ctx)->n_devices == 0;
}

static void tell_answering(struct eyes_link *e, bool answering)
{
        struct input input = { .kind = INPUT_EYES, .eyes = { .answering = answering } };

        /* What was told last may not have been stepped yet: the world is only asked before the first time. */
        if ((e->told ? e->told_answering : e->host.world(e->host.ctx)->eyes_answering) == answering)
                return;
        e->told = true;
        e->told_answering = answering;
        if (!answering)
                input.eyes.silent_since_ms =
                        e->host.of_monotonic(e->host.ctx, e->answered_ms ? e->answered_ms : clock_now_ms());
        e->host.submit(e->host.ctx, &input);
}

static void tell_first_look(struct eyes_link *e)
{
        if (e->first_look_told)
                return;
        e->first_look_told = true;
        e->host.first_look(e->host.ctx);
}

static struct seen_device *device_of(struct eyes_link *e, const char *uuid)
{
        for (uint32_t i = 0; i < e->n_devices; i++)
                if (strcmp(e->devices[i].uuid, uuid) == 0)
                        return &e->devices[i];
        return NULL;
}

static void tell_device(struct eyes_link *e, const struct eyes_device *facts)
{
        struct input input = { .kind = INPUT_DEVICE };
        struct seen_device *d = device_of(e, facts->uuid);

        if (!d) {
                if (e->n_devices == EYES_DEVICES_MAX) {
                        log_warning("event=device-ignored uuid=%s why=\"more than %d devices\"", facts->uuid,
                                    EYES_DEVICES_MAX);
                        return;
                }
                d = &e->devices[e->n_devices++];
                memcpy(d->uuid, facts->uuid, sizeof(d->uuid));
        }
        d->named = true;
        eyes_facts_device(facts, &input.device);
        e->host.submit(e->host.ctx, &input);
}

/* A device of before that the new process does not know: it is not there any more. */
static void tell_missing_devices(struct eyes_link *e)
{
        const struct world *w = e->host.world(e->host.ctx);

        if (!driver_is_there(e))
                return;
        for (uint32_t i = 0; i < w->n_devices; i++) {
                const struct device *dev = &w->devices[i];
                const struct seen_device *d = device_of(e, dev->uuid);
                if (dev->health == DEVICE_ABSENT || dev->health == DEVICE_LOST || (d && d->named))
                        continue;
                struct input input = { .kind = INPUT_DEVICE };
                eyes_facts_lost_device(dev, &input.device);
                e->host.submit(e->host.ctx, &input);
        }
}

/* ---- asking ---- */

static int send_message(struct eyes_link *e, const struct eyes_message *msg)
{
        uint8_t buf[512];
        struct error err = { 0 };
        size_t n = 0;

        if (!e->now)
                return -ENOTCONN;
        int r = eyes_encode(msg, buf, sizeof(buf), &n, &err);
        if (r < 0) {
                log_error("event=eyes-message-bad words=\"%s\"", err.msg);
                return r;
        }
        return send(e->now->child.sock, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void arm_deadline(struct eyes_link *e);

static void ask(struct eyes_link *e, const char *uuid, bool ordered)
{
        struct read_sent *free_row = NULL;

        if (!e->now || !e->has_hello)
                return;
        for (size_t i = 0; i < EYES_READS_MAX && !free_row; i++)
                if (e->reads[i].id == 0)
                        free_row = &e->reads[i];
        if (!free_row)
                return; /* so many unanswered: the deadline of the first one will tell */

        e->out.kind = EYES_READ;
        e->out.read = (struct eyes_read){ .request_id = e->next_read_id };
        (void) snprintf(e->out.read.uuid, sizeof(e->out.read.uuid), "%s", uuid);
        int r = send_message(e, &e->out);
        if (r < 0 && r != -EAGAIN) /* full: it does not read, so it will not answer either, and the deadline tells */
                return;            /* it has died: the socket says so next */
        *free_row = (struct read_sent){ .id = e->next_read_id++, .sent_ms = clock_now_ms(), .ordered = ordered };
        arm_deadline(e);
}

void eyes_link_read(struct eyes_link *e, const char *uuid)
{
        ask(e, uuid, true);
}

void eyes_link_slept(struct eyes_link *e)
{
        tell_answering(e, false);
        e->answered = false;
        ask(e, "", true);
}

static void on_ping(uv_timer_t *timer)
{
        struct eyes_link *e = timer->data;

        if (!e->paused)
                ask(e, "", false);
}

static void arm_ping(struct eyes_link *e)
{
        uint64_t ms = e->interval_ms > PING_LEAST_MS ? e->interval_ms : PING_LEAST_MS;

        if (uv_is_active((uv_handle_t *) &e->ping) && uv_timer_get_repeat(&e->ping) == ms)
                return;
        (void) uv_timer_start(&e->ping, on_ping, ms, ms);
}

static void send_interval(struct eyes_link *e)
{
        e->out.kind = EYES_INTERVAL;
        e->out.interval = (struct eyes_interval){ .ms = (uint32_t) e->interval_ms };
        (void) send_message(e, &e->out);
}

void eyes_link_interval(struct eyes_link *e, uint64_t ms)
{
        if (ms < EYES_INTERVAL_MIN_MS)
                ms = EYES_INTERVAL_MIN_MS;
        if (ms > EYES_INTERVAL_MAX_MS)
                ms = EYES_INTERVAL_MAX_MS;
        if (e->interval_ms == ms)
                return;
        e->interval_ms = ms;
        if (!e->now || !e->has_hello)
                return;
        send_interval(e);
        arm_ping(e);
}

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

/* It hangs, died or talks nonsense: end it, say so once, plan the next. */
static void fail(struct eyes_link *e, const char *why)
{
        struct slot *slot = e->now;

        if (!slot || e->stopping)
                return;
        log_warning("event=eyes-failed pid=%d why=\"%s\" again_in_ms=%" PRIu64, (int) slot->child.pid, why,
                    e->backoff_ms);
        close_sock(e);
        (void) uv_timer_stop(&e->deadline);
        (void) uv_timer_stop(&e->ping);
        slot->killed_ms = clock_now_ms();
        eyes_child_kill(&slot->child);
        tell_answering(e, false);
        plan_restart(e);
        tell_first_look(e);
}

static void on_deadline(uv_timer_t *timer)
{
        struct eyes_link *e = timer->data;

        fail(e, e->has_hello ? "the driver does not answer" : "no hello within the deadline");
}

/* The oldest question decides. */
static void arm_deadline(struct eyes_link *e)
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
        struct slot *slot = handle->data;

        (void) close(slot->child.pidfd);
        slot->child = (struct eyes_child){ .pidfd = -1, .sock = -1 };
        slot->polled = false;
}

static void on_child_exit(uv_poll_t *poll, int status, int events)
{
        struct slot *slot = poll->data;
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
                fail(e, code == CLD_EXITED && value == 127 ? "it could not be started"
                        : code == CLD_EXITED && value == 3 ? "it speaks another version"
                                                           : "it ended by itself");
        uv_close((uv_handle_t *) poll, on_exit_closed);
}

/* ---- what it says ---- */

static void take_hello(struct eyes_link *e, const struct eyes_hello *hello)
{
        bool first = !e->has_hello;
        bool came_back = !first && !driver_is_there(e) && hello->driver_state == EYES_DRIVER_OK;

        e->hello = *hello;
        e->has_hello = true;
        log_info("event=eyes-hello driver=%s version=%s devices=%u hidden=%u host_pids=%d",
                 eyes_driver_state_name(hello->driver_state), hello->driver_version[0] ? hello->driver_version : "-",
                 hello->n_devices, hello->n_hidden, hello->host_pids);
        for (uint32_t i = 0; i < e->n_devices; i++)
                e->devices[i].named = false; /* the DEVICEs that follow name them anew */
        if (e->answered)                     /* else its first answer tells */
                tell_answering(e, is_answering(e));
        if (came_back)
                e->looked = false; /* it names all it has, and what it does not name by its next look is gone */
        if (first) {
                send_interval(e);
                arm_ping(e);
                ask(e, "", true);
        }
        arm_deadline(e);
}

static const struct read_sent *read_of(const struct eyes_link *e, uint64_t id)
{
        for (size_t i = 0; id != 0 && i < EYES_READS_MAX; i++)
                if (e->reads[i].id == id)
                        return &e->reads[i];
        return NULL;
}

static void keep_last(struct seen_device *d, const struct eyes_reading *reading)
{
        if (!d->last)
                d->last = calloc(1, sizeof(*d->last));
        if (d->last) /* rows behind n_rows are never looked at, and never touched */
                memcpy(d->last, reading,
                       offsetof(struct eyes_reading, rows) + reading->n_rows * sizeof(reading->rows[0]));
}

static void note_answer(struct eyes_link *e)
{
        e->answered_ms = clock_now_ms();
        if (e->answered)
                return;
        e->answered = true;
        e->backoff_ms = EYES_BACKOFF_FIRST_MS;
        /* Before the first reading: what is known counts as unconfirmed until that reading confirms it. */
        tell_answering(e, is_answering(e));
}

static void take_reading(struct eyes_link *e, const struct eyes_reading *reading)
{
        const struct read_sent *read = read_of(e, reading->request_id);
        struct seen_device *d = device_of(e, reading->uuid);

        note_answer(e);
        if (!d)
                return;
        d->looked_ms = reading->taken_ms;
        if (!(read && read->ordered) && d->last && !eyes_reading_differs(d->last, reading))
                return; /* nothing new and nobody waits for it: not worth a record */

        struct input input = { .kind = INPUT_READING };
        eyes_facts_reading(reading, e->rows, &input.reading);
        input.reading.taken_ms = e->host.of_monotonic(e->host.ctx, reading->taken_ms);
        e->host.submit(e->host.ctx, &input);
        keep_last(d, reading);
}

static void take_done(struct eyes_link *e, const struct eyes_done *done)
{
        for (size_t i = 0; i < EYES_READS_MAX; i++)
                if (e->reads[i].id == done->request_id)
                        e->reads[i] = (struct read_sent){ 0 };
        note_answer(e);
        if (!e->looked)
                tell_missing_devices(e);
        e->looked = true;
        tell_first_look(e);
        arm_deadline(e);
}

static void take_message(struct eyes_link *e, const struct eyes_message *msg)
{
        struct input input = { 0 };
        char safe[EYES_ALARM_SIZE * 4];

        switch (msg->kind) {
        case EYES_HELLO:
                take_hello(e, &msg->hello);
                break;
        case EYES_DEVICE:
                tell_device(e, &msg->device);
                break;
        case EYES_PROCESS:
                input.kind = INPUT_PROCESS;
                eyes_facts_process(&msg->process, &input.process);
                e->host.submit(e->host.ctx, &input);
                break;
        case EYES_READING:
                take_reading(e, &msg->reading);
                break;
        case EYES_EXITED:
                input.kind = INPUT_PROCESS_ENDED;
                input.process_ended = (struct identity){ msg->exited.pid, msg->exited.start_ticks };
                e->host.submit(e->host.ctx, &input);
                break;
        case EYES_ALARM:
                log_warning("event=eyes-alarm kind=%s device=%s dropped=%u text=\"%s\"",
                            eyes_alarm_kind_name(msg->alarm.kind), msg->alarm.uuid[0] ? msg->alarm.uuid : "-",
                            msg->alarm.n_dropped,
                            text_escape(msg->alarm.text, strlen(msg->alarm.text), safe, sizeof(safe)));
                break;
        case EYES_DONE:
                take_done(e, &msg->done);
                break;
        case EYES_NOTHING:
        case EYES_BRAIN_HELLO:
        case EYES_INTERVAL:
        case EYES_READ:
        case EYES_KIND_N:
                fail(e, "it said something that only we say");
                break;
        }
}

/* One datagram. The pidfds that come with PROCESS are for the hands, which are not there yet: closed. */
static ssize_t receive(struct eyes_link *e)
{
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec iov = { .iov_base = e->buf, .iov_len = sizeof(e->buf) };
        struct msghdr mh = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
        };
        ssize_t n = recvmsg(e->now->child.sock, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

        if (n < 0)
                return -errno;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c)) {
                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                size_t n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n_fds; i++) {
                        int fd;
                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                        (void) close(fd);
                }
        }
        return (mh.msg_flags & MSG_TRUNC) ? -EMSGSIZE : n;
}

static void on_sock(uv_poll_t *poll, int status, int events)
{
        struct eyes_link *e = poll->data;
        struct error err = { 0 };

        (void) status;
        (void) events;
        for (unsigned i = 0; i < EYES_MESSAGES_AT_ONCE && e->now && !e->paused; i++) {
                ssize_t n = receive(e);
                if (n == -EAGAIN || n == -EINTR)
                        return;
                if (n <= 0) {
                        fail(e, n == 0 ? "it closed its socket" : "its socket failed");
                        return;
                }
                if (eyes_decode(e->buf, (size_t) n, &e->msg, &err) < 0) {
                        fail(e, err.msg);
                        return;
                }
                take_message(e, &e->msg);
        }
}

/* ---- life ---- */

static void start(struct eyes_link *e)
{
        struct slot *slot = NULL;
        struct error err = { 0 };
        uv_poll_t *poll = calloc(1, sizeof(*poll));

        for (size_t i = 0; i < EYES_ALIVE_MAX && !slot; i++)
                if (!e->slots[i].polled)
                        slot = &e->slots[i];
        if (!poll || !slot || eyes_child_start(e->program, &slot->child, &err) < 0) {
                free(poll);
                if (slot)
                        log_error("event=eyes-not-started words=\"%s\"", err.msg);
                tell_answering(e, false);
                tell_first_look(e);
                plan_restart(e);
                return;
        }
        log_info("event=eyes-started pid=%d", (int) slot->child.pid);
        (void) uv_poll_init(e->loop, &slot->exit_poll, slot->child.pidfd);
        slot->exit_poll.data = slot;
        slot->polled = true;
        (void) uv_poll_start(&slot->exit_poll, UV_READABLE, on_child_exit);

        e->now = slot;
        e->has_hello = e->answered = e->looked = false;
        e->started_ms = clock_now_ms();
        memset(e->reads, 0, sizeof(e->reads));
        for (uint32_t i = 0; i < e->n_devices;
             i++) { /* a new one tells everything anew, and the core wants to hear it */
                free(e->devices[i].last);
                e->devices[i].last = NULL;
                e->devices[i].named = false;
        }
        (void) uv_poll_init(e->loop, poll, slot->child.sock);
        poll->data = e;
        e->sock_poll = poll;
        if (!e->paused)
                (void) uv_poll_start(poll, UV_READABLE, on_sock);
        e->out.kind = EYES_BRAIN_HELLO;
        e->out.brain_hello = (struct eyes_brain_hello){ .version = EYES_VERSION };
        (void) send_message(e, &e->out);
        arm_deadline(e);
}

int eyes_link_new(struct eyes_link **ret, uv_loop_t *loop, const char *program, uint64_t deadline_ms,
                  const struct eyes_host *host, struct error *err)
{
        struct eyes_link *e = calloc(1, sizeof(*e));
        if (!e)
                return error_set(err, ENOMEM, "no memory for the eyes");

        e->loop = loop;
        e->host = *host;
        e->deadline_ms = deadline_ms;
        e->interval_ms = EYES_INTERVAL_DEFAULT_MS;
        e->backoff_ms = EYES_BACKOFF_FIRST_MS;
        e->next_read_id = 1;
        (void) snprintf(e->program, sizeof(e->program), "%s", program);
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
                struct slot *slot = &e->slots[i];
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
                (void) uv_poll_start(e->sock_poll, UV_READABLE, on_sock);
        }
        arm_deadline(e);
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

bool eyes_link_age_ms(const struct eyes_link *e, uint64_t *ret)
{
        uint64_t now_ms = clock_now_ms();

        if (e->answered_ms == 0)
                return false;
        *ret = now_ms > e->answered_ms ? now_ms - e->answered_ms : 0;
        return true;
}

bool eyes_link_host_pids(const struct eyes_link *e, bool *ret)
{
        *ret = e->hello.host_pids;
        return e->hello.version != 0;
}

bool eyes_link_looked_ms(const struct eyes_link *e, const char *uuid, uint64_t *ret)
{
        uint64_t now_ms = clock_now_ms();

        for (uint32_t i = 0; i < e->n_devices; i++) {
                const struct seen_device *d = &e->devices[i];
                if (strcmp(d->uuid, uuid) != 0 || d->looked_ms == 0)
                        continue;
                *ret = now_ms > d->looked_ms ? now_ms - d->looked_ms : 0;
                return true;
        }
        return false;
}
