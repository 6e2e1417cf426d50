/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/policy.h"
#include <signal.h>

/* ---- who was asked to end ---- */

static bool is_same(const struct grace_entry *e, const struct target *t)
{
        return e->pid == t->pid && e->start_ticks == t->start_ticks && e->pidfd_inode == t->pidfd_inode;
}

const struct grace_entry *grace_note(struct grace_table *g, const struct target *t, uint64_t cgroup_id, uint64_t now_ms)
{
        struct grace_entry *place = &g->entries[0];

        for (size_t i = 0; i < GRACE_MAX; i++) {
                struct grace_entry *e = &g->entries[i];
                if (e->pid != 0 && is_same(e, t) && e->cgroup_id == cgroup_id)
                        return e;
                if (place->pid != 0 && (e->pid == 0 || e->term_ms < place->term_ms))
                        place = e;
        }
        *place = (struct grace_entry){ .pid = t->pid,
                                       .owner_uid = t->real_uid,
                                       .start_ticks = t->start_ticks,
                                       .pidfd_inode = t->pidfd_inode,
                                       .cgroup_id = cgroup_id,
                                       .term_ms = now_ms };
        return place;
}

const struct grace_entry *grace_forget(struct grace_table *g, uint32_t owner_uid, uint32_t pid)
{
        for (size_t i = 0; i < GRACE_MAX; i++) {
                if (g->entries[i].pid == 0 || g->entries[i].owner_uid != owner_uid || (pid && g->entries[i].pid != pid))
                        continue;
                g->entries[i] = (struct grace_entry){ 0 };
                return &g->entries[i];
        }
        return NULL;
}

static bool grace_is_over(const struct grace_table *g, const struct target *t, uint64_t cgroup_id, uint64_t grace_ms,
                          uint64_t now_ms)
{
        for (size_t i = 0; i < GRACE_MAX; i++) {
                const struct grace_entry *e = &g->entries[i];
                if (e->pid == 0 || (cgroup_id ? e->cgroup_id != cgroup_id : !is_same(e, t)))
                        continue;
                if (now_ms >= e->term_ms && now_ms - e->term_ms >= grace_ms)
                        return true;
        }
        return false;
}

/* ---- the checks ---- */

static bool signal_is_known(uint32_t signal)
{
        return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGKILL || signal == SIGSTOP ||
               signal == SIGCONT;
}

static enum warden_why check_order(const struct warden_order *o)
{
        if (o->verb == WARDEN_SIGNAL)
                return signal_is_known(o->signal) ? WARDEN_WHY_NONE : WARDEN_WHY_SIGNAL;
        return o->verb > WARDEN_VERB_NONE && o->verb < WARDEN_VERB_N ? WARDEN_WHY_NONE : WARDEN_WHY_VERB;
}

/* Is it there, is it the one that was audited, and do we see enough of it to say more? */
static enum warden_why check_identity(const struct warden_order *o, const struct target *t)
{
        if (t->no_pidfd)
                return WARDEN_WHY_KERNEL_TOO_OLD;
        if (t->gone)
                return WARDEN_WHY_GONE;
        if (t->error)
                return WARDEN_WHY_SYSTEM;
        if (!t->seen || t->pid != o->pid)
                return WARDEN_WHY_UNSEEN;
        if (t->kernel_thread)
                return WARDEN_WHY_PROTECTED_KERNEL;
        if (t->start_ticks != o->start_ticks || (o->pidfd_inode != 0 && t->pidfd_inode != o->pidfd_inode))
                return WARDEN_WHY_RECYCLED;
        return t->program_known || t->exiting ? WARDEN_WHY_NONE : WARDEN_WHY_UNSEEN;
}

static bool needs_grace(const struct warden_order *o)
{
        return o->verb == WARDEN_KILL_TREE || (o->verb == WARDEN_SIGNAL && o->signal == SIGKILL);
}

enum warden_why policy_check(const struct settings *s, const struct policy_facts *f)
{
        const struct warden_order *o = f->order;
        bool own;

        if (o->pid == 1)
                return WARDEN_WHY_PROTECTED_INIT;
        for (size_t i = 0; i < f->n_kin; i++)
                if (f->kin[i] == o->pid)
                        return WARDEN_WHY_PROTECTED_LESSOR;
        enum warden_why why = check_order(o);
        if (why == WARDEN_WHY_NONE)
                why = check_identity(o, f->target);
        if (why != WARDEN_WHY_NONE)
                return why;
        if (o->verb == WARDEN_LOOK) /* nothing is done to it */
                return f->target->real_uid == o->owner_uid ? WARDEN_WHY_NONE : WARDEN_WHY_OTHER_OWNER;
        if (protect_covers(f->protect, f->target, &own))
                return own ? WARDEN_WHY_PROTECTED_LESSOR : WARDEN_WHY_PROTECTED_PROGRAM;
        if (f->target->real_uid != o->owner_uid)
                return WARDEN_WHY_OTHER_OWNER;
        if (!settings_allow_uid(s, o->owner_uid))
                return WARDEN_WHY_UID_NOT_ALLOWED;
        /* A whole lease may be ended when one of its processes was asked as that; a single process when it was asked itself. */
        uint64_t cgroup_id = o->verb == WARDEN_KILL_TREE ? o->cgroup_id : 0;
        if (needs_grace(o) && !grace_is_over(f->grace, f->target, cgroup_id, s->grace_min_ms, f->now_ms))
                return WARDEN_WHY_NO_GRACE;
        return WARDEN_WHY_NONE;
}
