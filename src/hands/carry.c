/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/carry.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "hands/cgroup.h"
#include "hands/checkpointer.h"
#include "hands/keep.h"
#include "hands/slow.h"

/* ---- small facts ---- */

static void add_kin(uint32_t *kin, size_t *n, uint32_t pid)
{
        struct target t;

        for (; pid > 0 && *n < KIN_MAX; pid = target_look(pid, &t) ? t.ppid : 0)
                kin[(*n)++] = pid;
}

static bool same_subject(const struct warden_order *a, const struct warden_order *b)
{
        bool both_park = warden_verb_parks(a->verb) && warden_verb_parks(b->verb);

        return (a->cgroup_id != 0 && a->cgroup_id == b->cgroup_id && !both_park) ||
               (a->pid == b->pid && a->start_ticks == b->start_ticks);
}

static void log_answer(const struct warden_order *o, const struct warden_answer *a)
{
        log_info("event=order id=%" PRIu64 " verb=%s signal=%u pid=%u start=%" PRIu64 " owner=%u cgroup=%" PRIu64
                 " reason=%u result=%s why=%s errno=%d",
                 o->order_id, warden_verb_name(o->verb), o->signal, o->pid, o->start_ticks, o->owner_uid, o->cgroup_id,
                 o->reason, warden_result_name(a->result), warden_why_name(a->why), a->error);
}

/* ---- helpers ---- */

/* In the child. It holds nothing of the brain's, and no signal of a terminal or a service manager stops it halfway. */
__attribute__((noreturn)) static void be_helper(struct carry *c, size_t i, const struct slow *work, int go)
{
        struct book_slot *slot = &c->book.slots[i];
        sigset_t all;
        char byte;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, NULL);
        for (size_t k = 0; k < BOOK_HELPERS_MAX; k++)
                closep(&c->helper_pidfds[k]);
        closep(&c->peer);
        closep(&c->listener);
        closep(&c->checkpointer);
        if (read(go, &byte, 1) != 1)
                _exit(EXIT_FAILURE); /* the warden ended before the record was stored: nothing was done */
        closep(&go);
        book_reread(&c->book, i); /* our own name is in it by now */
        slot->answer = slow_run(work);
        slot->answer.kept = true;
        slot->state = BOOK_ENDED;
        if (book_store(&c->book, i) < 0)
                _exit(EXIT_FAILURE);
        _exit(EXIT_SUCCESS);
}

/* Everything that must be known of a child before it may begin; 0 or a negative errno. */
static int record_helper(struct carry *c, size_t i, pid_t child, const struct warden_order *order)
{
        struct book_slot *slot = &c->book.slots[i];
        struct target t;
        int pidfd;

        target_open((uint32_t) child, &t, &pidfd); /* not reaped: nobody else can have its number */
        if (pidfd < 0 || !t.seen) {
                closep(&pidfd);
                return t.error ? -t.error : -ESRCH;
        }
        *slot = (struct book_slot){ .state = BOOK_RUNNING,
                                    .helper_pid = (uint32_t) child,
                                    .helper_start_ticks = t.start_ticks,
                                    .order = *order };
        int r = book_store(&c->book, i);
        if (r < 0) {
                closep(&pidfd);
                *slot = (struct book_slot){ 0 };
                return r;
        }
        c->helper_pidfds[i] = pidfd;
        return 0;
}

static int start_helper(struct carry *c, size_t i, const struct slow *work)
{
        int go[2];

        if (pipe2(go, O_CLOEXEC) < 0)
                return -errno;
        auto_close int wait_end = go[0];
        auto_close int go_end = go[1];
        pid_t child = fork();
        if (child == 0) {
                closep(&go_end);
                be_helper(c, i, work, take_fd(wait_end));
        }
        int r = child < 0 ? -errno : record_helper(c, i, child, work->order);
        if (r == 0)
                (void) !write(go_end, "g", 1); /* fails only if it died: its pidfd says so */
        if (r < 0 && child > 0) {
                closep(&go_end);
                go_end = -1;
                (void) waitpid(child, NULL, 0); /* sees the end of the pipe and goes */
        }
        return r;
}

