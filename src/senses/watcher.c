/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/watcher.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "senses/proc.h"
#include "senses/reading.h"

/* ---- talking ---- */

static struct eyes_message *new_message(struct watcher *w, enum eyes_kind kind)
{
        memset(&w->out, 0, sizeof(w->out));
        w->out.kind = kind;
        return &w->out;
}

static void say(struct watcher *w, int fd)
{
        if (w->send_error == 0)
                w->send_error = w->send(w->send_ctx, &w->out, fd);
}

static bool hello_differs(const struct eyes_hello *a, const struct eyes_hello *b)
{
        return a->version != b->version || a->driver_state != b->driver_state || a->rc != b->rc ||
               strcmp(a->driver_version, b->driver_version) != 0 || strcmp(a->boot_id, b->boot_id) != 0 ||
               a->host_pids != b->host_pids || a->n_devices != b->n_devices || a->n_hidden != b->n_hidden ||
               a->events != b->events || a->events_errno != b->events_errno || a->accounting != b->accounting;
}

static void say_hello(struct watcher *w)
{
        struct eyes_hello *m = &new_message(w, EYES_HELLO)->hello;

        m->version = EYES_VERSION;
        m->driver_state = w->driver.state;
        m->rc = w->driver.rc;
        memcpy(m->driver_version, w->driver.version, sizeof(m->driver_version));
        memcpy(m->boot_id, w->source.boot_id, sizeof(m->boot_id));
        m->host_pids = w->source.host_pids;
        m->n_devices = w->n_devices;
        m->n_hidden = w->n_hidden;
        m->events = w->descent ? w->descent->events : EYES_EVENTS_NONE;
        m->events_errno = w->descent ? w->descent->events_errno : 0;
        m->accounting = w->descent && w->descent->accounting_fd >= 0;
        if (!hello_differs(m, &w->told))
                return;
        w->told = *m;
        say(w, -1);
}

static bool device_differs(const struct eyes_device *a, const struct eyes_device *b)
{
        return strcmp(a->uuid, b->uuid) != 0 || strcmp(a->name, b->name) != 0 || strcmp(a->bus_id, b->bus_id) != 0 ||
               strcmp(a->parent_uuid, b->parent_uuid) != 0 || a->minor_known != b->minor_known ||
               a->minor != b->minor || a->total_known != b->total_known || a->total_bytes != b->total_bytes ||
               a->mig != b->mig || a->state != b->state || a->rc != b->rc;
}

static void say_device(struct watcher *w, struct watched_device *dev)
{
        if (!device_differs(&dev->facts, &dev->told))
                return;
        new_message(w, EYES_DEVICE)->device = dev->facts;
        dev->told = dev->facts;
        say(w, -1);
}

static void alarm_about(struct watcher *w, struct watched_device *dev, enum eyes_alarm_kind kind, uint64_t now_ms,
                        const char *words)
{
        struct watcher_alarm *rate = dev ? &dev->alarms[kind] : &w->alarms[kind];

        if (rate->sent_ms && now_ms - rate->sent_ms < WATCHER_ALARM_EVERY_MS) {
                rate->n_dropped += rate->n_dropped < UINT32_MAX;
                return;
        }
        struct eyes_alarm *m = &new_message(w, EYES_ALARM)->alarm;
        m->kind = kind;
        m->n_dropped = rate->n_dropped;
        if (dev)
                memcpy(m->uuid, dev->facts.uuid, sizeof(m->uuid));
        (void) snprintf(m->text, sizeof(m->text), "%s", words);
        *rate = (struct watcher_alarm){ .sent_ms = now_ms ? now_ms : 1 };
        say(w, -1);
}

/* ---- the driver and its devices ---- */

static struct watched_device *find_device(struct watcher *w, const char *uuid)
{
        for (uint32_t i = 0; i < w->n_devices; i++)
                if (strcmp(w->devices[i].facts.uuid, uuid) == 0)
                        return &w->devices[i];
        return NULL;
}

static void set_state(struct watched_device *dev, enum eyes_device_state state, int32_t rc)
{
        dev->facts.state = state;
        dev->facts.rc = rc;
}

