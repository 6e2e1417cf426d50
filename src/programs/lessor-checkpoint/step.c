/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-checkpoint/step.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "hands/target.h"
#include "programs/lessor-checkpoint/driver.h"
#include "programs/lessor-checkpoint/host.h"
#include "programs/lessor-checkpoint/look.h"
#include "wire/parked.h"

enum { STOP_WAIT_MS = 10000, DEATH_WAIT_MS = 200 };

struct work {
        const struct step_place *place;
        const struct warden_order *order;
        struct driver driver;
        struct target target;
        int pidfd, lock;
        enum step_how how;
        struct record record; /* step NO_STEP = there is none */
        struct warden_answer answer;
};

/* ---- answers and records ---- */

static void say(struct work *w, enum warden_result result, enum warden_why why, int error)
{
        w->answer.result = result;
        w->answer.why = why;
        w->answer.error = error;
}

static void done(struct work *w)
{
        say(w, WARDEN_DONE, WARDEN_WHY_NONE, 0);
}

static void blocked(struct work *w, enum warden_why why)
{
        say(w, WARDEN_BLOCKED, why, 0);
}

static void failed(struct work *w)
{
        say(w, WARDEN_FAILED, w->answer.driver_code == DRIVER_OK ? WARDEN_WHY_NO_EFFECT : WARDEN_WHY_DRIVER, 0);
}

/* Its number may be another process's from now on. */
static void gone(struct work *w, enum warden_result result)
{
        (void) parked_remove(w->place->parked, w->order->pid, w->order->start_ticks);
        say(w, result, WARDEN_WHY_GONE, 0);
}

/* False: it could not be written, and the record is as before. */
static bool store(struct work *w, enum record_step step)
{
        enum record_step before = w->record.step;
        struct error err = { 0 };

        w->record.step = step;
        if (parked_write(w->place->parked, &w->record, &err) == 0)
                return true;
        log_error("event=record-not-written pid=%" PRIu32 " step=%s words=\"%s\"", w->order->pid,
                  record_step_name(step), err.msg);
        w->record.step = before;
        say(w, WARDEN_BLOCKED, WARDEN_WHY_RECORD, err.code);
        return false;
}

/* The step after a call. Where it cannot be written, the -ing step stays, and whoever comes next asks the driver. */
static void store_after(struct work *w, enum record_step step)
{
        struct warden_answer answer = w->answer;

        (void) store(w, step);
        w->answer = answer;
}

/* It runs as before, and is nobody's concern any more, but for the note that it was restored once. */
static void leave(struct work *w)
{
        host_oom_put_back(&w->record, w->pidfd);
        w->record.hold = w->record.ending = false;
        w->record.host_bytes = 0;
        if (w->record.restored)
                store_after(w, RECORD_RESTORED);
        else
                (void) parked_remove(w->place->parked, w->order->pid, w->order->start_ticks);
}

static void fail_for_good(struct work *w)
{
        host_oom_put_back(&w->record, w->pidfd);
        store_after(w, RECORD_FAILED);
        failed(w);
}

static enum record_step locked_step(const struct work *w)
{
        return w->record.hold ? RECORD_HELD : RECORD_LOCKED;
}

/* ---- the driver ---- */

static bool is_dead(const struct work *w)
{
        return target_is_dead(w->pidfd);
}

/* A driver that fails because its target dies does so before the kernel is through with it. */
static void wait_for_death(const struct work *w, uint32_t code)
{
        struct pollfd p = { .fd = w->pidfd, .events = POLLIN };

        if (code != DRIVER_OK && code != DRIVER_NOT_READY)
                (void) poll(&p, 1, DEATH_WAIT_MS);
}