/* The same with a helper of lessor-checkpoint's. */
static int start_checkpoint(struct carry *c, size_t i, const struct warden_order *order)
{
        int pid = checkpointer_prepare(c->checkpointer, (uint32_t) i);
        int r = pid < 0 ? pid : record_helper(c, i, pid, order);

        if (pid > 0)
                (void) checkpointer_say(c->checkpointer, r < 0 ? CHECKPOINTER_CANCEL : CHECKPOINTER_GO, (uint32_t) i);
        if (r == -EPIPE) {
                log_error("event=lessor-checkpoint-ended");
                closep(&c->checkpointer);
                c->checkpointer = -1;
        }
        return r;
}

static void forget_grace(struct carry *c, const struct warden_order *o)
{
        bool parks = warden_verb_parks(o->verb);
        const struct grace_entry *e;

        if (!parks && o->verb != WARDEN_FREEZE && o->signal != SIGSTOP)
                return;
        while ((e = grace_forget(&c->book.grace, o->owner_uid, parks ? o->pid : 0)))
                book_store_grace(&c->book, e);
}

/* False: somebody works on that already. *ret is BOOK_HELPERS_MAX when all places are taken. */
static bool find_place(const struct carry *c, const struct warden_order *o, size_t *ret)
{
        *ret = BOOK_HELPERS_MAX;
        for (size_t i = BOOK_HELPERS_MAX; i-- > 0;) {
                const struct book_slot *slot = &c->book.slots[i];
                if (slot->state == BOOK_RUNNING && same_subject(&slot->order, o))
                        return false;
                if (slot->state == BOOK_FREE)
                        *ret = i;
        }
        return true;
}

static enum carry_said check_and_act(struct carry *c, const struct warden_order *o, struct warden_answer *ret);

/* Its processes are checkpointed now: the order again, from the first check on, by another helper where it takes one. */
static void carry_on(struct carry *c, size_t i)
{
        struct book_slot *slot = &c->book.slots[i];

        if (check_and_act(c, &slot->order, &slot->answer) == CARRY_HELD) {
                *slot = (struct book_slot){ 0 };
        } else {
                slot->state = BOOK_ENDED;
                slot->answer.kept = true;
        }
        if (book_store(&c->book, i) < 0)
                log_error("event=record-not-stored order=%" PRIu64, slot->order.order_id);
}

void carry_helper_ended(struct carry *c, size_t i)
{
        struct book_slot *slot = &c->book.slots[i];

        closep(&c->helper_pidfds[i]);
        c->helper_pidfds[i] = -1;
        (void) waitpid((pid_t) slot->helper_pid, NULL, WNOHANG); /* one of before is not our child: init's */
        struct book_slot before = *slot;
        book_reread(&c->book, i);
        if (slot->state == BOOK_PREPARED) {
                carry_on(c, i);
        } else if (slot->state != BOOK_ENDED) {
                *slot = before;
                slot->state = BOOK_ENDED;
                slot->answer = (struct warden_answer){
                        .order_id = slot->order.order_id, .result = WARDEN_FAILED, .why = WARDEN_WHY_LOST, .kept = true
                };
                if (book_store(&c->book, i) < 0)
                        log_error("event=record-not-stored order=%" PRIu64, slot->order.order_id);
        }
        if (slot->state == BOOK_FREE)
                return;
        forget_grace(c, &slot->order); /* whoever was asked while it began */
        log_answer(&slot->order, &slot->answer);
}

static void adopt(struct carry *c, size_t i)
{
        const struct book_slot *slot = &c->book.slots[i];
        struct target t;
        int pidfd;

        if (slot->state != BOOK_RUNNING)
                return;
        target_open(slot->helper_pid, &t, &pidfd);
        if (pidfd >= 0 && t.seen && t.start_ticks == slot->helper_start_ticks) {
                log_info("event=helper-adopted order=%" PRIu64 " pid=%u", slot->order.order_id, slot->helper_pid);
                c->helper_pidfds[i] = pidfd;
                return;
        }
        closep(&pidfd);
        carry_helper_ended(c, i);
}

