/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/lineup.h"
#include <errno.h>
#include <stdlib.h>

static void carve(struct lineup *l, uint32_t jobs, struct arena *arena)
{
        (void) topology_init(&l->topology, l->cluster->n_nodes, NULL, 0, arena, NULL);
        (void) backfill_init(&l->backfill, l->cluster, &l->topology, jobs, arena);
}

int lineup_init(struct lineup *lineup, struct cluster *cluster, size_t n_jobs, uint32_t depth, struct error *err)
{
        /* what runs or is reserved at once: at most all of them */
        uint32_t jobs = n_jobs < UINT16_MAX ? (uint32_t) n_jobs : UINT16_MAX;
        struct arena arena = { 0 };

        *lineup = (struct lineup){ .cluster = cluster, .depth = depth };
        lineup->jobs = calloc(n_jobs, sizeof(*lineup->jobs));
        lineup->running = calloc(n_jobs, sizeof(*lineup->running));
        carve(lineup, jobs, &arena);
        lineup->memory = malloc(arena.used);
        if (!lineup->jobs || !lineup->running || !lineup->memory)
                return error_errno(err, ENOMEM, "a queue of %zu jobs", n_jobs);
        arena = (struct arena){ .memory = lineup->memory, .bytes = arena.used };
        carve(lineup, jobs, &arena);
        return 0;
}

void lineup_fini(struct lineup *lineup, size_t n_jobs)
{
        for (size_t i = 0; lineup->jobs && i < n_jobs; i++)
                free(lineup->jobs[i].job.members);
        free(lineup->jobs);
        free(lineup->running);
        free(lineup->memory);
        *lineup = (struct lineup){ 0 };
}

int lineup_arrive(struct lineup *lineup, uint32_t id, const struct replay_job *job, struct error *err)
{
        struct lineup_job *j = &lineup->jobs[id];

        j->roles[0] = (struct gang_role){ .task = job->part, .count = job->parts };
        j->roles[1] = (struct gang_role){ .task = job->rest, .count = 1 };
        j->gang = (struct gang){ .roles = j->roles, .n_roles = job->has_rest ? 2 : 1 };
        j->job = (struct backfill_job){ .gang = &j->gang, .estimate_s = job->estimate_s };
        j->job.members = calloc(replay_job_parts(job), sizeof(*j->job.members));
        return j->job.members ? 0 : error_errno(err, ENOMEM, "a job of %u parts", replay_job_parts(job));
}

static struct lineup_job *of(struct backfill_job *job)
{
        return (struct lineup_job *) (void *) ((char *) job - offsetof(struct lineup_job, job));
}

uint32_t lineup_pass(struct lineup *lineup, int64_t now_s, const uint32_t *queue, size_t n)
{
        uint32_t n_window = n < LINEUP_WINDOW ? (uint32_t) n : LINEUP_WINDOW;

        for (uint32_t i = 0; i < n_window; i++)
                lineup->window[i] = &lineup->jobs[queue[i]].job;
        uint32_t started = backfill_pass(&lineup->backfill, now_s, lineup->running, lineup->n_running, lineup->window,
                                         n_window, lineup->depth);
        for (uint32_t i = 0; started > 0 && i < n_window; i++)
                if (lineup->window[i]->state == BACKFILL_RUNNING) {
                        of(lineup->window[i])->place = lineup->n_running;
                        lineup->running[lineup->n_running++] = lineup->window[i];
                }
        return started;
}

bool lineup_runs(const struct lineup *lineup, uint32_t id)
{
        return lineup->jobs[id].job.state == BACKFILL_RUNNING;
}

bool lineup_is_on(const struct lineup *lineup, uint32_t id, uint32_t node)
{
        const struct backfill_job *job = &lineup->jobs[id].job;

        for (uint32_t i = 0; i < job->n; i++)
                if (job->members[i].where.node == node)
                        return true;
        return false;
}

void lineup_leave(struct lineup *lineup, uint32_t id)
{
        struct lineup_job *j = &lineup->jobs[id];
        struct backfill_job *last = lineup->running[--lineup->n_running];

        gang_give(lineup->cluster, &j->gang, j->job.members, j->job.n);
        lineup->running[j->place] = last;
        of(last)->place = j->place;
        j->job.state = BACKFILL_WAITING;
        j->job.n = 0;
}
