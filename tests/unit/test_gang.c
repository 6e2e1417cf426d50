/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that start together, near each other: the worked examples 1, 2, 19 to 23 and 28 of cluster scheduling. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "cluster_scene.h"
#include "cm.h"
#include "placement/gang.h"

enum { MEMBERS = 128, RANDOM_CASES = 2000 };

static uint64_t n_cases = RANDOM_CASES;

struct gang_scene {
        struct cluster_scene scene;
        struct topology topology;
        struct gang_placer placer;
        void *topology_memory, *placer_memory;
        struct gang_member members[MEMBERS];
        struct gang_found found;
};

/* @free[i] whole GPUs are free on node i, of 8; @leaves: the leaf switch of each, NULL: none are known. */
static void begin(struct gang_scene *s, size_t n, const uint16_t *free, const uint32_t *leaves)
{
        const uint32_t *domains[2] = { NULL, leaves };
        struct arena arena = { 0 };

        *s = (struct gang_scene){ 0 };
        cluster_scene_equal(&s->scene, n, 8, NULL);
        for (uint32_t i = 0; i < n; i++) {
                struct task rest = GPUS((uint16_t) (8 - free[i]));
                if (rest.gpus > 0)
                        cluster_take(&s->scene.cluster, &rest,
                                     &(struct placement){ .node = i, .gpus = (1U << rest.gpus) - 1 });
        }
        (void) topology_init(&s->topology, (uint32_t) n, domains, leaves ? 2 : 0, &arena, NULL);
        arena = (struct arena){ .bytes = arena.used, .memory = s->topology_memory = malloc(arena.used) };
        assert_int_equal(topology_init(&s->topology, (uint32_t) n, domains, leaves ? 2 : 0, &arena, NULL), 0);
        arena = (struct arena){ 0 };
        (void) gang_placer_init(&s->placer, &s->scene.cluster, &s->topology, &arena);
        arena = (struct arena){ .bytes = arena.used, .memory = s->placer_memory = malloc(arena.used) };
        assert_true(gang_placer_init(&s->placer, &s->scene.cluster, &s->topology, &arena));
}

static void end(struct gang_scene *s)
{
        cluster_scene_end(&s->scene);
        free(s->topology_memory);
        free(s->placer_memory);
}

static bool start(struct gang_scene *s, const struct gang *gang)
{
        assert_int_equal(gang_check(gang, NULL), 0);
        return gang_place(&s->placer, gang, s->members, &s->found);
}

/* Of one role without more ado. */
static bool start_tasks(struct gang_scene *s, uint32_t count, struct task task, struct gang more)
{
        struct gang_role role = { .task = task, .count = count };

        more.roles = &role;
        more.n_roles = 1;
        return start(s, &more);
}

static unsigned members_on(const struct gang_scene *s, uint32_t node)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < s->found.n; i++)
                n += s->members[i].where.node == node;
        return n;
}

static void example_1_two_gangs_of_eight_start_on_two_nodes(void **state)
{
        (void) state;
        struct gang_scene s;

        begin(&s, 2, (uint16_t[]){ 8, 8 }, NULL);
        assert_true(start_tasks(&s, 8, GPUS(1), (struct gang){ 0 }));
        assert_int_equal(members_on(&s, 0), 8);
        assert_true(start_tasks(&s, 8, GPUS(1), (struct gang){ 0 }));
        assert_int_equal(members_on(&s, 1), 8);
        assert_false(start_tasks(&s, 1, GPUS(1), (struct gang){ 0 }));
        end(&s);
}

/* The war story: six of eight ranks up, and waiting for ever. */
static void example_2_gang_that_does_not_fit_holds_nothing(void **state)
{
        (void) state;
        struct gang_scene s;

        begin(&s, 2, (uint16_t[]){ 8, 4 }, NULL);
        assert_true(start_tasks(&s, 8, GPUS(1), (struct gang){ 0 }));
        assert_false(start_tasks(&s, 8, GPUS(1), (struct gang){ 0 }));
        assert_int_equal(s.scene.cluster.capacity_milli - s.scene.cluster.used_milli, 4000);
        end(&s);
}

