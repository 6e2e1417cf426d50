/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One line per fact, key=value, to stderr (journald adds time and unit). Values that come from strangers go through
 * text_escape() first; a line is cut at LOG_LINE_MAX. Library code returns errors, programs log them: one failure, one line.
 */
#include "base/error.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum { LOG_LINE_MAX = 2048 };

/* @program is printed in front of each line; lives as long as the process. Level from the caller's option, default INFO. */
void log_init(const char *program, enum log_level level);
printf_like(2, 3) void log_line(enum log_level level, const char *fmt, ...);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