/* One call that changes something. False: the process died before or meanwhile, and that is said. */
static bool call(struct work *w, enum driver_call what, uint32_t *ret_code)
{
        uint64_t since_ms = clock_now_ms();

        if (is_dead(w)) {
                gone(w, WARDEN_BLOCKED);
                return false;
        }
        *ret_code = driver_do(&w->driver, what, w->order->pid, w->order->deadline_ms);
        uint64_t ms = clock_now_ms() - since_ms;
        w->answer.duration_ms = ms < UINT32_MAX ? (uint32_t) ms : UINT32_MAX;
        w->answer.driver_code = *ret_code;
        wait_for_death(w, *ret_code);
        if (is_dead(w)) {
                gone(w, WARDEN_FAILED);
                return false;
        }
        return true;
}

/* What the driver says now; an answer that is none counts as FAILED. False as above. */
static bool probe(struct work *w, enum driver_state *ret)
{
        uint32_t code = is_dead(w) ? DRIVER_OK : driver_state(&w->driver, w->order->pid, ret);

        if (code != DRIVER_OK)
                *ret = DRIVER_FAILED;
        wait_for_death(w, code);
        if (!is_dead(w))
                return true;
        gone(w, WARDEN_FAILED);
        return false;
}

static bool call_and_probe(struct work *w, enum driver_call what, uint32_t *ret_code, enum driver_state *ret_state)
{
        return call(w, what, ret_code) && probe(w, ret_state);
}

static bool open_driver(struct work *w)
{
        enum warden_why why = driver_open(&w->driver);

        if (why != WARDEN_WHY_NONE)
                blocked(w, why);
        return why == WARDEN_WHY_NONE;
}

/* Everything that must be so before the driver is asked about it. */
static bool can_ask(struct work *w)
{
        if (!open_driver(w))
                return false;
        if (w->how == STEP_PATIENT || !host_stands_still(w->place->cgroup_root, w->order->pid))
                return true;
        blocked(w, WARDEN_WHY_STANDS_STILL);
        return false;
}

/* Somebody ended before they could say what the host grew by: it counts in full. */
static void settle_checkpointed(struct work *w)
{
        if (w->record.host_bytes == 0)
                w->record.host_bytes = w->record.bytes;
        host_oom_protect(&w->record, w->pidfd);
        store_after(w, RECORD_CHECKPOINTED);
}

/* The record says what the driver says; a call that was to change it has not done what it should. */
static void follow(struct work *w, enum driver_state state)
{
        if (state == DRIVER_RUNNING)
                leave(w);
        else if (state == DRIVER_LOCKED)
                store_after(w, locked_step(w));
        else if (state == DRIVER_CHECKPOINTED)
                settle_checkpointed(w);
        else
                store_after(w, RECORD_FAILED);
}

/* ---- lock, hold ---- */

/* Does the driver know it, and is what it names a thread of it? A pid without CUDA may be called running all the same. */
static bool is_cuda_process(struct work *w)
{
        char path[64];
        uint32_t tid = 0;

        uint32_t code = driver_thread(&w->driver, w->order->pid, &tid);
        wait_for_death(w, code);
        if (is_dead(w)) {
                gone(w, WARDEN_BLOCKED);
                return false;
        }
        w->answer.driver_code = code;
        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32, w->order->pid, tid);
        if (code == DRIVER_OK && access(path, F_OK) == 0)
                return true;
        enum warden_why why = driver_cannot(code);
        blocked(w, why == WARDEN_WHY_NONE ? WARDEN_WHY_CANNOT_PROCESS : why);
        return false;
}

static void begin_record(struct work *w)
{
        const struct warden_order *o = w->order;
        struct record r = { .pid = o->pid,
                            .start_ticks = o->start_ticks,
                            .pidfd_inode = w->target.pidfd_inode,
                            .uid = (uint32_t) w->target.real_uid,
                            .bytes = o->bytes,
                            .lease_id = o->lease_id,
                            .flags = o->flags,
                            .hold = o->verb == WARDEN_HOLD,
                            .ending = w->how == STEP_ENDING,
                            .restored = w->record.restored };

        memcpy(r.device_uuid, o->device_uuid, sizeof(r.device_uuid));
        w->record = r;
}

