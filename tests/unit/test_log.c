/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "cm.h"

/* Whatever is logged between catch() and caught() lands in a file instead of on stderr. */
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
        static char text[3 * LOG_LINE_MAX];
        ssize_t n = pread(file, text, sizeof(text) - 1, 0);
        assert_true(n >= 0);
        text[n] = '\0';
        (void) dup2(real_stderr, STDERR_FILENO);
        (void) close(real_stderr);
        (void) close(file);
        return text;
}

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

static void log_of_a_forgotten_newline_forges_no_second_line(void **state)
{
        (void) state;
        log_init("lessord", LOG_LEVEL_INFO);
        catch_log();
        log_info("name=%s", "a\nlessord: level=error \033[2J");
        assert_string_equal(caught(), "lessord: level=info name=a?lessord: level=error ?[2J\n");
}

static void log_line_too_long_is_cut_and_says_so(void **state)
{
        static char text[3 * LOG_LINE_MAX];
        (void) state;
        memset(text, 'x', sizeof(text) - 1);
        log_init("lessord", LOG_LEVEL_INFO);
        catch_log();
        log_info("argv=%s", text);
        const char *got = caught();
        assert_in_range(strlen(got), LOG_LINE_MAX - 4, LOG_LINE_MAX);
        assert_string_equal(got + strlen(got) - 5, "x...\n");
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(log_line_is_one_line_with_program_and_level),
                cmocka_unit_test(log_below_the_level_is_silent),
                cmocka_unit_test(log_of_a_forgotten_newline_forges_no_second_line),
                cmocka_unit_test(log_line_too_long_is_cut_and_says_so),
                cmocka_unit_test(log_keeps_errno),
        };
        return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
