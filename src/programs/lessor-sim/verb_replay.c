/* SPDX-License-Identifier: Apache-2.0 */
/* `replay`: a trace played through time, by several policies side by side. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/duration.h"
#include "base/number.h"
#include "placement/backfill.h"
#include "programs/lessor-sim/batch.h"
#include "programs/lessor-sim/draw.h"
#include "programs/lessor-sim/lineup.h"
#include "programs/lessor-sim/report.h"
#include "programs/lessor-sim/sim.h"

enum {
        JOBS,
        TRACE,
        NODES,
        CLUSTER,
        POLICY,
        ORDER,
        ESTIMATES,
        FAIL_EACH,
        REPAIR,
        SEED,
        THREADS,
        HTML,
        CSV,
        JSON,
        WAYS_MAX = 16
};
const struct option replay_options[] = {
        [JOBS] = { "jobs", "FILE", "jobs: submit_s,duration_s,gpus[,vc], sorted", .words = "@files" },
        [TRACE] = { "trace", "FILE", "or tasks, with creation_time and deletion_time", .words = "@files" },
        [NODES] = { "nodes", "FILE", "on these nodes: sn,cpu_milli,memory_mib,gpu,model", .words = "@files" },
        [CLUSTER] = { "cluster", "NxG", "or on N nodes of G GPUs each: 64x8", .words = "64x8|50x8" },
        [POLICY] = { "policy", "NAME", "one to be tried; may come several times (best-fit)" },
        [ORDER] = { "order", "NAME", "or who may pass whom: fcfs, easy, conservative, or N reservations",
                    .words = "fcfs|easy|conservative" },
        [ESTIMATES] = { "estimates", "KIND", "how long jobs say that they take: exact, or rough (exact)",
                        .words = "exact|rough" },
        [FAIL_EACH] = { "fail-each", "SPAN", "each node fails about so often: 30d (never)" },
        [REPAIR] = { "repair", "SPAN", "and is back after this (4h)" },
        [SEED] = { "seed", "N", "of the failures, and of policies with chance (1)" },
        [THREADS] = { "threads", "N", "how many runs at once (one for each CPU)" },
        [HTML] = { "html", "FILE", "write a page of plots, too", .words = "@files" },
        [CSV] = { "csv", NULL, "print a row for each job" },
        [JSON] = { "json", NULL, "print JSON" },
        { 0 },
};

const char replay_more[] =
        "  lessor-sim replay --jobs jobs.csv --cluster 64x8\n"
        "  lessor-sim replay --nodes nodes.csv --trace tasks.csv --policy fgd --policy best-fit --json\n"
        "  lessor-sim replay --jobs jobs.csv --cluster 50x8 --fail-each 30d\n"
        "\n"
        "Jobs start in the order in which they came (first come, first served): who does not fit holds up all behind "
        "him.\n"
        "One of more GPUs than a node has takes whole nodes and a part of one more, all at once or none. A job whose "
        "node\n"
        "fails begins anew, in its old place in the queue, and after a hundred times is given up. One that the empty\n"
        "cluster has no place for is set aside.\n"
        "\n"
        "Exit status: 0 done, 1 a bad trace, 2 wrong use.";

struct asked {
        const char *jobs_path, *trace_path, *nodes_path, *html_path;
        struct trace trace; /* its nodes */
        struct replay_job *jobs;
        size_t n_jobs;
        struct way {
                const char *name;
                const struct placement_policy *policy; /* NULL: by backfill of this depth */
                uint32_t depth;
        } ways[WAYS_MAX];
        size_t n_ways;
        bool rough;
        struct replay_options options;
        struct replay_result results[WAYS_MAX];
        uint32_t cluster_nodes, cluster_gpus;
        unsigned threads;
        bool csv, json;
};

/* ---- reading ---- */

static int compare(const void *a, const void *b)
{
        const struct replay_job *x = a, *y = b;
        if (x->submit_s != y->submit_s)
                return x->submit_s < y->submit_s ? -1 : 1;
        return (x->row > y->row) - (x->row < y->row);
}