/* What the driver says about a device now; a known one keeps its place, its total and what was sent about it. */
static void meet_device(struct watcher *w, const struct eyes_device *facts)
{
        struct watched_device *dev = find_device(w, facts->uuid);

        if (!dev) {
                if (w->n_devices == EYES_DEVICES_MAX) {
                        w->n_hidden += w->n_hidden < EYES_DEVICES_MAX;
                        return;
                }
                dev = &w->devices[w->n_devices++];
                memset(dev, 0, sizeof(*dev));
        }
        bool total_known = dev->facts.total_known;
        uint64_t total_bytes = dev->facts.total_bytes;
        dev->facts = *facts;
        dev->facts.total_known = total_known;
        dev->facts.total_bytes = total_bytes;
        dev->named = true;
}

static bool can_be_asked(const struct watcher *w, const struct watched_device *dev)
{
        return w->driver.state == EYES_DRIVER_OK && dev->named && dev->facts.state != EYES_DEVICE_MIG_PARENT;
}

static void note_memory(struct watched_device *dev, enum eyes_error error, int32_t rc, uint64_t total_bytes)
{
        switch (error) {
        case EYES_ERROR_NONE:
                set_state(dev, EYES_DEVICE_USABLE, 0);
                dev->facts.total_known = true;
                dev->facts.total_bytes = total_bytes;
                return;
        case EYES_ERROR_NOT_SUPPORTED:
        case EYES_ERROR_NO_SYMBOL:
                set_state(dev, EYES_DEVICE_NO_MEMORY_READING, rc);
                return;
        case EYES_ERROR_NO_PERMISSION:
                set_state(dev, EYES_DEVICE_NO_PERMISSION, rc);
                return;
        case EYES_ERROR_LOST:
                set_state(dev, EYES_DEVICE_LOST, rc);
                return;
        case EYES_ERROR_REJECTED: /* the device answers; the reading says that the answer is not to be believed */
                return;
        case EYES_ERROR_OTHER:
        case EYES_ERROR_N:
                break;
        }
        set_state(dev, EYES_DEVICE_FAILING, rc);
}

/* Total and state before the first DEVICE, so that it says them. */
static void look_at_memory(struct watcher *w, struct watched_device *dev)
{
        struct gpu_memory mem = { 0 };

        if (!can_be_asked(w, dev))
                return;
        struct gpu_status st = w->ops->read_memory(w->gpu, dev->facts.uuid, &mem);
        if (st.error == EYES_ERROR_NONE && (mem.total_bytes == 0 || mem.total_bytes > EYES_BYTES_MAX))
                st.error = EYES_ERROR_REJECTED;
        note_memory(dev, st.error, st.rc, mem.total_bytes);
}

static bool needs_start(const struct watcher *w)
{
        if (w->driver.state != EYES_DRIVER_OK)
                return true;
        for (uint32_t i = 0; i < w->n_devices; i++)
                if (w->devices[i].facts.state == EYES_DEVICE_LOST || w->devices[i].facts.state == EYES_DEVICE_FAILING)
                        return true;
        return false;
}

/* When to initialise again: later each time, never while all is well. */
static void plan_start(struct watcher *w, uint64_t now_ms)
{
        bool driver_down = w->driver.state != EYES_DRIVER_OK;
        uint64_t first = driver_down ? WATCHER_RETRY_FIRST_MS : WATCHER_REVIVE_FIRST_MS;
        uint64_t most = driver_down ? WATCHER_RETRY_MOST_MS : WATCHER_REVIVE_MOST_MS;

        if (!needs_start(w)) {
                w->next_start_ms = 0;
                w->start_wait_ms = 0;
                return;
        }
        if (w->next_start_ms > now_ms)
                return;
        w->start_wait_ms = w->start_wait_ms ? u64_min(2 * w->start_wait_ms, most) : first;
        w->next_start_ms = now_ms + w->start_wait_ms;
}

