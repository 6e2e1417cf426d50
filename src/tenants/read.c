/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/read.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"
#include "base/strbuf.h"
#include "tenants/line.h"
#include "tenants/tenant.h"

enum { GIVEN_MAX = 64, NUMBER_MAX = 1000000000 };

/* What was written there, as short as it can be shown. */
static const char *shown(const json_t *value, char buf[GIVEN_MAX])
{
        if (json_is_object(value) || json_is_array(value)) {
                (void) snprintf(buf, GIVEN_MAX, "%s", json_is_object(value) ? "an object" : "a list");
                return buf;
        }
        auto_free char *text = json_dumps(value, JSON_ENCODE_ANY);
        return text ? text_escape(text, strlen(text), buf, GIVEN_MAX) : "?";
}

int read_refuse(struct reading_json *r, const json_t *value, const char *allowed, const char *cure)
{
        char given[GIVEN_MAX], path[128];

        return error_set(r->err, EINVAL, "%s:%u: %s: given: %s; allowed: %s; %s", r->file,
                         line_of_pointer(r->text, r->n, r->path),
                         r->path[0] ? text_escape(r->path + 1, strlen(r->path + 1), path, sizeof(path)) : "the file",
                         shown(value, given), allowed, cure);
}

static size_t enter(struct reading_json *r, const char *part)
{
        size_t before = strlen(r->path), n = before;

        if (n + 1 < sizeof(r->path))
                r->path[n++] = '/';
        for (; *part != '\0' && n + 2 < sizeof(r->path); part++) {
                if (*part == '~' || *part == '/')
                        r->path[n++] = '~';
                r->path[n++] = *part == '~' ? '0' : *part == '/' ? '1' : *part;
        }
        r->path[n] = '\0';
        return before;
}

size_t read_enter(struct reading_json *r, const char *key)
{
        return enter(r, key);
}

size_t read_enter_item(struct reading_json *r, size_t index)
{
        char digits[24];

        (void) snprintf(digits, sizeof(digits), "%zu", index);
        return enter(r, digits);
}

void read_leave(struct reading_json *r, size_t before)
{
        r->path[before] = '\0';
}

/* ---- objects and lists ---- */

static void list_of_keys(const struct read_key *keys, size_t n_keys, uint32_t which, struct strbuf *to)
{
        for (size_t i = 0; i < n_keys; i++)
                if (which & (1U << i))
                        strbuf_printf(to, "%s%s", to->len > 0 ? ", " : "", keys[i].name);
}

static const struct read_key *key_find(const struct read_key *keys, size_t n_keys, const char *name)
{
        for (size_t i = 0; i < n_keys; i++)
                if (strcmp(keys[i].name, name) == 0)
                        return &keys[i];
        return NULL;
}

static int unknown_key(struct reading_json *r, const json_t *value, const struct read_key *keys, size_t n_keys)
{
        struct strbuf allowed;

        strbuf_init(&allowed, 300);
        list_of_keys(keys, n_keys, UINT32_MAX, &allowed);
        int ret = read_refuse(r, value, strbuf_text(&allowed), "there is no such key: correct it, or begin it with _");
        strbuf_fini(&allowed);
        return ret;
}

int read_object(struct reading_json *r, const json_t *value, const struct read_key *keys, size_t n_keys, void *base,
                uint32_t *ret_given)
{
        uint32_t given = 0;

        if (!json_is_object(value))
                return read_refuse(r, value, "an object", "write { … }");
        for (void *at = json_object_iter((json_t *) (uintptr_t) value); at;
             at = json_object_iter_next((json_t *) (uintptr_t) value, at)) {
                const char *name = json_object_iter_key(at);
                if (name[0] == '_' || strcmp(name, "$schema") == 0)
                        continue;
                size_t before = read_enter(r, name);
                const struct read_key *key = key_find(keys, n_keys, name);
                const json_t *inner = json_object_iter_value(at);
                int ret = key ? key->read(r, inner, (char *) base + key->offset) : unknown_key(r, inner, keys, n_keys);
                if (ret < 0)
                        return ret;
                given |= 1U << (key - keys);
                read_leave(r, before);
        }
        if (ret_given)
                *ret_given = given;
        return 0;
}

