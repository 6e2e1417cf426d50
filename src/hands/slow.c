/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/slow.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "hands/cgroup.h"

struct warden_answer slow_answer(const struct warden_order *o, enum warden_result result, enum warden_why why,
                                 int error)
{
        return (struct warden_answer){ .order_id = o->order_id, .result = result, .why = why, .error = error };
}

struct warden_answer slow_not_signalled(const struct warden_order *o, enum warden_result result, int error)
{
        enum warden_why why = error == -ESRCH    ? WARDEN_WHY_GONE
                              : error == -ENOSYS ? WARDEN_WHY_KERNEL_TOO_OLD
                                                 : WARDEN_WHY_SYSTEM;
        return slow_answer(o, result, why, -error);
}

static struct warden_answer done(const struct slow *s)
{
        return slow_answer(s->order, WARDEN_DONE, WARDEN_WHY_NONE, 0);
}

/* ---- the members of a cgroup ---- */

/* Whoever lives in the folder must be somebody whom the order's owner could have had signalled one by one. */
static enum warden_why check_member(const struct slow *s, uint32_t pid, int *ret_pidfd)
{
        struct warden_order one = *s->order;
        struct target t;

        target_open(pid, &t, ret_pidfd);
        one.verb = WARDEN_FREEZE; /* the grace is the lease's, and was checked */
        one.pid = pid;
        one.start_ticks = t.start_ticks;
        one.pidfd_inode = 0;
        const struct policy_facts facts = { &one, &t, s->protect, s->kin, s->n_kin, NULL, 0 };
        enum warden_why why = pid == 0 ? WARDEN_WHY_UNSEEN : policy_check(s->settings, &facts);
        if (why == WARDEN_WHY_PROTECTED_KERNEL) { /* works for a virtual machine, takes no signal, ends with it */
                closep(ret_pidfd);
                *ret_pidfd = -1;
                why = WARDEN_WHY_GONE;
        }
        if (why == WARDEN_WHY_GONE)
                return WARDEN_WHY_NONE;
        errno = t.error;
        return why == WARDEN_WHY_NONE || why == WARDEN_WHY_SYSTEM ? why : WARDEN_WHY_CGROUP_HAS_OTHERS;
}

static enum warden_why only_check(void *ctx, uint32_t pid)
{
        auto_close int pidfd = -1;
        return check_member(ctx, pid, &pidfd);
}

static enum warden_why check_and_kill(void *ctx, uint32_t pid)
{
        auto_close int pidfd = -1;
        enum warden_why why = check_member(ctx, pid, &pidfd);

        if (why != WARDEN_WHY_NONE || pidfd < 0)
                return why;
        int r = target_signal(pidfd, SIGKILL);
        errno = -r;
        return r == 0 || r == -ESRCH ? WARDEN_WHY_NONE : WARDEN_WHY_SYSTEM;
}

static enum warden_why each_member (const struct slow *s, enum warden_why(*each)(void *ctx, uint32_t pid))
{
        struct slow copy = *s;
        return cgroup_each(s->cgroup, s->settings->look_ms, each, &copy);
}

/* ---- kill ---- */

/* Without cgroup.kill: while everything stands still nobody can be born, so one look finds them all. */
static enum warden_why freeze_and_kill(const struct slow *s)
{
        int r = cgroup2_write(s->cgroup, "cgroup.freeze", "1");
        if (r < 0) {
                errno = -r;
                return WARDEN_WHY_SYSTEM;
        }
        /* One that hangs in the kernel never stands still; the others are killed all the same. */
        (void) cgroup2_wait(s->cgroup, "frozen", '1', s->settings->kill_wait_ms);
        enum warden_why why = each_member (s, only_check);
        if (why == WARDEN_WHY_NONE)
                why = each_member (s, check_and_kill);
        int code = errno;
        (void) cgroup2_write(s->cgroup, "cgroup.freeze", "0");
        errno = code;
        return why;
}

static enum warden_why kill_round(const struct slow *s)
{
        /* First of all, and not only while they stand still: what may not be ended is not stopped for it either. */
        enum warden_why why = each_member (s, only_check);
        bool too_many = why == WARDEN_WHY_SYSTEM && errno == ETIME; /* born faster than they are looked at */

        if (why != WARDEN_WHY_NONE && !too_many)
                return why;
        if (too_many || s->settings->no_cgroup_kill || !cgroup2_has_kill(s->cgroup))
                return freeze_and_kill(s);
        int r = cgroup2_write(s->cgroup, "cgroup.kill", "1");
        errno = -r;
        return r == 0 ? WARDEN_WHY_NONE : WARDEN_WHY_SYSTEM;
}