/* Without the program, or where the folder cannot be, there is no parking; leases alone need none. */
static int open_parking(struct carry *c, const struct carry_where *where, struct error *err)
{
        char program[sizeof(c->own_folder) + 32];

        int r = parked_open(where->parked, where->reader, &c->parked, err);
        if (r == 0) {
                (void) snprintf(program, sizeof(program), "%s/lessor-checkpoint", c->own_folder);
                r = checkpointer_start(program, c->book.helpers_fd, c->parked, where->system, &c->checkpointer, err);
        }
        if (r != -ENOENT)
                return r;
        log_warning("event=no-parking words=\"%s\"", err->msg);
        return 0;
}

int carry_open(struct carry *c, const struct settings *settings, const struct carry_where *where, struct error *err)
{
        memset(c, 0, sizeof(*c));
        c->settings = settings;
        c->cgroup_root = cgroup2_open_root();
        c->peer = c->listener = c->parked = c->checkpointer = -1;
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                c->helper_pidfds[i] = -1;
        int r = own_folder_of_program(c->own_folder, sizeof(c->own_folder), err);
        if (r == 0)
                r = book_open(&c->book, where->folder, err);
        if (r == 0)
                r = open_parking(c, where, err);
        for (size_t i = 0; r == 0 && i < BOOK_HELPERS_MAX; i++)
                adopt(c, i);
        return r;
}

void carry_settled(struct carry *c, uint64_t order_id)
{
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++) {
                struct book_slot *slot = &c->book.slots[i];
                if (slot->state != BOOK_ENDED || slot->order.order_id != order_id)
                        continue;
                *slot = (struct book_slot){ 0 };
                if (book_store(&c->book, i) < 0)
                        log_error("event=record-not-stored order=%" PRIu64, order_id);
        }
}

void carry_state(const struct carry *c, struct warden_state *ret)
{
        *ret = (struct warden_state){ 0 };
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                ret->n_running += c->book.slots[i].state == BOOK_RUNNING;
        if (c->cgroup_root >= 0)
                ret->can |= WARDEN_CAN_CGROUP | (c->settings->no_cgroup_kill ? 0 : WARDEN_CAN_CGROUP_KILL);
#ifdef __x86_64__ /* elsewhere the driver has none */
        ret->can |= c->checkpointer >= 0 ? WARDEN_CAN_CHECKPOINT : 0;
#endif
}

void carry_let_go(struct carry *c)
{
        if (c->checkpointer >= 0)
                (void) checkpointer_say(c->checkpointer, CHECKPOINTER_LET_GO, 0);
}

/* ---- an order ---- */

static struct warden_answer send_signal(struct carry *c, const struct warden_order *o, const struct target *t,
                                        int pidfd)
{
        int r = target_signal(pidfd, (int) o->signal);

        if (r < 0)
                return slow_not_signalled(o, WARDEN_BLOCKED, r);
        if (o->signal == SIGTERM) { /* one that stands still does not hear it, and its grace is none */
                cgroup_thaw_above(c->cgroup_root, t, (uid_t) o->owner_uid);
                if (t->state == 'T')
                        (void) target_signal(pidfd, SIGCONT);
                book_store_grace(&c->book, grace_note(&c->book.grace, t, o->cgroup_id, clock_now_ms()));
        }
        return slow_answer(o, WARDEN_DONE, WARDEN_WHY_NONE, 0);
}

/* The checks are through; @work holds the process and its folder. */
static enum carry_said act(struct carry *c, const struct target *t, const struct slow *work, bool checkpoint,
                           struct warden_answer *ret)
{
        const struct warden_order *o = work->order;
        size_t place;

