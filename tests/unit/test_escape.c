/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "base/escape.h"
#include "cm.h"

#define BYTES(text) text, sizeof(text) - 1

static const struct {
        const char *name, *in;
        size_t n_in;
        const char *out;
        bool plain;
} rows[] = {
        { "plain", BYTES("python train.py"), "python train.py", true },
        { "empty", BYTES(""), "", true },
        { "umlaut and emoji", BYTES("grün 🙂"), "grün 🙂", true },
        { "newline with a forged entry", BYTES("a\nlevel=error"), "a\\x0Alevel=error", false },
        { "terminal sequence", BYTES("\033[2J"), "\\x1B[2J", false },
        { "NUL", BYTES("a\0b"), "a\\x00b", false },
        { "DEL", BYTES("\x7f"), "\\x7F", false },
        { "CSI in UTF-8", BYTES("\xc2\x9b"), "\\xC2\\x9B", false },
        { "last of C1", BYTES("\xc2\x9f"), "\\xC2\\x9F", false },
        { "first after C1", BYTES("\xc2\xa0"), "\xc2\xa0", true },
        { "CSI alone", BYTES("\x9b"), "\\x9B", false },
        { "backslash", BYTES("a\\x0A"), "a\\\\x0A", true },
        { "overlong slash", BYTES("\xc0\xaf"), "\\xC0\\xAF", false },
        { "overlong of three", BYTES("\xe0\x9f\xbf"), "\\xE0\\x9F\\xBF", false },
        { "overlong of four", BYTES("\xf0\x8f\xbf\xbf"), "\\xF0\\x8F\\xBF\\xBF", false },
        { "surrogate", BYTES("\xed\xa0\x80"), "\\xED\\xA0\\x80", false },
        { "below the surrogates", BYTES("\xed\x9f\xbf"), "\xed\x9f\xbf", true },
        { "above U+10FFFF", BYTES("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80", false },
        { "U+10FFFF", BYTES("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf", true },
        { "byte no UTF-8 has", BYTES("\xf5\x80\x80\x80"), "\\xF5\\x80\\x80\\x80", false },
        { "cut in a character", BYTES("a\xe2\x82"), "a\\xE2\\x82", false },
        { "broken, then good", BYTES("\xe2\x41"), "\\xE2A", false },
};

static void S18_text_of_strangers_is_made_safe(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char buf[64];
                row_check(rows[i].name,
                          strcmp(text_escape(rows[i].in, rows[i].n_in, buf, sizeof(buf)), rows[i].out) == 0);
                row_check(rows[i].name, text_is_plain(rows[i].in, rows[i].n_in) == rows[i].plain);
        }
        rows_end();
}

static void text_too_long_ends_with_an_ellipsis_and_between_characters(void **state)
{
        char buf[8];
        (void) state;
        assert_string_equal(text_escape(BYTES("1234567"), buf, 8), "1234567"); /* exactly what fits */
        assert_string_equal(text_escape(BYTES("12345678"), buf, 8), "1234…");
        assert_string_equal(text_escape(BYTES("1\n\n\n"), buf, 8), "1…"); /* never half an escape */
        assert_string_equal(text_escape(BYTES("\n1234"), buf, 8), "\\x0A…");
        assert_string_equal(text_escape(BYTES("123ü5678"), buf, 8), "123…"); /* never half a character */
        assert_string_equal(text_escape(BYTES("\\\\\\\\"), buf, 8), "\\\\\\\\…");
}

static void text_into_a_tiny_buffer_stays_inside_it(void **state)
{
        (void) state;
        for (size_t size = 0; size < 12; size++) {
                char buf[16];
                memset(buf, 'Z', sizeof(buf));
                (void) text_escape(BYTES("a\n🙂\\bcdefghijkl"), buf, size);
                for (size_t i = size; i < sizeof(buf); i++)
                        assert_int_equal(buf[i], 'Z');
                if (size > 0)
                        assert_non_null(memchr(buf, '\0', size));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S18_text_of_strangers_is_made_safe),
                cmocka_unit_test(text_too_long_ends_with_an_ellipsis_and_between_characters),
                cmocka_unit_test(text_into_a_tiny_buffer_stays_inside_it),
        };
        return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
