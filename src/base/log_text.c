/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_text.h"
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"

enum { LOG_WORDS_MAX = sizeof(((struct error *) NULL)->msg) };

static void add(struct log_text *line, const char *text, size_t n)
{
        size_t room = sizeof(line->text) - 1 - line->n; /* one for the newline */

        if (n > room) {
                n = room;
                line->is_cut = true;
        }
        memcpy(line->text + line->n, text, n);
        line->n += n;
}

void log_text_add(struct log_text *line, const char *fmt, ...)
{
        char text[128];
        va_list args;

        va_start(args, fmt);
        int n = vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        if (n > 0)
                add(line, text, strnlen(text, sizeof(text)));
}

void log_text_end(struct log_text *line)
{
        static const char dots[] = "...";

        if (line->is_cut) {
                line->n -= strlen(dots);
                while (((unsigned char) line->text[line->n] & 0xc0) == 0x80) /* leave no half of a character */
                        line->n--;
                memcpy(line->text + line->n, dots, strlen(dots));
                line->n += strlen(dots);
        }
        line->text[line->n++] = '\n';
}

/* ---- texts ---- */

static void add_sentence(struct log_text *line, const char *text)
{
        char safe[LOG_LINE_MAX];

        for (;;) {
                size_t n = strcspn(text, "\\");
                (void) text_escape(text, n, safe, sizeof(safe));
                add(line, safe, strlen(safe));
                if (text[n] == '\0' || line->is_cut)
                        return;
                add(line, "\\", 1);
                text += n + 1;
        }
}

static void add_value(struct log_text *line, const char *text, size_t max)
{
        char safe[LOG_WORDS_MAX + 1];

        assert(max < sizeof(safe));
        (void) text_escape(text, strlen(text), safe, max + 1);
        for (const char *at = safe;; at++) {
                size_t n = strcspn(at, "\"");
                add(line, at, n);
                at += n;
                if (*at == '\0')
                        return;
                add(line, "\\\"", 2);
        }
}

static bool ends_with(const char *begin, const char *end, const char *word)
{
        size_t n = strlen(word);
        return (size_t) (end - begin) >= n && memcmp(end - n, word, n) == 0;
}

/* What stands in @fmt before the conversion at @at says how its text is written. */
static void add_text(struct log_text *line, const char *fmt, const char *at, const char *text)
{
        size_t n = strlen(text);

        if (ends_with(fmt, at, "=\"")) {
                bool is_words = ends_with(fmt, at, "words=\"") || ends_with(fmt, at, "error=\"");
                add_value(line, text, is_words ? LOG_WORDS_MAX : LOG_VALUE_MAX);
        } else if (!ends_with(fmt, at, "=")) {
                add_sentence(line, text);
        } else if (n > 0 && n <= LOG_VALUE_MAX && text_is_plain(text, n) && !strpbrk(text, " \"\\=")) {
                add(line, text, n);
        } else {
                add(line, "\"", 1);
                add_value(line, text, LOG_VALUE_MAX);
                add(line, "\"", 1);
        }
}

/* ---- numbers ---- */

static_assert(sizeof(long) == sizeof(intmax_t) && sizeof(long) == sizeof(size_t), "l, ll, z and j are one type here");

static bool take_is_long(const char **at)
{
        const char *begin = *at;

        *at += strspn(begin, "hlzj"); /* what is shorter than an int comes as an int */
        return *at > begin && *begin != 'h';
}

void log_text_add_values(struct log_text *line, const char *fmt, va_list *args)
{
        for (const char *at = fmt;; at++) {
                size_t n = strcspn(at, "%");
                add(line, at, n);
                at += n;
                if (*at == '\0')
                        return;

                const char *before = at++;
                const char *text;
                bool is_long = take_is_long(&at);
                switch (*at) {
                case 's':
                        text = va_arg(*args, const char *);
                        add_text(line, fmt, before, text ? text : "(null)");
                        break;
                case 'c':
                        add_text(line, fmt, before, (char[2]){ (char) va_arg(*args, int), '\0' });
                        break;
                case 'd':
                case 'i':
                        log_text_add(line, "%ld", is_long ? va_arg(*args, long) : va_arg(*args, int));
                        break;
                case 'u':
                        log_text_add(line, "%lu", is_long ? va_arg(*args, unsigned long) : va_arg(*args, unsigned));
                        break;
                case 'x':
                        log_text_add(line, "%lx", is_long ? va_arg(*args, unsigned long) : va_arg(*args, unsigned));
                        break;
                case '%':
                        add(line, "%", 1);
                        break;
                default: /* a flag, a width: the type of what comes is not known here */
                        add(line, "?", 1);
                        return;
                }
        }
}
