/* SPDX-License-Identifier: Apache-2.0 */
/* Equal distances between moments: what is a clock, and what is not. */
#include "cm.h"
#include <string.h>
#include "model/rhythm.h"

#define SECOND UINT64_C(1000)

static struct rhythm of(const uint64_t *distances_ms, size_t n)
{
        uint64_t times[64] = { 1000000 };

        for (size_t i = 0; i < n; i++)
                times[i + 1] = times[i] + distances_ms[i];
        return rhythm_find(times, n + 1, 0);
}

static const struct {
        const char *name;
        uint64_t distances_ms[10];
        size_t n_found, first;
        uint64_t period_ms;
        size_t n; /* distances, where some are 0 */
} rows[] = {
        { "a 15 s tick plus a 5 s time-out, five strikes", { 20000, 20000, 20000, 20000 }, 5, 0, 20000 },
        { "four are too few", { 20000, 20000, 20000 }, 0, 0, 0 },
        { "each a tick early or late", { 19000, 21000, 20000, 20500 }, 5, 0, 20125 },
        { "one of them more than a tick off", { 20000, 20000, 22600, 20000, 20000 }, 0, 0, 0 },
        { "a back-off that doubles", { 1000, 2000, 4000, 8000, 16000, 32000 }, 0, 0, 0 },
        { "a back-off that grows a little", { 20000, 20450, 20900, 21350, 21800 }, 0, 0, 0 },
        { "it shrinks", { 21800, 21350, 20900, 20450, 20000 }, 0, 0, 0 },
        { "behind something else", { 3000, 900, 20000, 20000, 20001, 19999, 70000 }, 5, 2, 20000 },
        { "before something else", { 60000, 60000, 60000, 60000, 60000, 5000, 7000 }, 6, 0, 60000 },
        { "a short one, to the same part of itself", { 400, 410, 390, 400 }, 5, 0, 400 },
        { "a short one, and as far off as a tick", { 400, 1400, 400, 1400 }, 0, 0, 0 },
        { "all at one moment", { 0 }, 0, 0, 0, 6 },
        { "by chance", { 12000, 31000, 4000, 22000, 9000, 41000 }, 0, 0, 0 },
        { "hours, each a tick off", { 3600000, 3601000, 3599000, 3600000 }, 5, 0, 3600000 },
};

static void equal_distances_are_found_and_nothing_else_is(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                size_t n = rows[i].n;
                while (n < 10 && rows[i].distances_ms[n] != 0)
                        n++;
                struct rhythm r = of(rows[i].distances_ms, n);
                if (r.n != rows[i].n_found ||
                    (r.n > 0 && (r.first != rows[i].first || r.period_ms != rows[i].period_ms)))
                        fail_msg("%s: %zu from %zu, every %llu ms", rows[i].name, r.n, r.first,
                                 (unsigned long long) r.period_ms);
        }
}

static void next_run_is_found_behind_the_first(void **state)
{
        const uint64_t times[] = { 0,     20000,  40000,  60000,  80000, /* every 20 s */
                                   90000, 150000, 210000, 270000, 330000, 390000 };
        const size_t n = sizeof(times) / sizeof(times[0]);

        (void) state;
        struct rhythm a = rhythm_find(times, n, 0);
        assert_int_equal(a.n, 5);
        struct rhythm b = rhythm_find(times, n, a.first + a.n);
        assert_int_equal(b.first, 5);
        assert_int_equal(b.n, 6);
        assert_int_equal(b.period_ms, 60000);
        assert_int_equal(rhythm_find(times, n, b.first + b.n).n, 0);
        assert_int_equal(rhythm_find(times, 0, 0).n, 0);
        assert_int_equal(rhythm_find(times, 4, 0).n, 0);
}

static void words_name_how_often_and_how_far_apart(void **state)
{
        char buf[RHYTHM_TEXT_MAX];

        (void) state;
        assert_string_equal(rhythm_text(&(struct rhythm){ .n = 5, .period_ms = 20125 }, buf),
                            "5 times, each 20 s after the last: a clock, not chance");
        assert_string_equal(rhythm_text(&(struct rhythm){ .n = 7, .period_ms = 400 }, buf),
                            "7 times, each 400 ms after the last: a clock, not chance");
}

/* Moments of chance: a run is rare, whatever it is made from, and none that is told breaks the rule it was found by. */
static void what_is_told_holds_whatever_the_moments_are(void **state)
{
        uint64_t random = 88172645463325252, times[200];
        size_t n_found = 0;

        (void) state;
        for (size_t round = 0; round < 2000; round++) {
                times[0] = 5000;
                for (size_t i = 1; i < 200; i++) {
                        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                        times[i] = times[i - 1] + random % (60 * SECOND);
                }
                for (struct rhythm r = rhythm_find(times, 200, 0); r.n != 0;
                     r = rhythm_find(times, 200, r.first + r.n)) {
                        n_found++;
                        assert_true(r.n >= RHYTHM_MIN && r.first + r.n <= 200);
                        for (size_t i = r.first + 1; i < r.first + r.n; i++) {
                                uint64_t d = times[i] - times[i - 1];
                                assert_true(d + 2 * RHYTHM_JITTER_MS >= r.period_ms &&
                                            d <= r.period_ms + 2 * RHYTHM_JITTER_MS);
                        }
                }
        }
        assert_true(n_found < 2000 * 196 / 1000); /* one in a thousand */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(equal_distances_are_found_and_nothing_else_is),
                cmocka_unit_test(next_run_is_found_behind_the_first),
                cmocka_unit_test(words_name_how_often_and_how_far_apart),
                cmocka_unit_test(what_is_told_holds_whatever_the_moments_are),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
