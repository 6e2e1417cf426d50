/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a waiting person sees on stderr: a line whenever something changed, and on a terminal a short one below it that
 * stays up to date in place.
 */
#include <stdbool.h>
#include "base/error.h"

enum { PROGRESS_MAX = 1024 };

struct progress {
        const char *verb;
        bool quiet; /* only what went wrong is said */
        bool on_terminal;
        bool shown;              /* a line stands on the terminal that the next one may overwrite */
        char last[PROGRESS_MAX]; /* what was said last */
};

void progress_init(struct progress *p, const char *verb);
/*
 * @text   the whole of it; safe to print
 * @brief  for the line in place
 * @key    what must differ from last time for @text to be printed again; a countdown in it is no news
 */
void progress_update(struct progress *p, const char *text, const char *brief, const char *key);
/* A line that stays. */
printf_like(2, 3) void progress_say(struct progress *p, const char *fmt, ...);
/* The same for what went wrong: said in any case. */
printf_like(2, 3) void progress_fail(struct progress *p, const char *fmt, ...);
void progress_clear(struct progress *p);
