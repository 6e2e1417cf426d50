/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the placement room decides: a cluster of nodes with 8 GPUs each, filled until tasks begin to fail, then task after
 * task while others end; and gangs of 512 on one that is half full. Timed in turns with a fixed reference loop, by the time of
 * this thread on its CPU. Prints one JSON object.
 *
 *      bench_placement NODES PLACEMENTS GANGS POLICY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/number.h"
#include "placement/gang.h"
#include "placement/placer.h"

enum {
        NODES_MAX = 100000,
        GPUS = 8,
        SHAPES = 90,
        PAST = 8000,
        KEPT = 96,
        USED_MOST = 92, /* percent: above it tasks end */
        LEAF_NODES = 32,
        SPINE_NODES = 512,
        GANG = 512,
        REFERENCE_HASHES = 2000000,
        REFERENCE_BYTES = 64,
        DECISIONS_MAX = 10000000,
};

struct live {
        struct task task;
        struct placement where;
};

static uint64_t random_state = 1;

static _Noreturn void give_up(const char *words)
{
        (void) fprintf(stderr, "bench_placement: %s\n", words);
        exit(EXIT_FAILURE);
}

static uint64_t next(void)
{
        uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint32_t below(uint32_t n)
{
        return (uint32_t) (next() % n);
}

/* What was taken, to be given back when all is measured. */
enum { TAKEN_MAX = 256 };
static void *taken[TAKEN_MAX];
static unsigned n_taken;

static void *memory_of(size_t bytes)
{
        void *memory = n_taken < TAKEN_MAX ? malloc(bytes) : NULL;

        if (!memory)
                give_up("no memory");
        taken[n_taken++] = memory;
        return memory;
}

static void give_all_back(void)
{
        while (n_taken > 0)
                free(taken[--n_taken]);
}

static uint64_t cpu_now_ns(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

static volatile uint64_t reference_result; /* so that the loop is not thrown away */

static double reference_per_s(void)
{
        uint8_t bytes[REFERENCE_BYTES];
        uint64_t hash = UINT64_C(14695981039346656037), start_ns;

        memset(bytes, 0x5a, sizeof(bytes));
        start_ns = cpu_now_ns();
        for (uint32_t round = 0; round < REFERENCE_HASHES; round++)
                for (uint32_t i = 0; i < REFERENCE_BYTES; i++)
                        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
        reference_result = hash;
        return REFERENCE_HASHES / ((double) (cpu_now_ns() - start_ns) / 1e9);
}

/* Three models, 64 to 128 cores. */
static void make_cluster(struct cluster *cluster, uint32_t n)
{
        struct node_spec *specs = memory_of(n * sizeof(*specs));
        struct error err = { 0 };
        size_t bytes;

        for (uint32_t i = 0; i < n; i++)
                specs[i] = (struct node_spec){ .cpu_milli = (int32_t) (64000 + 32000 * below(3)),
                                               .mem_mib = 1 << 19,
                                               .gpus = GPUS,
                                               .model = (uint8_t) below(3) };
        bytes = cluster_bytes(specs, n);
        if (cluster_init(cluster, specs, n, memory_of(bytes), bytes, &err) < 0)
                give_up(err.msg);
}

/* Few shapes are frequent, most are rare, as in the traces of real clusters: a sixth has no GPU, a half a part of one. */
static struct task shape(uint32_t i)
{
        static const uint16_t wholes[] = { 1, 1, 1, 2, 4, 8 };
        struct task task = { .cpu_milli = (int32_t) (1000 + i * 7919 % 16000),
                             .mem_mib = (int32_t) (1024 + i * 911 % 9000) };

        if (i % 6 == 5)
                return task;
        task.gpus = i % 2 ? 1 : wholes[i / 2 % 6];
        task.gpu_milli = i % 2 ? (uint16_t) (100 + i * 37 % 800) : MILLI_PER_GPU;
        task.cpu_milli = task.gpus > 1 ? task.gpus * 7000 : task.cpu_milli;
        task.models = i % 10 == 9 ? 1 : 0;
        return task;
}

static struct task random_task(void)
{
        uint32_t a = below(SHAPES), b = below(SHAPES), c = below(SHAPES);

        a = a < b ? a : b;
        return shape(a < c ? a : c);
}

static int by_value(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

struct singles {
        double per_s;
        uint64_t p50_ns, p99_ns, most_ns;
        double failed; /* share */
        size_t bytes;  /* cluster and placer */
};

static struct singles time_singles(uint32_t n_nodes, uint32_t n, const struct placement_policy *policy)
{
        struct cluster cluster;
        struct placer placer;
        struct error err = { 0 };
        struct task *past = memory_of(PAST * sizeof(*past));
        struct singles out = { 0 };
        uint64_t *ns = memory_of(n * sizeof(*ns)), start_ns, spent_ns = 0;
        struct live *live = memory_of((size_t) n_nodes * GPUS * 20 * sizeof(*live));
        uint32_t n_live = 0, failed = 0, most = n_nodes * GPUS * 20;
        bool counting = false; /* from the first time that it was full */

        make_cluster(&cluster, n_nodes);
        for (uint32_t i = 0; i < PAST; i++)
                past[i] = random_task();
        out.bytes = placer_bytes(&cluster, PAST, KEPT);
        if (placer_init(&placer, policy, &cluster, past, PAST, KEPT, memory_of(out.bytes), out.bytes, &err) < 0)
                give_up(err.msg);
        out.bytes += (size_t) ((uint8_t *) (cluster.changed + cluster.ring_mask + 1) - (uint8_t *) cluster.nodes);
        for (uint32_t i = 0; i < n;) {
                bool full = cluster.used_milli > cluster.capacity_milli / 100 * USED_MOST || n_live == most;
                struct task task = random_task();
                struct placement where;
                uint64_t chance = next();
                start_ns = cpu_now_ns();
                if (full) {
                        uint32_t ends = below(n_live);
                        cluster_give(&cluster, &live[ends].task, &live[ends].where);
                        live[ends] = live[--n_live];
                        spent_ns += counting ? cpu_now_ns() - start_ns : 0;
                        continue;
                }
                bool placed = placer_place(&placer, &task, chance, &where);
                uint64_t took_ns = cpu_now_ns() - start_ns;
                if (placed)
                        live[n_live++] = (struct live){ .task = task, .where = where };
                counting = counting || cluster.used_milli > cluster.capacity_milli / 100 * USED_MOST;
                if (!counting)
                        continue;
                failed += !placed;
                ns[i++] = took_ns;
                spent_ns += took_ns;
        }
        qsort(ns, n, sizeof(*ns), by_value);
        out.per_s = n / ((double) spent_ns / 1e9);
        out.failed = (double) failed / n;
        out.p50_ns = ns[n / 2];
        out.p99_ns = ns[n / 100 * 99];
        out.most_ns = ns[n - 1];
        if (cluster_check(&cluster, &err) < 0)
                give_up(err.msg);
        return out;
}

static double time_gangs(uint32_t n_nodes, uint32_t n, uint64_t *p99_ns)
{
        struct cluster cluster;
        struct topology topology;
        struct gang_placer placer;
        struct gang_role role = { .task = { .cpu_milli = 6000, .mem_mib = 1024, .gpus = 1, .gpu_milli = MILLI_PER_GPU },
                                  .count = GANG };
        struct gang gang = { .roles = &role, .n_roles = 1 };
        struct gang_member *members = memory_of(GANG * sizeof(*members));
        struct gang_found found;
        uint32_t *leaves = memory_of(n_nodes * sizeof(*leaves)), *spines = memory_of(n_nodes * sizeof(*spines));
        const uint32_t *domains[3] = { NULL, leaves, spines };
        struct arena arena = { 0 };
        uint64_t *ns = memory_of(n * sizeof(*ns)), sum_ns = 0;

        make_cluster(&cluster, n_nodes);
        for (uint32_t i = 0; i < n_nodes; i++) { /* half of the GPUs, spread unevenly */
                struct task task = { .gpus = (uint16_t) below(GPUS + 1), .gpu_milli = MILLI_PER_GPU };
                leaves[i] = i / LEAF_NODES;
                spines[i] = i / SPINE_NODES;
                if (task.gpus > 0)
                        cluster_take(&cluster, &task, &(struct placement){ .node = i, .gpus = (1U << task.gpus) - 1 });
        }
        (void) topology_init(&topology, n_nodes, domains, 3, &arena, NULL);
        (void) gang_placer_init(&placer, &cluster, &topology, &arena);
        arena = (struct arena){ .bytes = 2 * arena.used, .memory = memory_of(2 * arena.used) };
        if (topology_init(&topology, n_nodes, domains, 3, &arena, NULL) < 0 ||
            !gang_placer_init(&placer, &cluster, &topology, &arena))
                give_up("no memory for a topology");
        for (uint32_t i = 0; i < n; i++) {
                uint64_t start_ns = cpu_now_ns();
                if (!gang_place(&placer, &gang, members, &found) || found.n != GANG)
                        give_up("a gang found no place");
                gang_give(&cluster, &gang, members, found.n);
                ns[i] = cpu_now_ns() - start_ns;
                sum_ns += ns[i];
        }
        qsort(ns, n, sizeof(*ns), by_value);
        *p99_ns = ns[n - 1 - n / 100];
        return n / ((double) sum_ns / 1e9);
}

static uint32_t number(const char *what, const char *text, uint64_t max)
{
        struct error err = { 0 };
        uint64_t value;

        if (parse_u64(what, text, 1, max, &value, &err) < 0)
                give_up(err.msg);
        return (uint32_t) value;
}

int main(int argc, char **argv)
{
        if (argc != 5)
                give_up("bench_placement NODES PLACEMENTS GANGS POLICY");
        uint32_t n_nodes = number("nodes", argv[1], NODES_MAX);
        uint32_t n = number("placements", argv[2], DECISIONS_MAX), n_gangs = number("gangs", argv[3], DECISIONS_MAX);
        const struct placement_policy *policy = placement_policy_find(argv[4]);
        uint64_t gang_p99_ns;

        if (!policy)
                give_up("there is no such policy");
        double before = reference_per_s();
        struct singles singles = time_singles(n_nodes, n, policy);
        double between = reference_per_s();
        double gangs_per_s = time_gangs(n_nodes, n_gangs, &gang_p99_ns);
        double after = reference_per_s();
        (void) printf("{\"nodes\":%u,\"gpus\":%u,\"shapes\":%d,\"policy\":\"%s\",\"placements\":%u,\"failed\":%.4f,"
                      "\"placements_per_s\":%.0f,\"p50_us\":%.2f,\"p99_us\":%.2f,\"most_us\":%.2f,\"bytes\":%zu,"
                      "\"gang_members\":%d,\"gangs_per_s\":%.0f,\"gang_p99_us\":%.1f,\"reference_per_s\":%.0f}\n",
                      n_nodes, n_nodes * GPUS, SHAPES, policy->name, n, singles.failed, singles.per_s,
                      (double) singles.p50_ns / 1e3, (double) singles.p99_ns / 1e3, (double) singles.most_ns / 1e3,
                      singles.bytes, GANG, gangs_per_s, (double) gang_p99_ns / 1e3, (before + between + after) / 3);
        give_all_back();
        return EXIT_SUCCESS;
}
