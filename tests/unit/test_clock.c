/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cm.h"

static void clock_never_goes_back_and_agrees_with_itself(void **state)
{
        (void) state;
        uint64_t before_ns = clock_now_ns(), ms = clock_now_ms(), after_ns = clock_now_ns();
        assert_true(before_ns <= after_ns);
        assert_true(before_ns / 1000000 <= ms && ms <= after_ns / 1000000);
}

static void clock_for_people_is_after_this_was_written(void **state)
{
        (void) state;
        assert_true(clock_now_wall_ms() > UINT64_C(1700000000000));
}

static void clock_of_sleep_stands_still_while_the_machine_is_awake(void **state)
{
        (void) state;
        uint64_t began_ms = clock_now_ms(), before_ms = clock_asleep_ms();
        uint64_t after_ms = clock_asleep_ms(), ended_ms = clock_now_ms();
        uint64_t slack_ms = ended_ms - began_ms + 2; /* two clocks, read one after the other */
        assert_true(after_ms + slack_ms >= before_ms && after_ms <= before_ms + slack_ms);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(clock_never_goes_back_and_agrees_with_itself),
                cmocka_unit_test(clock_for_people_is_after_this_was_written),
                cmocka_unit_test(clock_of_sleep_stands_still_while_the_machine_is_awake),
        };
        return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
