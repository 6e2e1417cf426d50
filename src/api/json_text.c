/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "api/json_text.h"
#include "base/escape.h"
#include "base/number.h"

bool json_text_depth_is_fine(const char *data, size_t n, unsigned depth_max)
{
        unsigned depth = 0;
        bool in_string = false;

        for (size_t i = 0; i < n; i++) {
                char c = data[i];
                if (in_string) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                in_string = false;
                } else if (c == '"') {
                        in_string = true;
                } else if (c == '[' || c == '{') {
                        if (++depth > depth_max)
                                return false;
                } else if ((c == ']' || c == '}') && depth > 0) {
                        depth--;
                }
        }
        return true;
}

struct span {
        const char *at;
        size_t n;
};

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ends_token(char c)
{
        return c == ',' || c == '}' || c == ']' || c == '"' || is_blank(c);
}

/*
 * Where the parser gave up, find the value without quotes it gave up at and the key in front of it. The parser's position
 * is somewhere inside that token or just behind it. False when it stopped anywhere else.
 */
static bool find_bad_value(const char *data, size_t n, size_t position, struct span *ret_key, struct span *ret_value)
{
        struct span key = { 0 }, last_string = { 0 };

        for (size_t i = 0; i < n && i <= position;) {
                char c = data[i];
                if (c == '"') {
                        size_t from = ++i;
                        while (i < n && data[i] != '"')
                                i += data[i] == '\\' ? 2 : 1;
                        if (i >= n)
                                return false;
                        last_string = (struct span){ data + from, i - from };
                        i++;
                } else if (c == ':') {
                        key = last_string;
                        i++;
                } else if (ends_token(c) || c == '{' || c == '[') {
                        if (!is_blank(c))
                                key.n = 0; /* what follows is not its value any more */
                        i++;
                } else {
                        size_t from = i;
                        while (i < n && !ends_token(data[i]))
                                i++;
                        if (i >= position && key.n > 0) {
                                *ret_key = key;
                                *ret_value = (struct span){ data + from, i - from };
                                return true;
                        }
                }
        }
        return false;
}

/* A value that JSON itself has no quarrel with. */
static bool is_fine(struct span value)
{
        static const char *const words[] = { "true", "false", "null" };
        char text[24];
        uint64_t n;

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (strlen(words[i]) == value.n && memcmp(words[i], value.at, value.n) == 0)
                        return true;
        if (value.n >= sizeof(text))
                return false;
        memcpy(text, value.at, value.n);
        text[value.n] = '\0';
        return parse_u64("", text[0] == '-' ? text + 1 : text, 0, INT64_MAX, &n, NULL) == 0;
}

static void describe_failure(const char *data, size_t n, const json_error_t *error, struct problem *reterr)
{
        struct span key, value;
        char words[sizeof(error->text) * 2];

        if (error->position >= 0 && find_bad_value(data, n, (size_t) error->position, &key, &value) &&
            !is_fine(value)) {
                char name[64];
                text_escape(key.at, key.n, name, sizeof(name));
                (void) problem_field(reterr, name, value.at, value.n, "a JSON value in its range",
                                     "write a whole number below 2^63, or a text in quotes such as \"1500M\"");
                return;
        }
        (void) problem_set(reterr, 400, "bad-json", "the body is not JSON: %s (line %d, column %d); send one object",
                           text_escape(error->text, strlen(error->text), words, sizeof(words)), error->line,
                           error->column);
}

json_t *json_text_object(const char *data, size_t n, struct problem *reterr)
{
        if (!json_text_depth_is_fine(data, n, JSON_DEPTH_MAX)) {
                problem_set(reterr, 400, "bad-json", "the body is nested more than %d deep; send one flat object",
                            JSON_DEPTH_MAX);
                return NULL;
        }

        json_error_t error;
        json_t *object = json_loadb(data, n, JSON_REJECT_DUPLICATES, &error);
        if (!object) {
                describe_failure(data, n, &error, reterr);
                return NULL;
        }
        if (!json_is_object(object)) {
                json_decref(object);
                problem_set(reterr, 400, "bad-json", "the body is a list; send one object, {…}");
                return NULL;
        }
        return object;
}
