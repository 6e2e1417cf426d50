/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* strerror() without the locale and without a shared buffer, so that the pure rooms may use it. */
static const char *errno_words(int code)
{
        const char *words = strerrordesc_np(code);
        return words ? words : "unknown error";
}

/* snprintf cut in the middle of a character? Then the whole character goes: a message is always valid UTF-8 if its
 * parts are. */
static void drop_half_character(char *text)
{
        size_t len = strlen(text);
        size_t at = len;
        while (at > 0 && len - at < 4) {
                unsigned char byte = (unsigned char) text[--at];
                if (byte < 0x80)
                        return; /* plain ASCII at the end */
                if (byte >= 0xc0) {
                        size_t want = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
                        if (len - at < want)
                                text[at] = '\0';
                        return;
                }
        }
}

static void set_words(struct error *err, int code, const char *words)
{
        err->code = code;
        int n = snprintf(err->msg, sizeof(err->msg), "%s", words);
        if (n >= (int) sizeof(err->msg))
                drop_half_character(err->msg);
}

int error_set(struct error *err, int code, const char *fmt, ...)
{
        assert(code > 0);
        if (!err)
                return -code;

        char words[sizeof(err->msg) + 1]; /* built aside: an argument may point into err->msg */
        va_list args;
        va_start(args, fmt);
        (void) vsnprintf(words, sizeof(words), fmt, args);
        va_end(args);
        set_words(err, code, words[0] != '\0' ? words : errno_words(code));
        return -code;
}

/* "context: what" into @err, cut at the end. */
static void set_two(struct error *err, int code, const char *context, const char *what)
{
        char words[2 * sizeof(err->msg) + 4];
        (void) snprintf(words, sizeof(words), "%s%s%s", context, context[0] != '\0' ? ": " : "", what);
        set_words(err, code, words);
}

int error_errno(struct error *err, int code, const char *fmt, ...)
{
        assert(code > 0);
        if (!err)
                return -code;

        char context[sizeof(err->msg)];
        va_list args;
        va_start(args, fmt);
        (void) vsnprintf(context, sizeof(context), fmt, args);
        va_end(args);
        set_two(err, code, context, errno_words(code));
        return -code;
}

int error_wrap(struct error *err, int r, const char *fmt, ...)
{
        if (!err)
                return r;

        int code = err->code > 0 ? err->code : r < 0 ? -r : 0;
        char context[sizeof(err->msg)], what[sizeof(err->msg)];
        va_list args;
        va_start(args, fmt);
        (void) vsnprintf(context, sizeof(context), fmt, args);
        va_end(args);
        /* nobody filled it: say at least what the number means */
        (void) snprintf(what, sizeof(what), "%s", err->code > 0 || code == 0 ? err->msg : errno_words(code));
        set_two(err, code, context, what);
        return r;
}