static int read_jobs(struct asked *a, struct error *err)
{
        struct jobs jobs = { 0 };
        uint32_t widest = 1;
        int r = jobs_read(&jobs, a->jobs_path, err);

        for (size_t i = 0; i < a->trace.n_nodes; i++)
                if (a->trace.nodes[i].gpus > widest)
                        widest = a->trace.nodes[i].gpus;
        if (r == 0) {
                a->jobs = reallocarray(NULL, jobs.n, sizeof(*a->jobs));
                if (!a->jobs)
                        r = error_errno(err, ENOMEM, "%zu jobs", jobs.n);
        }
        for (; r == 0 && a->n_jobs < jobs.n; a->n_jobs++) {
                a->jobs[a->n_jobs] = replay_job_of(&jobs.jobs[a->n_jobs], widest);
                a->jobs[a->n_jobs].row = (uint32_t) a->n_jobs + 1;
        }
        jobs_fini(&jobs);
        return r;
}

/* Tasks are in no order; those of one moment stay in that of the file. */
static int read_tasks(struct asked *a, struct error *err)
{
        struct trace_reader reader;
        struct trace_task row;
        size_t room = 0;
        int r = tasks_open(&reader, a->trace_path, &a->trace.models, err);
        if (r < 0)
                return r;

        while ((r = tasks_next(&reader, &row, err)) > 0) {
                if (row.end_s < row.create_s) {
                        r = error_set(err, EINVAL, "%s, line %llu: there is no deletion_time, so it would never end",
                                      a->trace_path, (unsigned long long) reader.csv.line);
                        break;
                }
                if (a->n_jobs == room) {
                        room = room == 0 ? 1024 : 2 * room;
                        struct replay_job *larger = reallocarray(a->jobs, room, sizeof(*larger));
                        if (!larger) {
                                r = error_errno(err, ENOMEM, "%zu tasks", room);
                                break;
                        }
                        a->jobs = larger;
                }
                int64_t lasts_s = row.end_s - row.create_s;
                a->n_jobs++;
                a->jobs[a->n_jobs - 1] = (struct replay_job){ .row = (uint32_t) a->n_jobs,
                                                              .submit_s = row.create_s,
                                                              .duration_s = lasts_s > 0 ? lasts_s : 1,
                                                              .estimate_s = lasts_s > 0 ? lasts_s : 1,
                                                              .part = row.task,
                                                              .parts = 1 };
        }
        trace_reader_close(&reader);
        if (r == 0 && a->n_jobs == 0)
                r = error_set(err, EINVAL, "%s has no tasks", a->trace_path);
        if (r == 0)
                qsort(a->jobs, a->n_jobs, sizeof(*a->jobs), compare);
        return r;
}

/* People say more than they need: once, twice, five or ten times, each as often. */
static void estimate_roughly(struct asked *a)
{
        static const int64_t factors[] = { 1, 2, 5, 10 };
        struct draw d = draw_of(a->options.seed, 31);

        for (size_t i = 0; i < a->n_jobs; i++)
                a->jobs[i].estimate_s = a->jobs[i].duration_s * factors[draw_below(&d, 4)];
}

static int make_nodes(struct asked *a, struct error *err)
{
        struct trace *t = &a->trace;

        if (a->nodes_path)
                return trace_read_nodes(t, a->nodes_path, err);
        t->nodes = calloc(a->cluster_nodes, sizeof(*t->nodes));
        if (!t->nodes)
                return error_errno(err, ENOMEM, "%u nodes", a->cluster_nodes);
        for (; t->n_nodes < a->cluster_nodes; t->n_nodes++)
                t->nodes[t->n_nodes] = (struct node_spec){ .cpu_milli = NODE_CPU_MILLI_MAX,
                                                           .mem_mib = NODE_MEM_MIB_MAX,
                                                           .gpus = (uint16_t) a->cluster_gpus,
                                                           .model = NODE_NO_MODEL };
        return 0;
}

