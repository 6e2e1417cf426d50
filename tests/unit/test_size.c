/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "base/size.h"
#include "cm.h"

#define KI UINT64_C(1024)
#define MI (KI * KI)
#define GI (KI * MI)
#define TI (KI * GI)

static const struct {
        const char *text;
        uint64_t bytes;
} good[] = {
        { "1", 1 },
        { "1B", 1 },
        { "3221225472", 3 * GI },
        { "12G", 12 * GI },
        { "12GiB", 12 * GI },
        { "12Gi", 12 * GI },
        { "12g", 12 * GI },
        { "12gib", 12 * GI },
        { "12GB", UINT64_C(12000000000) }, /* F32: GB and GiB are two sizes */
        { "12gb", UINT64_C(12000000000) },
        { "24GB", UINT64_C(24000000000) },
        { "24GiB", UINT64_C(25769803776) },
        { "1500M", 1500 * MI },
        { "1500MB", UINT64_C(1500000000) },
        { "1K", 1024 },
        { "1KB", 1000 },
        { "1kB", 1000 },
        { "2T", 2 * TI },
        { "2TB", UINT64_C(2000000000000) },
        { "1.5G", 3 * GI / 2 },
        { "0.5K", 512 },
        { "00012G", 12 * GI },
        { "1.5GB", UINT64_C(1500000000) },
        { "1.000000000000000000000000000001G", GI },
        { "0.33333333333333333G", GI / 3 },
        { "9223372036854775807", INT64_MAX }, /* 2^63-1 */
        { "8388607T", 8388607 * TI },
};

static void F32_size_in_each_spelling_is_its_bytes(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                struct size size = { .bytes = 777 };
                struct error err = { 0 };
                row_check(good[i].text, size_parse("--vram", good[i].text, &size, &err) == 0);
                row_check(good[i].text, size.kind == SIZE_BYTES && size.bytes == good[i].bytes);
                row_check(good[i].text, err.code == 0);
        }
        rows_end();
}

static const struct {
        const char *text;
        uint64_t percent_milli;
} shares[] = {
        { "all", 100000 }, { "100%", 100000 },   { "100.000%", 100000 }, { "90%", 90000 },
        { "0.5%", 500 },   { "12.345%", 12345 }, { "0.001%", 1 },
};

static void size_as_a_share_is_kept_as_a_share(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
                struct size size = { 0 };
                row_check(shares[i].text, size_parse("--vram", shares[i].text, &size, NULL) == 0);
                row_check(shares[i].text, size.kind == SIZE_PERCENT);
                row_check(shares[i].text, size.percent_milli == shares[i].percent_milli);
        }
        rows_end();
}

static const struct {
        const char *text, *says;
} bad[] = {
        { NULL, "--vram is empty" },
        { "", "--vram is empty" },
        { "0", "it is nothing" },
        { "0G", "it is nothing" },
        { "0.0000001K", "it is nothing" },
        { "-1", "it is negative" },
        { "-12G", "it is negative" },
        { "+12G", "it has a sign" },
        { "12 G", "\"12 G\" is not an amount of memory: it has a blank in it, write it in one piece, as 12G" },
        { " 12G", "it has a blank in it" },
        { "12G\n", "it has a blank in it" },
        { "1e400", "it has an exponent" },
        { "1E9", "it has an exponent" },
        { "1e-9G", "it has an exponent" },
        { "NaN", "must begin with a digit" },
        { "inf", "must begin with a digit" },
        { "ALL", "must begin with a digit" },
        { "0x10", "it is hexadecimal" },
        { "9223372036854775808", "it is too large" },  /* 2^63 */
        { "18446744073709551615", "it is too large" }, /* 2^64-1 */
        { "18446744073709551616", "it is too large" }, /* 2^64 would wrap to 0 */
        { "18446744073709551617", "it is too large" }, /* 2^64+1 would wrap to 1 */
        { "8388608T", "it is too large" },             /* 2^63 */
        { "16777216T", "it is too large" },            /* 2^64 */
        { "8388607.9999999999999999999T", NULL },      /* just below 2^63 */
        { "99999999999999999999999999G", "it is too large" },
        { "1.5", "a byte has no fraction" },
        { "1.G", "a digit must follow the point" },
        { ".5G", "a digit must stand before the point" },
        { "1.5.5G", "there is no such unit" },
        { "1,5G", "it has a comma" },
        { "12Gb", "that unit means bits" },
        { "12GIB", "there is no such unit" },
        { "12X", "there is no such unit" },
        { "12P", "there is no such unit" },
        { "12GG", "there is no such unit" },
        { "0%", "it is nothing" },
        { "0.000%", "it is nothing" },
        { "101%", "it is more than the whole device" },
        { "100.001%", "it is more than the whole device" },
        { "18446744073709551716%", "it is more than the whole device" }, /* 2^64+100 */
        { "0.0005%", "three digits after the point" },
        { "-5%", "it is negative" },
        { "%", "must begin with a digit" },
        { "90%%", "there is no such unit" },
        { "\033]0;x\a", "\\x1B]0;x\\x07" },
};

