/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cm.h"

static void strbuf_empty_reads_as_an_empty_text(void **state)
{
        struct strbuf zeroed = { 0 }, sb;
        (void) state;
        assert_string_equal(strbuf_text(&zeroed), "");
        strbuf_fini(&zeroed);
        strbuf_init(&sb, 10);
        assert_string_equal(strbuf_text(&sb), "");
        auto_free char *text = strbuf_steal(&sb);
        assert_string_equal(text, "");
        strbuf_fini(&sb);
        strbuf_fini(&sb);
}

static void strbuf_takes_exactly_its_cap(void **state)
{
        struct strbuf sb;
        (void) state;
        strbuf_init(&sb, 10);
        strbuf_puts(&sb, "12345");
        strbuf_printf(&sb, "%s%d", "678", 90);
        assert_false(sb.failed);
        assert_int_equal(sb.len, 10);
        assert_string_equal(strbuf_text(&sb), "1234567890");
        strbuf_append(&sb, "", 0);
        assert_false(sb.failed);
        strbuf_fini(&sb);
}

static void strbuf_past_its_cap_keeps_what_it_had_and_refuses_the_rest(void **state)
{
        struct strbuf sb;
        (void) state;
        strbuf_init(&sb, 10);
        strbuf_puts(&sb, "12345678");
        strbuf_puts(&sb, "9ab");
        assert_true(sb.failed);
        assert_string_equal(strbuf_text(&sb), "12345678");
        strbuf_puts(&sb, "9"); /* would fit; refused, or a text with a hole would look whole */
        strbuf_printf(&sb, "9");
        assert_string_equal(strbuf_text(&sb), "12345678");
        assert_null(strbuf_steal(&sb));
        strbuf_reset(&sb);
        assert_false(sb.failed);
        strbuf_puts(&sb, "again");
        assert_string_equal(strbuf_text(&sb), "again");
        strbuf_fini(&sb);
}

static void strbuf_length_that_would_wrap_is_refused(void **state)
{
        struct strbuf sb;
        (void) state;
        strbuf_init(&sb, 10);
        strbuf_puts(&sb, "12345");
        strbuf_append(&sb, "x", SIZE_MAX - 2);
        assert_true(sb.failed);
        assert_string_equal(strbuf_text(&sb), "12345");
        strbuf_fini(&sb);
}

static void strbuf_keeps_bytes_with_nul(void **state)
{
        struct strbuf sb;
        (void) state;
        strbuf_init(&sb, 100);
        strbuf_append(&sb, "a\0b", 3);
        assert_int_equal(sb.len, 3);
        assert_memory_equal(sb.data, "a\0b", 4);
        strbuf_fini(&sb);
}

static void strbuf_grows_over_many_pieces(void **state)
{
        struct strbuf sb;
        (void) state;
        strbuf_init(&sb, 100000);
        for (int i = 0; i < 10000; i++)
                strbuf_printf(&sb, "%010d", i);
        assert_false(sb.failed);
        assert_int_equal(sb.len, 100000);
        assert_memory_equal(sb.data + 99990, "0000009999", 11);
        assert_true(sb.cap <= 100001);
        auto_free char *text = strbuf_steal(&sb);
        assert_non_null(text);
        assert_int_equal(sb.len, 0);
        assert_int_equal(sb.max_bytes, 100000);
        strbuf_fini(&sb);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(strbuf_empty_reads_as_an_empty_text),
                cmocka_unit_test(strbuf_takes_exactly_its_cap),
                cmocka_unit_test(strbuf_past_its_cap_keeps_what_it_had_and_refuses_the_rest),
                cmocka_unit_test(strbuf_length_that_would_wrap_is_refused),
                cmocka_unit_test(strbuf_keeps_bytes_with_nul),
                cmocka_unit_test(strbuf_grows_over_many_pieces),
        };
        return cmocka_run_group_tests_name("strbuf", tests, NULL, NULL);
}
