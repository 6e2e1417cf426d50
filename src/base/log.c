/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *log_program = "lessor";
static enum log_level log_max_level = LOG_LEVEL_INFO;
static bool log_to_journal;

static const struct {
        const char *name;
        char syslog_digit;
} levels[] = {
        [LOG_LEVEL_ERROR] = { "error", '3' },
        [LOG_LEVEL_WARNING] = { "warning", '4' },
        [LOG_LEVEL_INFO] = { "info", '6' },
        [LOG_LEVEL_DEBUG] = { "debug", '7' },
};

/* systemd names the pipe it gave us as "device:inode"; only then does a "<4>" in front mean a level to its reader. */
static bool stderr_is_the_journal(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        struct stat st;
        char mine[64];
        if (!stream || fstat(STDERR_FILENO, &st) < 0)
                return false;
        (void) snprintf(mine, sizeof(mine), "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
        return strcmp(mine, stream) == 0;
}

void log_init(const char *program, enum log_level level)
{
        log_program = program;
        log_max_level = level;
        log_to_journal = stderr_is_the_journal();
}

void log_line(enum log_level level, const char *fmt, ...)
{
        if (level > log_max_level)
                return;

        int saved_errno = errno;
        char line[LOG_LINE_MAX]; /* below PIPE_BUF: one write is one whole line, whoever else writes there */
        int n;
        if (log_to_journal)
                n = snprintf(line, sizeof(line), "<%c>%s: ", levels[level].syslog_digit, log_program);
        else
                n = snprintf(line, sizeof(line), "%s: level=%s ", log_program, levels[level].name);
        size_t len = n < 0 ? 0 : (size_t) n;
        if (len > sizeof(line) - 2)
                len = sizeof(line) - 2;

        va_list args;
        va_start(args, fmt);
        n = vsnprintf(line + len, sizeof(line) - 1 - len, fmt, args);
        va_end(args);
        size_t start = len;
        len += n < 0 ? 0 : (size_t) n;
        if (len > sizeof(line) - 2) { /* show that something is missing */
                len = sizeof(line) - 2;
                memcpy(line + len - 3, "...", 3);
        }
        /* The last fence, not the first: values are escaped by who writes them; a forgotten one forges no second line. */
        for (size_t i = start; i < len; i++)
                if ((unsigned char) line[i] < 0x20 || line[i] == 0x7f)
                        line[i] = '?';
        line[len++] = '\n';

        ssize_t r;
        do
                r = write(STDERR_FILENO, line, len);
        while (r < 0 && errno == EINTR);
        errno = saved_errno; /* a log line never changes what the caller is about to report */
}
