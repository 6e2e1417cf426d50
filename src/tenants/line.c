/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/line.h"
#include <stdbool.h>
#include <string.h>

struct walk {
        const char *at, *end;
        unsigned line;
};

static bool at_byte(const struct walk *w, char c)
{
        return w->at < w->end && *w->at == c;
}

static void step(struct walk *w)
{
        w->line += *w->at == '\n';
        w->at++;
}

static void skip_blanks(struct walk *w)
{
        while (at_byte(w, ' ') || at_byte(w, '\t') || at_byte(w, '\n') || at_byte(w, '\r'))
                step(w);
}

/* Its inside without the quotes. */
static void skip_string(struct walk *w, const char **ret, size_t *ret_n)
{
        step(w);
        *ret = w->at;
        while (w->at < w->end && *w->at != '"') {
                if (*w->at == '\\' && w->end - w->at > 1)
                        step(w);
                step(w);
        }
        *ret_n = (size_t) (w->at - *ret);
        if (w->at < w->end)
                step(w);
}

/* Up to the comma or bracket behind it. */
static void skip_value(struct walk *w)
{
        const char *text;
        size_t n, depth = 0;

        while (w->at < w->end) {
                char c = *w->at;
                if (c == '"') {
                        skip_string(w, &text, &n);
                        continue;
                }
                if (depth == 0 && (c == ',' || c == '}' || c == ']'))
                        return;
                depth += c == '{' || c == '[';
                depth -= c == '}' || c == ']';
                step(w);
        }
}

/* The first part of a pointer, without its slash, "~1" and "~0" turned back; false when it cannot be one of ours. */
static bool part_equals(const char *part, size_t n_part, const char *text, size_t n)
{
        size_t i = 0;

        for (size_t at = 0; at < n_part; at++, i++) {
                char c = part[at];
                if (c == '~' && at + 1 < n_part)
                        c = part[++at] == '1' ? '/' : '~';
                if (i >= n || text[i] != c)
                        return false;
        }
        return i == n;
}

static bool index_equals(const char *part, size_t n_part, size_t index)
{
        size_t given = 0;

        for (size_t at = 0; at < n_part; at++) {
                if (part[at] < '0' || part[at] > '9' || given > 100000)
                        return false;
                given = given * 10 + (size_t) (part[at] - '0');
        }
        return n_part > 0 && given == index;
}

/* To the item of what begins here, which @part names. */
static bool enter(struct walk *w, const char *part, size_t n_part)
{
        bool is_object = at_byte(w, '{');

        if (!is_object && !at_byte(w, '['))
                return false;
        step(w);
        for (size_t i = 0;; i++) {
                bool found = !is_object && index_equals(part, n_part, i);
                skip_blanks(w);
                if (is_object) {
                        const char *key;
                        size_t n_key;
                        if (!at_byte(w, '"'))
                                return false;
                        skip_string(w, &key, &n_key);
                        found = part_equals(part, n_part, key, n_key);
                        skip_blanks(w);
                        if (!at_byte(w, ':'))
                                return false;
                        step(w);
                        skip_blanks(w);
                }
                if (w->at >= w->end || *w->at == ']' || *w->at == '}')
                        return false;
                if (found)
                        return true;
                skip_value(w);
                if (!at_byte(w, ','))
                        return false;
                step(w);
        }
}

unsigned line_of_pointer(const char *text, size_t n, const char *pointer)
{
        struct walk w = { .at = text, .end = text + n, .line = 1 };
        unsigned line;

        do {
                skip_blanks(&w);
                line = w.line;
                if (*pointer != '/')
                        return line;
                pointer++;
                size_t n_part = strcspn(pointer, "/");
                if (!enter(&w, pointer, n_part))
                        return line;
                pointer += n_part;
        } while (true);
}
