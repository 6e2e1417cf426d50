/* SPDX-License-Identifier: Apache-2.0 */
/* Who starts when: the worked examples 3, 4 and 15 to 18 of cluster scheduling, and what each way promises, on random queues. */
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "cluster_scene.h"
#include "cm.h"
#include "placement/backfill.h"

enum { JOBS = 12, MEMBERS = 40, RANDOM_CASES = 1000, NEVER = -1 };

static uint64_t n_cases = RANDOM_CASES;

struct day { /* jobs that all come at 0, each of one task */
        struct cluster_scene scene;
        struct topology topology;
        struct backfill backfill;
        void *memory;
        struct gang_role roles[JOBS];
        struct gang gangs[JOBS];
        struct gang_member members[JOBS][MEMBERS];
        struct backfill_job jobs[JOBS];
        int64_t runs_s[JOBS]; /* really */
        int64_t promised_s[JOBS];
        uint32_t n;
        int64_t now_s;
};

static void begin(struct day *d, size_t n_nodes, unsigned gpus)
{
        struct arena arena = { 0 };

        *d = (struct day){ 0 };
        cluster_scene_equal(&d->scene, n_nodes, gpus, NULL);
        for (int round = 0; round < 2; round++) {
                (void) topology_init(&d->topology, (uint32_t) n_nodes, NULL, 0, &arena, NULL);
                (void) backfill_init(&d->backfill, &d->scene.cluster, &d->topology, JOBS, &arena);
                if (round == 0)
                        arena = (struct arena){ .bytes = arena.used, .memory = d->memory = malloc(arena.used) };
        }
        assert_int_equal(arena.used, arena.bytes);
}

static void end(struct day *d)
{
        cluster_scene_end(&d->scene);
        free(d->memory);
}

/* Waits; of @count tasks. */
static struct backfill_job *come(struct day *d, uint32_t count, struct task task, int64_t estimate_s)
{
        uint32_t i = d->n++;

        d->roles[i] = (struct gang_role){ .task = task, .count = count };
        d->gangs[i] = (struct gang){ .roles = &d->roles[i], .n_roles = 1 };
        d->jobs[i] = (struct backfill_job){
                .gang = &d->gangs[i], .members = d->members[i], .estimate_s = estimate_s, .start_s = NEVER
        };
        d->runs_s[i] = estimate_s;
        d->promised_s[i] = NEVER;
        return &d->jobs[i];
}

/* Runs already, on a node's lowest free GPUs, until then. */
static void runs(struct day *d, uint32_t node, uint16_t gpus, int64_t until_s)
{
        struct backfill_job *job = come(d, 1, GPUS(gpus), until_s);
        const struct node *at = &d->scene.cluster.nodes[node];

        job->n = 1;
        job->state = BACKFILL_RUNNING;
        job->start_s = 0;
        job->end_s = until_s;
        job->members[0] = (struct gang_member){ .where = { .node = node } };
        job->members[0].where.gpus = node_gpus(&d->scene.cluster, at, &job->gang->roles[0].task);
        cluster_take(&d->scene.cluster, &job->gang->roles[0].task, &job->members[0].where);
}

static void pass(struct day *d, uint32_t depth)
{
        struct backfill_job *running[JOBS], *queue[JOBS];
        uint32_t n_running = 0, n_queue = 0;

        for (uint32_t i = 0; i < d->n; i++)
                if (d->jobs[i].state == BACKFILL_RUNNING && d->jobs[i].n > 0)
                        running[n_running++] = &d->jobs[i];
                else if (d->jobs[i].state != BACKFILL_RUNNING)
                        queue[n_queue++] = &d->jobs[i];
        backfill_pass(&d->backfill, d->now_s, running, n_running, queue, n_queue, depth);
        for (uint32_t i = 0; i < d->n; i++)
                if (d->jobs[i].state == BACKFILL_RESERVED && d->promised_s[i] == NEVER)
                        d->promised_s[i] = d->jobs[i].start_s;
}

/* To the next end of somebody; false: nobody runs. */
static bool next_end(struct day *d)
{
        int64_t next_s = INT64_MAX;

        for (uint32_t i = 0; i < d->n; i++)
                if (d->jobs[i].state == BACKFILL_RUNNING && d->jobs[i].n > 0 &&
                    d->jobs[i].start_s + d->runs_s[i] < next_s)
                        next_s = d->jobs[i].start_s + d->runs_s[i];
        if (next_s == INT64_MAX)
                return false;
        d->now_s = next_s;
        for (uint32_t i = 0; i < d->n; i++)
                if (d->jobs[i].state == BACKFILL_RUNNING && d->jobs[i].start_s + d->runs_s[i] == next_s) {
                        gang_give(&d->scene.cluster, d->jobs[i].gang, d->jobs[i].members, d->jobs[i].n);
                        d->jobs[i].n = 0;
                }
        return true;
}

static void play(struct day *d, uint32_t depth)
{
        do
                pass(d, depth);
        while (next_end(d));
}

