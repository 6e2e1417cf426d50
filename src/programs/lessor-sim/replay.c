/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/replay.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "placement/placer.h"
#include "programs/lessor-sim/draw.h"
#include "programs/lessor-sim/events.h"
#include "programs/lessor-sim/lineup.h"

enum { STREAM_FAIL = 21, STREAM_CHANCE, CHECK_EACH = 1024 };

struct side { /* a cluster and who places on it */
        struct cluster cluster;
        struct placer placer;
        void *cluster_memory, *placer_memory;
};

struct player {
        const struct replay_job *jobs;
        size_t n_jobs, n_nodes;
        const struct replay_options *o;
        struct side now, empty; /* the empty one says what can ever be placed */
        struct replay_record *records;
        struct placement **places; /* of those that run, by a policy */
        struct lineup lineup;      /* by backfill */
        uint32_t *queue;           /* jobs that wait, in the order they came: queue[first..last) */
        size_t first, last;
        struct events events;
        size_t arrived;
        uint64_t running, waiting;
        int64_t want_milli;   /* of those that wait */
        int64_t closed_milli; /* of nodes that failed */
        struct draw chance, fail;
        int64_t now_s;
        bool may_start; /* something changed for the head of the queue */
        double bucket_s;
        struct replay_result *ret;
};

static int side_init(struct side *side, const struct node_spec *nodes, size_t n, const struct placement_policy *policy,
                     const struct task *past, size_t n_past, struct error *err)
{
        size_t bytes = cluster_bytes(nodes, n);

        side->cluster_memory = malloc(bytes);
        if (!side->cluster_memory)
                return error_errno(err, ENOMEM, "a cluster of %zu nodes", n);
        int r = cluster_init(&side->cluster, nodes, n, side->cluster_memory, bytes, err);
        if (r < 0)
                return r;
        bytes = placer_bytes(&side->cluster, n_past, PLACER_SHAPES);
        side->placer_memory = malloc(bytes);
        if (!side->placer_memory)
                return error_errno(err, ENOMEM, "placing on %zu nodes", n);
        return placer_init(&side->placer, policy, &side->cluster, past, n_past, PLACER_SHAPES, side->placer_memory,
                           bytes, err);
}

static void side_fini(struct side *side)
{
        free(side->cluster_memory);
        free(side->placer_memory);
}

/* ---- places: all of a job's, or none ---- */

static void give_back(struct cluster *cluster, const struct replay_job *job, const struct placement *places, uint32_t n)
{
        while (n-- > 0)
                cluster_give(cluster, replay_job_part(job, n), &places[n]);
}

static bool take_all(struct side *side, const struct replay_job *job, struct placement *places, struct draw *chance)
{
        uint32_t n = replay_job_parts(job);

        for (uint32_t i = 0; i < n; i++)
                if (!placer_place(&side->placer, replay_job_part(job, i), draw_next(chance), &places[i])) {
                        give_back(&side->cluster, job, places, i);
                        return false;
                }
        return true;
}

/* ---- what happens to a job ---- */

static int can_ever(struct player *p, uint32_t id, bool *ret, struct error *err)
{
        const struct replay_job *job = &p->jobs[id];
        struct draw chance = { 0 };
        struct placement *places = reallocarray(NULL, replay_job_parts(job), sizeof(*places));

        if (!places)
                return error_errno(err, ENOMEM, "a job of %u parts", replay_job_parts(job));
        *ret = take_all(&p->empty, job, places, &chance);
        if (*ret)
                give_back(&p->empty.cluster, job, places, replay_job_parts(job));
        free(places);
        return 0;
}

