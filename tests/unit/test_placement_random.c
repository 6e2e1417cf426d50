/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random small clusters under random tasks, each decision beside one made the long way: every node asked, fragmentation by its
 * definition, nothing kept from before. With a number as argument: so many clusters instead of a few.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "cluster_scene.h"
#include "cm.h"

enum { CLUSTERS = 400, STEPS = 60, NODES = 6, PAST = 40, LIVE = 64, KEPT = 3 };

static uint64_t n_clusters = CLUSTERS;

struct life {
        uint64_t random;
        struct cluster_scene scene;
        struct task past[PAST];
        struct task tasks[LIVE];
        struct placement where[LIVE];
        unsigned live;
};

static uint64_t next(struct life *life)
{
        uint64_t z = (life->random += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static unsigned below(struct life *life, unsigned n)
{
        return (unsigned) (next(life) % n);
}

static struct task random_task(struct life *life)
{
        static const uint16_t parts[] = { 100, 250, 333, 500, 750, 999 };
        struct task task = { .cpu_milli = (int32_t) (below(life, 6) * 4000),
                             .mem_mib = (int32_t) (below(life, 4) * 1000) };

        switch (below(life, 5)) {
        case 0:
                break;
        case 1:
                task.gpus = (uint16_t) (1 + below(life, 4));
                task.gpu_milli = MILLI_PER_GPU;
                break;
        default:
                task.gpus = 1;
                task.gpu_milli = below(life, 4) ? parts[below(life, 6)] : MILLI_PER_GPU;
                break;
        }
        if (below(life, 3) == 0)
                task.models = 1 + below(life, 7);
        return task;
}

static void begin(struct life *life, const struct placement_policy *policy, uint64_t seed)
{
        struct node_spec specs[NODES];
        size_t n;
        struct error err = { 0 };

        *life = (struct life){ .random = seed };
        n = 1 + below(life, NODES);
        for (size_t i = 0; i < n; i++)
                specs[i] = (struct node_spec){ .cpu_milli = (int32_t) (below(life, 5) * 8000),
                                               .mem_mib = (int32_t) (1000 + below(life, 5) * 1000),
                                               .gpus = (uint16_t) below(life, 5),
                                               .model = (uint8_t) (below(life, 5) ? below(life, 3) : NODE_NO_MODEL) };
        for (int i = 0; i < PAST; i++)
                life->past[i] = random_task(life);
        cluster_scene_init(&life->scene, specs, n, NULL, NULL, 0);
        size_t bytes = placer_bytes(&life->scene.cluster, PAST, KEPT);
        life->scene.placer_memory = malloc(bytes);
        assert_non_null(life->scene.placer_memory);
        assert_int_equal(placer_init(&life->scene.placer, policy, &life->scene.cluster, life->past, PAST, KEPT,
                                     life->scene.placer_memory, bytes, &err),
                         0);
}

/* F_n × total, shape by shape. */
static int64_t fragment_long(const struct placer *placer, const struct node *node, const uint16_t *left)
{
        int64_t sum = 0;

        for (uint32_t m = 0; m < placer->shapes.n; m++)
                sum += fragment_for_shape(node, left, &placer->shapes.rows[m].task) * placer->shapes.rows[m].count;
        return sum;
}

static int64_t gain_long(struct placer *placer, uint32_t n, const struct task *task, uint32_t gpus)
{
        struct cluster *cluster = placer->cluster;
        struct placement where = { .node = n, .gpus = gpus };
        int64_t before = fragment_long(placer, &cluster->nodes[n], cluster_left(cluster, &cluster->nodes[n]));

        cluster_take(cluster, task, &where);
        int64_t after = fragment_long(placer, &cluster->nodes[n], cluster_left(cluster, &cluster->nodes[n]));
        cluster_give(cluster, task, &where);
        return before - after;
}

/* floor(100 / (1 + exp(-D / 1000))), which is 50 exactly where D is 0. */
static int32_t fgd_long(const struct placer *placer, int64_t gain)
{
        double d = (double) gain / (double) placer->shapes.total;

        return gain == 0 ? 50 : (int32_t) floor(100 / (1 + exp(-d / 1000)));
}

/* What @policy promises, from the definitions; only those that go by fragmentation are written down again. */
static int32_t score_long(struct placer *placer, uint32_t n, const struct task *task, unsigned *gpu)
{
        const struct node *node = &placer->cluster->nodes[n];
        const uint16_t *left = cluster_left(placer->cluster, node);
        bool fgd = placer->policy == &policy_fgd;
        int32_t highest = INT32_MIN;

        *gpu = NODE_GPUS_MAX;
        if (!fgd && placer->policy != &policy_priced)
                return placer->policy->score(placer, node, task);
        for (unsigned i = 0; i < node->gpus || i == 0; i++) {
                bool sharing = task_kind(task) == TASK_SHARING;
                if (sharing ? left[i] < task->gpu_milli : i > 0)
                        continue;
                int64_t gain = gain_long(placer, n, task, sharing ? 1U << i : node_lowest_full(left, node, task->gpus));
                int64_t price = prices_of(&placer->prices, placer->cluster, node, task);
                int32_t s = fgd ? fgd_long(placer, gain)
                                : (int32_t) floor_div(gain * PRICE_UNIT - price * placer->shapes.total,
                                                      40 * PRICE_UNIT * placer->shapes.total);
                if (s > highest) {
                        highest = s;
                        *gpu = i;
                }
        }
        return highest;
}

static int best_long(struct placer *placer, const struct task *task, unsigned *gpu)
{
        int best = -1, highest = 0;

        for (uint32_t n = 0; n < placer->cluster->n_nodes; n++) {
                unsigned on;
                if (!node_fits(&placer->cluster->nodes[n], task))
                        continue;
                int32_t s = score_long(placer, n, task, &on);
                if (best < 0 || s > highest) {
                        best = (int) n;
                        highest = s;
                        *gpu = on;
                }
        }
        return best;
}

static void place_one(struct life *life)
{
        struct placer *placer = &life->scene.placer;
        struct task task = random_task(life);
        struct placement where;
        unsigned gpu = NODE_GPUS_MAX;
        int expected = best_long(placer, &task, &gpu);
        bool placed = placer_decide(placer, &task, next(life), &where);

        assert_int_equal(placed, expected >= 0);
        if (!placed)
                return;
        assert_true(node_fits(&placer->cluster->nodes[where.node], &task));
        if (!placer->policy->random_node)
                assert_int_equal(where.node, expected);
        if (gpu < NODE_GPUS_MAX && task_kind(&task) == TASK_SHARING)
                assert_int_equal(where.gpus, 1U << gpu);
        if (life->live == LIVE)
                return;
        cluster_take(&life->scene.cluster, &task, &where);
        life->tasks[life->live] = task;
        life->where[life->live++] = where;
}

static void end_one(struct life *life)
{
        unsigned i = below(life, life->live);

        cluster_give(&life->scene.cluster, &life->tasks[i], &life->where[i]);
        life->tasks[i] = life->tasks[--life->live];
        life->where[i] = life->where[life->live];
}

static void check(struct life *life)
{
        struct placer *placer = &life->scene.placer;
        struct error err = { 0 };
        int64_t sum = 0;

        if (cluster_check(&life->scene.cluster, &err) < 0)
                fail_msg("%s", err.msg);
        for (uint32_t n = 0; n < life->scene.cluster.n_nodes; n++) {
                const struct node *node = &life->scene.cluster.nodes[n];
                int64_t f = fragment_long(placer, node, cluster_left(&life->scene.cluster, node));
                assert_int_equal(f,
                                 fragment_of_node(&placer->fragment, node, cluster_left(&life->scene.cluster, node)));
                sum += f;
        }
        assert_int_equal(sum, placer_fragment(placer));
}

static void live(const struct placement_policy *policy, uint64_t seed)
{
        struct life life;

        begin(&life, policy, seed);
        for (int step = 0; step < STEPS; step++) {
                unsigned what = below(&life, 10);
                if (what < 6)
                        place_one(&life);
                else if (what < 9 && life.live > 0)
                        end_one(&life);
                else
                        cluster_close(&life.scene.cluster, below(&life, life.scene.cluster.n_nodes), what & 1);
                if (step % 4 == 0)
                        check(&life);
        }
        while (life.live > 0)
                end_one(&life);
        check(&life);
        assert_int_equal(life.scene.cluster.used_milli, 0);
        cluster_scene_end(&life.scene);
}

static void every_decision_is_that_of_asking_every_node(void **state)
{
        (void) state;
        size_t n;
        const struct placement_policy *const *all = placement_policies(&n);

        for (uint64_t seed = 0; seed < n_clusters; seed++)
                live(all[seed % n], seed);
}

static void same_chance_gives_the_same_placements(void **state)
{
        (void) state;
        struct life a, b;

        begin(&a, &policy_random, 7);
        begin(&b, &policy_random, 7);
        for (int i = 0; i < STEPS; i++) {
                place_one(&a);
                place_one(&b);
        }
        assert_int_equal(a.live, b.live);
        assert_memory_equal(a.where, b.where, sizeof(a.where[0]) * a.live);
        cluster_scene_end(&a.scene);
        cluster_scene_end(&b.scene);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_decision_is_that_of_asking_every_node),
                cmocka_unit_test(same_chance_gives_the_same_placements),
        };

        if (argc > 1 && parse_u64("clusters", argv[1], 1, UINT64_MAX, &n_clusters, NULL) < 0)
                return EXIT_FAILURE;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
