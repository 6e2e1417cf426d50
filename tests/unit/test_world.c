/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the world: the index of holders follows the table, and what is checked would notice if it did not. */
#include <stdlib.h>
#include "cm.h"
#include "model/world.h"

static struct world *world;

static int set_up(void **state)
{
        struct config config;
        uint32_t index;

        (void) state;
        world = calloc(1, sizeof(*world));
        assert_non_null(world);
        config_defaults(&config);
        world_init(world, &config);
        for (int i = 0; i < 2; i++)
                world_device_new(world, &index)->health = DEVICE_OK;
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        free(world);
        return 0;
}

static uint32_t count_on(const struct world *w, uint32_t device)
{
        uint32_t n = 0;

        world_each_holder_on (w, i, device) {
                assert_int_equal(w->holders[i].device, device);
                n++;
        }
        return n;
}

/* Enough for several words of bits. */
static void make_strangers(uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                assert_non_null(world_holder_new(world, HOLDER_STRANGER, i % 3 == 0));
}

static void holders_are_walked_device_by_device_in_row_order(void **state)
{
        (void) state;
        uint32_t last = 0;

        assert_int_equal(count_on(world, 0), 0);
        make_strangers(300);
        assert_int_equal(count_on(world, 0), 200);
        assert_int_equal(count_on(world, 1), 100);
        world_each_holder_of (world, i, HOLDER_STRANGER) {
                assert_true(i == 0 || i == last + 1);
                last = i;
        }
        assert_int_equal(last, 299);
        assert_null(world_check(world));
}

static void walker_may_drop_the_row_it_stands_on(void **state)
{
        (void) state;
        make_strangers(300);
        world_each_holder_on (world, i, 1)
                world_holder_drop(world, &world->holders[i]);
        assert_int_equal(count_on(world, 1), 0);
        assert_int_equal(count_on(world, 0), 200);
        assert_null(world_check(world));
}

static void a_break_ends_the_whole_walk(void **state)
{
        (void) state;
        uint32_t n = 0;

        make_strangers(300);
        world_each_holder_on (world, i, 0) {
                (void) i;
                if (++n == 3)
                        break;
        }
        assert_int_equal(n, 3);
}

static void the_first_empty_row_is_used_again(void **state)
{
        (void) state;
        make_strangers(200);
        world_holder_drop(world, &world->holders[70]);
        world_holder_drop(world, &world->holders[71]);
        assert_ptr_equal(world_holder_new(world, HOLDER_LEASE, 0), &world->holders[70]);
        assert_ptr_equal(world_holder_new(world, HOLDER_LEASE, 0), &world->holders[71]);
        assert_ptr_equal(world_holder_new(world, HOLDER_LEASE, 0), &world->holders[200]);
}

static void copied_world_can_be_walked(void **state)
{
        (void) state;
        struct world *copy = calloc(1, sizeof(*copy));

        assert_non_null(copy);
        make_strangers(300);
        world_copy(copy, world);
        assert_int_equal(count_on(copy, 0), 200);
        assert_null(world_check(copy));
        free(copy);
}

static void an_index_that_disagrees_with_the_table_is_found(void **state)
{
        (void) state;
        make_strangers(2);
        world->holders[1].device = 1;
        assert_non_null(world_check(world));
        world_index(world);
        assert_null(world_check(world));
        world->holders_of[HOLDER_NONE][0] &= ~UINT64_C(1);
        assert_non_null(world_check(world));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(holders_are_walked_device_by_device_in_row_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(walker_may_drop_the_row_it_stands_on, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_break_ends_the_whole_walk, set_up, tear_down),
                cmocka_unit_test_setup_teardown(the_first_empty_row_is_used_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(copied_world_can_be_walked, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_index_that_disagrees_with_the_table_is_found, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
