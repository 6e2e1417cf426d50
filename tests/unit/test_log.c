/* SPDX-License-Identifier: Apache-2.0 */
/* S18: whatever a stranger chose to be called, a line is one line with our fields in it, and no source fills the disk. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/log_text.h"
#include "cm.h"

/* Whatever is logged between catch_log() and caught() lands in a file instead of on stderr. */
static int real_stderr, file;

static void catch_log(void)
{
        char path[] = "/tmp/lessor-test-log-XXXXXX";
        file = mkstemp(path);
        assert_true(file >= 0);
        (void) unlink(path);
        real_stderr = dup(STDERR_FILENO);
        assert_true(dup2(file, STDERR_FILENO) >= 0);
}

static const char *caught(void)
{
        static char text[1 << 20];
        ssize_t n = pread(file, text, sizeof(text) - 1, 0);
        assert_true(n >= 0);
        text[n] = '\0';
        (void) dup2(real_stderr, STDERR_FILENO);
        (void) close(real_stderr);
        (void) close(file);
        return text;
}

/* ---- what a line looks like ---- */

printf_like(3, 4) static void made(char *buf, size_t buf_size, const char *fmt, ...)
{
        struct log_text line = { 0 };
        va_list args;

        va_start(args, fmt);
        log_text_add_values(&line, fmt, &args);
        va_end(args);
        log_text_end(&line);
        assert_in_range(line.n, 1, buf_size - 1);
        memcpy(buf, line.text, line.n);
        buf[line.n] = '\0';
}

static void S18_value_of_a_stranger_stays_in_its_quotes(void **state)
{
        static const struct {
                const char *name, *in, *quoted, *bare, *sentence;
        } rows[] = {
                { "a word", "train.py", "k=\"train.py\"", "k=train.py", "train.py" },
                { "umlaut and emoji", "grün🙂", "k=\"grün🙂\"", "k=grün🙂", "grün🙂" },
                { "nothing", "", "k=\"\"", "k=\"\"", "" },
                { "a newline and a forged entry", "a\nlessord: level=error event=x",
                  "k=\"a\\x0Alessord: level=error event=x\"", "k=\"a\\x0Alessord: level=error event=x\"",
                  "a\\x0Alessord: level=error event=x" },
                { "a carriage return", "a\rb", "k=\"a\\x0Db\"", "k=\"a\\x0Db\"", "a\\x0Db" },
                { "ANSI", "\033[2J\033]0;t\007", "k=\"\\x1B[2J\\x1B]0;t\\x07\"", "k=\"\\x1B[2J\\x1B]0;t\\x07\"",
                  "\\x1B[2J\\x1B]0;t\\x07" },
                { "C1 in UTF-8",
                  "\xc2\x9b"
                  "2J",
                  "k=\"\\xC2\\x9B2J\"", "k=\"\\xC2\\x9B2J\"", "\\xC2\\x9B2J" },
                { "C1 alone", "\x9b", "k=\"\\x9B\"", "k=\"\\x9B\"", "\\x9B" },
                { "DEL", "\x7f", "k=\"\\x7F\"", "k=\"\\x7F\"", "\\x7F" },
                { "no UTF-8", "a\xff\xfe", "k=\"a\\xFF\\xFE\"", "k=\"a\\xFF\\xFE\"", "a\\xFF\\xFE" },
                { "half of a character", "\xe2\x82", "k=\"\\xE2\\x82\"", "k=\"\\xE2\\x82\"", "\\xE2\\x82" },
                { "a quote and a field", "x\" uid=0 y=\"", "k=\"x\\\" uid=0 y=\\\"\"", "k=\"x\\\" uid=0 y=\\\"\"",
                  "x\" uid=0 y=\"" },
                { "a backslash before the end", "x\\", "k=\"x\\\\\"", "k=\"x\\\\\"", "x\\" },
                { "what looks escaped", "\\x0A\\\"", "k=\"\\\\x0A\\\\\\\"\"", "k=\"\\\\x0A\\\\\\\"\"", "\\x0A\\\"" },
                { "two words", "a b", "k=\"a b\"", "k=\"a b\"", "a b" },
                { "a field", "a=b", "k=\"a=b\"", "k=\"a=b\"", "a=b" },
                { "a conversion", "%s%n", "k=\"%s%n\"", "k=%s%n", "%s%n" },
        };
        int rows_failed = 0;

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char got[3][256];
                char want[3][256];
                made(got[0], sizeof(got[0]), "n=1 k=\"%s\" z=2", rows[i].in);
                made(got[1], sizeof(got[1]), "n=1 k=%s z=2", rows[i].in);
                made(got[2], sizeof(got[2]), "lessor.conf:3: %s: cure", rows[i].in);
                (void) snprintf(want[0], sizeof(want[0]), "n=1 %s z=2\n", rows[i].quoted);
                (void) snprintf(want[1], sizeof(want[1]), "n=1 %s z=2\n", rows[i].bare);
                (void) snprintf(want[2], sizeof(want[2]), "lessor.conf:3: %s: cure\n", rows[i].sentence);
                row_check(rows[i].name, strcmp(got[0], want[0]) == 0);
                row_check(rows[i].name, strcmp(got[1], want[1]) == 0);
                row_check(rows[i].name, strcmp(got[2], want[2]) == 0);
        }
        rows_end();
}

