/* SPDX-License-Identifier: Apache-2.0 */
/* World time over sleep, restarts and reboots: the machine's clocks are made up here. */
#include "programs/lessord/world_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"

/* ---- the machine: CLOCK_MONOTONIC stands still while it sleeps, the wall clock does not ---- */

#define HOUR_MS (UINT64_C(3600) * 1000)

static struct {
        uint64_t monotonic_ms, wall_ms;
} machine;

uint64_t clock_now_ms(void)
{
        return machine.monotonic_ms;
}

uint64_t clock_now_ns(void)
{
        return machine.monotonic_ms * 1000000;
}

uint64_t clock_now_wall_ms(void)
{
        return machine.wall_ms;
}

uint64_t clock_asleep_ms(void)
{
        return 0;
}

static void pass(uint64_t awake_ms, uint64_t asleep_ms)
{
        machine.monotonic_ms += awake_ms;
        machine.wall_ms += awake_ms + asleep_ms;
}

static void reboot(uint64_t off_ms)
{
        machine.monotonic_ms = 5000;
        machine.wall_ms += off_ms + 5000;
}

static char path[64];
static const char boot_a[] = "8a3c0f8e-0000-4000-8000-00000000000a", boot_b[] = "8a3c0f8e-0000-4000-8000-00000000000b";

static int set_up(void **state)
{
        (void) state;
        char folder[] = "/tmp/lessor-clock-XXXXXX";

        machine.monotonic_ms = 100000;
        machine.wall_ms = UINT64_C(1800000000000);
        if (!mkdtemp(folder))
                return -1;
        (void) snprintf(path, sizeof(path), "%s/clock", folder);
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        (void) unlink(path);
        *strrchr(path, '/') = '\0';
        return rmdir(path);
}

static struct world_clock begin(const char *boot_id, uint64_t world_ms, uint64_t last_wall_ms)
{
        struct world_clock c;
        struct error err = { 0 };

        if (world_clock_init(&c, path, boot_id, world_ms, last_wall_ms, &err) < 0)
                fail_msg("%s", err.msg);
        return c;
}

/* ---- tests ---- */

/* So nothing expires, no slot ends and nobody's wait grows by a night with the lid closed. */
static void F26_world_time_stands_still_while_the_machine_sleeps(void **state)
{
        (void) state;
        struct world_clock c = begin(boot_a, 0, 0);
        uint64_t before_ms = world_clock_now_ms(&c);

        pass(1000, 8 * HOUR_MS);
        assert_int_equal(world_clock_now_ms(&c), before_ms + 1000);
        pass(1000, 0);
        assert_int_equal(world_clock_now_ms(&c), before_ms + 2000);
}

static void F26_restart_after_a_sleep_does_not_count_it_either(void **state)
{
        (void) state;
        struct world_clock c = begin(boot_a, 0, 0);
        uint64_t last_ms = world_clock_now_ms(&c), last_wall_ms = machine.wall_ms;

        pass(1000, 8 * HOUR_MS);
        c = begin(boot_a, last_ms, last_wall_ms);
        assert_int_equal(world_clock_now_ms(&c), last_ms + 1000);
}

static void world_time_goes_on_over_a_reboot_by_the_wall_clock(void **state)
{
        (void) state;
        struct world_clock c = begin(boot_a, 0, 0);

        pass(60000, 0);
        uint64_t last_ms = world_clock_now_ms(&c), last_wall_ms = machine.wall_ms;
        reboot(HOUR_MS);
        c = begin(boot_b, last_ms, last_wall_ms);
        assert_int_equal(world_clock_now_ms(&c), last_ms + HOUR_MS + 5000);
        assert_int_equal(world_clock_of_monotonic(&c, machine.monotonic_ms), world_clock_now_ms(&c));
}

static void wall_clock_that_went_back_or_jumped_by_decades_does_not_move_world_time(void **state)
{
        (void) state;
        struct world_clock c = begin(boot_a, 0, 0);
        uint64_t last_ms = world_clock_now_ms(&c), last_wall_ms = machine.wall_ms;

        machine.wall_ms -= 1000 * HOUR_MS;
        reboot(0);
        c = begin(boot_b, last_ms, last_wall_ms);
        assert_int_equal(world_clock_now_ms(&c), last_ms);
        machine.wall_ms += 30 * 366 * 24 * HOUR_MS;
        reboot(0);
        c = begin(boot_a, last_ms, last_wall_ms);
        assert_int_equal(world_clock_now_ms(&c), last_ms);
}

#define clock_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                clock_test(F26_world_time_stands_still_while_the_machine_sleeps),
                clock_test(F26_restart_after_a_sleep_does_not_count_it_either),
                clock_test(world_time_goes_on_over_a_reboot_by_the_wall_clock),
                clock_test(wall_clock_that_went_back_or_jumped_by_decades_does_not_move_world_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
