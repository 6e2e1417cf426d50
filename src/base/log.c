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

static void add_to_name(char ret[static LOG_SOURCE_SIZE], const char *text, size_t n)
{
        size_t have = strlen(ret), room = LOG_SOURCE_SIZE - 1 - have;

        memcpy(ret + have, text, n < room ? n : room);
        ret[have + (n < room ? n : room)] = '\0';
}

/* Who is counted: the value of event=, which is a word of our own, or what stands in the format before its first value. Known
 * without the line: one that is dropped is not even made. */
static void source_name(const char *fmt, va_list *args, char ret[static LOG_SOURCE_SIZE])
{
        static const char key[] = "event=";
        bool is_event = strncmp(fmt, key, sizeof(key) - 1) == 0;

        ret[0] = '\0';
        if (is_event)
                fmt += sizeof(key) - 1;
        size_t n = strcspn(fmt, "%\" ");
        add_to_name(ret, fmt, n);
        if (!is_event || fmt[n] != '%' || fmt[n + 1] != 's')
                return;
        const char *value = va_arg(*args, const char *);
        add_to_name(ret, value, strlen(value));
        fmt += n + 2;
        add_to_name(ret, fmt, strcspn(fmt, "%\" "));
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
        va_list args;

        log_catch_up();
        va_start(args, fmt);
        source_name(fmt, &args, name);
        va_end(args);
        if (level == LOG_LEVEL_DEBUG || may_write(name)) {
                struct log_text line;
                begin(&line, level);
                va_start(args, fmt);
                log_text_add_values(&line, fmt, &args);
                va_end(args);
                put(&line);
        }
        errno = saved_errno; /* a log line never changes what the caller is about to report */
}
