/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a waiting person sees on stderr: one line that stays up to date on a terminal; elsewhere (a log) a new line only
 * when something changed.
 */
#include <stdbool.h>
#include "base/error.h"

enum { PROGRESS_MAX = 1024 };

struct progress {
        const char *verb;
        bool on_terminal;
        bool shown;              /* a line stands on the terminal that the next one may overwrite */
        char last[PROGRESS_MAX]; /* what was said last */
};

void progress_init(struct progress *p, const char *verb);
/*
 * @text  safe to print, one line
 * @key   what must differ from last time for a new line in a log; the countdown in @text alone is no news
 */
void progress_update(struct progress *p, const char *text, const char *key);
/* A line that stays. */
printf_like(2, 3) void progress_say(struct progress *p, const char *fmt, ...);
void progress_clear(struct progress *p);