/* It may have been locked after all, in the last moment. */
static void undo_late_lock(struct work *w)
{
        struct warden_answer of_lock = w->answer;
        enum driver_state state;
        uint32_t code;

        if (!probe(w, &state) || (state == DRIVER_LOCKED && !call_and_probe(w, DRIVER_UNLOCK, &code, &state)))
                return;
        w->answer = of_lock;
        if (state == DRIVER_RUNNING) {
                leave(w);
                blocked(w, WARDEN_WHY_LOCK_TIMEOUT);
                return;
        }
        follow(w, state);
        say(w, WARDEN_FAILED, WARDEN_WHY_NO_EFFECT, 0);
}

static void lock(struct work *w)
{
        enum driver_state state;
        uint32_t code;

        if (!can_ask(w) || !is_cuda_process(w))
                return;
        begin_record(w);
        if (!store(w, RECORD_LOCKING) || !call(w, DRIVER_LOCK, &code))
                return;
        if (code == DRIVER_NOT_READY) {
                undo_late_lock(w);
                return;
        }
        if (driver_cannot(code) != WARDEN_WHY_NONE) {
                leave(w);
                blocked(w, driver_cannot(code));
                return;
        }
        if (!probe(w, &state))
                return;
        follow(w, state);
        if (code == DRIVER_OK && state == DRIVER_LOCKED)
                done(w);
        else
                failed(w);
}

/* ---- checkpoint ---- */

static void checkpoint(struct work *w)
{
        uint64_t before_bytes = 0, after_bytes = 0;
        enum driver_state state;
        uint32_t code;

        if (!can_ask(w))
                return;
        bool counted = host_bytes_of(w->order->pid, &before_bytes);
        w->record.ending = w->how == STEP_ENDING;
        w->record.host_bytes = 0;
        host_oom_look(&w->record);
        if (!store(w, RECORD_CHECKPOINTING))
                return;
        host_oom_protect(&w->record, w->pidfd);
        if (!call_and_probe(w, DRIVER_CHECKPOINT, &code, &state))
                return;
        if (code == DRIVER_OK && state == DRIVER_CHECKPOINTED) {
                counted = counted && host_bytes_of(w->order->pid, &after_bytes);
                /* What cannot be counted is what the order says: never too little. */
                w->record.host_bytes = !counted                     ? w->record.bytes
                                       : after_bytes > before_bytes ? after_bytes - before_bytes
                                                                    : 0;
                w->answer.host_bytes = w->record.host_bytes;
                store_after(w, RECORD_CHECKPOINTED);
                done(w);
        } else if (driver_cannot(code) != WARDEN_WHY_NONE && state == DRIVER_LOCKED) {
                host_oom_put_back(&w->record, w->pidfd);
                store_after(w, locked_step(w));
                blocked(w, driver_cannot(code));
        } else {
                fail_for_good(w);
        }
}

/* ---- stop, cont ---- */

static void signal_failed(struct work *w, int r)
{
        if (r == -ESRCH)
                gone(w, WARDEN_BLOCKED);
        else
                say(w, WARDEN_BLOCKED, WARDEN_WHY_SYSTEM, -r);
}

/* The record first: one that says "stopped" of a process that runs harms nobody, the other way round nobody would wake it. */
static void stop(struct work *w)
{
        if (!store(w, RECORD_STOPPED))
                return;
        int r = target_signal(w->pidfd, SIGSTOP);
        if (r == 0 && host_wait_stopped(w->order->pid, true, STOP_WAIT_MS)) {
                done(w);
                return;
        }
        if (r == 0) /* it hangs in the kernel, or somebody woke it */
                (void) target_signal(w->pidfd, SIGCONT);
        store_after(w, RECORD_CHECKPOINTED);
        if (r < 0)
                signal_failed(w, r);
        else if (is_dead(w))
                gone(w, WARDEN_FAILED);
        else
                say(w, WARDEN_FAILED, WARDEN_WHY_NOT_FROZEN, 0);
}