int read_check_given(struct reading_json *r, const json_t *value, const struct read_key *keys, size_t n_keys,
                     uint32_t given, uint32_t required, uint32_t allowed, const char *what)
{
        uint32_t missing = required & ~given, extra = given & ~(required | allowed);
        char cure[192];

        if (missing == 0 && extra == 0)
                return 0;
        const char *name = keys[__builtin_ctz(missing ? missing : extra)].name;
        struct strbuf list;
        strbuf_init(&list, 300);
        list_of_keys(keys, n_keys, required | allowed, &list);
        (void) snprintf(cure, sizeof(cure), missing ? "%s needs %s: add it" : "%s takes no %s: leave it out", what,
                        name);
        size_t before = missing ? strlen(r->path) : read_enter(r, name);
        int ret = read_refuse(r, missing ? value : json_object_get(value, name), strbuf_text(&list), cure);
        read_leave(r, before);
        strbuf_fini(&list);
        return ret;
}

int read_items(struct reading_json *r, const json_t *value, size_t max, read_fn *each, void *base, size_t each_size,
               uint32_t *ret_n)
{
        size_t n = json_array_size(value);
        char allowed[48];

        (void) snprintf(allowed, sizeof(allowed), "a list of 1 … %zu", max);
        if (!json_is_array(value) || n == 0 || n > max)
                return read_refuse(r, value, allowed, "write [ … ], or leave the key out");
        for (size_t i = 0; i < n; i++) {
                size_t before = read_enter_item(r, i);
                int ret = each(r, json_array_get(value, i), (char *) base + i * each_size);
                if (ret < 0)
                        return ret;
                read_leave(r, before);
        }
        *ret_n = (uint32_t) n;
        return 0;
}

int read_word(struct reading_json *r, const json_t *value, const char *const *words, uint8_t *ret)
{
        const char *given = json_string_value(value);
        struct strbuf allowed;

        for (uint8_t i = 0; given && words[i]; i++)
                if (strcmp(words[i], given) == 0) {
                        *ret = i;
                        return 0;
                }
        strbuf_init(&allowed, 200);
        for (size_t i = 0; words[i]; i++)
                strbuf_printf(&allowed, "%s%s", i > 0 ? ", " : "", words[i]);
        int code = read_refuse(r, value, strbuf_text(&allowed), "write one of these words");
        strbuf_fini(&allowed);
        return code;
}

/* ---- texts ---- */

static int text_of(struct reading_json *r, const json_t *value, size_t size, void *ret)
{
        const char *text = json_string_value(value);
        size_t n = json_string_length(value);
        char allowed[64];

        if (text && n > 0 && n < size && text_is_plain(text, n)) {
                *(const char **) ret = text;
                return 0;
        }
        (void) snprintf(allowed, sizeof(allowed), "a text of 1 … %zu bytes without control characters", size - 1);
        return read_refuse(r, value, allowed, "correct it, or leave the key out");
}

int read_text(struct reading_json *r, const json_t *value, void *ret)
{
        return text_of(r, value, TENANT_TEXT_MAX, ret);
}

int read_short(struct reading_json *r, const json_t *value, void *ret)
{
        return text_of(r, value, TENANT_WORD_MAX, ret);
}

int read_list(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_list *list = ret;

        return read_items(r, value, TENANT_LIST_MAX, read_text, list->items, sizeof(list->items[0]), &list->n);
}

int read_http_path(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = NULL;

        int code = read_text(r, value, &text);
        if (code < 0)
                return code;
        if (text[0] != '/' || text[1] == '/' || strpbrk(text, " #\\"))
                return read_refuse(r, value, "a path such as \"/queue?limit=1\"",
                                   "the address is that of the process itself: write what stands behind host and port");
        *(const char **) ret = text;
        return 0;
}

