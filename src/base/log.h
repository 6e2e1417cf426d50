/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One line per fact, key=value, to stderr (journald adds time and unit). Library code returns errors, programs log them: one
 * failure, one line. What strangers chose is escaped and cut by how it stands in the format: log_text.h.
 *
 * Each source (event=...) writes LOG_BURST lines at once and LOG_PER_S a second (log_limit.h); event=log-suppressed says how
 * many were dropped. Lines of LOG_LEVEL_DEBUG are not limited: who asks for them wants all. Threads may log.
 */
#include <stdbool.h>
#include "base/error.h"
#include "base/log_text.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* @program is printed in front of each line; lives as long as the process. Level from the caller's option, default INFO. */
void log_init(const char *program, enum log_level level);
/* Would a line of @level be written? For words that cost something to make. */
bool log_wants(enum log_level level);
/* @fmt as for log_text_add_values(). */
printf_like(2, 3) void log_line(enum log_level level, const char *fmt, ...);
/* Says what was dropped a while ago, as every line and the end of the program do: for a loop that may have no other news. */
void log_catch_up(void);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
