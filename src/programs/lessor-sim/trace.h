/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is simulated, as files tell it: nodes and tasks (columns of the openb trace), or jobs with their times (columns of the
 * philly trace). GPU shares in milli-GPU (1000 = one GPU), CPU in milli-CPU, memory in MiB, time in whole seconds.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "placement/cluster.h"
#include "programs/lessor-sim/csv.h"
#include "programs/lessor-sim/ids.h"

enum {
        MODEL_NAME_MAX = 32,
        JOB_GPUS_MAX = 65536,
        VC_MAX = 65535,
};
#define TIME_MAX_S (UINT64_C(1) << 40)

struct models {
        char names[NODE_MODELS_MAX][MODEL_NAME_MAX]; /* by the number that nodes and tasks have them under */
        size_t n;
};

struct trace_task {
        struct task task;
        int64_t create_s, end_s; /* 0 where the file has none; end_s < create_s: it never ends */
};

struct trace_job {
        int64_t submit_s, duration_s;
        uint32_t gpus, vc;
};

/* ---- streams: a row at a time, and the memory of a row; of names 8 bytes each, to find those that come twice ---- */

struct trace_reader {
        struct csv csv;
        struct ids ids;
        struct models *models; /* borrowed; of nodes: filled. Of tasks: what may be named */
        int64_t last_s;
};

/* Each next: 1 a row, 0 the end, negative: bad, in words with file, line, column and value. */
int nodes_open(struct trace_reader *r, const char *path, struct models *models, struct error *err);
int nodes_next(struct trace_reader *r, struct node_spec *ret, struct error *err);
int tasks_open(struct trace_reader *r, const char *path, struct models *models, struct error *err);
int tasks_next(struct trace_reader *r, struct trace_task *ret, struct error *err);
int jobs_open(struct trace_reader *r, const char *path, struct error *err);
/* Sorted by submit time: one that comes before the one before it is bad. */
int jobs_next(struct trace_reader *r, struct trace_job *ret, struct error *err);
void trace_reader_close(struct trace_reader *r); /* fine on a zeroed one, and twice */

/* The same of bytes, for tests and fuzzers. */
int nodes_open_bytes(struct trace_reader *r, const char *name, const void *data, size_t n, struct models *models,
                     struct error *err);
int tasks_open_bytes(struct trace_reader *r, const char *name, const void *data, size_t n, struct models *models,
                     struct error *err);
int jobs_open_bytes(struct trace_reader *r, const char *name, const void *data, size_t n, struct error *err);

/* ---- whole ---- */

struct trace {
        struct models models;
        struct node_spec *nodes;
        size_t n_nodes;
        struct task *tasks;
        size_t n_tasks;
        int64_t capacity_milli; /* GPUs of all nodes */
        int64_t demand_milli;   /* of all tasks */
};

int trace_read_nodes(struct trace *trace, const char *path, struct error *err);
/* After the nodes. */
int trace_read_tasks(struct trace *trace, const char *path, struct error *err);
void trace_fini(struct trace *trace);

struct jobs {
        struct trace_job *jobs;
        size_t n;
};
int jobs_read(struct jobs *jobs, const char *path, struct error *err);
void jobs_fini(struct jobs *jobs);
