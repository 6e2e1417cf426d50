/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fields.h"
#include <stdlib.h>
#include <string.h>
#include "api/view.h"

enum { U64_DIGITS_MAX = 20 };

void fields_begin(struct fields *f)
{
        if (f->text)
                strbuf_append(f->text, "{", 1);
}

/* Each field has a comma behind it. */
void fields_end(struct fields *f)
{
        if (f->text && !f->text->failed && f->text->len > 0)
                f->text->data[f->text->len - 1] = '}';
}

struct fields fields_open(struct fields *f, const char *key)
{
        struct fields inner = { .text = f->text };

        if (!f->text) {
                inner.object = json_object();
                (void) json_object_set_new_nocheck(f->object, key, inner.object);
                return inner;
        }
        strbuf_append(f->text, "\"", 1);
        strbuf_puts(f->text, key);
        strbuf_append(f->text, "\":{", 3);
        return inner;
}

void fields_close(struct fields *f, struct fields *inner)
{
        fields_end(inner);
        if (f->text)
                strbuf_append(f->text, ",", 1);
}

static void put(struct strbuf *text, const char *key, const char *value, size_t n)
{
        strbuf_append(text, "\"", 1);
        strbuf_puts(text, key);
        strbuf_append(text, "\":", 2);
        strbuf_append(text, value, n);
        strbuf_append(text, ",", 1);
}

void fields_value(struct fields *f, const char *key, json_t *value)
{
        char few[1024], *many = NULL;

        if (!f->text) { /* without memory for the object there is nothing to put it into */
                (void) json_object_set_new_nocheck(f->object, key, value);
                return;
        }
        size_t n = value ? json_dumpb(value, few, sizeof(few), JSON_COMPACT | JSON_ENCODE_ANY) : 0;
        if (n > sizeof(few))
                many = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        json_decref(value);
        if (n == 0 || (n > sizeof(few) && !many))
                f->text->failed = true;
        else
                put(f->text, key, many ? many : few, n);
        free(many);
}

void fields_u64(struct fields *f, const char *key, uint64_t n)
{
        char digits[U64_DIGITS_MAX], *at = digits + sizeof(digits);

        if (!f->text) {
                fields_value(f, key, view_u64(n));
                return;
        }
        n = n < INT64_MAX ? n : INT64_MAX;
        do
                *--at = (char) ('0' + n % 10);
        while ((n /= 10) != 0);
        put(f->text, key, at, (size_t) (digits + sizeof(digits) - at));
}

static void put_word(struct fields *f, const char *key, const char *word, json_t *value)
{
        if (!f->text)
                fields_value(f, key, value);
        else
                put(f->text, key, word, strlen(word));
}

void fields_u64_or_null(struct fields *f, const char *key, bool known, uint64_t n)
{
        if (known)
                fields_u64(f, key, n);
        else
                put_word(f, key, "null", json_null());
}

void fields_bool(struct fields *f, const char *key, bool value)
{
        put_word(f, key, value ? "true" : "false", json_boolean(value));
}

/* Nothing in it has to be escaped. */
static bool is_simple(const char *text)
{
        for (; *text != '\0'; text++)
                if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
                        return false;
        return true;
}

void fields_text(struct fields *f, const char *key, const char *text)
{
        if (!f->text || !text || text[0] == '\0' || !is_simple(text)) {
                fields_value(f, key, view_text_or_null(text));
                return;
        }
        strbuf_append(f->text, "\"", 1);
        strbuf_puts(f->text, key);
        strbuf_append(f->text, "\":\"", 3);
        strbuf_puts(f->text, text);
        strbuf_append(f->text, "\",", 2);
}