static int arrive(struct player *p, uint32_t id, struct error *err)
{
        bool can = false;
        int r = can_ever(p, id, &can, err);

        if (r < 0)
                return r;
        p->records[id] = (struct replay_record){
                .fate = can ? REPLAY_WAITING : REPLAY_NEVER, .start_s = -1, .first_start_s = -1, .end_s = -1
        };
        if (!can) {
                p->ret->never++;
                return 0;
        }
        if (!p->o->policy) {
                r = lineup_arrive(&p->lineup, id, &p->jobs[id], err);
                if (r < 0)
                        return r;
        }
        p->may_start |= p->last - p->first < (p->o->depth > 0 ? LINEUP_WINDOW : 1); /* else it is not looked at */
        p->queue[p->last++] = id;
        p->waiting++;
        p->want_milli += replay_job_milli(&p->jobs[id]);
        if (p->waiting > p->ret->most_waiting)
                p->ret->most_waiting = p->waiting;
        return 0;
}

/* It has its places. */
static int begin(struct player *p, uint32_t id, struct error *err)
{
        struct replay_record *record = &p->records[id];
        const struct event end = { p->now_s + p->jobs[id].duration_s, EVENT_END, id, record->restarts };

        record->fate = REPLAY_RUNNING;
        record->start_s = p->now_s;
        if (record->first_start_s < 0)
                record->first_start_s = p->now_s;
        p->running++;
        p->waiting--;
        p->want_milli -= replay_job_milli(&p->jobs[id]);
        return events_add(&p->events, end, err);
}

static int try_start(struct player *p, uint32_t id, bool *ret, struct error *err)
{
        const struct replay_job *job = &p->jobs[id];
        struct placement *places;

        *ret = false;
        if (replay_job_milli(job) > p->now.cluster.capacity_milli - p->now.cluster.used_milli)
                return 0;
        places = reallocarray(NULL, replay_job_parts(job), sizeof(*places));
        if (!places)
                return error_errno(err, ENOMEM, "a job of %u parts", replay_job_parts(job));
        if (!take_all(&p->now, job, places, &p->chance)) {
                free(places);
                return 0;
        }
        *ret = true;
        p->places[id] = places;
        return begin(p, id, err);
}

static void leave(struct player *p, uint32_t id)
{
        if (p->o->policy) {
                give_back(&p->now.cluster, &p->jobs[id], p->places[id], replay_job_parts(&p->jobs[id]));
                free(p->places[id]);
                p->places[id] = NULL;
        } else {
                lineup_leave(&p->lineup, id);
        }
        p->running--;
        p->may_start = true;
}

static void end_job(struct player *p, const struct event *e)
{
        struct replay_record *record = &p->records[e->id];

        if (record->fate != REPLAY_RUNNING || record->restarts != e->generation)
                return; /* of a run that a failure ended */
        leave(p, e->id);
        record->fate = REPLAY_ENDED;
        record->end_s = p->now_s;
        p->ret->ended++;
}

/* Back into the queue, before all that came later. */
static void back_to_queue(struct player *p, uint32_t id)
{
        size_t at;

        assert(p->first > 0); /* it was there once, and left from the front */
        p->first--;
        for (at = p->first; at + 1 < p->last && p->queue[at + 1] < id; at++)
                p->queue[at] = p->queue[at + 1];
        p->queue[at] = id;
        p->waiting++;
        p->want_milli += replay_job_milli(&p->jobs[id]);
}

static bool is_on(const struct player *p, uint32_t id, uint32_t node)
{
        if (!p->o->policy)
                return lineup_is_on(&p->lineup, id, node);
        for (uint32_t i = 0; i < replay_job_parts(&p->jobs[id]); i++)
                if (p->places[id][i].node == node)
                        return true;
        return false;
}

static int fail_node(struct player *p, uint32_t node, struct error *err)
{
        p->ret->node_failures++;
        for (uint32_t id = 0; id < p->arrived; id++) {
                struct replay_record *record = &p->records[id];
                if (record->fate != REPLAY_RUNNING || !is_on(p, id, node))
                        continue;
                p->ret->wasted += (__int128) replay_job_milli(&p->jobs[id]) * (p->now_s - record->start_s);
                leave(p, id);
                record->fate = REPLAY_WAITING;
                record->restarts++;
                p->ret->restarts++;
                if (record->restarts < REPLAY_RESTARTS_MAX) {
                        back_to_queue(p, id);
                } else { /* it would take longer than nodes last */
                        record->fate = REPLAY_GIVEN_UP;
                        p->ret->given_up++;
                }
        }
        cluster_close(&p->now.cluster, node, true);
        p->closed_milli += p->now.cluster.nodes[node].free_milli;
        p->may_start = true;
        return events_add(&p->events, (struct event){ p->now_s + p->o->repair_s, EVENT_NODE_BACK, node, 0 }, err);
}

