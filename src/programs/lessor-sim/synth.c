/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/synth.h"
#include <inttypes.h>
#include "programs/lessor-sim/draw.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { STREAM_NODES = 1, STREAM_TASKS, STREAM_JOBS, VCS = 15 };

struct weighted {
        uint32_t weight, value;
};

static const struct {
        uint32_t weight, cpu_milli, memory_mib, gpus;
        const char *model;
} node_kinds[] = {
        { 453, 96000, 393216, 8, "G2" },     { 319, 104000, 524288, 2, "T4" },    { 88, 16000, 122880, 2, "P100" },
        { 32, 128000, 786432, 8, "G3" },     { 23, 32000, 131072, 4, "V100M16" }, { 18, 64000, 262144, 2, "P100" },
        { 17, 96000, 786432, 8, "V100M32" }, { 16, 8000, 32768, 1, "V100M16" },   { 14, 96000, 393216, 4, "T4" },
        { 8, 48000, 376832, 4, "V100M32" },  { 6, 64000, 262144, 8, "V100M16" },  { 4, 8000, 61440, 1, "P100" },
        { 2, 128000, 1048576, 1, "A10" },
};

/* A task's kind: how many GPUs; 0 is CPU only, SHARE a part of one. */
enum { SHARE = 100 };
static const struct weighted task_kinds[] = { { 133, 0 }, { 378, SHARE }, { 480, 1 }, { 2, 2 }, { 2, 4 }, { 5, 8 } };
static const struct weighted shares_milli[] = { { 35, 810 }, { 25, 470 }, { 11, 320 }, { 8, 650 },
                                                { 5, 230 },  { 4, 460 },  { 3, 590 },  { 3, 160 },
                                                { 3, 550 },  { 2, 220 },  { 1, 370 } };
static const struct weighted cpu_only_milli[] = {
        { 36, 12500 }, { 28, 32000 }, { 17, 8000 }, { 11, 15400 }, { 8, 16500 }
};
static const struct weighted cpu_share_milli[] = { { 36, 3152 }, { 20, 11908 }, { 17, 4000 },
                                                   { 17, 8000 }, { 5, 4152 },   { 5, 6000 } };
static const struct weighted cpu_gpu_milli[] = { { 26, 11300 }, { 17, 11400 }, { 14, 3152 }, { 10, 12000 },
                                                 { 8, 18708 },  { 6, 9810 },   { 5, 8000 },  { 5, 4000 },
                                                 { 5, 15700 },  { 4, 16000 } };
static const struct {
        uint32_t weight;
        const char *models;
} specs[] = { { 60, "T4" }, { 16, "G2" }, { 13, "P100" }, { 7, "V100M16|V100M32" }, { 4, "G3" } };

static const struct weighted job_gpus[] = { { 93167, 1 }, { 2210, 2 }, { 2274, 4 }, { 1998, 8 }, { 9, 12 },
                                            { 242, 16 },  { 8, 24 },   { 81, 32 },  { 7, 64 },   { 4, 128 } };

/* Of durations in seconds: what so many of 1,000 are below; straight lines between. */
static const struct weighted durations[] = { { 0, 1 },        { 50, 48 },      { 100, 61 },      { 200, 75 },
                                             { 300, 209 },    { 400, 599 },    { 500, 1144 },    { 600, 1821 },
                                             { 700, 2549 },   { 800, 4244 },   { 900, 11266 },   { 950, 43648 },
                                             { 980, 147876 }, { 990, 254884 }, { 999, 1186475 }, { 1000, 4628226 } };
/* Of a wait whose mean is 1,000, when what is waited for comes at any moment alike: -1000 ln(1 - q). */
static const struct weighted gaps[] = { { 0, 0 },      { 100, 105 },  { 200, 223 },  { 300, 357 },  { 400, 511 },
                                        { 500, 693 },  { 600, 916 },  { 700, 1204 }, { 800, 1609 }, { 900, 2303 },
                                        { 950, 2996 }, { 980, 3912 }, { 990, 4605 }, { 1000, 6500 } };

