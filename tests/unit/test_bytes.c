/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void values_written_are_read_back_in_order(void **state)
{
        (void) state;
        uint8_t buf[128];
        struct bytes_writer w;
        struct bytes_reader r;
        char text[8];
        uint8_t blob[8];
        size_t n = 99;

        bytes_writer_init(&w, buf, sizeof(buf));
        bytes_put_u8(&w, 0xfe);
        bytes_put_u16(&w, 0x1234);
        bytes_put_u32(&w, UINT32_MAX);
        bytes_put_u64(&w, UINT64_C(0x0102030405060708));
        bytes_put_i32(&w, -5);
        bytes_put_i64(&w, INT64_MIN);
        bytes_put_bool(&w, true);
        bytes_put_text(&w, "name");
        bytes_put_blob(&w, "a\0b", 3);
        bytes_put_text(&w, "");
        assert_true(bytes_writer_ok(&w));

        bytes_reader_init(&r, buf, w.at);
        assert_int_equal(bytes_get_u8(&r), 0xfe);
        assert_int_equal(bytes_get_u16(&r), 0x1234);
        assert_int_equal(bytes_get_u32(&r), UINT32_MAX);
        assert_true(bytes_get_u64(&r) == UINT64_C(0x0102030405060708));
        assert_int_equal(bytes_get_i32(&r), -5);
        assert_true(bytes_get_i64(&r) == INT64_MIN);
        assert_true(bytes_get_bool(&r));
        assert_true(bytes_get_text(&r, text, sizeof(text)));
        assert_string_equal(text, "name");
        assert_true(bytes_get_blob(&r, blob, sizeof(blob), &n));
        assert_int_equal(n, 3);
        assert_memory_equal(blob, "a\0b", 3);
        assert_true(bytes_get_text(&r, text, sizeof(text)));
        assert_string_equal(text, "");
        assert_true(bytes_reader_at_end(&r));
}

static void integers_are_little_endian_on_the_wire(void **state)
{
        (void) state;
        uint8_t buf[8];
        struct bytes_writer w;

        bytes_writer_init(&w, buf, sizeof(buf));
        bytes_put_u32(&w, 0x0a0b0c0d);
        assert_memory_equal(buf, "\x0d\x0c\x0b\x0a", 4);
}

static void reader_failure_sticks_and_gives_zero(void **state)
{
        (void) state;
        const uint8_t data[3] = { 1, 2, 3 };
        struct bytes_reader r;

        bytes_reader_init(&r, data, sizeof(data));
        assert_int_equal(bytes_get_u32(&r), 0); /* one byte short */
        assert_true(r.failed);
        assert_int_equal(bytes_get_u8(&r), 0); /* there is a byte, but not for a failed reader */
        assert_int_equal(bytes_reader_left(&r), 0);
        assert_false(bytes_reader_at_end(&r));
}

static void reader_at_end_refuses_leftover_bytes(void **state)
{
        (void) state;
        const uint8_t data[2] = { 1, 2 };
        struct bytes_reader r;

        bytes_reader_init(&r, data, sizeof(data));
        (void) bytes_get_u8(&r);
        assert_false(bytes_reader_at_end(&r));
        assert_int_equal(bytes_reader_left(&r), 1);
        bytes_reader_init(&r, NULL, 0);
        assert_true(bytes_reader_at_end(&r));
        assert_non_null(bytes_get_view(&r, 0));
}

static void bool_and_enum_out_of_range_fail(void **state)
{
        (void) state;
        const uint8_t two[1] = { 2 };
        const uint8_t three[4] = { 3, 0, 0, 0 };
        struct bytes_reader r;

        bytes_reader_init(&r, two, sizeof(two));
        assert_false(bytes_get_bool(&r));
        assert_true(r.failed);
        bytes_reader_init(&r, three, sizeof(three));
        assert_int_equal(bytes_get_below(&r, 4), 3);
        assert_false(r.failed);
        bytes_reader_init(&r, three, sizeof(three));
        assert_int_equal(bytes_get_below(&r, 3), 0);
        assert_true(r.failed);
}

static void text_and_blob_lengths_are_never_believed_past_their_cap(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint8_t data[12];
                size_t n;
                size_t cap; /* of the text, with its NUL */
                bool text_fits;
        } rows[] = {
                { "exactly full", { 3, 0, 0, 0, 'a', 'b', 'c' }, 7, 4, true },
                { "one too long", { 3, 0, 0, 0, 'a', 'b', 'c' }, 7, 3, false },
                { "length past the end", { 4, 0, 0, 0, 'a', 'b', 'c' }, 7, 12, false },
                { "length 2^32-1", { 255, 255, 255, 255, 'a' }, 5, 12, false },
                { "NUL inside", { 3, 0, 0, 0, 'a', 0, 'c' }, 7, 12, false },
                { "control bytes pass", { 2, 0, 0, 0, 0x1b, 0xff }, 6, 12, true },
                { "length cut off", { 3, 0, 0 }, 3, 12, false },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct bytes_reader r;
                char text[16] = "old";

                print_message("# %s\n", rows[i].name);
                bytes_reader_init(&r, rows[i].data, rows[i].n);
                assert_int_equal(bytes_get_text(&r, text, rows[i].cap), rows[i].text_fits);
                assert_int_equal(!r.failed, rows[i].text_fits);
                if (!rows[i].text_fits)
                        assert_string_equal(text, "");
        }
}

static void writer_without_room_fails_and_stays_inside(void **state)
{
        (void) state;
        uint8_t buf[8];
        struct bytes_writer w;

        memset(buf, 0xaa, sizeof(buf));
        bytes_writer_init(&w, buf, 6);
        bytes_put_blob(&w, "abc", 3); /* 4 + 3: one too many */
        assert_false(bytes_writer_ok(&w));
        assert_int_equal(w.at, 0);
        bytes_put_u8(&w, 1);
        assert_int_equal(w.at, 0);
        assert_int_equal(buf[6], 0xaa);
}

static void patch_changes_only_what_was_written(void **state)
{
        (void) state;
        uint8_t buf[8] = { 0 };
        struct bytes_writer w;

        bytes_writer_init(&w, buf, sizeof(buf));
        bytes_put_u32(&w, 0);
        bytes_put_u8(&w, 7);
        bytes_patch_u32(&w, 0, 5);
        assert_true(bytes_writer_ok(&w));
        assert_memory_equal(buf, "\x05\0\0\0\x07", 5);
        bytes_patch_u32(&w, 2, 5); /* would reach byte 6, only 5 are there */
        assert_false(bytes_writer_ok(&w));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(values_written_are_read_back_in_order),
                cmocka_unit_test(integers_are_little_endian_on_the_wire),
                cmocka_unit_test(reader_failure_sticks_and_gives_zero),
                cmocka_unit_test(reader_at_end_refuses_leftover_bytes),
                cmocka_unit_test(bool_and_enum_out_of_range_fail),
                cmocka_unit_test(text_and_blob_lengths_are_never_believed_past_their_cap),
                cmocka_unit_test(writer_without_room_fails_and_stays_inside),
                cmocka_unit_test(patch_changes_only_what_was_written),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
