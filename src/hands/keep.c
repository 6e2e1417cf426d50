/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/keep.h"
#include <errno.h>
#include <signal.h>
#include "base/cleanup.h"
#include "hands/cgroup.h"
#include "hands/target.h"

struct walk {
        const struct warden_order *order;
        int cgroup_root;
        parked_fn each;
        void *ctx;
};

static bool reaches(const struct walk *walk, uint32_t pid, uint64_t start_ticks)
{
        const struct warden_order *o = walk->order;
        auto_close int pidfd = -1;
        auto_close int folder = -1;
        struct target t;

        if (o->verb != WARDEN_KILL_TREE || o->cgroup_id == 0)
                return pid == o->pid && start_ticks == o->start_ticks &&
                       (o->verb == WARDEN_SIGNAL || o->cgroup_id == 0);
        target_open(pid, &t, &pidfd);
        return t.seen && t.start_ticks == start_ticks &&
               cgroup_find(walk->cgroup_root, &t, o->cgroup_id, (uid_t) o->owner_uid, &folder) == WARDEN_WHY_NONE;
}

static bool each_reached(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        const struct walk *walk = ctx;

        if (error == -ESTALE || !reaches(walk, pid, start_ticks))
                return true;
        return walk->each(walk->ctx, pid, start_ticks, record, error);
}

int keep_each(int parked, int cgroup_root, const struct warden_order *order, parked_fn each, void *ctx)
{
        struct walk walk = { order, cgroup_root, each, ctx };

        return parked_each(parked, each_reached, &walk);
}

bool keep_needs_checkpoint(const struct record *record)
{
        return record->restored && !record_step_is_parked(record->step) && record->step != RECORD_FAILED;
}

struct check {
        enum warden_why why;
        bool checkpoint_first;
};

static bool look(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        struct check *check = ctx;

        (void) pid;
        (void) start_ticks;
        if (error < 0)
                check->why = WARDEN_WHY_RECORD;
        else if (record_step_is_parked(record->step) && !record->ending)
                check->why = WARDEN_WHY_PARKED;
        check->checkpoint_first |= error == 0 && keep_needs_checkpoint(record);
        return check->why == WARDEN_WHY_NONE;
}

enum warden_why keep_check(int parked, int cgroup_root, const struct warden_order *order, bool *ret_checkpoint_first)
{
        struct check check = { 0 };

        *ret_checkpoint_first = false;
        if (parked < 0 || warden_verb_parks(order->verb))
                return WARDEN_WHY_NONE;
        int r = keep_each(parked, cgroup_root, order, look, &check);
        bool kills = order->verb == WARDEN_KILL_TREE || (order->verb == WARDEN_SIGNAL && order->signal == SIGKILL);
        *ret_checkpoint_first = kills && check.checkpoint_first;
        return r < 0 ? WARDEN_WHY_RECORD : check.why;
}