/* F69: two gangs each held a part of the machines and waited for the rest. Whichever comes first has all, the other nothing. */
static void f69_one_of_two_gangs_that_do_not_fit_together_has_all_and_the_other_nothing(void **state)
{
        (void) state;
        static const uint16_t nodes[3][4] = { { 8 }, { 4, 4 }, { 2, 2, 2, 2 } };
        static const size_t n[3] = { 1, 2, 4 };

        for (size_t i = 0; i < 3; i++)
                for (unsigned turn = 0; turn < 4; turn++) { /* asked alternately, by members of one GPU or of two */
                        struct gang_scene s;
                        unsigned holding = 0;
                        begin(&s, n[i], nodes[i], NULL);
                        for (unsigned asked = 0; asked < 4; asked++) {
                                uint16_t gpus = (turn + asked) % 2 ? 1 : 2;
                                holding += start_tasks(&s, 6 / gpus, GPUS(gpus), (struct gang){ 0 });
                                assert_int_equal(s.scene.cluster.capacity_milli - s.scene.cluster.used_milli,
                                                 holding ? 2000 : 8000);
                        }
                        assert_int_equal(holding, 1);
                        end(&s);
                }
}

static void example_19_few_nodes_and_the_tightest_for_the_rest(void **state)
{
        (void) state;
        struct gang_scene s;

        begin(&s, 4, (uint16_t[]){ 3, 3, 2, 1 }, NULL);
        assert_true(start_tasks(&s, 7, GPUS(1), (struct gang){ 0 }));
        assert_int_equal(members_on(&s, 0), 3);
        assert_int_equal(members_on(&s, 1), 3);
        assert_int_equal(members_on(&s, 2), 0);
        assert_int_equal(members_on(&s, 3), 1);
        end(&s);
}

static void example_20_lowest_domain_that_has_room_and_of_those_the_tightest(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t count, level, leaf;
                unsigned left_in_leaf; /* whole nodes */
        } rows[] = { { "three", 3, 2, 1, 1 }, { "two", 2, 2, 0, 0 }, { "one", 1, 1, 0, 1 }, { "five", 5, 3, 0, 0 } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct gang_scene s;
                unsigned whole = 0;
                begin(&s, 8, (uint16_t[]){ 8, 8, 4, 4, 8, 8, 8, 8 }, (uint32_t[]){ 0, 0, 0, 0, 1, 1, 1, 1 });
                row_check(rows[i].name, start_tasks(&s, rows[i].count, GPUS(8), (struct gang){ 0 }));
                row_check(rows[i].name, s.found.level == rows[i].level);
                if (rows[i].level == 2)
                        row_check(rows[i].name, s.found.domain == rows[i].leaf);
                for (uint32_t n = 0; n < 8; n++)
                        whole += n / 4 == rows[i].leaf && s.scene.cluster.nodes[n].full == 8;
                if (rows[i].level < 3)
                        row_check(rows[i].name, whole == rows[i].left_in_leaf);
                end(&s);
        }
        rows_end();
}

static void example_21_rest_goes_to_the_tightest_or_all_evenly(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                bool balanced;
                unsigned on[3];
        } rows[] = { { "tight", false, { 8, 0, 2 } }, { "balanced", true, { 5, 5, 0 } } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct gang_scene s;
                begin(&s, 3, (uint16_t[]){ 8, 8, 6 }, (uint32_t[]){ 0, 0, 0 });
                row_check(rows[i].name, start_tasks(&s, 10, GPUS(1), (struct gang){ .balanced = rows[i].balanced }));
                for (uint32_t n = 0; n < 3; n++)
                        row_check(rows[i].name, members_on(&s, n) == rows[i].on[n]);
                end(&s);
        }
        rows_end();
}

static void example_22_required_bound_waits_and_a_preferred_one_climbs(void **state)
{
        (void) state;
        struct gang_scene s;

        begin(&s, 4, (uint16_t[]){ 8, 8, 8, 8 }, (uint32_t[]){ 0, 0, 1, 1 });
        assert_false(start_tasks(&s, 3, GPUS(8), (struct gang){ .required = 2 }));
        assert_int_equal(s.scene.cluster.used_milli, 0);
        assert_true(start_tasks(&s, 3, GPUS(8), (struct gang){ .preferred = 2 }));
        assert_int_equal(s.found.level, 3);
        end(&s);
}

static void example_23_cost_of_an_all_reduce(void **state)
{
        (void) state;
        uint64_t v = UINT64_C(10000000000), nvlink = UINT64_C(900000000000), ib = UINT64_C(50000000000);

        assert_in_range(allreduce_ns(v, 8, nvlink), 19440000, 19450000);
        assert_int_equal(allreduce_ns(v, 8, ib), 350000000);
        assert_in_range(allreduce_nodes_ns(v, 2, 8, nvlink, ib), 44440000, 44450000);
        assert_int_equal(allreduce_ns(v, 16, ib), 375000000);
        assert_int_equal(allreduce_ns(v, 1, ib), 0);
}