static struct warden_answer kill_cgroup(const struct slow *s)
{
        for (int round = 0; round < SLOW_KILL_ROUNDS; round++) {
                enum warden_why why = kill_round(s);
                if (why != WARDEN_WHY_NONE)
                        return slow_answer(s->order, round == 0 ? WARDEN_BLOCKED : WARDEN_FAILED, why,
                                           why == WARDEN_WHY_SYSTEM ? errno : 0);
                int r = cgroup2_wait(s->cgroup, "populated", '0', s->settings->kill_wait_ms);
                if (r == 1 || r == -ENOENT || r == -ENODEV) /* its folder may be tidied away the moment it is empty */
                        return done(s);
                if (r < 0)
                        return slow_answer(s->order, WARDEN_FAILED, WARDEN_WHY_SYSTEM, -r);
        }
        return slow_answer(s->order, WARDEN_FAILED, WARDEN_WHY_UNKILLABLE, 0);
}

static struct warden_answer kill_one(const struct slow *s)
{
        for (int round = 0; round < SLOW_KILL_ROUNDS; round++) {
                struct pollfd p = { .fd = s->pidfd, .events = POLLIN };
                int r = target_signal(s->pidfd, SIGKILL);
                if (r == -ESRCH)
                        return done(s);
                if (r < 0)
                        return slow_not_signalled(s->order, round == 0 ? WARDEN_BLOCKED : WARDEN_FAILED, r);
                (void) poll(&p, 1, (int) s->settings->kill_wait_ms);
                if (target_is_dead(s->pidfd))
                        return done(s);
        }
        return slow_answer(s->order, WARDEN_FAILED, WARDEN_WHY_UNKILLABLE, 0);
}

/* ---- freeze and thaw ---- */

static struct warden_answer freeze_cgroup(const struct slow *s)
{
        enum warden_why why = each_member (s, only_check);
        if (why != WARDEN_WHY_NONE)
                return slow_answer(s->order, WARDEN_BLOCKED, why, why == WARDEN_WHY_SYSTEM ? errno : 0);
        int r = cgroup2_write(s->cgroup, "cgroup.freeze", "1");
        if (r < 0)
                return slow_answer(s->order, WARDEN_BLOCKED, WARDEN_WHY_SYSTEM, -r);
        r = cgroup2_wait(s->cgroup, "frozen", '1', s->settings->freeze_wait_ms);
        if (r == 1)
                return done(s);
        (void) cgroup2_write(s->cgroup, "cgroup.freeze", "0");
        return slow_answer(s->order, WARDEN_FAILED, r < 0 ? WARDEN_WHY_SYSTEM : WARDEN_WHY_NOT_FROZEN, r < 0 ? -r : 0);
}

static struct warden_answer freeze_one(const struct slow *s)
{
        uint64_t end_ms = clock_now_ms() + s->settings->freeze_wait_ms;
        struct target t;
        int r = target_signal(s->pidfd, SIGSTOP);

        if (r < 0)
                return slow_not_signalled(s->order, WARDEN_BLOCKED, r);
        do {
                struct pollfd p = { .fd = s->pidfd, .events = POLLIN };
                if (poll(&p, 1, SLOW_LOOK_MS) > 0)
                        return slow_answer(s->order, WARDEN_FAILED, WARDEN_WHY_GONE, 0);
                if (target_look(s->order->pid, &t) && (t.state == 'T' || t.state == 't'))
                        return done(s);
        } while (clock_now_ms() < end_ms);
        (void) target_signal(s->pidfd, SIGCONT);
        return slow_answer(s->order, WARDEN_FAILED, WARDEN_WHY_NOT_FROZEN, 0);
}

struct warden_answer slow_thaw(const struct slow *s)
{
        int r = s->cgroup >= 0 ? cgroup2_write(s->cgroup, "cgroup.freeze", "0") : target_signal(s->pidfd, SIGCONT);

        return r == 0 ? done(s) : slow_not_signalled(s->order, WARDEN_BLOCKED, r);
}

bool slow_is(enum warden_verb verb)
{
        return verb == WARDEN_FREEZE || verb == WARDEN_KILL_TREE;
}

struct warden_answer slow_run(const struct slow *s)
{
        if (s->order->verb == WARDEN_FREEZE)
                return s->cgroup >= 0 ? freeze_cgroup(s) : freeze_one(s);
        return s->cgroup >= 0 ? kill_cgroup(s) : kill_one(s);
}
