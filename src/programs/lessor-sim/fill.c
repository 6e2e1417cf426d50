/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/fill.h"
#include <errno.h>
#include <stdlib.h>
#include "base/cleanup.h"
#include "placement/placer.h"
#include "programs/lessor-sim/draw.h"

enum { STREAM_ORDER = 11, STREAM_NODE_ORDER, STREAM_CHANCE };

const uint32_t fill_stranded_gpus[FILL_STRANDED_SIZES] = { 1, 2, 4, 8 };

static void shuffle(uint32_t *rows, size_t n, struct draw *d)
{
        for (size_t i = n; i > 1; i--) {
                size_t j = (size_t) draw_below(d, i);
                uint32_t kept = rows[i - 1];
                rows[i - 1] = rows[j];
                rows[j] = kept;
        }
}

struct arrivals {
        uint32_t *rows;
        size_t n, n_max;
        int64_t want_milli;
};

static int add(struct arrivals *a, uint32_t row)
{
        if (a->n == a->n_max) {
                uint32_t *larger = reallocarray(a->rows, 2 * a->n_max, sizeof(*larger));
                if (!larger)
                        return -ENOMEM;
                a->rows = larger;
                a->n_max *= 2;
        }
        a->rows[a->n++] = row;
        return 0;
}

/* Drawn again and again from the tasks of the trace, until one of them would be too much. (Its share of one GPU is what is
 * looked at, not of all its GPUs: so it was published.) */
static int inflate(struct arrivals *a, const struct trace *trace, int64_t limit_milli, struct draw *d)
{
        while (a->want_milli < limit_milli) {
                uint32_t row = (uint32_t) draw_below(d, trace->n_tasks);
                const struct task *task = &trace->tasks[row];
                if (a->want_milli + task->gpu_milli > limit_milli)
                        break;
                if (add(a, row) < 0)
                        return -ENOMEM;
                a->want_milli += task_milli(task);
        }
        return 0;
}

/* Any one is as likely to go; the order of those that stay is what it was. */
static void deflate(struct arrivals *a, const struct trace *trace, int64_t limit_milli, struct draw *d)
{
        while (a->want_milli > limit_milli) {
                size_t gone = (size_t) draw_below(d, a->n);
                a->want_milli -= task_milli(&trace->tasks[a->rows[gone]]);
                for (size_t i = gone; i + 1 < a->n; i++)
                        a->rows[i] = a->rows[i + 1];
                a->n--;
        }
}

int fill_arrivals(const struct trace *trace, const struct fill_options *o, uint64_t seed, uint32_t **ret, size_t *ret_n,
                  struct error *err)
{
        struct draw d = draw_of(seed, STREAM_ORDER);
        int64_t limit_milli = trace->capacity_milli * o->inflate_percent / 100;
        struct arrivals a = { .n_max = trace->n_tasks + 1 };

        if (trace->demand_milli == 0)
                return error_set(err, EINVAL, "no task of this trace wants a GPU: there is nothing to fill");
        if (trace->capacity_milli == 0)
                return error_set(err, EINVAL, "no node of this trace has a GPU: there is nothing to be filled");
        a.rows = reallocarray(NULL, a.n_max, sizeof(*a.rows));
        if (!a.rows)
                return error_errno(err, ENOMEM, "ordering %zu tasks", trace->n_tasks);
        for (a.n = 0; a.n < trace->n_tasks; a.n++)
                a.rows[a.n] = (uint32_t) a.n;
        a.want_milli = trace->demand_milli;
        shuffle(a.rows, a.n, &d);
        if (inflate(&a, trace, limit_milli, &d) < 0) {
                free(a.rows);
                return error_errno(err, ENOMEM, "adding tasks");
        }
        deflate(&a, trace, limit_milli, &d);
        *ret = a.rows;
        *ret_n = a.n;
        return 0;
}

/* ---- one run ---- */

struct run {
        struct cluster cluster;
        struct placer placer;
        void *cluster_memory, *placer_memory;
        struct node_spec *specs;
};

static void run_fini(struct run *run)
{
        free(run->cluster_memory);
        free(run->placer_memory);
        free(run->specs);
}

/* The nodes in an order of the seed's: that is where ties end. */
static int order_nodes(struct run *run, const struct trace *trace, uint64_t seed)
{
        struct draw d = draw_of(seed, STREAM_NODE_ORDER);
        auto_free uint32_t *order = reallocarray(NULL, trace->n_nodes, sizeof(*order));

        run->specs = reallocarray(NULL, trace->n_nodes, sizeof(*run->specs));
        if (!order || !run->specs)
                return -ENOMEM;
        for (size_t i = 0; i < trace->n_nodes; i++)
                order[i] = (uint32_t) i;
        shuffle(order, trace->n_nodes, &d);
        for (size_t i = 0; i < trace->n_nodes; i++)
                run->specs[i] = trace->nodes[order[i]];
        return 0;
}