/* False: it does not run, and that is said. */
static bool wake(struct work *w)
{
        int r = target_signal(w->pidfd, SIGCONT);

        if (r < 0)
                signal_failed(w, r);
        else if (host_wait_stopped(w->order->pid, false, STOP_WAIT_MS))
                return true;
        else
                blocked(w, WARDEN_WHY_STANDS_STILL); /* somebody stops it again, or traces it */
        return false;
}

static void cont(struct work *w)
{
        if (!wake(w))
                return;
        store_after(w, RECORD_CHECKPOINTED);
        done(w);
}

/* ---- restore ---- */

static bool has_headroom(const struct work *w)
{
        uint64_t used_bytes;

        return look_used_bytes(w->record.device_uuid, &used_bytes) && used_bytes <= w->order->used_at_most_bytes;
}

static bool can_restore(struct work *w)
{
        if (memcmp(w->order->device_uuid, w->record.device_uuid, WARDEN_UUID_SIZE) != 0) {
                blocked(w, WARDEN_WHY_DEVICE);
                return false;
        }
        if (!open_driver(w))
                return false;
        bool stopped_by_us = w->record.step == RECORD_STOPPED;
        if (stopped_by_us ? host_is_frozen(w->place->cgroup_root, w->order->pid)
                          : host_stands_still(w->place->cgroup_root, w->order->pid)) {
                blocked(w, WARDEN_WHY_STANDS_STILL);
                return false;
        }
        if (!has_headroom(w)) {
                blocked(w, WARDEN_WHY_HEADROOM);
                return false;
        }
        return true;
}

static void restore(struct work *w)
{
        enum driver_state state;
        uint32_t code;

        if (!can_restore(w) || (w->record.step == RECORD_STOPPED && !wake(w)) || !store(w, RECORD_RESTORING) ||
            !call_and_probe(w, DRIVER_RESTORE, &code, &state))
                return;
        if (code == DRIVER_OK && state == DRIVER_LOCKED) {
                w->record.restored = true;
                w->record.hold = w->record.ending = false;
                store_after(w, RECORD_LOCKED);
                done(w);
        } else if (driver_cannot(code) != WARDEN_WHY_NONE && state == DRIVER_CHECKPOINTED) {
                store_after(w, RECORD_CHECKPOINTED);
                blocked(w, driver_cannot(code));
        } else {
                fail_for_good(w);
        }
}

/* ---- unlock ---- */

static void unlock(struct work *w)
{
        enum driver_state state;
        uint32_t code;

        if (!can_ask(w) || !store(w, RECORD_UNLOCKING) || !call_and_probe(w, DRIVER_UNLOCK, &code, &state))
                return;
        follow(w, state);
        if (code == DRIVER_OK && state == DRIVER_RUNNING)
                done(w);
        else if (driver_cannot(code) != WARDEN_WHY_NONE && state == DRIVER_LOCKED)
                blocked(w, driver_cannot(code));
        else
                failed(w);
}

/* ---- what comes before each of them ---- */

/* Takes hold of the process; false: it is not there, not to be seen, or another one, and that is said. */
static bool take_hold(struct work *w)
{
        const struct warden_order *o = w->order;
        const struct target *t = &w->target;

        target_open(o->pid, &w->target, &w->pidfd);
        if (t->gone || (t->seen && t->start_ticks != o->start_ticks))
                gone(w, WARDEN_BLOCKED);
        else if (t->error || t->no_pidfd)
                say(w, WARDEN_BLOCKED, WARDEN_WHY_SYSTEM, t->error ? t->error : ENOSYS);
        else if (!t->seen)
                blocked(w, WARDEN_WHY_UNSEEN);
        else if (t->real_uid != (uid_t) o->owner_uid)
                blocked(w, WARDEN_WHY_OTHER_OWNER);
        else if (o->pidfd_inode != 0 && t->pidfd_inode != o->pidfd_inode)
                blocked(w, WARDEN_WHY_RECYCLED);
        else
                return true;
        return false;
}