static void S18_value_of_a_mebibyte_is_cut_and_the_rest_of_the_line_is_there(void **state)
{
        static char huge[1 << 20];
        char got[LOG_LINE_MAX + 1], want[LOG_LINE_MAX + 1];

        (void) state;
        memset(huge, 'x', sizeof(huge) - 1);
        memset(want, 'x', sizeof(want));
        made(got, sizeof(got), "argv=\"%s\" uid=%d", huge, 7);
        assert_int_equal(strlen(got), strlen("argv=\"") + LOG_VALUE_MAX + strlen("\" uid=7\n"));
        assert_string_equal(got + strlen(got) - strlen("xx…\" uid=7\n"), "xx…\" uid=7\n");
        made(got, sizeof(got), "argv=%s uid=%d", huge, 7);
        assert_int_equal(strlen(got), strlen("argv=\"") + LOG_VALUE_MAX + strlen("\" uid=7\n"));
        /* words of ours are longer, so that their cure is not lost; backslashes alone would take for ever */
        made(got, sizeof(got), "words=\"%s\" uid=%d", huge, 7);
        assert_int_equal(strlen(got), strlen("words=\"") + sizeof(((struct error *) NULL)->msg) + strlen("\" uid=7\n"));
        memset(huge, '\\', sizeof(huge) - 1);
        made(got, sizeof(got), "it says %s", huge);
        assert_int_equal(strlen(got), LOG_LINE_MAX);
        assert_string_equal(got + LOG_LINE_MAX - 5, "\\...\n");
}

static void log_line_too_long_is_cut_between_characters_and_says_so(void **state)
{
        static char huge[3 * LOG_LINE_MAX];
        char got[LOG_LINE_MAX + 1];

        (void) state;
        for (size_t shift = 0; shift < 4; shift++) {
                memset(huge, 'a', shift);
                for (size_t i = shift; i + 4 < sizeof(huge); i += 4)
                        memcpy(huge + i, "🙂", 5);
                made(got, sizeof(got), "it says %s %s", huge, huge);
                size_t n = strlen(got);
                assert_in_range(n, LOG_LINE_MAX - 8, LOG_LINE_MAX);
                assert_string_equal(got + n - 4, "...\n");
                assert_true(text_is_plain(got, n - 1)); /* no half of one */
        }
}

static void log_numbers_of_all_lengths_are_written(void **state)
{
        char got[512];

        (void) state;
        made(got, sizeof(got), "a=%d b=%u c=%ld d=%llu e=%zu f=%x g=%" PRIu64 " h=%hhu i=%" PRIx64 " j=%i k=100%% l=%c",
             -1, UINT32_MAX, INT64_MIN, (unsigned long long) UINT64_MAX, (size_t) 0, 0xabcU, UINT64_MAX,
             (unsigned char) 255, UINT64_MAX, INT32_MIN, 'c');
        assert_string_equal(got, "a=-1 b=4294967295 c=-9223372036854775808 d=18446744073709551615 e=0 f=abc "
                                 "g=18446744073709551615 h=255 i=ffffffffffffffff j=-2147483648 k=100% l=c\n");
}