/* ---- options ---- */

static bool cluster(const struct options *o, struct asked *a)
{
        const char *x = strchr(o->value, 'x');
        struct error err = { 0 };
        uint64_t nodes = 0, gpus = 0;
        char left[16];
        int r = x ? 0 : error_set(&err, EINVAL, "--cluster: NxG, as in 64x8");

        (void) snprintf(left, sizeof(left), "%.*s", x ? (int) (x - o->value) : 0, o->value);
        if (r == 0)
                r = parse_u64("--cluster, the nodes", left, 1, CLUSTER_NODES_MAX, &nodes, &err);
        if (r == 0)
                r = parse_u64("--cluster, the GPUs", x + 1, 1, NODE_GPUS_MAX, &gpus, &err);
        if (r < 0)
                (void) verb_usage_error(o->verb, "%s", err.msg);
        a->cluster_nodes = (uint32_t) nodes;
        a->cluster_gpus = (uint32_t) gpus;
        return r == 0;
}

static bool order(const struct options *o, struct asked *a)
{
        static const struct way orders[] = { { "fcfs", NULL, BACKFILL_FCFS },
                                             { "easy", NULL, BACKFILL_EASY },
                                             { "conservative", NULL, BACKFILL_CONSERVATIVE } };

        for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
                if (strcmp(orders[i].name, o->value) == 0) {
                        if (a->n_ways < WAYS_MAX)
                                a->ways[a->n_ways++] = orders[i];
                        return true;
                }
        struct error err = { 0 };
        uint64_t depth = 0;
        if (parse_u64("--order", o->value, 1, LINEUP_WINDOW, &depth, &err) < 0) {
                (void) verb_usage_error(o->verb,
                                        "--order: fcfs, easy, conservative, or how many have a reservation (1 to %d)",
                                        LINEUP_WINDOW);
                return false;
        }
        if (a->n_ways < WAYS_MAX)
                a->ways[a->n_ways++] = (struct way){ o->value, NULL, (uint32_t) depth };
        return true;
}

static bool span(const struct options *o, int row, int64_t *ret_s)
{
        char what[32];
        struct error err = { 0 };
        uint64_t ms = 0;

        (void) snprintf(what, sizeof(what), "--%s", option_name(o, row));
        int r = duration_parse(what, o->value, &ms, &err);
        if (r == 0 && ms < 1000)
                r = error_set(&err, ERANGE, "%s: it takes a second at least", what);
        if (r < 0)
                (void) verb_usage_error(o->verb, "%s", err.msg);
        *ret_s = (int64_t) (ms / 1000);
        return r == 0;
}

static int parse(struct asked *a, const struct verb *verb, int argc, char **argv)
{
        const struct placement_policy *policy;
        struct options o;
        uint64_t n = 0;
        bool good = true;
        int row;

        options_init(&o, verb, argc, argv);
        while ((row = options_next(&o)) != OPTIONS_END) {
                switch (row) {
                case JOBS:
                        a->jobs_path = o.value;
                        break;
                case TRACE:
                        a->trace_path = o.value;
                        break;
                case NODES:
                        a->nodes_path = o.value;
                        break;
                case CLUSTER:
                        good = cluster(&o, a);
                        break;
                case POLICY:
                        policy = sim_policy(&o);
                        good = policy != NULL;
                        if (policy && a->n_ways < WAYS_MAX)
                                a->ways[a->n_ways++] = (struct way){ policy->name, policy, 0 };
                        break;
                case ORDER:
                        good = order(&o, a);
                        break;
                case ESTIMATES:
                        a->rough = strcmp(o.value, "rough") == 0;
                        good = a->rough || strcmp(o.value, "exact") == 0;
                        if (!good)
                                (void) verb_usage_error(verb, "--estimates: exact or rough");
                        break;
                case FAIL_EACH:
                        good = span(&o, row, &a->options.fail_each_s);
                        break;
                case REPAIR:
                        good = span(&o, row, &a->options.repair_s);
                        break;
                case SEED:
                        good = sim_number(&o, row, 0, UINT64_MAX, &a->options.seed);
                        break;
                case THREADS:
                        good = sim_number(&o, row, 1, 256, &n);
                        a->threads = (unsigned) n;
                        break;
                case HTML:
                        a->html_path = o.value;
                        break;
                case CSV:
                        a->csv = true;
                        break;
                case JSON:
                        a->json = true;
                        break;
                case OPTIONS_HELP:
                        return OPTIONS_HELP;
                case OPTIONS_OPERAND:
                        (void) verb_usage_error(verb, "files are named by --jobs, --trace and --nodes");
                        return OPTIONS_WRONG;
                default:
                        return OPTIONS_WRONG;
                }
                if (!good)
                        return OPTIONS_WRONG;
        }
        return 0;
}