static int plan_failure(struct player *p, uint32_t node, struct error *err)
{
        int64_t after_s = 1 + (int64_t) draw_below(&p->fail, 2 * (uint64_t) p->o->fail_each_s);
        return events_add(&p->events, (struct event){ p->now_s + after_s, EVENT_NODE_FAILS, node, 0 }, err);
}

static int node_back(struct player *p, uint32_t node, struct error *err)
{
        cluster_close(&p->now.cluster, node, false);
        p->closed_milli -= p->now.cluster.nodes[node].free_milli;
        p->may_start = true;
        return plan_failure(p, node, err);
}

/* ---- figures ---- */

static void remember_heat(struct player *p, uint32_t bucket)
{
        const struct cluster *c = &p->now.cluster;
        struct replay_result *ret = p->ret;

        for (uint32_t row = 0; row < ret->heat_rows; row++) {
                size_t from = row * p->n_nodes / ret->heat_rows, to = (row + 1) * p->n_nodes / ret->heat_rows;
                int64_t all = 0, free_milli = 0;
                for (size_t n = from; n < to; n++) {
                        all += (int64_t) MILLI_PER_GPU * c->nodes[n].gpus;
                        free_milli += c->nodes[n].free_milli;
                }
                ret->heat[bucket][row] = (uint8_t) (all == 0 ? 0 : (all - free_milli) * 100 / all);
        }
}

/* The time until @then_s passes with things as they are. */
static void pass_time(struct player *p, int64_t then_s)
{
        struct replay_result *ret = p->ret;
        int64_t used = p->now.cluster.used_milli, span = then_s - p->now_s;
        int64_t idle = p->now.cluster.capacity_milli - p->closed_milli - used;

        ret->used += (__int128) used * span;
        if (p->first < p->last) {
                ret->idle_while_waiting += (__int128) idle * span;
                if (idle >= replay_job_milli(&p->jobs[p->queue[p->first]]))
                        ret->stranded += (__int128) idle * span;
        }
        for (double from = (double) (p->now_s - ret->first_s), to = (double) (then_s - ret->first_s); from < to;) {
                uint32_t bucket = (uint32_t) (from / p->bucket_s);
                double end = (bucket + 1) * p->bucket_s;
                if (bucket >= REPLAY_BUCKETS) { /* a run longer than thought: its last bucket has the rest */
                        bucket = REPLAY_BUCKETS - 1;
                        end = to;
                }
                while (ret->n_buckets <= bucket)
                        remember_heat(p, ret->n_buckets++);
                double part = (end < to ? end : to) - from;
                ret->buckets[bucket].used_gpus += part * (double) used / MILLI_PER_GPU;
                ret->buckets[bucket].want_gpus += part * (double) p->want_milli / MILLI_PER_GPU;
                if (end <= from)
                        break; /* less than a double can tell apart */
                from = end;
        }
        p->now_s = then_s;
}

static int check(const struct player *p, struct error *err)
{
        if (p->running + p->waiting + p->ret->ended + p->ret->never + p->ret->given_up != p->arrived)
                return error_set(
                        err, EBADE,
                        "at %lld s: %llu run, %llu wait, %llu ended, %llu never can and %llu were given up; %zu "
                        "arrived",
                        (long long) p->now_s, (unsigned long long) p->running, (unsigned long long) p->waiting,
                        (unsigned long long) p->ret->ended, (unsigned long long) p->ret->never,
                        (unsigned long long) p->ret->given_up, p->arrived);
        if (p->ret->passes % CHECK_EACH != 0)
                return 0;
        return cluster_check(&p->now.cluster, err);
}

