/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log_limit.h"

static const char *log_program = "lessor";
static enum log_level log_max_level = LOG_LEVEL_INFO;
static bool log_to_journal;
static struct log_limit log_limit;
static pthread_mutex_t log_limit_lock = PTHREAD_MUTEX_INITIALIZER;

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

static void begin(struct log_text *line, enum log_level level)
{
        line->n = 0;
        line->is_cut = false;
        if (log_to_journal)
                log_text_add(line, "<%c>%s: ", levels[level].syslog_digit, log_program);
        else
                log_text_add(line, "%s: level=%s ", log_program, levels[level].name);
}

static void put(struct log_text *line)
{
        ssize_t r;

        log_text_end(line);
        do
                r = write(STDERR_FILENO, line->text, line->n);
        while (r < 0 && errno == EINTR);
}

/* ---- how many of them ---- */

/* Who is counted: the value of event=, which is a word of our own, or what stands in the format before its first value. */
static void source_name(const char *fmt, const char *written, size_t n_written, char ret[static LOG_SOURCE_SIZE])
{
        static const char key[] = "event=";
        size_t n_key = sizeof(key) - 1, n;

        if (strncmp(fmt, key, n_key) == 0) {
                written += n_key;
                n_written -= n_key < n_written ? n_key : n_written;
                n = 0;
                while (n < n_written && written[n] != ' ')
                        n++;
        } else {
                written = fmt;
                n = strcspn(fmt, "%\" ");
        }
        (void) snprintf(ret, LOG_SOURCE_SIZE, "%.*s", n < LOG_SOURCE_SIZE ? (int) n : LOG_SOURCE_SIZE - 1, written);
}

static bool may_write(const char *name)
{
        (void) pthread_mutex_lock(&log_limit_lock);
        bool may = log_limit_take(&log_limit, name, clock_now_ms());
        (void) pthread_mutex_unlock(&log_limit_lock);
        return may;
}

static void tell_dropped(uint64_t now_ms)
{
        for (;;) {
                struct log_text line;
                uint64_t n_dropped;

                (void) pthread_mutex_lock(&log_limit_lock);
                const char *name = log_limit_owed(&log_limit, now_ms, &n_dropped);
                (void) pthread_mutex_unlock(&log_limit_lock);
                if (!name)
                        return;
                begin(&line, LOG_LEVEL_WARNING);
                log_text_add(&line, "event=log-suppressed what=\"%s\" dropped=%" PRIu64, name, n_dropped);
                put(&line);
        }
}

void log_catch_up(void)
{
        tell_dropped(clock_now_ms());
}

static void tell_dropped_at_the_end(void)
{
        tell_dropped(UINT64_MAX);
}

void log_init(const char *program, enum log_level level)
{
        static bool is_first = true;

        log_program = program;
        log_max_level = level;
        log_to_journal = stderr_is_the_journal();
        if (is_first)
                (void) atexit(tell_dropped_at_the_end);
        is_first = false;
}

bool log_wants(enum log_level level)
{
        return level <= log_max_level;
}

void log_line(enum log_level level, const char *fmt, ...)
{
        if (!log_wants(level))
                return;

        int saved_errno = errno;
        char name[LOG_SOURCE_SIZE];
        struct log_text line;
        begin(&line, level);
        size_t start = line.n;
        va_list args;
        va_start(args, fmt);
        log_text_add_values(&line, fmt, &args);
        va_end(args);

        log_catch_up();
        source_name(fmt, line.text + start, line.n - start, name);
        if (level == LOG_LEVEL_DEBUG || may_write(name))
                put(&line);
        errno = saved_errno; /* a log line never changes what the caller is about to report */
}
