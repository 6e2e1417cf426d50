/* SPDX-License-Identifier: Apache-2.0 */
/* What the world keeps of a device's holders: the same as what would be made of the rows, after each write, and a write that
 * nobody was told of is found by world_check(). */
#include <stdlib.h>
#include "cm.h"
#include "model/world.h"

#define GIB (UINT64_C(1) << 30)

static struct world *world;
static uint64_t random_state;

static uint64_t below(uint64_t n) /* splitmix64 */
{
        uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (z ^ (z >> 31)) % n;
}

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
        random_state = 1;
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        free(world);
        return 0;
}

static struct holder *new_lease(uint32_t device, uint64_t bytes, uint64_t slot_end_ms)
{
        struct lease *lease = world_lease_new(world);
        struct holder *h = world_holder_new(world, HOLDER_LEASE, device);

        assert_true(lease && h);
        assert_non_null(world_user(world, 1000, &lease->user));
        world->users[lease->user].n_leases++;
        lease->uid = 1000;
        lease->state = LEASE_ACTIVE;
        lease->device = device;
        lease->holder = world_holder_ref(world, h);
        lease->slot_end_ms = slot_end_ms;
        h->lease = world_lease_ref(world, lease);
        h->reserved_bytes = bytes;
        world_holder_written(world, h);
        return h;
}

static void change_lease(struct holder *h)
{
        struct lease *lease = &world->leases[h->lease.index];

        world_holder_writing(world, h);
        h->reserved_bytes = below(8) * GIB;
        h->used_bytes = below(8) * GIB;
        h->used_known = below(3) != 0;
        h->uncollected = below(4) == 0;
        h->pinned = below(8) == 0;
        h->exclusive = below(40) == 0;
        h->idle_since_ms = below(3) == 0 ? 1 : 0;
        h->rests_since_ms = below(3) == 0 ? 1 : 0;
        lease->filler = below(5) == 0;
        lease->state = below(6) == 0 ? LEASE_DRAINING : below(6) == 0 ? LEASE_ASKING : LEASE_ACTIVE;
        lease->slot_end_ms = below(3) == 0 ? 0 : 1000 + below(20); /* many of the same time */
        lease->ended_ms = below(5000);
        lease->kill_at_end = below(3) == 0;
        lease->ways.named = (uint8_t) below(3);
        lease->backfilled = below(4) == 0;
        world_holder_written(world, h);
}

static void something_happens(void)
{
        uint32_t row = (uint32_t) below(world->n_holders + 1);
        struct holder *h = &world->holders[row];
        uint32_t device = (uint32_t) below(2);

        if (row == world->n_holders || h->kind == HOLDER_NONE) {
                if (below(2))
                        new_lease(device, below(8) * GIB, below(3) * 1000);
                else
                        world_holder_written(world, world_holder_new(world, HOLDER_CLAIM, device));
        } else if (below(4) == 0) {
                struct lease *lease = world_lease_get(world, h->lease);
                world_holder_drop(world, h);
                if (lease)
                        world_lease_drop(world, lease);
        } else if (h->kind == HOLDER_LEASE) {
                change_lease(h);
        } else {
                world_holder_writing(world, h);
                h->reserved_bytes = below(8) * GIB;
                world_holder_written(world, h);
        }
}