static void start_driver(struct watcher *w, uint64_t now_ms)
{
        static struct eyes_device found[EYES_DEVICES_MAX];
        uint32_t n_found = 0;

        w->n_hidden = 0;
        for (uint32_t i = 0; i < w->n_devices; i++)
                w->devices[i].named = false;
        w->ops->start(w->gpu, &w->driver);
        if (w->driver.state == EYES_DRIVER_OK) {
                struct gpu_status st = w->ops->enumerate(w->gpu, found, &n_found, &w->n_hidden);

                if (st.error != EYES_ERROR_NONE) {
                        n_found = 0;
                        w->driver.state = EYES_DRIVER_FAILED;
                        w->driver.rc = st.rc;
                        (void) snprintf(w->driver.words, sizeof(w->driver.words), "the devices cannot be counted (%d)",
                                        st.rc);
                }
        }
        for (uint32_t i = 0; i < n_found; i++)
                meet_device(w, &found[i]);
        for (uint32_t i = 0; i < w->n_devices; i++) {
                if (w->devices[i].named)
                        look_at_memory(w, &w->devices[i]);
                else if (w->driver.state != EYES_DRIVER_OK)
                        set_state(&w->devices[i], EYES_DEVICE_FAILING, w->driver.rc);
                else /* a card that fell off the bus is still counted but has no name any more */
                        set_state(&w->devices[i], w->n_hidden > 0 ? EYES_DEVICE_LOST : EYES_DEVICE_GONE, 0);
        }
        w->next_start_ms = 0;
        plan_start(w, now_ms);
}

static void tell(struct watcher *w, uint64_t now_ms)
{
        say_hello(w);
        for (uint32_t i = 0; i < w->n_devices; i++)
                say_device(w, &w->devices[i]);
        if (w->driver.state != EYES_DRIVER_OK && w->driver.state != EYES_DRIVER_NO_LIBRARY)
                alarm_about(w, NULL,
                            w->driver.state == EYES_DRIVER_OLD_LIBRARY ? EYES_ALARM_SYMBOL_MISSING : EYES_ALARM_DRIVER,
                            now_ms, w->driver.words);
}

/* ---- one look ---- */

