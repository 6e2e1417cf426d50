/* SPDX-License-Identifier: Apache-2.0 */
/* Records of process accounting: the kernel's own bytes, torn files, and what is no record. */
#include "wire/acct.h"
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "cm.h"

/* As the kernel lays it out: `sh`, which ended with 3 after one and a half seconds. */
static const uint8_t of_kernel[ACCT_RECORD_SIZE] = {
        0x02, 3, 0,    0,    0,    3,    0,    0,    0x00, 0,    0, 0, 0, 0, 0, 0, 0x39, 0x30, 0, 0, 0x38, 0x30,
        0,    0, 0x10, 0x32, 0x54, 0x76, 0x00, 0x00, 0x17, 0x43, 1, 0, 2, 0, 3, 0, 4,    0,    5, 0, 6,    0,
        7,    0, 8,    0,    's',  'h',  0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0,    0,    0, 0,
};

static void record_of_the_kernel_is_read_field_by_field(void **state)
{
        (void) state;
        struct acct_record r;

        assert_int_equal(acct_parse(of_kernel, sizeof(of_kernel), &r), 0);
        assert_int_equal(r.pid, 12345);
        assert_int_equal(r.ppid, 12344);
        assert_int_equal(r.exit_code, 0x300);
        assert_int_equal(r.begun_s, 0x76543210);
        assert_int_equal(r.lasted_ms, 1510); /* 151 hundredths */
        assert_string_equal(r.comm, "sh");
}

static void name_without_its_end_is_cut_where_the_record_ends(void **state)
{
        (void) state;
        uint8_t bytes[ACCT_RECORD_SIZE];
        struct acct_record r;

        memcpy(bytes, of_kernel, sizeof(bytes));
        memset(bytes + 48, 'x', 16);
        assert_int_equal(acct_parse(bytes, sizeof(bytes), &r), 0);
        assert_int_equal(strlen(r.comm), 16);
}

static void duration_is_a_float_of_hundredths(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t bits;
                bool fine;
                uint64_t ms;
        } rows[] = {
                { "0", 0, true, 0 },
                { "0.99", 0x3f7d70a4, true, 0 },
                { "1", 0x3f800000, true, 10 },
                { "8640000, a day", 0x4b03d600, true, 86400000 },
                { "2^31", 0x4f000000, true, UINT64_C(21474836480) },
                { "smaller than any number", 0x00000001, true, 0 },
                { "more than anybody lives", 0x7f000000, false, 0 },
                { "below 0", 0xbf800000, false, 0 },
                { "without end", 0x7f800000, false, 0 },
                { "no number", 0x7fc00000, false, 0 },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint8_t bytes[ACCT_RECORD_SIZE];
                struct acct_record r = { 0 };

                memcpy(bytes, of_kernel, sizeof(bytes));
                for (unsigned k = 0; k < 4; k++)
                        bytes[28 + k] = (uint8_t) (rows[i].bits >> (8 * k));
                row_check(rows[i].name, (acct_parse(bytes, sizeof(bytes), &r) == 0) == rows[i].fine);
                row_check(rows[i].name, r.lasted_ms == rows[i].ms);
        }
        rows_end();
}

static void what_is_no_record_of_version_3_is_refused(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                unsigned at;
                uint8_t byte;
        } rows[] = {
                { "version 2", 1, 2 },
                { "big-endian", 1, 0x83 },
                { "a pid below 0", 19, 0x80 },
                { "a parent below 0", 23, 0xff },
        };
        uint8_t bytes[ACCT_RECORD_SIZE];
        struct acct_record r;
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                memcpy(bytes, of_kernel, sizeof(bytes));
                bytes[rows[i].at] = rows[i].byte;
                row_check(rows[i].name, acct_parse(bytes, sizeof(bytes), &r) == -EBADMSG);
        }
        rows_end();
        memcpy(bytes, of_kernel, sizeof(bytes));
        memset(bytes + 16, 0, 4); /* pid 0 */
        assert_int_equal(acct_parse(bytes, sizeof(bytes), &r), -EBADMSG);
        for (size_t n = 0; n < sizeof(bytes); n++)
                assert_int_equal(acct_parse(of_kernel, n, &r), -EBADMSG);
}

static void behind_a_torn_record_the_next_whole_one_is_found(void **state)
{
        (void) state;
        uint8_t bytes[5 * ACCT_RECORD_SIZE];
        const size_t torn = 23;

        memcpy(bytes, of_kernel, torn); /* a crash in the middle */
        memcpy(bytes + torn, of_kernel, ACCT_RECORD_SIZE);
        memcpy(bytes + torn + ACCT_RECORD_SIZE, of_kernel, ACCT_RECORD_SIZE);
        assert_int_equal(acct_find(bytes, torn + 2 * ACCT_RECORD_SIZE, 0), torn);
        assert_int_equal(acct_find(bytes, torn + ACCT_RECORD_SIZE, 0), torn);
        assert_int_equal(acct_find(bytes, torn, 0), torn); /* none */
        assert_int_equal(acct_find(bytes, torn + ACCT_RECORD_SIZE + 9, 0),
                         torn + ACCT_RECORD_SIZE + 9); /* torn again */
        assert_int_equal(acct_find(bytes, torn + 2 * ACCT_RECORD_SIZE, torn + 1), torn + ACCT_RECORD_SIZE);
        memset(bytes, 0, sizeof(bytes));
        assert_int_equal(acct_find(bytes, sizeof(bytes), 0), sizeof(bytes));
        assert_int_equal(acct_find(bytes, 0, 0), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(record_of_the_kernel_is_read_field_by_field),
                cmocka_unit_test(name_without_its_end_is_cut_where_the_record_ends),
                cmocka_unit_test(duration_is_a_float_of_hundredths),
                cmocka_unit_test(what_is_no_record_of_version_3_is_refused),
                cmocka_unit_test(behind_a_torn_record_the_next_whole_one_is_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
