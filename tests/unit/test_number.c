/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "base/number.h"
#include "cm.h"

static const struct row {
        const char *name, *text;
        uint64_t min, max;
        int r;
        uint64_t value;
        const char *says; /* part of the error */
} rows[] = {
        { "smallest allowed", "1", 1, 5, 0, 1, NULL },
        { "largest allowed", "5", 1, 5, 0, 5, NULL },
        { "one too few", "0", 1, 5, -ERANGE, 0, "too small; allowed are 1 to 5" },
        { "one too many", "6", 1, 5, -ERANGE, 0, "too large; allowed are 1 to 5" },
        { "zero where allowed", "0", 0, 5, 0, 0, NULL },
        { "zeros in front", "0003", 1, 5, 0, 3, NULL },
        { "2^63", "9223372036854775808", 0, UINT64_MAX, 0, UINT64_C(9223372036854775808), NULL },
        { "2^64-1", "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX, NULL },
        { "2^64 would wrap to 0", "18446744073709551616", 0, UINT64_MAX, -ERANGE, 0, "too large" },
        { "2^64+3 would wrap to 3", "18446744073709551619", 1, 5, -ERANGE, 0, "too large" },
        { "30 digits", "100000000000000000000000000003", 1, 5, -ERANGE, 0, "too large" },
        { "empty", "", 1, 5, -EINVAL, 0, "--priority is empty" },
        { "missing", NULL, 1, 5, -EINVAL, 0, "--priority is empty" },
        { "negative", "-1", 1, 5, -EINVAL, 0, "is negative" },
        { "plus", "+3", 1, 5, -EINVAL, 0, "has a sign" },
        { "blank in front", " 3", 1, 5, -EINVAL, 0, "has a blank" },
        { "blank behind", "3 ", 1, 5, -EINVAL, 0, "has a blank" },
        { "newline behind", "3\n", 1, 5, -EINVAL, 0, "\"3\\x0A\" has a blank" },
        { "fraction", "3.0", 1, 5, -EINVAL, 0, "is not a whole number" },
        { "exponent", "1e400", 1, 5, -EINVAL, 0, "\"1e400\" is not a number" },
        { "NaN", "NaN", 1, 5, -EINVAL, 0, "is not a number" },
        { "hexadecimal", "0x3", 1, 5, -EINVAL, 0, "is not a number" },
        { "garbage behind", "3x", 1, 5, -EINVAL, 0, "digits only" },
        { "escape sequence", "\033[31m3", 1, 5, -EINVAL, 0, "\\x1B[31m3" },
        { "other digits", "\xd9\xa3", 1, 5, -EINVAL, 0, "is not a number" },
};

static void number_at_the_edges_is_read_or_refused_in_words(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct row *row = &rows[i];
                struct error err = { 0 };
                uint64_t value = 777;
                int r = parse_u64("--priority", row->text, row->min, row->max, &value, &err);
                row_check(row->name, r == row->r);
                row_check(row->name, value == (row->r == 0 ? row->value : 777)); /* untouched on failure */
                row_check(row->name, err.code == -row->r);
                if (row->says) {
                        row_check(row->name, strstr(err.msg, row->says) != NULL);
                        row_check(row->name, strstr(err.msg, "--priority") == err.msg);
                        row_check(row->name, strstr(err.msg, " 5") || strstr(err.msg, " 18446744073709551615"));
                }
        }
        rows_end();
}

static void number_without_an_error_to_fill_is_refused_all_the_same(void **state)
{
        uint64_t value;
        (void) state;
        assert_int_equal(parse_u64("x", "-1", 0, 9, &value, NULL), -EINVAL);
        assert_int_equal(parse_u64("x", "10", 0, 9, &value, NULL), -ERANGE);
}

static void number_of_huge_length_gives_a_short_error(void **state)
{
        char text[100000];
        struct error err = { 0 };
        uint64_t value;
        (void) state;
        memset(text, '9', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(parse_u64("x", text, 0, 9, &value, &err), -ERANGE);
        assert_non_null(strstr(err.msg, "…\" is too large; allowed are 0 to 9"));
}

static void sums_that_would_wrap_are_told(void **state)
{
        uint64_t sum = 5;
        (void) state;
        assert_true(u64_add(UINT64_MAX - 1, 1, &sum));
        assert_true(sum == UINT64_MAX);
        assert_false(u64_add(UINT64_MAX, 1, &sum));
        assert_true(u64_sub0(3, 5) == 0);
        assert_true(u64_sub0(5, 3) == 2);
        assert_true(u64_max(3, 5) == 5);
        assert_true(u64_min(3, 5) == 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(number_at_the_edges_is_read_or_refused_in_words),
                cmocka_unit_test(number_without_an_error_to_fill_is_refused_all_the_same),
                cmocka_unit_test(number_of_huge_length_gives_a_short_error),
                cmocka_unit_test(sums_that_would_wrap_are_told),
        };
        return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
