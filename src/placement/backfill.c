/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/backfill.h"

#define NOT_TAKEN UINT32_MAX /* of a member whose node had no room after all: somebody ran longer than he said */

bool backfill_init(struct backfill *backfill, struct cluster *cluster, const struct topology *topology, uint32_t jobs,
                   struct arena *arena)
{
        *backfill = (struct backfill){ .now = cluster, .events_max = 2 * jobs };
        backfill->events = arena_take(arena, backfill->events_max, sizeof(*backfill->events));
        bool enough = cluster_clone(&backfill->ahead, cluster, arena);
        enough = cluster_clone(&backfill->step, cluster, arena) && enough;
        enough = cluster_clone(&backfill->least, cluster, arena) && enough;
        return gang_placer_init(&backfill->placer, &backfill->least, topology, arena) && enough && backfill->events;
}

/* ---- what is known of the time to come ---- */

static int64_t estimate_of(const struct backfill_job *job)
{
        return job->estimate_s < 1 ? 1 : job->estimate_s;
}

static void add_event(struct backfill *backfill, int64_t at_s, bool starts, struct backfill_job *job)
{
        uint32_t at = backfill->n_events++;

        for (; at > 0; at--) {
                const struct backfill_event *before = &backfill->events[at - 1];
                if (before->at_s < at_s || (before->at_s == at_s && before->starts <= starts))
                        break;
                backfill->events[at] = *before;
        }
        backfill->events[at] = (struct backfill_event){ .at_s = at_s, .starts = starts, .job = job };
}

static void drop_events(struct backfill *backfill, const struct backfill_job *job)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < backfill->n_events; i++)
                if (backfill->events[i].job != job)
                        backfill->events[n++] = backfill->events[i];
        backfill->n_events = n;
}

/* Places on the nodes that are planned, on GPUs as they are then. False: some had no room. */
static bool take_members(struct cluster *cluster, struct backfill_job *job)
{
        bool all = true;

        for (uint32_t i = 0; i < job->n; i++) {
                struct gang_member *member = &job->members[i];
                const struct task *task = &job->gang->roles[member->role].task;
                const struct node *node = &cluster->nodes[member->where.node];
                member->where.gpus = NOT_TAKEN;
                if (!node_fits(node, task)) {
                        all = false;
                        continue;
                }
                member->where.gpus = node_gpus(cluster, node, task);
                cluster_take(cluster, task, &member->where);
        }
        return all;
}

static void give_members(struct cluster *cluster, struct backfill_job *job)
{
        for (uint32_t i = 0; i < job->n; i++)
                if (job->members[i].where.gpus != NOT_TAKEN)
                        cluster_give(cluster, &job->gang->roles[job->members[i].role].task, &job->members[i].where);
}

static void happen(struct cluster *cluster, const struct backfill_event *event)
{
        if (event->starts)
                (void) take_members(cluster, event->job);
        else
                give_members(cluster, event->job);
}

/* What is free from then on for so long: of each node the least of it. @first: the first event that did not happen yet. */
static void look_ahead(struct backfill *backfill, const struct cluster *then, uint32_t first, int64_t until_s)
{
        cluster_copy(&backfill->least, then);
        if (first == backfill->n_events || backfill->events[first].at_s >= until_s)
                return;
        cluster_copy(&backfill->step, then);
        for (uint32_t i = first; i < backfill->n_events && backfill->events[i].at_s < until_s;) {
                int64_t at_s = backfill->events[i].at_s;
                uint32_t end = i;
                while (end < backfill->n_events && backfill->events[end].at_s == at_s)
                        happen(&backfill->step, &backfill->events[end++]);
                for (; i < end; i++) { /* only starts make less */
                        const struct backfill_job *job = backfill->events[i].job;
                        for (uint32_t m = 0; backfill->events[i].starts && m < job->n; m++)
                                cluster_least(&backfill->least, &backfill->step, job->members[m].where.node);
                }
        }
}

/* ---- one job ---- */

/* The earliest time at which it can be placed for as long as it says, its nodes in job->members. False: never, or not now. */
static bool earliest(struct backfill *backfill, struct backfill_job *job, int64_t now_s, bool only_now, int64_t *at_s)
{
        const struct cluster *then = backfill->now;
        uint32_t next = 0;
        struct gang_found found;

        *at_s = now_s;
        for (;;) {
                if (next < backfill->n_events && backfill->events[next].at_s <= *at_s) {
                        if (then == backfill->now)
                                cluster_copy(&backfill->ahead, then);
                        then = &backfill->ahead;
                        while (next < backfill->n_events && backfill->events[next].at_s <= *at_s)
                                happen(&backfill->ahead, &backfill->events[next++]);
                }
                look_ahead(backfill, then, next, *at_s + estimate_of(job));
                if (gang_place(&backfill->placer, job->gang, job->members, &found)) {
                        job->n = found.n;
                        return true;
                }
                uint32_t end = next; /* nothing more is free before somebody ends */
                while (end < backfill->n_events && backfill->events[end].starts)
                        end++;
                if (only_now || end == backfill->n_events)
                        return false;
                *at_s = backfill->events[end].at_s;
        }
}