static void assert_kept_is_true(uint32_t device)
{
        struct tally made, kept = *world_tally(world, device);
        struct leavings ends;
        const struct leavings *kept_ends = world_leavings(world, device);

        tally_make(world, device, &made);
        leavings_make(world, device, &ends);
        assert_int_equal(kept.n_leases, made.n_leases);
        assert_int_equal(kept.n_there, made.n_there);
        assert_int_equal(kept.n_keepers, made.n_keepers);
        assert_int_equal(kept.n_yielding, made.n_yielding);
        assert_int_equal(kept.n_giving, made.n_giving);
        assert_int_equal(kept.n_idle, made.n_idle);
        assert_int_equal(kept.n_asking, made.n_asking);
        assert_int_equal(kept.exclusive_id, made.exclusive_id);
        assert_int_equal(kept.listed_bytes, made.listed_bytes);
        assert_int_equal(kept.sums.reserved_bytes, made.sums.reserved_bytes);
        assert_int_equal(kept.sums.promised_bytes, made.sums.promised_bytes);
        assert_int_equal(kept.sums.known_used_bytes, made.sums.known_used_bytes);
        assert_int_equal(kept.sums.known_untaken_bytes, made.sums.known_untaken_bytes);
        assert_int_equal(kept.sums.unknown_reserved_bytes, made.sums.unknown_reserved_bytes);
        assert_int_equal(kept_ends->n, ends.n);
        for (uint32_t i = 0; i < ends.n; i++) {
                assert_int_equal(kept_ends->of[i].end_ms, ends.of[i].end_ms);
                assert_int_equal(kept_ends->of[i].holder, ends.of[i].holder);
                assert_int_equal(kept_ends->of[i].lapses, ends.of[i].lapses);
        }
}

static void sums_and_ends_are_kept_from_write_to_write(void **state)
{
        (void) state;
        uint32_t n_kept = 0;

        for (int i = 0; i < 5000; i++) {
                something_happens();
                n_kept += world->tallies[0].kept && world->leavings[0].kept;
                assert_kept_is_true(0);
                assert_kept_is_true(1);
        }
        assert_true(n_kept > 4000); /* kept, not made anew each time */
}

static void what_a_look_shows_is_in_the_next_sums(void **state)
{
        (void) state;
        struct holder *h = new_lease(0, 4 * GIB, 5000);

        assert_int_equal(world_tally(world, 0)->listed_bytes, 0);
        (void) world_leavings(world, 0);
        h->used_bytes = GIB;
        world_figures_changed(world, 0);
        assert_true(world->leavings[0].kept); /* a slot does not hang on it */
        assert_kept_is_true(0);

        world_holder_writing(world, h);
        world->leases[h->lease.index].state = LEASE_DRAINING;
        world_holder_written(world, h);
        assert_kept_is_true(0);
        h->used_bytes = 3 * GIB; /* what drains takes longer then */
        world_figures_changed(world, 0);
        assert_true(world->leavings[0].kept);
        assert_kept_is_true(0);
}

/* A sum that came to more than can be told is not what it was once something was taken out of it. */
static void sums_beyond_all_bounds_are_made_anew(void **state)
{
        (void) state;
        struct holder *h = new_lease(0, UINT64_MAX, 0);

        new_lease(0, 5 * GIB, 0);
        assert_int_equal(world_tally(world, 0)->sums.reserved_bytes, UINT64_MAX);
        world_holder_writing(world, h);
        h->reserved_bytes = GIB;
        world_holder_written(world, h);
        assert_int_equal(world_tally(world, 0)->sums.reserved_bytes, 6 * GIB);
}

static void a_write_that_nobody_was_told_of_is_found(void **state)
{
        (void) state;
        struct holder *h = new_lease(1, 4 * GIB, 5000);

        (void) world_tally(world, 1);
        (void) world_leavings(world, 1);
        assert_null(world_check(world));
        h->reserved_bytes++;
        assert_non_null(world_check(world));
        h->reserved_bytes--;
        assert_null(world_check(world));
        world->leases[h->lease.index].slot_end_ms++;
        assert_non_null(world_check(world));
        world_device_changed(world, 1);
        assert_null(world_check(world));
        assert_int_equal(world_leavings(world, 1)->of[0].end_ms, 5001);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(sums_and_ends_are_kept_from_write_to_write, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_a_look_shows_is_in_the_next_sums, set_up, tear_down),
                cmocka_unit_test_setup_teardown(sums_beyond_all_bounds_are_made_anew, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_write_that_nobody_was_told_of_is_found, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