/* ---- lines on stderr ---- */

static void log_line_is_one_line_with_program_and_level(void **state)
{
        (void) state;
        log_init("lessord", LOG_LEVEL_INFO);
        catch_log();
        log_warning("lease=%d state=%s", 7, "active");
        assert_string_equal(caught(), "lessord: level=warning lease=7 state=active\n");
}

static void log_below_the_level_is_silent(void **state)
{
        (void) state;
        log_init("lessord", LOG_LEVEL_WARNING);
        catch_log();
        log_info("x=1");
        log_debug("x=1");
        log_error("x=2");
        assert_string_equal(caught(), "lessord: level=error x=2\n");
}

static void log_keeps_errno(void **state)
{
        (void) state;
        catch_log();
        errno = ENOTTY;
        log_error("x=1");
        assert_int_equal(errno, ENOTTY);
        (void) caught();
}

/* ---- how many ---- */

static void S18_source_writes_its_burst_then_its_pace(void **state)
{
        static const struct {
                const char *name;
                uint64_t after_ms; /* after the row before it */
                uint32_t n_tried, n_written;
        } rows[] = {
                { "a burst", 5000, 200, 200 },
                { "one more", 0, 1, 0 },
                { "less than a line's time later", 19, 1, 0 },
                { "a line's time later", 1, 2, 1 },
                { "half a second later", 500, 100, 25 },
                { "a second later", 1000, 100, 50 },
                { "an hour later", 3600000, 300, 200 },
                { "the clock went back", (uint64_t) -1000, 1, 0 },
                { "and comes again", 1020, 2, 1 },
        };
        struct log_limit limit = { 0 };
        uint64_t now_ms = 0;
        int rows_failed = 0;

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint32_t n_written = 0;
                now_ms += rows[i].after_ms;
                for (uint32_t n = 0; n < rows[i].n_tried; n++)
                        n_written += log_limit_take(&limit, "refused", now_ms);
                row_check(rows[i].name, n_written == rows[i].n_written);
        }
        assert_true(log_limit_take(&limit, "granted", now_ms)); /* somebody else's are his own */
        rows_end();
}

static void S18_dropped_lines_are_counted_and_told_once_a_second(void **state)
{
        struct log_limit limit = { 0 };
        uint64_t n = 0;

        (void) state;
        for (uint32_t i = 0; i < LOG_BURST + 7; i++)
                (void) log_limit_take(&limit, "refused", 100);
        assert_null(log_limit_owed(&limit, 100, &n));
        assert_null(log_limit_owed(&limit, 1099, &n));
        assert_string_equal(log_limit_owed(&limit, 1100, &n), "refused");
        assert_int_equal(n, 7);
        assert_null(log_limit_owed(&limit, 1100, &n));
        for (uint32_t i = 0; i < 60; i++) /* 50 of them are its pace */
                (void) log_limit_take(&limit, "refused", 1100);
        assert_null(log_limit_owed(&limit, 2099, &n));
        assert_string_equal(log_limit_owed(&limit, 2100, &n), "refused");
        assert_int_equal(n, 10);
}

static void S18_names_without_end_share_one_row(void **state)
{
        struct log_limit limit = { 0 };
        uint64_t n = 0;
        uint32_t n_written = 0;

        (void) state;
        for (uint32_t i = 0; i < 10000; i++) {
                char name[64];
                (void) snprintf(name, sizeof(name), "%u-name-that-is-longer-than-what-is-kept-of-it", i);
                n_written += log_limit_take(&limit, name, 0);
        }
        assert_int_equal(n_written, LOG_SOURCES_MAX - 1 + LOG_BURST);
        assert_string_equal(log_limit_owed(&limit, 1000, &n), "others");
        assert_int_equal(n, 10000 - n_written);
        assert_null(log_limit_owed(&limit, 1000, &n));
        assert_false(log_limit_take(&limit, "one more", 0));
        assert_true(
                log_limit_take(&limit, "0-name-that-is-longer-than-what-is-kept-of-it", 0)); /* has a row of its own */
}

