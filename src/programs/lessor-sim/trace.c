/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/trace.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/escape.h"

enum node_column { NODE_NAME, NODE_CPU, NODE_MEMORY, NODE_GPUS, NODE_MODEL };
static const struct csv_column node_columns[] = {
        [NODE_NAME] = { "sn", false },  [NODE_CPU] = { "cpu_milli", false }, [NODE_MEMORY] = { "memory_mib", false },
        [NODE_GPUS] = { "gpu", false }, [NODE_MODEL] = { "model", true },
};

enum task_column { TASK_NAME, TASK_CPU, TASK_MEMORY, TASK_GPUS, TASK_MILLI, TASK_SPEC, TASK_CREATE, TASK_END };
static const struct csv_column task_columns[] = {
        [TASK_NAME] = { "name", false },           [TASK_CPU] = { "cpu_milli", false },
        [TASK_MEMORY] = { "memory_mib", false },   [TASK_GPUS] = { "num_gpu", false },
        [TASK_MILLI] = { "gpu_milli", false },     [TASK_SPEC] = { "gpu_spec", true },
        [TASK_CREATE] = { "creation_time", true }, [TASK_END] = { "deletion_time", true },
};

enum job_column { JOB_SUBMIT, JOB_DURATION, JOB_GPUS, JOB_VC };
static const struct csv_column job_columns[] = {
        [JOB_SUBMIT] = { "submit_s", false },
        [JOB_DURATION] = { "duration_s", false },
        [JOB_GPUS] = { "gpus", false },
        [JOB_VC] = { "vc", true },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int opened(struct trace_reader *r, int result)
{
        if (result < 0)
                trace_reader_close(r);
        return result;
}

int nodes_open(struct trace_reader *r, const char *path, struct models *models, struct error *err)
{
        *r = (struct trace_reader){ .models = models };
        return opened(r, csv_open(&r->csv, path, node_columns, COUNT(node_columns), err));
}

int nodes_open_bytes(struct trace_reader *r, const char *name, const void *data, size_t n, struct models *models,
                     struct error *err)
{
        *r = (struct trace_reader){ .models = models };
        return opened(r, csv_open_bytes(&r->csv, name, data, n, node_columns, COUNT(node_columns), err));
}

int tasks_open(struct trace_reader *r, const char *path, struct models *models, struct error *err)
{
        *r = (struct trace_reader){ .models = models };
        return opened(r, csv_open(&r->csv, path, task_columns, COUNT(task_columns), err));
}

int tasks_open_bytes(struct trace_reader *r, const char *name, const void *data, size_t n, struct models *models,
                     struct error *err)
{
        *r = (struct trace_reader){ .models = models };
        return opened(r, csv_open_bytes(&r->csv, name, data, n, task_columns, COUNT(task_columns), err));
}

int jobs_open(struct trace_reader *r, const char *path, struct error *err)
{
        *r = (struct trace_reader){ 0 };
        return opened(r, csv_open(&r->csv, path, job_columns, COUNT(job_columns), err));
}

int jobs_open_bytes(struct trace_reader *r, const char *name, const void *data, size_t n, struct error *err)
{
        *r = (struct trace_reader){ 0 };
        return opened(r, csv_open_bytes(&r->csv, name, data, n, job_columns, COUNT(job_columns), err));
}

void trace_reader_close(struct trace_reader *r)
{
        csv_close(&r->csv);
        ids_fini(&r->ids);
}

/* ---- fields ---- */

static int new_name(struct trace_reader *r, size_t column, struct error *err)
{
        const char *name = csv_text(&r->csv, column);

        if (name[0] == '\0')
                return csv_wrong(&r->csv, column, err, "is no name; each row needs one of its own");
        int added = ids_add(&r->ids, name);
        if (added < 0)
                return error_errno(err, ENOMEM, "reading %s", r->csv.name);
        return added > 0 ? 0 : csv_wrong(&r->csv, column, err, "was there before; each row needs a name of its own");
}

static int amount(struct trace_reader *r, size_t column, uint64_t max, int32_t *ret, struct error *err)
{
        uint64_t value = 0;
        int k = csv_number(&r->csv, column, 0, max, &value, err);
        *ret = (int32_t) value;
        return k;
}

/* -1: nobody has it. */
static int find_model(const struct models *models, const char *name, size_t n_name)
{
        for (size_t i = 0; i < models->n; i++)
                if (strlen(models->names[i]) == n_name && memcmp(models->names[i], name, n_name) == 0)
                        return (int) i;
        return -1;
}

static int node_model(struct trace_reader *r, struct node_spec *node, struct error *err)
{
        const char *name = csv_text(&r->csv, NODE_MODEL);
        struct models *models = r->models;

        node->model = NODE_NO_MODEL;
        if (name[0] == '\0')
                return 0;
        if (strlen(name) >= MODEL_NAME_MAX || strchr(name, '|') || !text_is_plain(name, strlen(name)))
                return csv_wrong(&r->csv, NODE_MODEL, err,
                                 "is no name of a model: below 32 plain letters, and no | in it");
        int found = find_model(models, name, strlen(name));
        if (found < 0) {
                if (models->n == NODE_MODELS_MAX)
                        return csv_wrong(&r->csv, NODE_MODEL, err, "is one model too many; 64 are known apart");
                found = (int) models->n++;
                memcpy(models->names[found], name, strlen(name) + 1);
        }
        node->model = (uint8_t) found;
        return 0;
}

int nodes_next(struct trace_reader *r, struct node_spec *ret, struct error *err)
{
        uint64_t gpus = 0;
        int more = csv_next(&r->csv, err);
        if (more <= 0)
                return more;

        *ret = (struct node_spec){ 0 };
        int k = new_name(r, NODE_NAME, err);
        if (k == 0)
                k = amount(r, NODE_CPU, NODE_CPU_MILLI_MAX, &ret->cpu_milli, err);
        if (k == 0)
                k = amount(r, NODE_MEMORY, NODE_MEM_MIB_MAX, &ret->mem_mib, err);
        if (k == 0)
                k = csv_number(&r->csv, NODE_GPUS, 0, NODE_GPUS_MAX, &gpus, err);
        ret->gpus = (uint16_t) gpus;
        if (k == 0)
                k = node_model(r, ret, err);
        return k < 0 ? k : 1;
}

/* "A|B|B": a model that is named twice is no more allowed than once. */
static int task_models(struct trace_reader *r, struct task *task, struct error *err)
{
        const char *at = csv_text(&r->csv, TASK_SPEC);

        while (*at != '\0') {
                size_t n = strcspn(at, "|");
                int found = find_model(r->models, at, n);
                if (found < 0) {
                        char shown[MODEL_NAME_MAX + 8];
                        return csv_wrong(&r->csv, TASK_SPEC, err,
                                         "names a model that no node has (\"%s\"); leave it empty for any",
                                         text_escape(at, n, shown, sizeof(shown)));
                }
                task->models |= UINT64_C(1) << found;
                at += n;
                if (*at == '|' && *++at == '\0')
                        return csv_wrong(&r->csv, TASK_SPEC, err, "ends with a |");
        }
        return 0;
}

static int task_gpus(struct trace_reader *r, struct task *task, struct error *err)
{
        uint64_t gpus = 0, milli = 0;
        int k = csv_number(&r->csv, TASK_GPUS, 0, NODE_GPUS_MAX, &gpus, err);
        if (k == 0)
                k = csv_number(&r->csv, TASK_MILLI, 0, INT32_MAX, &milli, err);
        if (k < 0)
                return k;
        if (milli > MILLI_PER_GPU)
                milli = MILLI_PER_GPU; /* as the published evaluation counts it */
        if (gpus == 0 && milli > 0)
                return csv_wrong(&r->csv, TASK_MILLI, err, "is a share of no GPU; with num_gpu 0 it is 0");
        if (gpus > 0 && milli == 0)
                return csv_wrong(&r->csv, TASK_MILLI, err,
                                 "is no share of a GPU; with num_gpu above 0 it is 1 to 1000");
        if (gpus > 1 && milli < MILLI_PER_GPU)
                return csv_wrong(&r->csv, TASK_MILLI, err,
                                 "is a part of each of several GPUs; only num_gpu 1 may have less than 1000");
        task->gpus = (uint16_t) gpus;
        task->gpu_milli = (uint16_t) milli;
        return 0;
}

/* A time that the file lacks, or leaves empty, is none. */
static int task_time(struct trace_reader *r, size_t column, int64_t none, int64_t *ret, struct error *err)
{
        uint64_t value = 0;

        *ret = none;
        if (csv_text(&r->csv, column)[0] == '\0')
                return 0;
        int k = csv_number(&r->csv, column, 0, TIME_MAX_S, &value, err);
        *ret = (int64_t) value;
        return k;
}

static int task_times(struct trace_reader *r, struct trace_task *task, struct error *err)
{
        int k = task_time(r, TASK_CREATE, 0, &task->create_s, err);
        if (k == 0)
                k = task_time(r, TASK_END, -1, &task->end_s, err);
        if (k == 0 && task->end_s >= 0 && task->end_s < task->create_s)
                return csv_wrong(&r->csv, TASK_END, err, "is before its creation_time (%" PRId64 ")", task->create_s);
        return k;
}

int tasks_next(struct trace_reader *r, struct trace_task *ret, struct error *err)
{
        int more = csv_next(&r->csv, err);
        if (more <= 0)
                return more;

        *ret = (struct trace_task){ 0 };
        int k = new_name(r, TASK_NAME, err);
        if (k == 0)
                k = amount(r, TASK_CPU, NODE_CPU_MILLI_MAX, &ret->task.cpu_milli, err);
        if (k == 0)
                k = amount(r, TASK_MEMORY, NODE_MEM_MIB_MAX, &ret->task.mem_mib, err);
        if (k == 0)
                k = task_gpus(r, &ret->task, err);
        if (k == 0)
                k = task_models(r, &ret->task, err);
        if (k == 0)
                k = task_times(r, ret, err);
        return k < 0 ? k : 1;
}

int jobs_next(struct trace_reader *r, struct trace_job *ret, struct error *err)
{
        uint64_t submit = 0, duration = 0, gpus = 0, vc = 0;
        int more = csv_next(&r->csv, err);
        if (more <= 0)
                return more;

        int k = csv_number(&r->csv, JOB_SUBMIT, 0, TIME_MAX_S, &submit, err);
        if (k == 0)
                k = csv_number(&r->csv, JOB_DURATION, 1, TIME_MAX_S, &duration, err);
        if (k == 0)
                k = csv_number(&r->csv, JOB_GPUS, 1, JOB_GPUS_MAX, &gpus, err);
        if (k == 0 && csv_text(&r->csv, JOB_VC)[0] != '\0')
                k = csv_number(&r->csv, JOB_VC, 0, VC_MAX, &vc, err);
        if (k < 0)
                return k;
        if ((int64_t) submit < r->last_s)
                return csv_wrong(&r->csv, JOB_SUBMIT, err,
                                 "is before the row above it (%" PRId64 "); rows are sorted by submit_s", r->last_s);
        r->last_s = (int64_t) submit;
        *ret = (struct trace_job){ .submit_s = (int64_t) submit,
                                   .duration_s = (int64_t) duration,
                                   .gpus = (uint32_t) gpus,
                                   .vc = (uint32_t) vc };
        return 1;
}

/* ---- whole ---- */

/* Room for one more of @size bytes at the end; NULL: no memory. */
static void *one_more(void **array, size_t n, size_t size)
{
        if ((n & (n - 1)) == 0) {
                void *larger = reallocarray(*array, n == 0 ? 1 : 2 * n, size);
                if (!larger)
                        return NULL;
                *array = larger;
        }
        return (char *) *array + n * size;
}

static int no_memory(const struct trace_reader *r, struct error *err)
{
        return error_errno(err, ENOMEM, "reading %s", r->csv.name);
}

int trace_read_nodes(struct trace *trace, const char *path, struct error *err)
{
        struct trace_reader r;
        struct node_spec node;
        int k = nodes_open(&r, path, &trace->models, err);
        if (k < 0)
                return k;

        while ((k = nodes_next(&r, &node, err)) > 0) {
                struct node_spec *at = one_more((void **) &trace->nodes, trace->n_nodes, sizeof(node));
                if (!at) {
                        k = no_memory(&r, err);
                        break;
                }
                *at = node;
                trace->n_nodes++;
                trace->capacity_milli += MILLI_PER_GPU * (int64_t) node.gpus;
        }
        if (k == 0 && trace->n_nodes == 0)
                k = error_set(err, EINVAL, "%s has no nodes", r.csv.name);
        trace_reader_close(&r);
        return k;
}

int trace_read_tasks(struct trace *trace, const char *path, struct error *err)
{
        struct trace_reader r;
        struct trace_task task;
        int k = tasks_open(&r, path, &trace->models, err);
        if (k < 0)
                return k;

        while ((k = tasks_next(&r, &task, err)) > 0) {
                struct task *at = one_more((void **) &trace->tasks, trace->n_tasks, sizeof(*at));
                if (!at) {
                        k = no_memory(&r, err);
                        break;
                }
                *at = task.task;
                trace->n_tasks++;
                trace->demand_milli += task_milli(&task.task);
        }
        if (k == 0 && trace->n_tasks == 0)
                k = error_set(err, EINVAL, "%s has no tasks", r.csv.name);
        trace_reader_close(&r);
        return k;
}

void trace_fini(struct trace *trace)
{
        free(trace->nodes);
        free(trace->tasks);
        *trace = (struct trace){ 0 };
}

int jobs_read(struct jobs *jobs, const char *path, struct error *err)
{
        struct trace_reader r;
        struct trace_job job;
        int k = jobs_open(&r, path, err);
        if (k < 0)
                return k;

        *jobs = (struct jobs){ 0 };
        while ((k = jobs_next(&r, &job, err)) > 0) {
                struct trace_job *at = one_more((void **) &jobs->jobs, jobs->n, sizeof(job));
                if (!at) {
                        k = no_memory(&r, err);
                        break;
                }
                *at = job;
                jobs->n++;
        }
        if (k == 0 && jobs->n == 0)
                k = error_set(err, EINVAL, "%s has no jobs", r.csv.name);
        trace_reader_close(&r);
        return k;
}

void jobs_fini(struct jobs *jobs)
{
        free(jobs->jobs);
        *jobs = (struct jobs){ 0 };
}