int read_pointer(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = json_string_value(value);

        bool good = text && strlen(text) < TENANT_TEXT_MAX && (text[0] == '\0' || text[0] == '/') &&
                    strlen(text) == json_string_length(value) && text_is_plain(text, strlen(text));
        for (const char *at = text; good && (at = strchr(at, '~')); at++)
                good = at[1] == '0' || at[1] == '1';
        if (!good)
                return read_refuse(r, value, "a JSON pointer (RFC 6901) such as \"/exec_info/queue_remaining\"",
                                   "begin it with a slash; \"\" is the whole answer");
        *(const char **) ret = text;
        return 0;
}

int read_file_path(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = NULL;

        int code = read_text(r, value, &text);
        if (code < 0)
                return code;
        if (text[0] != '/')
                return read_refuse(r, value, "an absolute path", "begin it with a slash");
        *(const char **) ret = text;
        return 0;
}

int read_role(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = NULL;

        int code = read_short(r, value, &text);
        if (code < 0)
                return code;
        if (strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(text))
                return read_refuse(r, value, "lower-case letters, digits and -",
                                   "write the role that a rule of match names");
        *(const char **) ret = text;
        return 0;
}

/* ---- figures ---- */

int read_bool(struct reading_json *r, const json_t *value, void *ret)
{
        if (!json_is_boolean(value))
                return read_refuse(r, value, "true or false", "without quotes");
        *(bool *) ret = json_is_true(value);
        return 0;
}

int read_true(struct reading_json *r, const json_t *value, void *ret)
{
        if (!json_is_true(value))
                return read_refuse(r, value, "true", "leave the key out where it is not so");
        *(bool *) ret = true;
        return 0;
}

int read_bytes(struct reading_json *r, const json_t *value, void *ret)
{
        struct size size = { .kind = SIZE_PERCENT };
        const char *text = json_string_value(value);

        if (!text || strlen(text) != json_string_length(value) || size_parse("", text, &size, NULL) < 0 ||
            size.kind != SIZE_BYTES)
                return read_refuse(r, value, "a size as text, such as \"400M\" or \"12G\"", "correct it");
        *(uint64_t *) ret = size.bytes;
        return 0;
}

int read_span_ms(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = json_string_value(value);

        if (!text || strlen(text) != json_string_length(value) || duration_parse("", text, ret, NULL) < 0)
                return read_refuse(r, value, "a span as text, such as \"90s\" or \"10m\"", "correct it");
        return 0;
}

int read_number(struct reading_json *r, const json_t *value, void *ret)
{
        json_int_t n = json_integer_value(value);

        if (!json_is_integer(value) || n < 0 || n > NUMBER_MAX)
                return read_refuse(r, value, "a whole number, 0 … 1000000000", "correct it");
        *(int64_t *) ret = n;
        return 0;
}

int read_scalar(struct reading_json *r, const json_t *value, void *ret)
{
        if (!json_is_string(value) && !json_is_integer(value) && !json_is_boolean(value))
                return read_refuse(r, value, "a text, a whole number, true or false", "correct it");
        *(const json_t **) ret = value;
        return 0;
}

/* ---- programs and ports ---- */

int read_user(struct reading_json *r, const json_t *value, void *ret)
{
        const char *text = NULL;

        int code = read_short(r, value, &text);
        if (code < 0)
                return code;
        if (text[0] == '-' || strpbrk(text, " :/,"))
                return read_refuse(r, value, "the name of a user", "the program runs with that user's rights");
        *(const char **) ret = text;
        return 0;
}

int read_argv(struct reading_json *r, const json_t *value, void *ret)
{
        struct tenant_list *argv = ret;

        int code = read_list(r, value, argv);
        if (code < 0)
                return code;
        if (argv->items[0][0] != '/')
                return read_refuse(r, value, "a list that begins with the absolute path of a program",
                                   "no shell is asked: write program and arguments apart");
        return 0;
}

int read_port(struct reading_json *r, const json_t *value, void *ret)
{
        json_int_t n = json_integer_value(value);

        if (!json_is_integer(value) || n < 1 || n > 65535)
                return read_refuse(r, value, "a port, 1 … 65535",
                                   "it is one of those that the process itself listens on");
        *(uint16_t *) ret = (uint16_t) n;
        return 0;
}
