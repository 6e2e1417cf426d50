/* SPDX-License-Identifier: Apache-2.0 */
/* A trace from anywhere, read as nodes, tasks or jobs by its first byte: every row is within its bounds, or is refused in words. */
#include <assert.h>
#include <string.h>
#include "base/escape.h"
#include "programs/lessor-sim/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refused(int r, const struct error *err)
{
        assert(r == 0 || (r < 0 && err->msg[0] != '\0'));
}

static void nodes(const uint8_t *data, size_t size)
{
        struct models models = { 0 };
        struct trace_reader r;
        struct node_spec node;
        struct error err = { 0 };
        int k = nodes_open_bytes(&r, "nodes", data, size, &models, &err);

        while (k >= 0 && (k = nodes_next(&r, &node, &err)) > 0) {
                assert(node.gpus <= NODE_GPUS_MAX && node.cpu_milli >= 0 && node.mem_mib >= 0);
                assert(node.model == NODE_NO_MODEL || node.model < models.n);
        }
        for (size_t i = 0; i < models.n; i++)
                assert(text_is_plain(models.names[i], strlen(models.names[i])));
        refused(k, &err);
        trace_reader_close(&r);
}

static void tasks(const uint8_t *data, size_t size)
{
        struct models models = { .names = { "T4", "G2" }, .n = 2 };
        struct trace_reader r;
        struct trace_task task;
        struct error err = { 0 };
        int k = tasks_open_bytes(&r, "tasks", data, size, &models, &err);

        while (k >= 0 && (k = tasks_next(&r, &task, &err)) > 0) {
                assert(task.task.gpus <= NODE_GPUS_MAX && task.task.gpu_milli <= MILLI_PER_GPU);
                assert((task.task.gpus == 0) == (task.task.gpu_milli == 0) &&
                       (task.task.gpus <= 1 || task.task.gpu_milli == MILLI_PER_GPU));
                assert(task.task.models < 4 && task.create_s >= 0 && (task.end_s < 0 || task.end_s >= task.create_s));
        }
        refused(k, &err);
        trace_reader_close(&r);
}

static void jobs(const uint8_t *data, size_t size)
{
        struct trace_reader r;
        struct trace_job job;
        struct error err = { 0 };
        int64_t before_s = 0;
        int k = jobs_open_bytes(&r, "jobs", data, size, &err);

        while (k >= 0 && (k = jobs_next(&r, &job, &err)) > 0) {
                assert(job.submit_s >= before_s && job.duration_s > 0 && job.gpus > 0 && job.gpus <= JOB_GPUS_MAX);
                before_s = job.submit_s;
        }
        refused(k, &err);
        trace_reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size == 0)
                return 0;
        (data[0] == 'n' ? nodes : data[0] == 't' ? tasks : jobs)(data + 1, size - 1);
        return 0;
}