        if (checkpoint && c->checkpointer < 0) {
                *ret = slow_answer(o, WARDEN_BLOCKED, WARDEN_WHY_VERB, 0);
                return CARRY_ANSWERED;
        }
        if (!find_place(c, o, &place) || (place == BOOK_HELPERS_MAX && (checkpoint || slow_is(o->verb)))) {
                *ret = slow_answer(o, WARDEN_BLOCKED, WARDEN_WHY_BUSY, 0);
                return CARRY_ANSWERED;
        }
        forget_grace(c, o);
        if (checkpoint) {
                int r = start_checkpoint(c, place, o);
                if (r == 0)
                        return CARRY_HELD;
                *ret = slow_answer(o, WARDEN_BLOCKED, WARDEN_WHY_SYSTEM, -r);
        } else if (o->verb == WARDEN_SIGNAL) {
                *ret = send_signal(c, o, t, work->pidfd);
        } else if (o->verb == WARDEN_LOOK) {
                *ret = slow_answer(o, WARDEN_DONE, WARDEN_WHY_NONE, 0);
                ret->program_dev = t->program.dev;
                ret->program_inode = t->program.inode;
                target_file(t, c->path, &ret->file_dev, &ret->file_inode);
                (void) snprintf(c->path, sizeof(c->path), "%s", t->program_path);
                if (target_is_dead(work->pidfd))
                        *ret = slow_answer(o, WARDEN_BLOCKED, WARDEN_WHY_GONE, 0);
        } else if (o->verb == WARDEN_THAW) {
                *ret = slow_thaw(work);
        } else {
                int r = start_helper(c, place, work);
                if (r == 0)
                        return CARRY_HELD;
                *ret = slow_answer(o, WARDEN_BLOCKED, WARDEN_WHY_SYSTEM, -r);
        }
        return CARRY_ANSWERED;
}

static enum carry_said check_and_act(struct carry *c, const struct warden_order *o, struct warden_answer *ret)
{
        auto_close int pidfd = -1;
        auto_close int cgroup = -1;
        uint32_t kin[KIN_MAX];
        size_t n_kin = 0;
        bool first = false;
        struct target t;

        target_open(o->pid, &t, &pidfd);
        protect_look(&c->protect, c->own_folder, &c->settings->protect);
        add_kin(kin, &n_kin, (uint32_t) getpid());
        add_kin(kin, &n_kin, c->brain_pid);
        const struct policy_facts facts = { o, &t, &c->protect, kin, n_kin, &c->book.grace, clock_now_ms() };
        enum warden_why why = policy_check(c->settings, &facts);
        if (why == WARDEN_WHY_NONE && o->cgroup_id != 0)
                why = cgroup_find(c->cgroup_root, &t, o->cgroup_id, (uid_t) o->owner_uid, &cgroup);
        if (why == WARDEN_WHY_NONE)
                why = keep_check(c->parked, c->cgroup_root, o, &first);
        if (why != WARDEN_WHY_NONE) {
                *ret = slow_answer(o, WARDEN_BLOCKED, why, t.error);
                return CARRY_ANSWERED;
        }
        const struct slow work = { c->settings, o, &c->protect, kin, n_kin, pidfd, cgroup };
        return act(c, &t, &work, first || warden_verb_parks(o->verb), ret);
}

enum carry_said carry_order(struct carry *c, const struct warden_order *o, struct warden_answer *ret)
{
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++) {
                const struct book_slot *slot = &c->book.slots[i];
                if (slot->state == BOOK_FREE || slot->order.order_id != o->order_id)
                        continue;
                /* A brain whose journal began anew counts from 1 again: that is another order. */
                bool same = slot->order.verb == o->verb && same_subject(&slot->order, o);
                *ret = same ? slot->answer : slow_answer(o, WARDEN_BLOCKED, WARDEN_WHY_BUSY, 0);
                return same && slot->state != BOOK_ENDED ? CARRY_HELD : CARRY_ANSWERED;
        }
        /* Some ten orders park one process and thaw it; they have a bucket of their own, or a tree could not be ended meanwhile. */
        bool many = warden_verb_parks(o->verb) || o->verb == WARDEN_LOOK;
        uint32_t times = many ? 10 : 1;
        struct rate *rate = many ? &c->park_rate : &c->rate;
        if (!rate_take(rate, c->settings->rate_per_s * times, c->settings->burst * times, clock_now_ms())) {
                c->n_refused_for_rate++; /* a line for each would only move the flood to the log */
                *ret = slow_answer(o, WARDEN_BLOCKED, WARDEN_WHY_RATE, 0);
                return CARRY_ANSWERED;
        }
        if (c->n_refused_for_rate > 0)
                log_warning("event=orders-refused why=rate n=%u", c->n_refused_for_rate);
        c->n_refused_for_rate = 0;
        enum carry_said said = check_and_act(c, o, ret);
        if (said == CARRY_ANSWERED)
                log_answer(o, ret);
        return said;
}