static void example_28_elastic_gang_starts_with_fewer_and_the_others_join(void **state)
{
        (void) state;
        struct gang_role role = { .task = GPUS(1), .count = 8 };
        struct gang gang = { .roles = &role, .n_roles = 1, .min = 6 };
        struct gang_scene s;
        struct task one = GPUS(1);
        struct placement taken = { .node = 0, .gpus = 1 };

        begin(&s, 1, (uint16_t[]){ 8 }, NULL);
        cluster_take(&s.scene.cluster, &one, &taken);
        assert_true(start(&s, &gang));
        assert_int_equal(s.found.n, 7);
        assert_false(gang_join(&s.placer, &gang, 0, &s.found, &s.members[7]));
        cluster_give(&s.scene.cluster, &one, &taken);
        assert_true(gang_join(&s.placer, &gang, 0, &s.found, &s.members[7]));
        gang_give(&s.scene.cluster, &gang, s.members, 8);
        assert_int_equal(s.scene.cluster.used_milli, 0);
        end(&s);
        begin(&s, 1, (uint16_t[]){ 5 }, NULL);
        assert_false(start(&s, &gang));
        end(&s);
}

static void gang_of_several_roles_is_placed_whole_or_not(void **state)
{
        (void) state;
        struct gang_role roles[2] = { { .task = GPUS(1), .count = 6 }, { .task = GPUS(8), .count = 1 } };
        struct gang gang = { .roles = roles, .n_roles = 2 };
        struct gang_scene s;

        /* the large role goes first, or its node would be broken */
        begin(&s, 2, (uint16_t[]){ 8, 6 }, NULL);
        assert_true(start(&s, &gang));
        assert_int_equal(members_on(&s, 0), 1);
        assert_int_equal(members_on(&s, 1), 6);
        end(&s);
        begin(&s, 2, (uint16_t[]){ 8, 5 }, NULL);
        assert_false(start(&s, &gang));
        assert_int_equal(s.scene.cluster.capacity_milli - s.scene.cluster.used_milli, 13000);
        end(&s);
}

static void gang_that_is_none_is_refused_by_its_field(void **state)
{
        (void) state;
        struct gang_role good = { .task = GPUS(1), .count = 4 }, none = { .task = GPUS(1) },
                         parts = { .task = { .gpus = 2, .gpu_milli = 500 }, .count = 1 },
                         many = { .task = GPUS(1), .count = GANG_MEMBERS_MAX + 1 };
        const struct {
                const char *name, *words;
                struct gang gang;
        } rows[] = {
                { "no roles", "1 to 8 roles, not 0", { 0 } },
                { "no task", "role 0: count is 0", { .roles = &none, .n_roles = 1 } },
                { "parts of several", "role 0: gpu_milli is 500 with 2 GPUs", { .roles = &parts, .n_roles = 1 } },
                { "too many", "at most 65536 members", { .roles = &many, .n_roles = 1 } },
                { "more than all", "min is 5 of 4", { .roles = &good, .n_roles = 1, .min = 5 } },
                { "wider than it may",
                  "prefers level 3",
                  { .roles = &good, .n_roles = 1, .preferred = 3, .required = 2 } },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct error err = { 0 };
                row_check(rows[i].name, gang_check(&rows[i].gang, &err) == -EINVAL);
                row_check(rows[i].name, strstr(err.msg, rows[i].words));
        }
        rows_end();
}

static void domain_with_two_parents_is_refused(void **state)
{
        (void) state;
        static const uint32_t leaves[4] = { 0, 0, 1, 1 }, spines[4] = { 0, 1, 1, 1 }, too_large[4] = { 0, 4, 0, 0 };
        uint8_t memory[4096];
        struct arena arena = { .memory = memory, .bytes = sizeof(memory) };
        struct topology topology;
        struct error err = { 0 };

        assert_int_equal(
                topology_init(&topology, 4, (const uint32_t *const[]){ NULL, leaves, spines }, 3, &arena, &err),
                -EINVAL);
        assert_non_null(strstr(err.msg, "node 1: its domain 0 of level 2 is in domain 1 of level 3"));
        arena.used = 0;
        assert_int_equal(topology_init(&topology, 4, (const uint32_t *const[]){ NULL, too_large }, 2, &arena, &err),
                         -EINVAL);
        assert_non_null(strstr(err.msg, "node 1: domain 4 on level 2"));
        arena.used = 0;
        assert_int_equal(topology_init(&topology, 4, (const uint32_t *const[]){ NULL, leaves }, 2, &arena, &err), 0);
        assert_int_equal(topology_distance(&topology, 1, 1), 1);
        assert_int_equal(topology_distance(&topology, 0, 1), 2);
        assert_int_equal(topology_distance(&topology, 1, 2), 3);
}

/* ---- random ---- */