static void S18_hundred_thousand_events_fill_no_disk(void **state)
{
        enum { N = 100000 };
        struct stat st;

        (void) state;
        log_init("lessord", LOG_LEVEL_INFO);
        catch_log();
        uint64_t before_ms = clock_now_ms();
        for (int i = 0; i < N; i++)
                log_info("event=%s n=%d name=\"%s\"", "flood", i, "a\nb");
        log_info("event=other name=\"%s\"", "x");
        uint64_t took_ms = clock_now_ms() - before_ms;
        assert_int_equal(fstat(file, &st), 0);
        const char *got = caught();

        uint64_t n_lines = 0;
        for (const char *at = got; (at = strchr(at, '\n')); at++)
                n_lines++;
        /* its burst, its pace, one word a second on what was dropped, and the other one's line */
        assert_in_range(n_lines, LOG_BURST + 1,
                        LOG_BURST + (took_ms + 1) * LOG_PER_S / 1000 + took_ms / LOG_TOLD_MS + 2);
        assert_in_range(st.st_size, 1, n_lines * 100);
        assert_non_null(strstr(got, "lessord: level=info event=other name=\"x\"\n"));
}

/* As many as were dropped are told of when the program ends: a child that only floods and leaves. */
static void S18_count_of_the_dropped_is_told_at_the_end_at_the_latest(void **state)
{
        enum { N = 5000 };
        unsigned n_dropped = 0, n_written = 0;

        (void) state;
        catch_log();
        pid_t pid = fork();
        if (pid == 0) {
                log_init("lessord", LOG_LEVEL_INFO);
                for (int i = 0; i < N; i++)
                        log_info("event=leaving n=%d", i);
                exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        const char *got = caught();
        for (const char *at = got; (at = strstr(at, "event=leaving ")); at++)
                n_written++;
        for (const char *at = got; (at = strstr(at, "event=log-suppressed what=\"leaving\" dropped=")); at++)
                n_dropped += (unsigned) strtoul(strrchr(strndupa(at, strcspn(at, "\n")), '=') + 1, NULL, 10);
        assert_in_range(n_dropped, 1, N);
        assert_int_equal(n_written + n_dropped, N);
}

static void S18_lines_for_who_looks_for_a_fault_are_all_there(void **state)
{
        unsigned n = 0;

        (void) state;
        log_init("lessord", LOG_LEVEL_DEBUG);
        catch_log();
        for (int i = 0; i < 3 * LOG_BURST; i++)
                log_debug("event=answer n=%d", i);
        for (const char *at = caught(); (at = strstr(at, "event=answer ")); at++)
                n++;
        assert_int_equal(n, 3 * LOG_BURST);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S18_value_of_a_stranger_stays_in_its_quotes),
                cmocka_unit_test(S18_value_of_a_mebibyte_is_cut_and_the_rest_of_the_line_is_there),
                cmocka_unit_test(log_line_too_long_is_cut_between_characters_and_says_so),
                cmocka_unit_test(log_numbers_of_all_lengths_are_written),
                cmocka_unit_test(log_line_is_one_line_with_program_and_level),
                cmocka_unit_test(log_below_the_level_is_silent),
                cmocka_unit_test(log_keeps_errno),
                cmocka_unit_test(S18_source_writes_its_burst_then_its_pace),
                cmocka_unit_test(S18_dropped_lines_are_counted_and_told_once_a_second),
                cmocka_unit_test(S18_names_without_end_share_one_row),
                cmocka_unit_test(S18_hundred_thousand_events_fill_no_disk),
                cmocka_unit_test(S18_count_of_the_dropped_is_told_at_the_end_at_the_latest),
                cmocka_unit_test(S18_lines_for_who_looks_for_a_fault_are_all_there),
        };
        return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