static const struct {
        const char *name;
        uint32_t depth;
} ways[] = { { "fcfs", BACKFILL_FCFS }, { "easy", BACKFILL_EASY }, { "conservative", BACKFILL_CONSERVATIVE } };

struct queued {
        uint16_t gpus;
        int64_t estimate_s;
};

/* One node; @until_s: whoever runs already. Starts by way, NEVER: not looked at. */
struct example {
        const char *name;
        unsigned gpus;
        struct queued running[2], queue[4];
        int64_t starts_s[3][4];
};

static const struct example examples[] = {
        { "3", 16, { { 0 } }, { { 8, 50 }, { 8, 30 }, { 8, 10 } }, { { 0, 0, 30 }, { 0, 0, 30 }, { 0, 0, 30 } } },
        { "4",
          16,
          { { 0 } },
          { { 10, 100 }, { 10, 100 }, { 6, 100 }, { 6, 101 } },
          { { 0, 100, 100, 200 }, { 0, 100, 0, 100 }, { 0, 100, 0, 100 } } },
        { "15",
          8,
          { { 4, 10 }, { 2, 20 } },
          { { 6, 10 }, { 2, 10 }, { 2, 12 } },
          { { NEVER }, { 10, 0, 20 }, { NEVER } } },
        { "16",
          8,
          { { 4, 10 }, { 2, 20 } },
          { { 5, 10 }, { 1, 100 }, { 2, 10 } },
          { { 10, 10, 20 }, { 10, 0, 20 }, { NEVER } } },
        { "17",
          8,
          { { 6, 3 } },
          { { 3, 4 }, { 5, 2 }, { 1, 4 }, { 2, 2 } },
          { { NEVER }, { 3, 4, 0, 6 }, { 3, 3, 5, 0 } } },
};

static void examples_3_4_15_16_17_starts_by_each_way(void **state)
{
        (void) state;
        int rows_failed = 0;

        for (size_t e = 0; e < sizeof(examples) / sizeof(examples[0]); e++)
                for (size_t way = 0; way < 3; way++) {
                        const struct example *x = &examples[e];
                        struct day d;
                        uint32_t first = 0;
                        if (x->starts_s[way][0] == NEVER)
                                continue;
                        begin(&d, 1, x->gpus);
                        for (; first < 2 && x->running[first].gpus; first++)
                                runs(&d, 0, x->running[first].gpus, x->running[first].estimate_s);
                        for (int i = 0; i < 4 && x->queue[i].gpus; i++)
                                come(&d, 1, GPUS(x->queue[i].gpus), x->queue[i].estimate_s);
                        play(&d, ways[way].depth);
                        for (uint32_t i = 0; first + i < d.n; i++) {
                                if (d.jobs[first + i].start_s != x->starts_s[way][i])
                                        print_message("# example %s, %s: job %u starts at %lld\n", x->name,
                                                      ways[way].name, i, (long long) d.jobs[first + i].start_s);
                                row_check(x->name, d.jobs[first + i].start_s == x->starts_s[way][i]);
                        }
                        end(&d);
                }
        rows_end();
}

/* By counting, the small job has room beside the large one's reservation; on that one's node it would delay it. */
static void example_18_backfill_goes_to_a_node_where_it_delays_nobody(void **state)
{
        (void) state;
        struct day d;

        begin(&d, 3, 8);
        runs(&d, 0, 4, 10);
        runs(&d, 1, 8, 100);
        runs(&d, 2, 4, 100);
        struct backfill_job *head = come(&d, 1, GPUS(8), 20), *small = come(&d, 4, GPUS(1), 50);
        pass(&d, BACKFILL_EASY);
        assert_int_equal(head->state, BACKFILL_RESERVED);
        assert_int_equal(head->start_s, 10);
        assert_int_equal(small->state, BACKFILL_RUNNING);
        assert_int_equal(small->members[0].where.node, 2);
        end(&d);
}

static void job_that_runs_longer_than_it_said_moves_the_reservation(void **state)
{
        (void) state;
        struct day d;

        begin(&d, 1, 8);
        runs(&d, 0, 8, 10);
        d.runs_s[0] = 25;
        struct backfill_job *head = come(&d, 1, GPUS(8), 20), *small = come(&d, 1, GPUS(1), 5);
        pass(&d, BACKFILL_CONSERVATIVE);
        assert_int_equal(head->start_s, 10);
        d.now_s = 15;
        pass(&d, BACKFILL_CONSERVATIVE);
        assert_int_equal(head->state, BACKFILL_RESERVED);
        assert_int_equal(head->start_s, 16);
        assert_int_equal(small->start_s, 36);
        play(&d, BACKFILL_CONSERVATIVE);
        assert_int_equal(head->start_s, 25);
        assert_int_equal(small->start_s, 45);
        end(&d);
}

static void early_end_moves_reservations_forward(void **state)
{
        (void) state;
        struct day d;

        begin(&d, 1, 8);
        runs(&d, 0, 8, 100);
        d.runs_s[0] = 5;
        struct backfill_job *head = come(&d, 1, GPUS(8), 20), *second = come(&d, 1, GPUS(8), 20);
        pass(&d, BACKFILL_CONSERVATIVE);
        assert_int_equal(second->start_s, 120);
        assert_true(next_end(&d));
        pass(&d, BACKFILL_CONSERVATIVE);
        assert_int_equal(head->start_s, 5);
        assert_int_equal(second->start_s, 25);
        end(&d);
}

