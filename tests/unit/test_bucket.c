/* SPDX-License-Identifier: Apache-2.0 */
/* S07, S19: how often a user may do something, and whose turn it is where answers are expensive. */
#include <string.h>
#include "api/bucket.h"
#include "api/turns.h"
#include "cm.h"

static void S19_bucket_gives_its_burst_then_its_pace(void **state)
{
        static struct buckets b = { .per_s = 200, .burst = 1000 };
        (void) state;
        for (int i = 0; i < 1000; i++)
                assert_int_equal(buckets_take(&b, 1000, 1, 50), 0);
        assert_int_equal(buckets_take(&b, 1000, 1, 50), 5);
        assert_int_equal(buckets_take(&b, 1000, 1, 54), 1);
        assert_int_equal(buckets_take(&b, 1000, 1, 55), 0);
        assert_int_equal(buckets_take(&b, 1000, 1, 55), 5);
        int n = 0;
        while (buckets_take(&b, 1000, 1, 1055) == 0)
                n++;
        assert_int_equal(n, 200);
        n = 0;
        while (buckets_take(&b, 1000, 1, 100000000) == 0) /* a night without a request is a full bucket, not more */
                n++;
        assert_int_equal(n, 1000);
}

static void S19_one_user_empties_nobody_elses_bucket(void **state)
{
        static struct buckets b = { .per_s = 1, .burst = 10 };
        (void) state;
        for (uint32_t i = 0; i < 100; i++)
                (void) buckets_take(&b, 1000, 1, 0);
        assert_int_not_equal(buckets_take(&b, 1000, 1, 0), 0);
        for (int i = 0; i < 10; i++)
                assert_int_equal(buckets_take(&b, 1001, 1, 0), 0);
}

static void cost_that_is_not_there_takes_nothing(void **state)
{
        static struct buckets b = { .per_s = 10, .burst = 10 };
        (void) state;
        assert_int_equal(buckets_take(&b, 1, 8, 0), 0);
        assert_int_equal(buckets_take(&b, 1, 4, 0), 200);
        assert_int_equal(buckets_take(&b, 1, 2, 0), 0);
        buckets_charge(&b, 1, 5, 100); /* one was there: it is empty, and owes nothing */
        assert_int_equal(buckets_wait_ms(&b, 1, 1, 100), 100);
}

static void time_that_goes_back_gives_and_takes_nothing(void **state)
{
        static struct buckets b = { .per_s = 10, .burst = 1 };
        (void) state;
        assert_int_equal(buckets_take(&b, 1, 1, 5000), 0);
        assert_int_equal(buckets_take(&b, 1, 1, 10), 100);
        assert_int_equal(buckets_take(&b, 1, 1, 5099), 1);
        assert_int_equal(buckets_take(&b, 1, 1, 5100), 0);
}

static void S19_thousands_of_users_fill_no_memory(void **state)
{
        static struct buckets b = { .per_s = 1, .burst = 1 };
        (void) state;
        for (uint32_t uid = 0; uid < 5000; uid++)
                assert_int_equal(buckets_take(&b, uid, 1, uid), 0);
        assert_int_equal(b.n, BUCKETS_MAX);
        assert_int_not_equal(buckets_take(&b, 4999, 1, 5000), 0); /* the newest are still known */
}

static void no_rate_is_no_limit(void **state)
{
        static struct buckets b;
        (void) state;
        for (int i = 0; i < 100000; i++)
                assert_int_equal(buckets_take(&b, 1, 1, 0), 0);
}

/* ---- turns ---- */

static void turn_is_at_once_while_nobody_waits_and_little_was_served(void **state)
{
        static struct turns t;
        uint32_t slot;
        (void) state;
        for (uint32_t i = 0; i < TURNS_AT_ONCE; i++)
                assert_true(turns_enter(&t, i, 7));
        assert_false(turns_enter(&t, 100, 7));
        assert_false(turns_next(&t, &slot)); /* not in this turn any more */
        turns_begin(&t);
        assert_false(turns_enter(&t, 101, 8)); /* somebody waits: nobody passes him */
        assert_true(turns_next(&t, &slot));
        assert_int_equal(slot, 101); /* 7 was served last */
        assert_true(turns_next(&t, &slot));
        assert_int_equal(slot, 100);
        assert_false(turns_next(&t, &slot));
        assert_int_equal(t.n_waiting, 0);
}

static void S19_one_users_hundreds_stand_behind_another_ones_one(void **state)
{
        static struct turns t;
        uint32_t slot, before = 0;
        (void) state;
        for (uint32_t i = 0; i < 240; i++)
                (void) turns_enter(&t, i, 1000);
        assert_false(turns_enter(&t, 500, 999)); /* a smaller uid, behind the other in the circle */
        assert_false(turns_enter(&t, 501, 2000));
        bool seen_500 = false, seen_501 = false;
        for (turns_begin(&t); !seen_500 || !seen_501; before++) {
                if (!turns_next(&t, &slot)) {
                        turns_begin(&t);
                        assert_true(turns_next(&t, &slot));
                }
                seen_500 = seen_500 || slot == 500;
                seen_501 = seen_501 || slot == 501;
        }
        assert_in_range(before, 2, 3);
}

static void each_user_is_served_in_the_order_he_asked(void **state)
{
        static struct turns t;
        static const uint32_t order[] = { 9, 3, 700, 12, 1 };
        uint32_t slot, n = 0;
        (void) state;
        for (uint32_t i = 0; i < TURNS_AT_ONCE; i++)
                (void) turns_enter(&t, 1000 + i, 5);
        for (size_t i = 0; i < 5; i++)
                (void) turns_enter(&t, order[i], 5);
        for (;;) {
                turns_begin(&t);
                if (!turns_next(&t, &slot))
                        break;
                assert_int_equal(slot, order[n++]);
                while (turns_next(&t, &slot))
                        assert_int_equal(slot, order[n++]);
        }
        assert_int_equal(n, 5);
}

static void who_leaves_gives_up_his_turn(void **state)
{
        static struct turns t;
        uint32_t slot;
        (void) state;
        for (uint32_t i = 0; i < TURNS_AT_ONCE + 2; i++)
                (void) turns_enter(&t, i, 5);
        turns_leave(&t, TURNS_AT_ONCE);
        turns_leave(&t, TURNS_AT_ONCE); /* twice is once */
        turns_leave(&t, 3);             /* was served, waits for nothing */
        assert_int_equal(t.n_waiting, 1);
        turns_begin(&t);
        assert_true(turns_next(&t, &slot));
        assert_int_equal(slot, TURNS_AT_ONCE + 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S19_bucket_gives_its_burst_then_its_pace),
                cmocka_unit_test(S19_one_user_empties_nobody_elses_bucket),
                cmocka_unit_test(cost_that_is_not_there_takes_nothing),
                cmocka_unit_test(time_that_goes_back_gives_and_takes_nothing),
                cmocka_unit_test(S19_thousands_of_users_fill_no_memory),
                cmocka_unit_test(no_rate_is_no_limit),
                cmocka_unit_test(turn_is_at_once_while_nobody_waits_and_little_was_served),
                cmocka_unit_test(S19_one_users_hundreds_stand_behind_another_ones_one),
                cmocka_unit_test(each_user_is_served_in_the_order_he_asked),
                cmocka_unit_test(who_leaves_gives_up_his_turn),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