/* ---- the loop ---- */

/* Those that started leave the queue; the rest stays in order, and closes up to its end. */
static int pass_backfill(struct player *p, struct error *err)
{
        size_t kept = p->last;

        if (lineup_pass(&p->lineup, p->now_s, p->queue + p->first, p->last - p->first) == 0)
                return 0;
        for (size_t i = p->last; i-- > p->first;) {
                uint32_t id = p->queue[i];
                if (!lineup_runs(&p->lineup, id)) {
                        p->queue[--kept] = id;
                        continue;
                }
                int r = begin(p, id, err);
                if (r < 0)
                        return r;
        }
        p->first = kept;
        return 0;
}

static int pass_in_order(struct player *p, struct error *err)
{
        bool started = true;

        while (started && p->first < p->last) {
                int r = try_start(p, p->queue[p->first], &started, err);
                if (r < 0)
                        return r;
                p->first += started;
        }
        return 0;
}

static int pass(struct player *p, struct error *err)
{
        int r = 0;

        p->ret->passes++;
        if (p->may_start && p->first < p->last)
                r = p->o->policy ? pass_in_order(p, err) : pass_backfill(p, err);
        p->may_start = false;
        return r;
}

static int happen(struct player *p, const struct event *e, struct error *err)
{
        switch (e->kind) {
        case EVENT_END:
                end_job(p, e);
                return 0;
        case EVENT_NODE_FAILS:
                return fail_node(p, e->id, err);
        case EVENT_NODE_BACK:
        default:
                return node_back(p, e->id, err);
        }
}

static bool is_over(const struct player *p)
{
        return p->arrived == p->n_jobs && p->running == 0 && p->waiting == 0;
}

static int play(struct player *p, struct error *err)
{
        int r = 0;

        p->now_s = p->ret->first_s = p->jobs[0].submit_s;
        for (uint32_t n = 0; r == 0 && n < p->n_nodes && p->o->fail_each_s > 0; n++)
                r = plan_failure(p, n, err);
        while (r == 0 && !is_over(p)) {
                const struct event *next = events_first(&p->events);
                int64_t then_s = next ? next->at_s : INT64_MAX;
                if (p->arrived < p->n_jobs && p->jobs[p->arrived].submit_s < then_s)
                        then_s = p->jobs[p->arrived].submit_s;
                if (then_s == INT64_MAX)
                        return error_set(err, EBADE, "jobs wait and nothing will ever happen");
                pass_time(p, then_s);
                while (r == 0 && (next = events_first(&p->events)) && next->at_s == then_s) {
                        struct event e = *next;
                        events_take(&p->events);
                        r = happen(p, &e, err);
                }
                for (; r == 0 && p->arrived < p->n_jobs && p->jobs[p->arrived].submit_s == then_s; p->arrived++)
                        r = arrive(p, (uint32_t) p->arrived, err);
                if (r == 0)
                        r = pass(p, err);
                if (r == 0)
                        r = check(p, err);
        }
        p->ret->last_s = p->now_s;
        for (uint32_t i = 0; i < p->ret->n_buckets; i++) {
                double whole = i + 1 < p->ret->n_buckets ? p->bucket_s
                                                         : (double) (p->now_s - p->ret->first_s) - i * p->bucket_s;
                p->ret->buckets[i].used_gpus /= whole > 0 ? whole : 1;
                p->ret->buckets[i].want_gpus /= whole > 0 ? whole : 1;
        }
        return r;
}

/* Wide enough for the arrivals, and for all the work on a cluster that is full: what comes later is in the last one. */
static double bucket_width(const struct player *p)
{
        int64_t last_s = 0;
        double work = 0, span;

        for (size_t i = 0; i < p->n_jobs; i++) {
                int64_t end_s = p->jobs[i].submit_s + p->jobs[i].duration_s;
                last_s = end_s > last_s ? end_s : last_s;
                work += (double) p->jobs[i].duration_s * (double) replay_job_milli(&p->jobs[i]);
        }
        span = (double) (last_s - p->jobs[0].submit_s);
        work /= p->now.cluster.capacity_milli > 0 ? (double) p->now.cluster.capacity_milli : 1.0;
        span = work > span ? work : span;
        return span > REPLAY_BUCKETS ? span / REPLAY_BUCKETS : 1.0;
}