static int one_run(void *context, size_t piece, struct error *err)
{
        struct asked *a = context;
        struct replay_options o = a->options;

        o.policy = a->ways[piece].policy;
        o.depth = a->ways[piece].depth;
        return replay_run(a->trace.nodes, a->trace.n_nodes, a->jobs, a->n_jobs, &o, &a->results[piece], err);
}

static int print(const struct asked *a, const struct verb *verb)
{
        struct replayed runs[WAYS_MAX];

        for (size_t i = 0; i < a->n_ways; i++)
                runs[i] = (struct replayed){
                        .policy = a->ways[i].name, .jobs = a->jobs, .n_jobs = a->n_jobs, .result = &a->results[i]
                };
        struct error err = { 0 };
        if (a->html_path && report_replay(a->html_path, runs, a->n_ways, &err) < 0)
                return sim_fail(verb, &err);
        if (a->json) {
                json_t *all = replay_json(runs, a->n_ways);
                int r = json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
                (void) putchar('\n');
                json_decref(all);
                return r == 0 ? SIM_EXIT_OK : SIM_EXIT_BAD;
        }
        if (a->csv)
                replay_csv(stdout, runs, a->n_ways);
        else
                replay_print(stdout, runs, a->n_ways);
        return SIM_EXIT_OK;
}

int sim_replay_main(const struct verb *verb, int argc, char **argv)
{
        static struct asked a = { .options = { .seed = 1, .repair_s = 4 * 3600 } };
        struct error err = { 0 };
        int r = parse(&a, verb, argc, argv);

        if (r == OPTIONS_HELP)
                return verb_print_help(verb);
        if (r != 0)
                return SIM_EXIT_USAGE;
        if (!a.jobs_path == !a.trace_path)
                return verb_usage_error(verb, "what? --jobs FILE, or --trace FILE");
        if (!a.nodes_path == (a.cluster_nodes == 0))
                return verb_usage_error(verb, "on what? --nodes FILE, or --cluster NxG");
        if (a.trace_path && !a.nodes_path)
                return verb_usage_error(verb, "--trace needs --nodes: they say which models there are");
        if (a.csv && a.json)
                return verb_usage_error(verb, "--csv or --json, not both");
        if (a.n_ways == 0)
                a.ways[a.n_ways++] = (struct way){ policy_best_fit.name, &policy_best_fit, 0 };
        const struct batch batch = {
                .n = a.n_ways, .threads = a.threads, .work = one_run, .context = &a, .progress = "lessor-sim replay"
        };
        r = make_nodes(&a, &err);
        if (r == 0)
                r = a.jobs_path ? read_jobs(&a, &err) : read_tasks(&a, &err);
        if (r == 0 && a.rough)
                estimate_roughly(&a);
        if (r == 0)
                r = batch_run(&batch, &err);
        r = r < 0 ? sim_fail(verb, &err) : print(&a, verb);
        for (size_t i = 0; i < a.n_ways; i++)
                replay_fini(&a.results[i]);
        free(a.jobs);
        trace_fini(&a.trace);
        return r;
}
