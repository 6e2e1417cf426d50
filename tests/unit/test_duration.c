/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "base/duration.h"
#include "cm.h"

static const struct {
        const char *text;
        uint64_t ms;
} good[] = {
        { "0", 0 },
        { "90", 90000 },
        { "90s", 90000 },
        { "10m", 600000 },
        { "10min", 600000 },
        { "2h", 7200000 },
        { "1h30m", 5400000 },
        { "1d", UINT64_C(86400000) },
        { "500ms", 500 },
        { "1d2h3m4s5ms", UINT64_C(93784005) },
        { "1m500ms", 60500 },
        { "365d", DURATION_MAX_MS },
        { "8760h", DURATION_MAX_MS },
        { "0d", 0 },
};

static void duration_in_each_spelling_is_its_milliseconds(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                uint64_t ms = 777;
                row_check(good[i].text, duration_parse("--for", good[i].text, &ms, NULL) == 0);
                row_check(good[i].text, ms == good[i].ms);
        }
        rows_end();
}

static const struct {
        const char *text, *says;
} bad[] = {
        { NULL, "--for is empty" },
        { "", "--for is empty" },
        { "-1", "it is negative" },
        { "-10m", "it is negative" },
        { "+1", "it has a sign" },
        { "10 m", "it has a blank in it" },
        { " 10m", "it has a blank in it" },
        { "10m ", "it has a blank in it" },
        { "1.5h", "it has a fraction" },
        { "1e3", "no such unit" },
        { "1e400", "no such unit" },
        { "NaN", "a number must stand" },
        { "h", "a number must stand" },
        { "1h30", "its last number has no unit" },
        { "30m1h", "from large to small" },
        { "1h1h", "each once" },
        { "1m1min", "each once" },
        { "1ms1s", "from large to small" },
        { "10x", "no such unit" },
        { "10M", "no such unit" },
        { "1w", "no such unit" },
        { "365d1ms", "it is too long" },
        { "31536001", "it is too long" },
        { "9223372036854775808", "it is too long" },
        { "18446744073709551616", "it is too long" },
        { "18446744073709551616ms", "it is too long" },
        { "18446744073709551615d", "it is too long" },
        { "10m\033[2J", "\"10m\\x1B[2J\" is not a span of time: a number must stand" },
};

static void duration_that_is_none_is_refused_with_field_and_cure(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                const char *name = bad[i].text ? bad[i].text : "missing";
                uint64_t ms = 777;
                struct error err = { 0 };
                row_check(name, duration_parse("--for", bad[i].text, &ms, &err) == -EINVAL);
                row_check(name, ms == 777);
                row_check(name, strstr(err.msg, "--for") == err.msg);
                row_check(name, strstr(err.msg, "1h30m") != NULL);
                row_check(name, strstr(err.msg, bad[i].says) != NULL);
        }
        rows_end();
}

static const struct {
        uint64_t ms;
        const char *text;
} texts[] = {
        { 0, "0 s" },
        { 1, "1 ms" },
        { 350, "350 ms" },
        { 999, "999 ms" },
        { 1000, "1 s" },
        { 42000, "42 s" },
        { 59999, "59 s" },
        { 60000, "1 min" },
        { 90000, "1 min 30 s" },
        { 600000, "10 min" },
        { 6600000, "1 h 50 min" },
        { 3600000, "1 h" },
        { 3601000, "1 h" },
        { UINT64_C(183600000), "2 d 3 h" },
        { UINT64_MAX, "213503982334 d 14 h" },
};

static void duration_for_people_has_two_units_at_most(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                char buf[DURATION_TEXT_MAX];
                row_check(texts[i].text, strcmp(duration_text(texts[i].ms, buf), texts[i].text) == 0);
        }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(duration_in_each_spelling_is_its_milliseconds),
                cmocka_unit_test(duration_that_is_none_is_refused_with_field_and_cure),
                cmocka_unit_test(duration_for_people_has_two_units_at_most),
        };
        return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
