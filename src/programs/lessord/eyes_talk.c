/* SPDX-License-Identifier: Apache-2.0 */
/* What is said between the eyes and us: their messages → inputs, the core's questions → messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "model/device.h"
#include "programs/lessord/eyes_facts.h"
#include "programs/lessord/eyes_private.h"

enum { PING_LEAST_MS = 1000 };

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

void eyes_talk_answering(struct eyes_link *e, bool answering)
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

void eyes_talk_first_look(struct eyes_link *e)
{
        if (e->first_look_told)
                return;
        e->first_look_told = true;
        e->host.first_look(e->host.ctx);
}

static struct eyes_seen_device *device_of(struct eyes_link *e, const char *uuid)
{
        for (uint32_t i = 0; i < e->n_devices; i++)
                if (strcmp(e->devices[i].uuid, uuid) == 0)
                        return &e->devices[i];
        return NULL;
}

static void tell_device(struct eyes_link *e, const struct eyes_device *facts)
{
        struct input input = { .kind = INPUT_DEVICE };
        struct eyes_seen_device *d = device_of(e, facts->uuid);

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
                const struct eyes_seen_device *d = device_of(e, dev->uuid);
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

static void ask(struct eyes_link *e, const char *uuid, bool ordered)
{
        struct eyes_read_sent *free_row = NULL;

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
        *free_row = (struct eyes_read_sent){ .id = e->next_read_id++, .sent_ms = clock_now_ms(), .ordered = ordered };
        eyes_arm_deadline(e);
}

void eyes_link_read(struct eyes_link *e, const char *uuid)
{
        ask(e, uuid, true);
}

void eyes_link_slept(struct eyes_link *e)
{
        eyes_talk_answering(e, false);
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
        e->out.interval =
                (struct eyes_interval){ .ms = (uint32_t) e->interval_ms, .activity_ms = (uint32_t) e->activity_ms };
        (void) send_message(e, &e->out);
}

static uint64_t within(uint64_t ms, uint64_t least_ms, uint64_t most_ms)
{
        return ms < least_ms ? least_ms : ms > most_ms ? most_ms : ms;
}

void eyes_link_interval(struct eyes_link *e, uint64_t ms, uint64_t activity_ms)
{
        ms = within(ms, EYES_INTERVAL_MIN_MS, EYES_INTERVAL_MAX_MS);
        activity_ms = within(activity_ms, EYES_ACTIVITY_MIN_MS, EYES_ACTIVITY_MAX_MS);
        if (e->interval_ms == ms && e->activity_ms == activity_ms)
                return;
        e->interval_ms = ms;
        e->activity_ms = activity_ms;
        if (!e->now || !e->has_hello)
                return;
        send_interval(e);
        arm_ping(e);
}

/* ---- what it says ---- */

static void take_hello(struct eyes_link *e, const struct eyes_hello *hello)
{
        bool first = !e->has_hello;
        bool came_back = !first && !driver_is_there(e) && hello->driver_state == EYES_DRIVER_OK;

        bool another_driver = strcmp(e->hello.driver_version, hello->driver_version) != 0 ||
                              e->hello.driver_state != hello->driver_state;
        e->hello = *hello;
        e->has_hello = true;
        log_info("event=eyes-hello driver=%s version=%s devices=%u hidden=%u host_pids=%d",
                 eyes_driver_state_name(hello->driver_state), hello->driver_version[0] ? hello->driver_version : "-",
                 hello->n_devices, hello->n_hidden, hello->host_pids);
        for (uint32_t i = 0; i < e->n_devices; i++)
                e->devices[i].named = false; /* the DEVICEs that follow name them anew */
        if (another_driver)
                e->host.driver_changed(e->host.ctx);
        if (e->answered) /* else its first answer tells */
                eyes_talk_answering(e, is_answering(e));
        if (came_back)
                e->looked = false; /* it names all it has, and what it does not name by its next look is gone */
        if (first) {
                send_interval(e);
                arm_ping(e);
                ask(e, "", true);
        }
        eyes_arm_deadline(e);
}

static const struct eyes_read_sent *read_of(const struct eyes_link *e, uint64_t id)
{
        for (size_t i = 0; id != 0 && i < EYES_READS_MAX; i++)
                if (e->reads[i].id == id)
                        return &e->reads[i];
        return NULL;
}

