/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/show.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/escape.h"
#include "programs/lessor/verb.h"

const char *show_colour(enum show_colour colour)
{
        static const char *const codes[] = {
                [SHOW_PLAIN] = "\033[0m", [SHOW_BOLD] = "\033[1m",    [SHOW_DIM] = "\033[2m",
                [SHOW_RED] = "\033[31m",  [SHOW_YELLOW] = "\033[33m", [SHOW_GREEN] = "\033[32m",
        };
        static int wanted = -1;
        if (wanted < 0) {
                const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
                wanted = isatty(STDOUT_FILENO) == 1 && !(none && none[0] != '\0') && term && strcmp(term, "dumb") != 0;
        }
        return wanted > 0 ? codes[colour] : "";
}

const char *show_field(const json_t *object, const char *key, const char *fallback, char *buf, size_t buf_size)
{
        const json_t *value = json_object_get(object, key);
        if (json_is_string(value))
                return text_escape(json_string_value(value), json_string_length(value), buf, buf_size);
        if (json_is_integer(value))
                (void) snprintf(buf, buf_size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (json_is_boolean(value))
                (void) snprintf(buf, buf_size, "%s", json_is_true(value) ? "yes" : "no");
        else
                (void) snprintf(buf, buf_size, "%s", fallback);
        return buf;
}

bool show_sized(const json_t *lease, char buf[SHOW_SIZED_MAX])
{
        uint64_t n_runs = json_amount_or(lease, "sized_by_runs", 0);

        if (n_runs == 1)
                (void) snprintf(buf, SHOW_SIZED_MAX, "by its last run");
        else
                (void) snprintf(buf, SHOW_SIZED_MAX, "by its last %" PRIu64 " runs", n_runs);
        return n_runs != 0;
}

const char *show_bytes(const json_t *object, const char *key, char buf[SIZE_TEXT_MAX])
{
        uint64_t bytes;
        if (json_amount(object, key, &bytes))
                return size_text_short(bytes, buf);
        (void) snprintf(buf, SIZE_TEXT_MAX, "?");
        return buf;
}

static bool is_continuation(char c)
{
        return ((unsigned char) c & 0xc0) == 0x80;
}

const char *show_cut(const char *text, size_t columns, bool pad, char *buf, size_t buf_size)
{
        static const char ellipsis[] = "…";
        size_t n = 0, at = 0, last = 0;
        /* what fits, and where the last but one character of it ends */
        while (text[at] != '\0' && n < columns) {
                last = at;
                at++;
                while (is_continuation(text[at]))
                        at++;
                n++;
        }
        if (text[at] == '\0' && at < buf_size)
                memcpy(buf, text, at);
        else if (last + sizeof(ellipsis) <= buf_size) {
                memcpy(buf, text, last);
                memcpy(buf + last, ellipsis, sizeof(ellipsis) - 1);
                at = last + sizeof(ellipsis) - 1;
        } else {
                at = 0;
        }
        while (pad && n < columns && at + 1 < buf_size) {
                buf[at++] = ' ';
                n++;
        }
        buf[at] = '\0';
        return buf;
}

static void print_json(const json_t *value, size_t flags)
{
        if (isatty(STDOUT_FILENO) == 1)
                flags |= JSON_ENSURE_ASCII; /* C1 controls would be taken for commands by a terminal */
        char *text = json_dumps(value, flags | JSON_ENCODE_ANY);
        if (!text)
                return;
        for (char *c = text; *c != '\0'; c++)
                (void) fputs(*c == 0x7f ? "\\u007f" : (char[2]){ *c, '\0' }, stdout);
        (void) fputc('\n', stdout);
        free(text);
}

void show_json(const json_t *value)
{
        print_json(value, JSON_INDENT(2));
}

void show_json_line(const json_t *value)
{
        print_json(value, JSON_COMPACT);
}

static void show_blockers(const json_t *blockers)
{
        size_t i;
        json_t *blocker;
        json_array_foreach(blockers, i, blocker)
        {
                char kind[64], bytes[SIZE_TEXT_MAX], who[64];
                if (!json_is_object(blocker))
                        continue;
                (void) fprintf(stderr, "  %s %s", show_field(blocker, "kind", "?", kind, sizeof(kind)),
                               show_bytes(blocker, "bytes", bytes));
                if (json_is_string(json_object_get(blocker, "lease")))
                        (void) fprintf(stderr, " (%s)", show_field(blocker, "lease", "", who, sizeof(who)));
                else if (json_is_integer(json_object_get(blocker, "pid")))
                        (void) fprintf(stderr, " (pid %s)", show_field(blocker, "pid", "", who, sizeof(who)));
                (void) fputc('\n', stderr);
        }
}

void show_problem(const char *verb, const struct client_answer *answer)
{
        char detail[SHOW_TEXT_MAX], title[128], ceiling[SIZE_TEXT_MAX];
        const char *said = show_field(answer->body, "detail", "", detail, sizeof(detail));
        if (said[0] == '\0')
                said = show_field(answer->body, "title", "lessord gave no reason", title, sizeof(title));
        (void) fprintf(stderr, "lessor %s: %s\n", verb, said);

        const json_t *blockers = json_object_get(answer->body, "blockers");
        uint64_t bytes;
        if (json_amount(answer->body, "ceiling_bytes", &bytes))
                (void) fprintf(stderr, "  the most a device here can ever give: %s\n", size_text(bytes, ceiling));
        if (json_is_array(blockers) && json_array_size(blockers) == 0)
                (void) fprintf(stderr, "  in the way for good: nothing, the device itself is smaller\n");
        else if (json_is_array(blockers))
                show_blockers(blockers);
}

int show_failure(const char *verb, const struct lessor_error *error)
{
        struct client_answer answer = { .status = lessor_error_status(error) };
        if (answer.status == 0) {
                (void) fprintf(stderr, "lessor %s: %s\n", verb, error ? lessor_error_text(error) : "no memory");
                return LESSOR_EXIT_AWAY;
        }
        answer.body = json_loads(lessor_error_json(error), 0, NULL);
        if (answer.body)
                show_problem(verb, &answer);
        else
                (void) fprintf(stderr, "lessor %s: %s\n", verb, lessor_error_text(error));
        client_answer_fini(&answer);
        return LESSOR_EXIT_REFUSED;
}

int show_away(const char *verb, const struct client *client, int r)
{
        char cure[AWAY_TEXT_MAX];
        (void) fprintf(stderr, "lessor %s: %s\n", verb, socket_path_cure(client->socket_path, r, cure, sizeof(cure)));
        return LESSOR_EXIT_AWAY;
}

static int call(const char *verb, const char *method, const char *path, const json_t *body, uint64_t wait_ms,
                json_t **ret)
{
        struct client client;
        struct client_answer answer;
        struct error err = { 0 };

        client_init(&client);
        int r = client_call(&client, method, path, body, wait_ms + CLIENT_CALL_MS, &answer, &err);
        if (r < 0)
                return show_away(verb, &client, r);
        if (answer.status != 200 && answer.status != 201) {
                show_problem(verb, &answer);
                client_answer_fini(&answer);
                return LESSOR_EXIT_REFUSED;
        }
        *ret = answer.body;
        return LESSOR_EXIT_OK;
}

int show_call(const char *verb, const char *method, const char *path, const json_t *body, json_t **ret)
{
        return call(verb, method, path, body, 0, ret);
}

int show_get(const char *verb, const char *path, json_t **ret)
{
        return show_get_slowly(verb, path, 0, ret);
}

int show_get_slowly(const char *verb, const char *path, uint64_t wait_ms, json_t **ret)
{
        int code = call(verb, "GET", path, NULL, wait_ms, ret);
        if (code != LESSOR_EXIT_OK || *ret)
                return code;
        (void) fprintf(stderr, "lessor %s: lessord answered with nothing\n", verb);
        return LESSOR_EXIT_REFUSED;
}