static uint64_t next(uint64_t *random)
{
        uint64_t z = (*random += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static unsigned below(uint64_t *random, unsigned n)
{
        return (unsigned) (next(random) % n);
}

/* The least room of a domain of this level that has enough, and whether there is one. */
static bool tightest(const struct gang_scene *s, const uint32_t *room, uint32_t level, uint32_t need, uint32_t *least)
{
        uint32_t n = s->scene.cluster.n_nodes;

        *least = UINT32_MAX;
        for (uint32_t a = 0; a < n; a++) {
                uint32_t sum = 0;
                for (uint32_t b = 0; b < n; b++)
                        sum += topology_distance(&s->topology, a, b) <= level ? room[b] : 0;
                if (sum >= need && sum < *least)
                        *least = sum;
        }
        return *least < UINT32_MAX;
}

static void one_random_gang(uint64_t seed)
{
        uint64_t random = seed;
        uint16_t free[6];
        uint32_t leaves[6], room[6], least = 0, level = 1, n = 1 + below(&random, 6);
        struct task task = below(&random, 2) ? GPUS((uint16_t) (1 + below(&random, 4)))
                                             : PART((uint16_t) (200 + below(&random, 700)));
        uint32_t count = 1 + below(&random, 20), min = below(&random, 2) ? 1 + below(&random, count) : 0;
        uint32_t required = below(&random, 4);
        struct gang_scene s;

        for (uint32_t i = 0; i < n; i++) {
                free[i] = (uint16_t) below(&random, 9);
                leaves[i] = below(&random, n < 3 ? n : 3);
        }
        begin(&s, n, free, leaves);
        int64_t used = s.scene.cluster.used_milli;
        for (uint32_t i = 0; i < n; i++) {
                room[i] = task.gpu_milli == MILLI_PER_GPU ? free[i] / task.gpus
                                                          : free[i] * (uint32_t) (MILLI_PER_GPU / task.gpu_milli);
        }
        uint32_t top = required ? required : 3;
        while (level <= top && !tightest(&s, room, level, count, &least))
                level++;
        bool whole = level <= top, enough = min && tightest(&s, room, top, min, &least);
        bool placed = start_tasks(&s, count, task,
                                  (struct gang){ .min = min, .required = required, .balanced = below(&random, 2) });
        assert_int_equal(placed, whole || enough);
        if (!placed) {
                assert_int_equal(s.scene.cluster.used_milli, used);
                end(&s);
                return;
        }
        assert_true(whole ? s.found.n == count && s.found.level == level : s.found.n >= min && s.found.n < count);
        for (uint32_t i = 0; i < s.found.n; i++) {
                assert_true(members_on(&s, s.members[i].where.node) <= room[s.members[i].where.node]);
                for (uint32_t j = 0; j < i; j++)
                        assert_true(topology_distance(&s.topology, s.members[i].where.node, s.members[j].where.node) <=
                                    s.found.level);
        }
        assert_int_equal(s.scene.cluster.used_milli, used + (int64_t) s.found.n * task_milli(&task));
        struct gang_role role = { .task = task, .count = count };
        gang_give(&s.scene.cluster, &(struct gang){ .roles = &role, .n_roles = 1 }, s.members, s.found.n);
        assert_int_equal(s.scene.cluster.used_milli, used);
        end(&s);
}

/* For gangs of one role what is not found is not there, and what is found is on the lowest level. */
static void gang_of_one_role_is_found_where_there_is_room(void **state)
{
        (void) state;
        for (uint64_t seed = 0; seed < n_cases; seed++)
                one_random_gang(seed);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(example_1_two_gangs_of_eight_start_on_two_nodes),
                cmocka_unit_test(example_2_gang_that_does_not_fit_holds_nothing),
                cmocka_unit_test(f69_one_of_two_gangs_that_do_not_fit_together_has_all_and_the_other_nothing),
                cmocka_unit_test(example_19_few_nodes_and_the_tightest_for_the_rest),
                cmocka_unit_test(example_20_lowest_domain_that_has_room_and_of_those_the_tightest),
                cmocka_unit_test(example_21_rest_goes_to_the_tightest_or_all_evenly),
                cmocka_unit_test(example_22_required_bound_waits_and_a_preferred_one_climbs),
                cmocka_unit_test(example_23_cost_of_an_all_reduce),
                cmocka_unit_test(example_28_elastic_gang_starts_with_fewer_and_the_others_join),
                cmocka_unit_test(gang_of_several_roles_is_placed_whole_or_not),
                cmocka_unit_test(gang_that_is_none_is_refused_by_its_field),
                cmocka_unit_test(domain_with_two_parents_is_refused),
                cmocka_unit_test(gang_of_one_role_is_found_where_there_is_room),
        };

        if (argc > 1 && parse_u64("cases", argv[1], 1, UINT64_MAX, &n_cases, NULL) < 0)
                return EXIT_FAILURE;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