/* A moment of CLOCK_MONOTONIC on the clock that /proc counts start times by: CLOCK_BOOTTIME, which runs on in sleep. */
static uint64_t boottime_of(uint64_t then_ms)
{
        struct timespec ts = { 0 };

        (void) clock_gettime(CLOCK_BOOTTIME, &ts);
        uint64_t now_ms = (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
        return u64_sub0(now_ms, u64_sub0(clock_now_ms(), then_ms));
}

static void mark_nobody(const struct watcher *w, struct eyes_row *row)
{
        row->start_ticks = 0;
        row->flags |= w->source.host_pids ? EYES_ROW_GHOST : EYES_ROW_FOREIGN;
}

/* First sight of a pid: take hold of it, say who it is. */
static void meet_process(struct watcher *w, struct eyes_row *row, uint64_t list_boottime_ms, uint64_t now_ms)
{
        struct eyes_process *facts = &new_message(w, EYES_PROCESS)->process;
        struct error err = { 0 };
        int pidfd = -1;

        int r = process_identify(&w->source, row->pid, facts, &pidfd, &err);
        if (r == -ESRCH) {
                mark_nobody(w, row);
                return;
        }
        if (r == 0 && facts->start_ticks > list_boottime_ms * PROC_TICKS_PER_S / 1000) {
                (void) close(pidfd); /* it started after the list was read: the number changed hands in between */
                mark_nobody(w, row);
                return;
        }
        if (r == 0) {
                r = process_table_add(&w->table, row->pid, facts->start_ticks, pidfd);
                if (r < 0)
                        (void) close(pidfd);
        }
        if (r < 0) {
                row->start_ticks = 0;
                row->flags |= EYES_ROW_UNIDENTIFIED;
                if (r != -EACCES)
                        alarm_about(w, NULL, EYES_ALARM_DESCRIPTORS, now_ms,
                                    err.code ? err.msg : "the process table is full: raise the descriptor limit");
                return;
        }
        row->start_ticks = facts->start_ticks;
        if (w->descent)
                descent_trace(w->descent, facts, now_ms);
        say(w, pidfd);
}

static void identify_rows(struct watcher *w, struct eyes_reading *reading, uint64_t now_ms)
{
        uint64_t list_boottime_ms = boottime_of(reading->rows_taken_ms);

        for (uint32_t i = 0; i < reading->n_rows; i++) {
                struct eyes_row *row = &reading->rows[i];
                const struct process_entry *held = process_table_find(&w->table, row->pid);

                if (held) /* or has just died: EXITED follows in the next turn, and another look */
                        row->start_ticks = held->start_ticks;
                else
                        meet_process(w, row, list_boottime_ms, now_ms);
        }
}

static void mark_activity(const struct watcher *w, const struct watched_device *dev, struct eyes_reading *reading)
{
        for (uint32_t i = 0; i < reading->n_rows && w->source.host_pids; i++)
                activity_mark(&dev->activity, process_table_find(&w->table, reading->rows[i].pid), &reading->rows[i]);
}

static void take_activity(struct watcher *w, uint64_t now_ms)
{
        if (now_ms < w->next_activity_ms)
                return;
        w->next_activity_ms = now_ms + w->activity_ms;
        activity_of_processes(&w->table, &w->source, now_ms);
        for (uint32_t i = 0; i < w->n_devices; i++)
                activity_of_device(&w->devices[i].activity, w->ops, w->gpu, w->devices[i].facts.uuid,
                                   can_be_asked(w, &w->devices[i]));
}

/* Old rows in place of ones that were refused: nobody new is looked for, but who has died since is dead. */
static void reuse_rows(struct watcher *w, const struct eyes_reading *good, struct eyes_reading *reading)
{
        reading->rows_taken_ms = good->rows_taken_ms;
        reading->n_rows = good->n_rows;
        memcpy(reading->rows, good->rows, good->n_rows * sizeof(*good->rows));
        for (uint32_t i = 0; i < reading->n_rows; i++) {
                struct eyes_row *row = &reading->rows[i];
                const struct process_entry *held = process_table_find(&w->table, row->pid);

                row->flags &=
                        ~(uint32_t) (EYES_ROW_WORKED | EYES_ROW_RESTED); /* of the last interval nothing is known */
                if (row->start_ticks && (!held || held->start_ticks != row->start_ticks))
                        mark_nobody(w, row);
        }
}

static void copy_reading(struct eyes_reading *to, const struct eyes_reading *from)
{
        memcpy(to, from, offsetof(struct eyes_reading, rows) + from->n_rows * sizeof(*from->rows));
}

/* A device that cannot be asked has a reading too: one that says so. */
static void take_failed_look(const struct watcher *w, const struct watched_device *dev, struct eyes_reading *ret)
{
        enum eyes_error error = EYES_ERROR_OTHER;

        if (dev->facts.state == EYES_DEVICE_MIG_PARENT)
                error = EYES_ERROR_NOT_SUPPORTED;
        else if (dev->facts.state == EYES_DEVICE_LOST)
                error = EYES_ERROR_LOST;
        memset(ret, 0, offsetof(struct eyes_reading, rows));
        memcpy(ret->uuid, dev->facts.uuid, sizeof(ret->uuid));
        ret->taken_ms = clock_now_ms();
        ret->memory_error = ret->list_error = error;
        ret->memory_rc = ret->list_rc = w->driver.state == EYES_DRIVER_OK ? dev->facts.rc : w->driver.rc;
}

static void note_look(struct watcher *w, struct watched_device *dev, const struct eyes_reading *reading,
                      const char *why, uint64_t now_ms)
{
        enum eyes_device_state before = dev->facts.state;

        note_memory(dev, reading->memory_error, reading->memory_rc, reading->total_bytes);
        if (reading->list_error == EYES_ERROR_LOST)
                set_state(dev, EYES_DEVICE_LOST, reading->list_rc);
        if (dev->facts.state == EYES_DEVICE_LOST && before != EYES_DEVICE_LOST)
                alarm_about(w, dev, EYES_ALARM_DEVICE_LOST, now_ms, "the driver no longer reaches this device");
        if (reading->memory_error == EYES_ERROR_REJECTED)
                alarm_about(w, dev, EYES_ALARM_MEMORY_REJECTED, now_ms, why);
        if (reading->list_error == EYES_ERROR_REJECTED)
                alarm_about(w, dev, EYES_ALARM_LIST_REJECTED, now_ms, why);
        if (reading->list_error == EYES_ERROR_NO_SYMBOL)
                alarm_about(w, dev, EYES_ALARM_SYMBOL_MISSING, now_ms, "the library has no usable process list");
}

/* Into w->look. */
static void look_at(struct watcher *w, struct watched_device *dev, uint64_t now_ms)
{
        char why[EYES_ALARM_SIZE];
        struct eyes_reading *reading = &w->look;

        if (can_be_asked(w, dev)) {
                reading_take(w->ops, w->gpu, dev->facts.uuid, reading, why);
                note_look(w, dev, reading, why, now_ms);
        } else {
                take_failed_look(w, dev, reading);
        }
        say_device(w, dev);
        if (reading->per_process_valid) {
                identify_rows(w, reading, now_ms);
                mark_activity(w, dev, reading);
                copy_reading(&dev->good, reading);
                dev->has_good_rows = true;
        } else if (dev->has_good_rows) {
                reuse_rows(w, &dev->good, reading);
        }
}

static void send_reading(struct watcher *w, struct watched_device *dev, uint64_t request_id)
{
        struct eyes_message *m = new_message(w, EYES_READING);

        copy_reading(&m->reading, &w->look);
        m->reading.request_id = request_id;
        say(w, -1);
        copy_reading(&dev->sent, &w->look);
        dev->sent_valid = true;
}

static bool wants(const struct eyes_read *request, const struct watched_device *dev)
{
        return !request->uuid[0] || strcmp(request->uuid, dev->facts.uuid) == 0;
}

static void answer_done(struct watcher *w, const struct eyes_read *request, uint32_t n_readings)
{
        struct eyes_done *m = &new_message(w, EYES_DONE)->done;

        m->request_id = request->request_id;
        m->taken_ms = clock_now_ms();
        m->n_readings = n_readings;
        say(w, -1);
}

/* All devices when @all, else those somebody asked for. */
static void look_and_answer(struct watcher *w, bool all, uint64_t now_ms)
{
        uint32_t n_answers[WATCHER_REQUESTS_MAX] = { 0 };

        if (all)
                take_activity(w, now_ms);

        for (uint32_t i = 0; i < w->n_devices; i++) {
                struct watched_device *dev = &w->devices[i];
                bool asked = false;

                for (uint32_t k = 0; k < w->n_requests && !asked; k++)
                        asked = wants(&w->requests[k], dev);
                if (!all && !asked)
                        continue;
                look_at(w, dev, now_ms);
                for (uint32_t k = 0; k < w->n_requests; k++)
                        if (wants(&w->requests[k], dev)) {
                                send_reading(w, dev, w->requests[k].request_id);
                                n_answers[k]++;
                        }
                if (!asked && (!dev->sent_valid || eyes_reading_differs(&dev->sent, &w->look)))
                        send_reading(w, dev, 0);
        }
        for (uint32_t k = 0; k < w->n_requests; k++)
                answer_done(w, &w->requests[k], n_answers[k]);
        w->n_requests = 0;
}

/* ---- the caller's side ---- */

int watcher_init(struct watcher *w, const struct gpu_ops *ops, void *gpu, const char *proc_root, size_t max_processes,
                 watcher_send_fn send, void *send_ctx, struct error *err)
{
        w->ops = ops;
        w->gpu = gpu;
        w->send = send;
        w->send_ctx = send_ctx;
        w->send_error = 0;
        w->descent = NULL;
        w->n_devices = 0;
        w->n_hidden = 0;
        w->n_requests = 0;
        w->interval_ms = EYES_INTERVAL_DEFAULT_MS;
        w->next_look_ms = 0;
        w->activity_ms = EYES_ACTIVITY_DEFAULT_MS;
        w->next_activity_ms = 0;
        w->next_start_ms = 0;
        w->start_wait_ms = 0;
        w->asleep_known = false;
        memset(w->alarms, 0, sizeof(w->alarms));
        memset(&w->told, 0, sizeof(w->told));
        memset(&w->driver, 0, sizeof(w->driver));

        int r = process_source_init(&w->source, proc_root, err);
        if (r < 0)
                return r;
        return process_table_init(&w->table, max_processes, err);
}

void watcher_fini(struct watcher *w)
{
        w->ops->stop(w->gpu);
        process_table_fini(&w->table);
}

void watcher_descent(struct watcher *w, struct descent *descent, uint64_t now_ms)
{
        w->descent = descent;
        descent_begin(descent, &w->source, now_ms);
}

int watcher_hello(struct watcher *w, uint64_t now_ms)
{
        start_driver(w, now_ms);
        tell(w, now_ms);
        w->next_look_ms = now_ms;
        return w->send_error;
}

void watcher_clock(struct watcher *w, uint64_t asleep_ms, uint64_t now_ms)
{
        bool slept = w->asleep_known && asleep_ms > w->asleep_ms + WATCHER_SLEPT_MS;

        w->asleep_known = true;
        w->asleep_ms = asleep_ms;
        if (!slept)
                return;
        w->next_start_ms = now_ms ? now_ms : 1;
        w->start_wait_ms = 0;
        for (uint32_t i = 0; i < w->n_devices; i++) {
                struct watched_device *dev = &w->devices[i];

                dev->told.uuid[0] = '\0'; /* named again: the brain then grants by nothing it was told before */
                dev->sent_valid = false;
                dev->has_good_rows = false;
        }
}

int watcher_message(struct watcher *w, const struct eyes_message *msg, uint64_t now_ms)
{
        if (msg->kind == EYES_INTERVAL) {
                w->interval_ms = msg->interval.ms;
                w->next_look_ms = u64_min(w->next_look_ms, now_ms + w->interval_ms);
                w->activity_ms = msg->interval.activity_ms;
                w->next_activity_ms = u64_min(w->next_activity_ms, now_ms + w->activity_ms);
                return 0;
        }
        if (msg->kind != EYES_READ)
                return -EPROTO;
        if (w->n_requests == WATCHER_REQUESTS_MAX)
                return -EBUSY;
        w->requests[w->n_requests++] = msg->read;
        return 0;
}

int watcher_turn(struct watcher *w, uint64_t now_ms)
{
        struct process_entry gone;
        bool all = now_ms >= w->next_look_ms;

        if (w->descent) {
                descent_turn(w->descent, now_ms);
                say_hello(w); /* if it is another one now */
        }
        while (process_table_take_exited(&w->table, &gone)) {
                struct eyes_exited *m = &new_message(w, EYES_EXITED)->exited;

                m->pid = gone.pid;
                m->start_ticks = gone.start_ticks;
                say(w, -1);
                all = true;
        }
        if (w->next_start_ms && now_ms >= w->next_start_ms) {
                start_driver(w, now_ms);
                tell(w, now_ms); /* says only what changed */
                all = true;
        }
        if (all)
                w->next_look_ms = now_ms + w->interval_ms;
        if (all || w->n_requests > 0)
                look_and_answer(w, all, now_ms);
        plan_start(w, now_ms);
        return w->send_error;
}

int watcher_timeout_ms(const struct watcher *w, uint64_t now_ms)
{
        uint64_t due_ms = w->next_look_ms;

        if (w->next_start_ms)
                due_ms = u64_min(due_ms, w->next_start_ms);
        if (w->n_requests > 0)
                return 0;
        int descent_ms = w->descent ? descent_timeout_ms(w->descent, now_ms) : -1;
        if (descent_ms >= 0)
                due_ms = u64_min(due_ms, now_ms + (uint64_t) descent_ms);
        return (int) u64_min(u64_sub0(due_ms, now_ms), INT_MAX);
}