static void size_that_is_none_is_refused_with_field_and_cure(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                const char *name = bad[i].text ? bad[i].text : "missing";
                struct size size = { .bytes = 777 };
                struct error err = { 0 };
                int r = size_parse("--vram", bad[i].text, &size, &err);
                if (!bad[i].says) {
                        row_check(name, r == 0 && size.bytes <= SIZE_BYTES_MAX);
                        continue;
                }
                row_check(name, r == -EINVAL && err.code == EINVAL);
                row_check(name, size.bytes == 777);
                row_check(name, strstr(err.msg, "--vram") == err.msg);
                row_check(name, strstr(err.msg, bad[i].says) != NULL);
                row_check(name, strstr(err.msg, "or all") != NULL); /* the end with the cure was not cut off */
        }
        rows_end();
}

static const struct {
        uint64_t bytes;
        const char *both, *binary;
} texts[] = {
        { 0, "0 B", "0 B" },
        { 1, "1 B", "1 B" },
        { 999, "999 B", "999 B" },
        { 1000, "1000 B (1 kB)", "1000 B" },
        { 1024, "1 KiB (1.02 kB)", "1 KiB" },
        { 1536, "1.5 KiB (1.54 kB)", "1.5 KiB" },
        { 1500 * MI, "1500 MiB (1.57 GB)", "1500 MiB" },
        { 400 * MI, "400 MiB (419 MB)", "400 MiB" },
        { 3 * GI, "3 GiB (3.22 GB)", "3 GiB" },
        { 12 * GI, "12 GiB (12.9 GB)", "12 GiB" },
        { 45 * GI / 2, "22.5 GiB (24.2 GB)", "22.5 GiB" },
        { 24 * GI - MI, "24575 MiB (25.8 GB)", "24575 MiB" },
        { UINT64_C(12000000000), "11.18 GiB (12 GB)", "11.18 GiB" },
        { UINT64_C(1500000000), "1.40 GiB (1.5 GB)", "1.40 GiB" },
        { TI - 1, "1.00 TiB (1.10 TB)", "1.00 TiB" },
        { UINT64_C(999999), "976.56 KiB (1.00 MB)", "976.56 KiB" },
        { INT64_MAX, "8.00 EiB (9.22 EB)", "8.00 EiB" },
        { UINT64_MAX, "16.00 EiB (18.4 EB)", "16.00 EiB" },
};

static void size_is_echoed_in_both_units(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                char both[SIZE_TEXT_MAX], binary[SIZE_TEXT_MAX];
                print_message("# %s / %s\n", size_text(texts[i].bytes, both), size_text_short(texts[i].bytes, binary));
                row_check(texts[i].both, strcmp(both, texts[i].both) == 0);
                row_check(texts[i].both, strcmp(binary, texts[i].binary) == 0);
        }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F32_size_in_each_spelling_is_its_bytes),
                cmocka_unit_test(size_as_a_share_is_kept_as_a_share),
                cmocka_unit_test(size_that_is_none_is_refused_with_field_and_cure),
                cmocka_unit_test(size_is_echoed_in_both_units),
        };
        return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