static int run_init(struct run *run, const struct trace *trace, const struct placement_policy *policy, uint64_t seed,
                    struct error *err)
{
        *run = (struct run){ 0 };
        if (order_nodes(run, trace, seed) < 0)
                return error_errno(err, ENOMEM, "ordering %zu nodes", trace->n_nodes);
        size_t bytes = cluster_bytes(run->specs, trace->n_nodes);
        run->cluster_memory = malloc(bytes);
        if (!run->cluster_memory)
                return error_errno(err, ENOMEM, "a cluster of %zu nodes", trace->n_nodes);
        int r = cluster_init(&run->cluster, run->specs, trace->n_nodes, run->cluster_memory, bytes, err);
        if (r < 0)
                return r;
        bytes = placer_bytes(&run->cluster, trace->n_tasks, PLACER_SHAPES);
        run->placer_memory = malloc(bytes);
        if (!run->placer_memory)
                return error_errno(err, ENOMEM, "placing on %zu nodes", trace->n_nodes);
        return placer_init(&run->placer, policy, &run->cluster, trace->tasks, trace->n_tasks, PLACER_SHAPES,
                           run->placer_memory, bytes, err);
}

struct sums { /* over the arrivals of one point */
        double used, fragment, of_idle;
        uint32_t n;
};

static void count(struct sums *sums, const struct cluster *cluster, double fragment_milli)
{
        double capacity = (double) cluster->capacity_milli, used = (double) cluster->used_milli;

        sums->n++;
        sums->used += 100.0 * used / capacity;
        sums->fragment += 100.0 * fragment_milli / capacity;
        sums->of_idle += used < capacity ? 100.0 * fragment_milli / (capacity - used) : 0.0;
}

static void look_at_the_end(const struct cluster *cluster, struct fill_result *ret)
{
        ret->free_milli = cluster->capacity_milli - cluster->used_milli;
        for (uint32_t n = 0; n < cluster->n_nodes; n++) {
                const struct node *node = &cluster->nodes[n];
                ret->partly_used_nodes += node->free_milli > 0 && node->full < node->gpus;
                for (size_t i = 0; i < FILL_STRANDED_SIZES; i++)
                        if (node->full < fill_stranded_gpus[i])
                                ret->stranded_milli[i] += node->free_milli;
        }
}

static void play(struct run *run, const struct trace *trace, const uint32_t *arrivals, size_t n_arrivals, uint64_t seed,
                 struct fill_result *ret)
{
        struct draw chance = draw_of(seed, STREAM_CHANCE);
        struct sums sums[FILL_POINTS] = { 0 };
        int64_t arrived_milli = 0, capacity_milli = run->cluster.capacity_milli;

        for (size_t i = 0; i < n_arrivals; i++) {
                const struct task *task = &trace->tasks[arrivals[i]];
                struct placement where;
                if (placer_place(&run->placer, task, draw_next(&chance), &where))
                        ret->placed++;
                else
                        ret->failed++;
                arrived_milli += task_milli(task);
                int64_t point = (200 * arrived_milli + capacity_milli) / (2 * capacity_milli);
                if (point < FILL_POINTS)
                        count(&sums[point], &run->cluster, placer_fragment_milli(&run->placer));
        }
        for (size_t i = 0; i < FILL_POINTS; i++)
                if (sums[i].n > 0)
                        ret->points[i] = (struct fill_point){ .arrivals = sums[i].n,
                                                              .used_pct = sums[i].used / sums[i].n,
                                                              .fragment_pct = sums[i].fragment / sums[i].n,
                                                              .fragment_of_idle_pct = sums[i].of_idle / sums[i].n };
}

int fill_run(const struct trace *trace, const struct fill_options *o, const struct placement_policy *policy,
             uint64_t seed, struct fill_result *ret, struct error *err)
{
        auto_free uint32_t *arrivals = NULL;
        size_t n_arrivals = 0;
        struct run run;
        int r = fill_arrivals(trace, o, seed, &arrivals, &n_arrivals, err);
        if (r < 0)
                return r;

        *ret = (struct fill_result){ 0 };
        r = run_init(&run, trace, policy, seed, err);
        if (r == 0) {
                play(&run, trace, arrivals, n_arrivals, seed, ret);
                look_at_the_end(&run.cluster, ret);
                r = cluster_check(&run.cluster, err);
        }
        run_fini(&run);
        return r;
}