static int init(struct player *p, const struct node_spec *nodes, struct error *err)
{
        p->records = calloc(p->n_jobs, sizeof(*p->records));
        p->places = calloc(p->n_jobs, sizeof(struct placement *));
        p->queue = calloc(p->n_jobs, sizeof(*p->queue));
        struct task *past = reallocarray(NULL, p->n_jobs, sizeof(*past));
        int r = p->records && p->places && p->queue && past ? 0 : error_errno(err, ENOMEM, "%zu jobs", p->n_jobs);

        for (size_t i = 0; r == 0 && i < p->n_jobs; i++)
                past[i] = p->jobs[i].parts > 0 ? p->jobs[i].part : p->jobs[i].rest;
        const struct placement_policy *policy = p->o->policy ? p->o->policy : &policy_first_fit;
        if (r == 0)
                r = side_init(&p->now, nodes, p->n_nodes, policy, past, p->n_jobs, err);
        if (r == 0 && !p->o->policy)
                r = lineup_init(&p->lineup, &p->now.cluster, p->n_jobs, p->o->depth, err);
        if (r == 0)
                r = side_init(&p->empty, nodes, p->n_nodes, &policy_first_fit, NULL, 0, err);
        free(past);
        return r;
}

int replay_run(const struct node_spec *nodes, size_t n_nodes, const struct replay_job *jobs, size_t n_jobs,
               const struct replay_options *o, struct replay_result *ret, struct error *err)
{
        struct player p = { .jobs = jobs, .n_jobs = n_jobs, .n_nodes = n_nodes, .o = o, .ret = ret };
        int r;

        *ret = (struct replay_result){ 0 };
        if (n_jobs == 0 || n_jobs > UINT32_MAX)
                return error_set(err, EINVAL, "%zu jobs: it takes 1 to 4,294,967,295", n_jobs);
        p.chance = draw_of(o->seed, STREAM_CHANCE);
        p.fail = draw_of(o->seed, STREAM_FAIL);
        r = init(&p, nodes, err);
        if (r == 0) {
                ret->capacity_milli = p.now.cluster.capacity_milli;
                ret->heat_rows = n_nodes < REPLAY_HEAT_ROWS ? (uint32_t) n_nodes : REPLAY_HEAT_ROWS;
                p.bucket_s = bucket_width(&p);
                r = play(&p, err);
        }
        if (r == 0)
                r = cluster_check(&p.now.cluster, err);
        for (size_t i = 0; p.places && i < n_jobs; i++)
                free(p.places[i]);
        free(p.places);
        free(p.queue);
        events_fini(&p.events);
        lineup_fini(&p.lineup, n_jobs);
        side_fini(&p.now);
        side_fini(&p.empty);
        ret->records = p.records;
        if (r < 0)
                replay_fini(ret);
        return r;
}

void replay_fini(struct replay_result *result)
{
        free(result->records);
        result->records = NULL;
}

struct replay_job replay_job_of(const struct trace_job *job, uint32_t node_gpus)
{
        struct replay_job r = { .submit_s = job->submit_s,
                                .duration_s = job->duration_s,
                                .estimate_s = job->duration_s };
        uint32_t whole = job->gpus > node_gpus ? node_gpus : job->gpus, rest = job->gpus % whole;

        r.part = (struct task){ .gpus = (uint16_t) whole, .gpu_milli = MILLI_PER_GPU };
        r.parts = job->gpus / whole;
        r.has_rest = rest > 0;
        if (rest > 0)
                r.rest = (struct task){ .gpus = (uint16_t) rest, .gpu_milli = MILLI_PER_GPU };
        return r;
}
