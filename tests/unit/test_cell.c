/* SPDX-License-Identifier: Apache-2.0 */
/* Guaranteed cells: the worked example 29 of cluster scheduling, and random tenants who never break each other's guarantee. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "cm.h"
#include "placement/cell.h"

enum { TENANTS = 4, LIVE = 256, STEPS = 200, RANDOM_CASES = 500 };

static uint64_t n_cases = RANDOM_CASES;

static void *begin(struct cells *cells, uint32_t nodes, uint32_t levels, const uint32_t (*owns)[CELL_LEVELS_MAX],
                   uint32_t tenants)
{
        struct arena arena = { 0 };
        void *memory;

        (void) cells_init(cells, nodes, levels, owns, tenants, &arena, NULL);
        memory = malloc(arena.used);
        arena = (struct arena){ .memory = memory, .bytes = arena.used };
        assert_non_null(memory);
        assert_int_equal(cells_init(cells, nodes, levels, owns, tenants, &arena, NULL), 0);
        return memory;
}

static void example_29_small_cells_leave_the_large_one_whole(void **state)
{
        (void) state;
        enum { A, B };
        static const uint32_t owns[2][CELL_LEVELS_MAX] = { [A] = { [3] = 1 }, [B] = { [0] = 8 } };
        struct cells cells;
        struct cell cell, of_b[8];
        void *memory = begin(&cells, 2, 4, owns, 2);

        for (int i = 0; i < 8; i++) {
                assert_true(cells_take(&cells, B, 0, &of_b[i]));
                assert_int_equal(of_b[i].first / 8, of_b[0].first / 8);
        }
        assert_false(cells_take(&cells, B, 0, &cell));
        assert_true(cells_take(&cells, A, 3, &cell));
        assert_false(cells_take(&cells, A, 0, &cell));
        assert_int_equal(cells_check(&cells, NULL), 0);
        free(memory);
}

static void tenant_may_cut_up_his_own_cell_and_has_it_whole_again(void **state)
{
        (void) state;
        static const uint32_t owns[1][CELL_LEVELS_MAX] = { { [3] = 1 } };
        struct cells cells;
        struct cell one, four, whole;
        void *memory = begin(&cells, 1, 4, owns, 1);

        assert_true(cells_take(&cells, 0, 0, &one));
        assert_true(cells_take(&cells, 0, 2, &four));
        assert_false(cells_take(&cells, 0, 3, &whole));
        cells_give(&cells, 0, &one);
        assert_false(cells_take(&cells, 0, 3, &whole));
        cells_give(&cells, 0, &four);
        assert_true(cells_take(&cells, 0, 3, &whole));
        assert_int_equal(whole.first, 0);
        assert_int_equal(cells_check(&cells, NULL), 0);
        free(memory);
}

static void cells_that_do_not_fit_are_refused(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t owns[2][CELL_LEVELS_MAX];
                uint32_t needs; /* nodes of 8 */
        } rows[] = {
                { "all of it", { { [3] = 1 }, { [0] = 8 } }, 2 },
                { "one more", { { [3] = 1 }, { [0] = 9 } }, 3 },
                { "three fours", { { [2] = 3 }, { 0 } }, 2 },
                { "a four and five ones", { { [2] = 1 }, { [0] = 5 } }, 2 },
                { "three pairs, two ones", { { [1] = 3 }, { [0] = 2 } }, 1 },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                for (uint32_t nodes = 1; nodes < 4; nodes++) {
                        uint8_t memory[8192];
                        struct arena arena = { .memory = memory, .bytes = sizeof(memory) };
                        struct cells cells;
                        struct error err = { 0 };
                        int r = cells_init(&cells, nodes, 4, rows[i].owns, 2, &arena, &err);
                        row_check(rows[i].name, r == (nodes < rows[i].needs ? -EINVAL : 0));
                        if (r < 0)
                                row_check(rows[i].name, strstr(err.msg, "the tenants' cells need"));
                }
        rows_end();
}

static uint64_t next(uint64_t *random)
{
        uint64_t z = (*random += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint32_t below(uint64_t *random, uint32_t n)
{
        return (uint32_t) (next(random) % n);
}

/* Each takes and gives cells of the sizes that he owns, in any order: who has not taken all of a size gets one. */
static void random_sequences_never_break_the_guarantee(void **state)
{
        (void) state;
        for (uint64_t seed = 0; seed < n_cases; seed++) {
                uint32_t owns[TENANTS][CELL_LEVELS_MAX] = { { 0 } }, levels = 1, nodes, needs = 0, n = 0;
                uint32_t taken[TENANTS][CELL_LEVELS_MAX] = { { 0 } };
                uint64_t random = seed;
                struct {
                        uint32_t tenant;
                        struct cell cell;
                } live[LIVE];
                struct cells cells;

                levels = 1 + below(&random, 5);
                for (uint32_t level = 0; level < levels; level++) {
                        needs = (needs + 1) / 2;
                        for (uint32_t t = 0; t < TENANTS; t++)
                                needs += owns[t][level] = below(&random, 2) ? below(&random, 9) : 0;
                }
                nodes = needs ? needs : 1;
                void *memory = begin(&cells, nodes, levels, owns, TENANTS);
                for (int step = 0; step < STEPS; step++) {
                        uint32_t tenant = below(&random, TENANTS), level = below(&random, levels);
                        struct error err = { 0 };
                        if (n > 0 && below(&random, 5) < 2) {
                                uint32_t i = below(&random, n);
                                cells_give(&cells, live[i].tenant, &live[i].cell);
                                taken[live[i].tenant][live[i].cell.level]--;
                                live[i] = live[--n];
                        } else if (taken[tenant][level] < owns[tenant][level]) {
                                assert_true(n < LIVE);
                                live[n].tenant = tenant;
                                assert_true(cells_take(&cells, tenant, level, &live[n].cell));
                                for (uint32_t i = 0; i < n; i++)
                                        assert_true(live[i].cell.first >= live[n].cell.first + (1U << level) ||
                                                    live[n].cell.first >=
                                                            live[i].cell.first + (1U << live[i].cell.level));
                                taken[tenant][level]++;
                                n++;
                        }
                        if (cells_check(&cells, &err) < 0)
                                fail_msg("%s", err.msg);
                }
                while (n-- > 0)
                        cells_give(&cells, live[n].tenant, &live[n].cell);
                assert_int_equal(cells.free[levels - 1], nodes);
                free(memory);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(example_29_small_cells_leave_the_large_one_whole),
                cmocka_unit_test(tenant_may_cut_up_his_own_cell_and_has_it_whole_again),
                cmocka_unit_test(cells_that_do_not_fit_are_refused),
                cmocka_unit_test(random_sequences_never_break_the_guarantee),
        };

        if (argc > 1 && parse_u64("cases", argv[1], 1, UINT64_MAX, &n_cases, NULL) < 0)
                return EXIT_FAILURE;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