static void keep_last(struct eyes_seen_device *d, const struct eyes_reading *reading)
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
        if (e->answered_ms - e->started_ms >= EYES_BACKOFF_MOST_MS) /* one answer is no proof: it may die of the next */
                e->backoff_ms = EYES_BACKOFF_FIRST_MS;
        if (e->answered)
                return;
        e->answered = true;
        /* Before whom it names, and the first reading: from here on who was known is unconfirmed until it is named again. */
        eyes_talk_answering(e, is_answering(e));
}

static void take_reading(struct eyes_link *e, const struct eyes_reading *reading)
{
        const struct eyes_read_sent *read = read_of(e, reading->request_id);
        struct eyes_seen_device *d = device_of(e, reading->uuid);

        note_answer(e);
        if (!d)
                return;
        d->looked_ms = reading->taken_ms;
        bool differs = !d->last || eyes_reading_differs(d->last, reading);
        if (!differs && !(read && read->ordered))
                return; /* nothing new and nobody asked for it: not worth a record */

        struct input input = { .kind = INPUT_READING };
        eyes_facts_reading(reading, e->rows, &input.reading);
        input.reading.taken_ms = e->host.of_monotonic(e->host.ctx, reading->taken_ms);
        if (differs)
                e->host.submit(e->host.ctx, &input);
        else
                e->host.submit_patiently(e->host.ctx, &input);
        keep_last(d, reading);
}

static void take_done(struct eyes_link *e, const struct eyes_done *done)
{
        for (size_t i = 0; i < EYES_READS_MAX; i++)
                if (e->reads[i].id == done->request_id)
                        e->reads[i] = (struct eyes_read_sent){ 0 };
        note_answer(e);
        if (!e->looked) {
                tell_missing_devices(e);
                e->host.named_all(e->host.ctx);
        }
        e->looked = true;
        eyes_talk_first_look(e);
        eyes_arm_deadline(e);
}

static void take_message(struct eyes_link *e, const struct eyes_message *msg)
{
        struct input input = { 0 };

        switch (msg->kind) {
        case EYES_HELLO:
                take_hello(e, &msg->hello);
                break;
        case EYES_DEVICE:
                tell_device(e, &msg->device);
                break;
        case EYES_PROCESS:
                note_answer(e); /* the driver listed it */
                input.kind = INPUT_PROCESS;
                eyes_facts_process(&msg->process, e->hello.host_pids, &input.process);
                input.process.guard =
                        (uint8_t) eyes_link_guard(e, &msg->process, (enum process_guard) input.process.guard);
                eyes_facts_settle(&msg->process, e->host.world(e->host.ctx), &input.process);
                input.process.room_bytes = e->host.room_of(e->host.ctx, msg->process.pid);
                e->host.told_process(e->host.ctx, &msg->process, &input.process);
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
                            msg->alarm.n_dropped, msg->alarm.text);
                break;
        case EYES_DONE:
                take_done(e, &msg->done);
                break;
        case EYES_NOTHING:
        case EYES_BRAIN_HELLO:
        case EYES_INTERVAL:
        case EYES_READ:
        case EYES_KIND_N:
                eyes_fail(e, "it said something that only we say");
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

void eyes_talk_on_sock(uv_poll_t *poll, int status, int events)
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
                        eyes_fail(e, n == 0 ? "it closed its socket" : "its socket failed");
                        return;
                }
                if (eyes_decode(e->buf, (size_t) n, &e->msg, &err) < 0) {
                        eyes_fail(e, err.msg);
                        return;
                }
                take_message(e, &e->msg);
        }
}

void eyes_talk_begin(struct eyes_link *e)
{
        e->has_hello = e->answered = e->looked = false;
        memset(e->reads, 0, sizeof(e->reads));
        for (uint32_t i = 0; i < e->n_devices; i++) { /* it tells everything anew, and the core wants to hear it */
                free(e->devices[i].last);
                e->devices[i].last = NULL;
                e->devices[i].named = false;
        }
        e->out.kind = EYES_BRAIN_HELLO;
        e->out.brain_hello = (struct eyes_brain_hello){ .version = EYES_VERSION };
        (void) send_message(e, &e->out);
}
