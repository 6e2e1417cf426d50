/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/progress.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "programs/lessor/show.h"

enum { COLUMNS_FALLBACK = 80 };

void progress_init(struct progress *p, const char *verb)
{
        const char *term = getenv("TERM");
        *p = (struct progress){ .verb = verb };
        p->on_terminal = isatty(STDERR_FILENO) == 1 && term && strcmp(term, "dumb") != 0;
}

static size_t columns(void)
{
        struct winsize size;
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
                return size.ws_col;
        return COLUMNS_FALLBACK;
}

void progress_clear(struct progress *p)
{
        if (p->shown)
                (void) fputs("\r\033[K", stderr);
        p->shown = false;
}

void progress_update(struct progress *p, const char *text, const char *brief, const char *key)
{
        if (strcmp(p->last, key) != 0) {
                (void) snprintf(p->last, sizeof(p->last), "%s", key);
                progress_say(p, "%s", text);
        }
        if (p->on_terminal && !p->quiet) {
                char whole[PROGRESS_MAX], line[PROGRESS_MAX];
                (void) snprintf(whole, sizeof(whole), "lessor %s: %s", p->verb, brief);
                (void) fprintf(stderr, "\r%s\033[K", show_cut(whole, columns() - 1, false, line, sizeof(line)));
                p->shown = true;
        }
}

__attribute__((__format__(__printf__, 2, 0))) static void say(struct progress *p, const char *fmt, va_list args)
{
        char text[PROGRESS_MAX + 256];
        (void) vsnprintf(text, sizeof(text), fmt, args);
        progress_clear(p);
        (void) fprintf(stderr, "lessor %s: %s\n", p->verb, text); /* one write: lines of many waiters stay whole */
}

void progress_say(struct progress *p, const char *fmt, ...)
{
        va_list args;
        if (p->quiet)
                return;
        va_start(args, fmt);
        say(p, fmt, args);
        va_end(args);
}

void progress_fail(struct progress *p, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        say(p, fmt, args);
        va_end(args);
}
