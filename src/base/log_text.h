/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The text of one log line, made from a format and its values. A value may come from a stranger: whatever it holds, it ends
 * where its quotes end, and nothing in it begins a line, moves a cursor or passes for a field of ours.
 *
 *   key="%s"   escaped (controls and what is no UTF-8 as \xNN, " and \ by a backslash), cut at LOG_VALUE_MAX
 *   words="%s" (and error="%s") the same, cut at the size of a struct error: a sentence with its cure
 *   key=%s     the same, in quotes where it is more than one plain word
 *   %s         elsewhere it is a sentence for a person: controls are escaped, quotes and backslashes stay
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

enum { LOG_LINE_MAX = 2048, LOG_VALUE_MAX = 256 };

struct log_text {
        char text
                [LOG_LINE_MAX]; /* not terminated; below PIPE_BUF: one write is one whole line, whoever else writes there */
        size_t n;
        bool is_cut;
};

/* Numbers and words of our own. Up to 127 bytes at a time. */
printf_like(2, 3) void log_text_add(struct log_text *line, const char *fmt, ...);
/* @fmt: %s, %c, %%, and %d, %i, %u, %x of any length, without flags or widths: a log has no columns. */
__attribute__((__format__(__printf__, 2, 0))) void log_text_add_values(struct log_text *line, const char *fmt,
                                                                       va_list *args);
/* The newline, after "..." where something is missing. */
void log_text_end(struct log_text *line);