static void job_that_never_fits_holds_up_nobody_but_by_arrival(void **state)
{
        (void) state;
        static const int64_t starts_s[3] = { NEVER, 0, 0 };
        int rows_failed = 0;

        for (size_t way = 0; way < 3; way++) {
                struct day d;
                begin(&d, 1, 4);
                struct backfill_job *never = come(&d, 1, GPUS(8), 20), *small = come(&d, 1, GPUS(1), 5);
                pass(&d, ways[way].depth);
                row_check(ways[way].name, never->state == BACKFILL_WAITING && small->start_s == starts_s[way]);
                if (small->state == BACKFILL_RUNNING)
                        assert_true(next_end(&d));
                end(&d);
        }
        rows_end();
}

/* ---- random queues ---- */

static uint64_t next(uint64_t *random)
{
        uint64_t z = (*random += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static int64_t below(uint64_t *random, uint64_t n)
{
        return (int64_t) (next(random) % n);
}

static void fill_day(struct day *d, uint64_t seed, size_t n_nodes)
{
        uint64_t random = seed;

        begin(d, n_nodes, 8);
        if (below(&random, 2))
                runs(d, 0, (uint16_t) (1 + below(&random, 8)), 1 + below(&random, 20));
        for (uint32_t n = 2 + (uint32_t) below(&random, JOBS - 3); n > 0; n--) {
                uint16_t gpus = (uint16_t) (1 + below(&random, 8));
                uint32_t count =
                        n_nodes > 1 ? (uint32_t) (1 + below(&random, (uint64_t) (n_nodes * 8 / gpus / 2 + 1))) : 1;
                (void) come(d, count > n_nodes * (8 / gpus) ? (uint32_t) n_nodes * (8 / gpus) : count, GPUS(gpus),
                            1 + below(&random, 20));
        }
}

/* With exact estimates, on one node: by conservative nobody, by EASY the first head not, starts later than by arrival. */
static void backfill_delays_nobody_it_promised(void **state)
{
        (void) state;
        for (uint64_t seed = 0; seed < n_cases; seed++) {
                struct day fcfs, easy, conservative;
                uint32_t head = JOBS;
                fill_day(&fcfs, seed, 1);
                fill_day(&easy, seed, 1);
                fill_day(&conservative, seed, 1);
                play(&fcfs, BACKFILL_FCFS);
                pass(&easy, BACKFILL_EASY);
                for (uint32_t i = easy.n; i-- > 0;)
                        head = easy.jobs[i].state == BACKFILL_RESERVED ? i : head;
                play(&easy, BACKFILL_EASY);
                play(&conservative, BACKFILL_CONSERVATIVE);
                if (head < JOBS)
                        assert_true(easy.jobs[head].start_s <= fcfs.jobs[head].start_s);
                for (uint32_t i = 0; i < fcfs.n; i++)
                        assert_true(conservative.jobs[i].start_s <= fcfs.jobs[i].start_s);
                end(&fcfs);
                end(&easy);
                end(&conservative);
        }
}

/* On several nodes, while nobody runs longer than he said: whoever has a reservation starts then or before, and all start. */
static void reservation_once_made_is_kept(void **state)
{
        (void) state;
        for (uint64_t seed = 0; seed < n_cases; seed++) {
                struct day d;
                uint64_t random = ~seed;
                uint32_t depth = seed % 3 == 0 ? BACKFILL_EASY : seed % 3 == 1 ? 3 : BACKFILL_CONSERVATIVE;
                fill_day(&d, seed, 1 + (size_t) below(&random, 4));
                for (uint32_t i = 0; i < d.n; i++)
                        if (below(&random, 3) == 0)
                                d.runs_s[i] = 1 + below(&random, (uint64_t) d.runs_s[i]);
                play(&d, depth);
                for (uint32_t i = 0; i < d.n; i++) {
                        assert_int_equal(d.jobs[i].state, BACKFILL_RUNNING);
                        assert_true(d.promised_s[i] == NEVER || d.jobs[i].start_s <= d.promised_s[i]);
                }
                assert_int_equal(d.scene.cluster.used_milli, 0);
                end(&d);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(examples_3_4_15_16_17_starts_by_each_way),
                cmocka_unit_test(example_18_backfill_goes_to_a_node_where_it_delays_nobody),
                cmocka_unit_test(job_that_runs_longer_than_it_said_moves_the_reservation),
                cmocka_unit_test(early_end_moves_reservations_forward),
                cmocka_unit_test(job_that_never_fits_holds_up_nobody_but_by_arrival),
                cmocka_unit_test(backfill_delays_nobody_it_promised),
                cmocka_unit_test(reservation_once_made_is_kept),
        };

        if (argc > 1 && parse_u64("cases", argv[1], 1, UINT64_MAX, &n_cases, NULL) < 0)
                return EXIT_FAILURE;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