static size_t pick(struct draw *d, const struct weighted *rows, size_t n)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += rows[i].weight;
        uint64_t at = draw_below(d, sum);
        for (size_t i = 0; i < n; i++) {
                if (at < rows[i].weight)
                        return i;
                at -= rows[i].weight;
        }
        return n - 1;
}

#define PICK(d, rows) ((rows)[pick((d), (rows), COUNT(rows))].value)

static uint64_t of_quantiles(struct draw *d, const struct weighted *rows, size_t n)
{
        uint64_t million = draw_below(d, 1000000);
        size_t i = 1;

        while (i + 1 < n && million >= 1000 * (uint64_t) rows[i].weight)
                i++;
        uint64_t from = 1000 * (uint64_t) rows[i - 1].weight, width = 1000 * (uint64_t) rows[i].weight - from;
        return rows[i - 1].value + (rows[i].value - rows[i - 1].value) * (million - from) / width;
}

void synth_nodes(FILE *to, const struct synth_options *o)
{
        struct draw d = draw_of(o->seed, STREAM_NODES);
        struct weighted weights[COUNT(node_kinds)];

        for (size_t i = 0; i < COUNT(node_kinds); i++)
                weights[i] = (struct weighted){ node_kinds[i].weight, (uint32_t) i };
        (void) fputs("sn,cpu_milli,memory_mib,gpu,model\n", to);
        for (uint64_t i = 0; i < o->count; i++) {
                size_t kind = PICK(&d, weights);
                (void) fprintf(to, "node-%06" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s\n", i,
                               node_kinds[kind].cpu_milli, node_kinds[kind].memory_mib, node_kinds[kind].gpus,
                               node_kinds[kind].model);
        }
}

static const char *models_of(struct draw *d, uint32_t gpus, const struct synth_options *o)
{
        struct weighted weights[COUNT(specs)];

        for (size_t i = 0; i < COUNT(specs); i++)
                weights[i] = (struct weighted){ specs[i].weight, (uint32_t) i };
        if (draw_below(d, 100) >= o->named_percent || gpus == 0)
                return "";
        return specs[gpus > 2 ? 1 : PICK(d, weights)].models; /* more than two are on few models only */
}

/* The next arrival, and how long what arrives stays. */
static void next_time(struct draw *d, const struct synth_options *o, uint64_t *now_milli, uint64_t *ret_duration_s)
{
        *now_milli += of_quantiles(d, gaps, COUNT(gaps)) * o->gap_s;
        *ret_duration_s = of_quantiles(d, durations, COUNT(durations));
}

void synth_tasks(FILE *to, const struct synth_options *o)
{
        struct draw d = draw_of(o->seed, STREAM_TASKS);
        uint64_t now_milli = 0, duration_s;

        (void) fputs("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n", to);
        for (uint64_t i = 0; i < o->count; i++) {
                uint32_t kind = PICK(&d, task_kinds), gpus = kind == SHARE ? 1 : kind;
                uint32_t milli = kind == SHARE ? PICK(&d, shares_milli) : gpus > 0 ? MILLI_PER_GPU : 0;
                uint32_t cpu = kind == 0       ? PICK(&d, cpu_only_milli)
                               : kind == SHARE ? PICK(&d, cpu_share_milli)
                                               : PICK(&d, cpu_gpu_milli);
                if (gpus > 1)
                        cpu = 8000 * gpus;
                next_time(&d, o, &now_milli, &duration_s);
                (void) fprintf(to,
                               "task-%07" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s,%" PRIu64
                               ",%" PRIu64 "\n",
                               i, cpu, 2 * cpu, gpus, milli, models_of(&d, gpus, o), now_milli / 1000,
                               now_milli / 1000 + duration_s);
        }
}

void synth_jobs(FILE *to, const struct synth_options *o)
{
        struct draw d = draw_of(o->seed, STREAM_JOBS);
        uint64_t now_milli = 0, duration_s;

        (void) fputs("submit_s,duration_s,gpus,vc\n", to);
        for (uint64_t i = 0; i < o->count; i++) {
                next_time(&d, o, &now_milli, &duration_s);
                uint32_t gpus = PICK(&d, job_gpus);
                (void) fprintf(to, "%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64 "\n", now_milli / 1000, duration_s,
                               gpus, draw_below(&d, VCS));
        }
}