static bool read_record(struct work *w)
{
        struct error err = { 0 };
        int r = parked_read(w->place->parked, w->order->pid, w->order->start_ticks, &w->record, &err);

        if (r == -ENOENT)
                return true;
        bool other = r == 0 && (w->record.uid != (uint32_t) w->target.real_uid ||
                                (w->record.pidfd_inode != 0 && w->record.pidfd_inode != w->target.pidfd_inode));
        if (r == 0 && !other)
                return true;
        log_error("event=bad-record pid=%" PRIu32 " words=\"%s\"", w->order->pid,
                  other ? "of another process" : err.msg);
        say(w, WARDEN_BLOCKED, WARDEN_WHY_RECORD, err.code);
        return false;
}

/* Somebody ended in the middle of a call: the driver tells how it went. Whoever is in the middle of one was never stopped by us. */
static bool settle(struct work *w)
{
        enum driver_state state = DRIVER_FAILED;

        if (!record_step_is_on_its_way(w->record.step))
                return true;
        if (!can_ask(w))
                return false;
        uint32_t code = driver_state(&w->driver, w->order->pid, &state);
        wait_for_death(w, code);
        if (is_dead(w)) {
                gone(w, WARDEN_BLOCKED);
                return false;
        }
        if (code != DRIVER_OK) {
                enum warden_why why = driver_cannot(code);
                w->answer.driver_code = code;
                blocked(w, why == WARDEN_WHY_NONE ? WARDEN_WHY_CANNOT_PROCESS : why);
                return false;
        }
        log_info("event=step-settled pid=%" PRIu32 " step=%s state=%d", w->order->pid, record_step_name(w->record.step),
                 (int) state);
        w->record.restored |= w->record.step == RECORD_RESTORING && state == DRIVER_LOCKED;
        follow(w, state);
        return read_record(w);
}

#define FROM(step) (1U << RECORD_##step)

/* Each verb: from which steps it goes on, and what it does. */
static const struct {
        uint32_t from;
        void (*act)(struct work *w);
} verbs[WARDEN_VERB_N] = {
        [WARDEN_LOCK] = { FROM(NO_STEP) | FROM(RESTORED), lock },
        [WARDEN_HOLD] = { FROM(NO_STEP) | FROM(RESTORED), lock },
        [WARDEN_CHECKPOINT] = { FROM(LOCKED) | FROM(HELD), checkpoint },
        [WARDEN_UNLOCK] = { FROM(LOCKED) | FROM(HELD), unlock },
        [WARDEN_STOP] = { FROM(CHECKPOINTED), stop },
        [WARDEN_CONT] = { FROM(STOPPED), cont },
        [WARDEN_RESTORE] = { FROM(CHECKPOINTED) | FROM(STOPPED), restore },
};

static bool begin(struct work *w)
{
        int r = parked_lock(w->place->parked, w->order->pid, w->how == STEP_PATIENT, &w->lock, NULL);

        if (r < 0) {
                say(w, WARDEN_BLOCKED, r == -EBUSY ? WARDEN_WHY_BUSY : WARDEN_WHY_RECORD, r == -EBUSY ? 0 : -r);
                return false;
        }
        if (!take_hold(w) || !read_record(w) || !settle(w))
                return false;
        if ((verbs[w->order->verb].from & 1U << w->record.step) != 0)
                return true;
        blocked(w, w->record.step == RECORD_FAILED ? WARDEN_WHY_FINAL : WARDEN_WHY_STATE);
        return false;
}

struct warden_answer step_run(const struct step_place *place, const struct warden_order *order, enum step_how how)
{
        struct work w = { .place = place, .order = order, .how = how, .pidfd = -1, .lock = -1 };

        w.answer.order_id = order->order_id;
        /* Whoever waited may find that there is nothing left to let go. */
        if (begin(&w) && (how != STEP_PATIENT || w.record.step == RECORD_HELD))
                verbs[order->verb].act(&w);
        closep(&w.pidfd);
        closep(&w.lock);
        return w.answer;
}