/* More of the same, for longer: what was not found will not be. Roles are compared where there is but one. */
static bool missed_before(const struct backfill *backfill, const struct backfill_job *job)
{
        const struct gang *gang = job->gang;

        for (uint32_t i = 0; i < backfill->n_misses && gang->n_roles == 1 && gang->min == 0; i++) {
                const struct task *task = &backfill->misses[i].role.task;
                if (task_same_shape(task, &gang->roles[0].task) && task->mem_mib <= gang->roles[0].task.mem_mib &&
                    backfill->misses[i].role.count <= gang->roles[0].count &&
                    backfill->misses[i].estimate_s <= estimate_of(job) &&
                    (backfill->misses[i].required == 0 || backfill->misses[i].required == gang->required))
                        return true;
        }
        return false;
}

static void note_miss(struct backfill *backfill, const struct backfill_job *job)
{
        if (job->gang->n_roles != 1 || job->gang->min != 0 || backfill->n_misses == BACKFILL_MISSES)
                return;
        backfill->misses[backfill->n_misses].role = job->gang->roles[0];
        backfill->misses[backfill->n_misses].required = job->gang->required;
        backfill->misses[backfill->n_misses++].estimate_s = estimate_of(job);
}

static bool start_now(struct backfill *backfill, struct backfill_job *job, int64_t now_s)
{
        if (!take_members(backfill->now, job)) {
                give_members(backfill->now, job);
                return false;
        }
        job->state = BACKFILL_RUNNING;
        job->start_s = now_s;
        job->end_s = now_s + estimate_of(job);
        add_event(backfill, job->end_s, false, job);
        return true;
}

static void reserve(struct backfill *backfill, struct backfill_job *job, int64_t at_s)
{
        job->state = BACKFILL_RESERVED;
        job->start_s = at_s;
        job->end_s = at_s + estimate_of(job);
        add_event(backfill, job->start_s, true, job);
        add_event(backfill, job->end_s, false, job);
}

/* ---- the pass ---- */

/* Reservations that were kept so far; somebody who ran longer than he said may have made them void: then all anew, in order. */
static void know_the_future(struct backfill *backfill, int64_t now_s, struct backfill_job *const *running,
                            uint32_t n_running, struct backfill_job *const *queue, uint32_t n_queue, uint32_t depth)
{
        bool overrun = false;

        backfill->n_events = backfill->n_misses = 0;
        for (uint32_t i = 0; i < n_running; i++)
                overrun = overrun || running[i]->end_s <= now_s;
        for (uint32_t i = 0; i < n_queue && i < depth; i++)
                overrun = overrun || (queue[i]->state == BACKFILL_RESERVED && queue[i]->start_s < now_s);
        for (uint32_t i = 0; i < n_running && backfill->n_events < backfill->events_max; i++)
                add_event(backfill, running[i]->end_s > now_s ? running[i]->end_s : now_s + 1, false, running[i]);
        for (uint32_t i = 0; i < n_queue; i++) {
                if (queue[i]->state != BACKFILL_RESERVED)
                        continue;
                if (overrun || i >= depth || backfill->n_events + 2 > backfill->events_max) {
                        queue[i]->state = BACKFILL_WAITING;
                        continue;
                }
                reserve(backfill, queue[i], queue[i]->start_s);
        }
}

uint32_t backfill_pass(struct backfill *backfill, int64_t now_s, struct backfill_job *const *running,
                       uint32_t n_running, struct backfill_job *const *queue, uint32_t n_queue, uint32_t depth)
{
        uint32_t started = 0, reserved = 0;

        know_the_future(backfill, now_s, running, n_running, queue, n_queue, depth);
        for (uint32_t i = 0; i < n_queue; i++) {
                struct backfill_job *job = queue[i];
                bool only_now = reserved >= depth;
                int64_t at_s;
                if (job->state == BACKFILL_RESERVED)
                        drop_events(backfill, job);
                job->state = BACKFILL_WAITING;
                if (backfill->n_events + 2 > backfill->events_max)
                        return started;
                if (only_now && missed_before(backfill, job))
                        continue;
                bool found = earliest(backfill, job, now_s, only_now, &at_s);
                if (found && at_s == now_s && start_now(backfill, job, now_s)) {
                        started++;
                        continue;
                }
                if (depth == BACKFILL_FCFS)
                        return started;
                if (found && at_s > now_s) {
                        reserve(backfill, job, at_s);
                        reserved++;
                } else if (only_now) {
                        note_miss(backfill, job);
                }
        }
        return started;
}
