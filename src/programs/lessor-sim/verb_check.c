/* SPDX-License-Identifier: Apache-2.0 */
/* `check`: reads a trace from end to end and says what is in it; of any size, in the memory of a row and 8 bytes a name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>
#include "programs/lessor-sim/sim.h"
#include "programs/lessor-sim/trace.h"

enum { NODES, TRACE, JOBS, JSON };
const struct option check_options[] = {
        [NODES] = { "nodes", "FILE", "nodes: sn,cpu_milli,memory_mib,gpu,model", .words = "@files" },
        [TRACE] = { "trace", "FILE", "tasks: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,…]",
                    .words = "@files" },
        [JOBS] = { "jobs", "FILE", "jobs: submit_s,duration_s,gpus[,vc]", .words = "@files" },
        [JSON] = { "json", NULL, "print JSON" },
        { 0 },
};

const char check_more[] =
        "  lessor-sim check --nodes nodes.csv --trace tasks.csv\n"
        "  zcat jobs.csv.gz | lessor-sim check --jobs -\n"
        "\n"
        "The first bad row ends it, with file, line, column and value. Which models a task may name, the\n"
        "nodes say: --trace needs --nodes.\n"
        "\n"
        "Exit status: 0 good, 1 bad or cannot be read, 2 wrong use.";

struct facts {
        const char *nodes_path, *trace_path, *jobs_path;
        struct models models;
        struct {
                uint64_t n, cpu_milli, gpu_milli, gpus_of[NODE_MODELS_MAX], gpus_without_model;
        } nodes;
        struct {
                uint64_t n, cpu_only, sharing, whole_of[NODE_GPUS_MAX + 1], naming, cpu_milli, gpu_milli;
        } tasks;
        struct {
                uint64_t n, gpu_s, duration_sum_s;
                int64_t first_s, last_s, shortest_s, longest_s;
                uint32_t widest;
        } jobs;
};

static int look_at_nodes(struct facts *f, struct error *err)
{
        struct trace_reader r;
        struct node_spec node;
        int k = nodes_open(&r, f->nodes_path, &f->models, err);
        if (k < 0)
                return k;

        while ((k = nodes_next(&r, &node, err)) > 0) {
                f->nodes.n++;
                f->nodes.cpu_milli += (uint64_t) node.cpu_milli;
                f->nodes.gpu_milli += (uint64_t) MILLI_PER_GPU * node.gpus;
                if (node.model == NODE_NO_MODEL)
                        f->nodes.gpus_without_model += node.gpus;
                else
                        f->nodes.gpus_of[node.model] += node.gpus;
        }
        trace_reader_close(&r);
        return k;
}

static int look_at_tasks(struct facts *f, struct error *err)
{
        struct trace_reader r;
        struct trace_task row;
        int k = tasks_open(&r, f->trace_path, &f->models, err);
        if (k < 0)
                return k;

        while ((k = tasks_next(&r, &row, err)) > 0) {
                const struct task task = row.task;
                f->tasks.n++;
                f->tasks.cpu_milli += (uint64_t) task.cpu_milli;
                f->tasks.gpu_milli += (uint64_t) task_milli(&task);
                f->tasks.naming += task.models != 0;
                if (task.gpus == 0)
                        f->tasks.cpu_only++;
                else if (task.gpu_milli < MILLI_PER_GPU)
                        f->tasks.sharing++;
                else
                        f->tasks.whole_of[task.gpus]++;
        }
        trace_reader_close(&r);
        return k;
}

static int look_at_jobs(struct facts *f, struct error *err)
{
        struct trace_reader r;
        struct trace_job job;
        int k = jobs_open(&r, f->jobs_path, err);
        if (k < 0)
                return k;

        while ((k = jobs_next(&r, &job, err)) > 0) {
                bool first = f->jobs.n++ == 0;
                if (first)
                        f->jobs.first_s = job.submit_s;
                f->jobs.last_s = job.submit_s;
                if (first || job.duration_s < f->jobs.shortest_s)
                        f->jobs.shortest_s = job.duration_s;
                if (first || job.duration_s > f->jobs.longest_s)
                        f->jobs.longest_s = job.duration_s;
                if (job.gpus > f->jobs.widest)
                        f->jobs.widest = job.gpus;
                /* sums of more rows than anybody has, each at its largest, stay what they are: too much */
                uint64_t gpu_s = (uint64_t) job.duration_s * job.gpus;
                if (__builtin_add_overflow(f->jobs.gpu_s, gpu_s, &f->jobs.gpu_s))
                        f->jobs.gpu_s = UINT64_MAX;
                f->jobs.duration_sum_s += (uint64_t) job.duration_s;
        }
        trace_reader_close(&r);
        return k;
}

static json_t *whole_json(const struct facts *f)
{
        json_t *whole = json_object();

        for (size_t k = 1; k <= NODE_GPUS_MAX; k++) {
                char name[24];
                (void) snprintf(name, sizeof(name), "%zu", k);
                if (f->tasks.whole_of[k] > 0)
                        (void) json_object_set_new(whole, name, json_integer((json_int_t) f->tasks.whole_of[k]));
        }
        return whole;
}

static json_t *nodes_json(const struct facts *f)
{
        json_t *models = json_object();

        for (size_t i = 0; i < f->models.n; i++)
                (void) json_object_set_new(models, f->models.names[i], json_integer((json_int_t) f->nodes.gpus_of[i]));
        return json_pack("{s:I s:I s:I s:o s:I}", "rows", (json_int_t) f->nodes.n, "gpus",
                         (json_int_t) (f->nodes.gpu_milli / MILLI_PER_GPU), "cpu_milli",
                         (json_int_t) f->nodes.cpu_milli, "gpus_by_model", models, "gpus_without_model",
                         (json_int_t) f->nodes.gpus_without_model);
}

