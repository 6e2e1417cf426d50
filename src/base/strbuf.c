/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 };

void strbuf_init(struct strbuf *sb, size_t max_bytes)
{
        *sb = (struct strbuf){ .max_bytes = max_bytes };
}

void strbuf_fini(struct strbuf *sb)
{
        free(sb->data);
        *sb = (struct strbuf){ .max_bytes = sb->max_bytes };
}

void strbuf_reset(struct strbuf *sb)
{
        sb->len = 0;
        sb->failed = false;
        if (sb->data)
                sb->data[0] = '\0';
}

/* Room for @n_bytes more and the NUL; false (and failed) past the cap or without memory. */
static bool make_room(struct strbuf *sb, size_t n_bytes)
{
        if (sb->failed)
                return false;
        if (n_bytes > sb->max_bytes - sb->len || sb->max_bytes == SIZE_MAX) {
                sb->failed = true;
                return false;
        }

        size_t need = sb->len + n_bytes + 1;
        if (need <= sb->cap)
                return true;
        size_t cap = sb->cap < FIRST_CAP ? FIRST_CAP : sb->cap;
        while (cap < need)
                cap = cap > sb->max_bytes / 2 ? sb->max_bytes + 1 : cap * 2;
        char *data = realloc(sb->data, cap);
        if (!data) {
                sb->failed = true;
                return false;
        }
        sb->data = data;
        sb->cap = cap;
        return true;
}

void strbuf_append(struct strbuf *sb, const void *data, size_t n_bytes)
{
        if (!make_room(sb, n_bytes))
                return;
        if (n_bytes > 0)
                memcpy(sb->data + sb->len, data, n_bytes);
        sb->len += n_bytes;
        sb->data[sb->len] = '\0';
}

void strbuf_puts(struct strbuf *sb, const char *text)
{
        strbuf_append(sb, text, strlen(text));
}

void strbuf_printf(struct strbuf *sb, const char *fmt, ...)
{
        va_list args, again;
        va_start(args, fmt);
        va_copy(again, args);
        int n = vsnprintf(NULL, 0, fmt, args);
        va_end(args);
        if (n < 0)
                sb->failed = true;
        else if (make_room(sb, (size_t) n)) {
                (void) vsnprintf(sb->data + sb->len, (size_t) n + 1, fmt, again);
                sb->len += (size_t) n;
        }
        va_end(again);
}

const char *strbuf_text(const struct strbuf *sb)
{
        return sb->data ? sb->data : "";
}

char *strbuf_steal(struct strbuf *sb)
{
        strbuf_append(sb, "", 0); /* an empty one gets its NUL */
        if (sb->failed)
                return NULL;
        char *text = sb->data;
        *sb = (struct strbuf){ .max_bytes = sb->max_bytes };
        return text;
}
