/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "base/error.h"
#include "base/escape.h"
#include "cm.h"

static void error_set_keeps_code_and_words(void **state)
{
        struct error err = { 0 };
        (void) state;
        assert_int_equal(error_set(&err, ENOENT, "no %s", "card"), -ENOENT);
        assert_int_equal(err.code, ENOENT);
        assert_string_equal(err.msg, "no card");
}

static void error_set_without_words_says_what_the_number_means(void **state)
{
        struct error err = { 0 };
        (void) state;
        assert_int_equal(error_set(&err, ENOENT, "%s", ""), -ENOENT);
        assert_string_equal(err.msg, "No such file or directory");
        assert_int_equal(error_set(&err, 99999, "%s", ""), -99999);
        assert_string_equal(err.msg, "unknown error");
}

static void error_errno_ends_with_the_systems_words(void **state)
{
        struct error err = { 0 };
        (void) state;
        assert_int_equal(error_errno(&err, EACCES, "open %s", "x"), -EACCES);
        assert_string_equal(err.msg, "open x: Permission denied");
        assert_int_equal(err.code, EACCES);
}

static void error_wrap_puts_the_context_in_front(void **state)
{
        struct error err = { 0 };
        (void) state;
        int r = error_set(&err, EINVAL, "no such key");
        assert_int_equal(error_wrap(&err, r, "line %d", 3), -EINVAL);
        assert_int_equal(error_wrap(&err, r, "reading the configuration"), -EINVAL);
        assert_string_equal(err.msg, "reading the configuration: line 3: no such key");
        assert_int_equal(err.code, EINVAL);
}

static void error_wrap_of_an_unfilled_error_says_what_the_number_means(void **state)
{
        struct error err = { 0 };
        (void) state;
        assert_int_equal(error_wrap(&err, -ENOMEM, "reading"), -ENOMEM);
        assert_string_equal(err.msg, "reading: Cannot allocate memory");
        assert_int_equal(err.code, ENOMEM);
}

static void error_wrap_may_be_given_its_own_words(void **state)
{
        struct error err = { 0 };
        (void) state;
        int r = error_set(&err, EINVAL, "inner");
        assert_int_equal(error_wrap(&err, r, "[%s]", err.msg), -EINVAL);
        assert_string_equal(err.msg, "[inner]: inner");
        assert_int_equal(error_set(&err, EIO, "<%s>", err.msg), -EIO);
        assert_string_equal(err.msg, "<[inner]: inner>");
}

static void error_without_a_place_to_write_still_returns_the_code(void **state)
{
        (void) state;
        assert_int_equal(error_set(NULL, EIO, "x"), -EIO);
        assert_int_equal(error_errno(NULL, EIO, "x"), -EIO);
        assert_int_equal(error_wrap(NULL, -EIO, "x"), -EIO);
}

static void error_too_long_is_cut_between_characters(void **state)
{
        struct error err = { 0 };
        char text[2000];
        (void) state;
        for (size_t shift = 0; shift < 4; shift++) {
                memset(text, 'x', shift);
                for (size_t i = 0; i < 400; i++)
                        memcpy(text + shift + 4 * i, "🙂", 5);
                assert_int_equal(error_set(&err, EINVAL, "%s", text), -EINVAL);
                size_t len = strlen(err.msg);
                assert_in_range(len, sizeof(err.msg) - 4, sizeof(err.msg) - 1);
                assert_true(text_is_plain(err.msg, len));
                assert_int_equal(error_wrap(&err, -EINVAL, "%s", "context"), -EINVAL);
                assert_true(text_is_plain(err.msg, strlen(err.msg)));
                assert_int_equal(strncmp(err.msg, "context: ", 9), 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(error_set_keeps_code_and_words),
                cmocka_unit_test(error_set_without_words_says_what_the_number_means),
                cmocka_unit_test(error_errno_ends_with_the_systems_words),
                cmocka_unit_test(error_wrap_puts_the_context_in_front),
                cmocka_unit_test(error_wrap_of_an_unfilled_error_says_what_the_number_means),
                cmocka_unit_test(error_wrap_may_be_given_its_own_words),
                cmocka_unit_test(error_without_a_place_to_write_still_returns_the_code),
                cmocka_unit_test(error_too_long_is_cut_between_characters),
        };
        return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