static int print_json(const struct facts *f)
{
        json_t *all = json_object();

        if (f->nodes_path)
                (void) json_object_set_new(all, "nodes", nodes_json(f));
        if (f->trace_path)
                (void) json_object_set_new(all, "tasks",
                                           json_pack("{s:I s:I s:I s:o s:I s:I s:I}", "rows", (json_int_t) f->tasks.n,
                                                     "cpu_only", (json_int_t) f->tasks.cpu_only, "sharing",
                                                     (json_int_t) f->tasks.sharing, "whole_gpus", whole_json(f),
                                                     "naming_models", (json_int_t) f->tasks.naming, "cpu_milli",
                                                     (json_int_t) f->tasks.cpu_milli, "gpu_milli",
                                                     (json_int_t) f->tasks.gpu_milli));
        if (f->jobs_path)
                (void) json_object_set_new(
                        all, "jobs",
                        json_pack("{s:I s:I s:I s:I s:I s:I s:I s:I}", "rows", (json_int_t) f->jobs.n, "first_s",
                                  (json_int_t) f->jobs.first_s, "last_s", (json_int_t) f->jobs.last_s, "shortest_s",
                                  (json_int_t) f->jobs.shortest_s, "longest_s", (json_int_t) f->jobs.longest_s,
                                  "widest_gpus", (json_int_t) f->jobs.widest, "gpu_seconds", (json_int_t) f->jobs.gpu_s,
                                  "duration_sum_s", (json_int_t) f->jobs.duration_sum_s));
        int r = json_dumpf(all, stdout, JSON_INDENT(2));
        (void) putchar('\n');
        json_decref(all);
        return r == 0 ? SIM_EXIT_OK : SIM_EXIT_BAD;
}

static void print_text(const struct facts *f)
{
        if (f->nodes_path) {
                (void) printf("nodes  %" PRIu64 ": %" PRIu64 " GPUs, %" PRIu64 " cores", f->nodes.n,
                              f->nodes.gpu_milli / MILLI_PER_GPU, f->nodes.cpu_milli / 1000);
                for (size_t i = 0; i < f->models.n; i++)
                        (void) printf("%s %" PRIu64 " %s", i == 0 ? ";" : ",", f->nodes.gpus_of[i], f->models.names[i]);
                (void) putchar('\n');
        }
        if (f->trace_path) {
                (void) printf("tasks  %" PRIu64 ": %" PRIu64 " CPU only, %" PRIu64 " sharing a GPU", f->tasks.n,
                              f->tasks.cpu_only, f->tasks.sharing);
                for (size_t k = 1; k <= NODE_GPUS_MAX; k++)
                        if (f->tasks.whole_of[k] > 0)
                                (void) printf(", %" PRIu64 " of %zu GPU%s", f->tasks.whole_of[k], k, k == 1 ? "" : "s");
                (void) printf("; %" PRIu64 " name models; they want %.1f GPUs (%.1f %% of what there is), %" PRIu64
                              " cores\n",
                              f->tasks.naming, (double) f->tasks.gpu_milli / MILLI_PER_GPU,
                              f->nodes.gpu_milli == 0
                                      ? 0.0
                                      : 100.0 * (double) f->tasks.gpu_milli / (double) f->nodes.gpu_milli,
                              f->tasks.cpu_milli / 1000);
        }
        if (f->jobs_path)
                (void) printf("jobs   %" PRIu64 ": of 1 to %" PRIu32 " GPUs, %" PRId64 " to %" PRId64 " s long, "
                              "%" PRIu64 " s on the average; submitted over %.1f days; %" PRIu64 " GPU-hours\n",
                              f->jobs.n, f->jobs.widest, f->jobs.shortest_s, f->jobs.longest_s,
                              f->jobs.n == 0 ? 0 : f->jobs.duration_sum_s / f->jobs.n,
                              (double) (f->jobs.last_s - f->jobs.first_s) / 86400.0, f->jobs.gpu_s / 3600);
}

int sim_check_main(const struct verb *verb, int argc, char **argv)
{
        static struct facts f;
        struct error err = { 0 };
        struct options o;
        bool json = false;
        int row, r = 0;

        options_init(&o, verb, argc, argv);
        while ((row = options_next(&o)) != OPTIONS_END) {
                switch (row) {
                case NODES:
                        f.nodes_path = o.value;
                        break;
                case TRACE:
                        f.trace_path = o.value;
                        break;
                case JOBS:
                        f.jobs_path = o.value;
                        break;
                case JSON:
                        json = true;
                        break;
                case OPTIONS_HELP:
                        return verb_print_help(verb);
                case OPTIONS_OPERAND:
                        return verb_usage_error(verb, "files are named by --nodes, --trace and --jobs");
                default:
                        return SIM_EXIT_USAGE;
                }
        }
        if (f.trace_path && !f.nodes_path)
                return verb_usage_error(verb, "--trace needs --nodes: they say which models there are");
        if (!f.nodes_path && !f.jobs_path)
                return verb_usage_error(verb, "which files? --nodes FILE, --trace FILE, --jobs FILE");
        if (f.nodes_path)
                r = look_at_nodes(&f, &err);
        if (r == 0 && f.trace_path)
                r = look_at_tasks(&f, &err);
        if (r == 0 && f.jobs_path)
                r = look_at_jobs(&f, &err);
        if (r < 0)
                return sim_fail(verb, &err);
        if (json)
                return print_json(&f);
        print_text(&f);
        return SIM_EXIT_OK;
}
