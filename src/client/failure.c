/* SPDX-License-Identifier: Apache-2.0 */
#include "client/failure.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/escape.h"

#define URN "urn:lessor:problem:"

enum { TEXT_MAX = 1024 };

struct lessor_error {
        int code; /* positive errno */
        int status;
        char type[80];
        char title[128];
        char text[TEXT_MAX];
        char *json; /* NULL = none */
};

static struct lessor_error no_memory = { .code = ENOMEM, .text = "there is no memory left for lessor's client" };

static struct lessor_error *make(int code)
{
        struct lessor_error *e = calloc(1, sizeof(*e));
        if (!e)
                return &no_memory;
        e->code = code;
        return e;
}

struct lessor_error *failure_new(int code, const char *type, const char *fmt, ...)
{
        struct lessor_error *e = make(code);
        va_list args;
        if (e == &no_memory)
                return e;
        if (type)
                (void) snprintf(e->type, sizeof(e->type), URN "%s", type);
        va_start(args, fmt);
        (void) vsnprintf(e->text, sizeof(e->text), fmt, args);
        va_end(args);
        return e;
}

/* The closest word first; the rest by status. */
static int code_of_answer(int status, const char *type)
{
        static const struct {
                const char *type;
                int code;
        } types[] = {
                { URN "would-wait", EAGAIN }, { URN "wait-over", ETIMEDOUT },           { URN "never-fits", E2BIG },
                { URN "ended", EIDRM },       { URN "method-not-allowed", EOPNOTSUPP },
        };
        static const struct {
                int status, code;
        } statuses[] = {
                { 400, EINVAL }, { 403, EPERM },  { 404, ENOENT }, { 405, EOPNOTSUPP }, { 409, EBADFD },
                { 410, EIDRM },  { 413, EINVAL }, { 415, EINVAL }, { 422, EINVAL },     { 429, EDQUOT },
                { 431, EINVAL }, { 503, EBUSY },  { 507, ENOSPC },
        };
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                if (strcmp(types[i].type, type) == 0)
                        return types[i].code;
        for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
                if (statuses[i].status == status)
                        return statuses[i].code;
        return EPROTO;
}

static void copy_safely(const char *text, char *buf, size_t buf_size)
{
        (void) text_escape(text, strlen(text), buf, buf_size);
}

struct lessor_error *failure_of_answer(const struct client_answer *answer)
{
        const char *type = json_text(answer->body, "type", "");
        struct lessor_error *e = make(code_of_answer(answer->status, type));
        if (e == &no_memory)
                return e;
        e->status = answer->status;
        copy_safely(type, e->type, sizeof(e->type));
        copy_safely(json_text(answer->body, "title", ""), e->title, sizeof(e->title));
        copy_safely(json_text(answer->body, "detail", ""), e->text, sizeof(e->text));
        if (e->text[0] == '\0' && e->title[0] != '\0')
                (void) snprintf(e->text, sizeof(e->text), "%s", e->title);
        else if (e->text[0] == '\0')
                (void) snprintf(e->text, sizeof(e->text), "lessord answers HTTP %d and gives no reason",
                                answer->status);
        e->json = answer->body ? json_dumps(answer->body, JSON_COMPACT) : NULL;
        return e;
}

struct lessor_error *failure_of_call(const struct client *client, int r)
{
        int code = client_is_away(r) ? EHOSTDOWN : r == -EPERM ? EACCES : r == -EFBIG ? EPROTO : -r;
        struct lessor_error *e = make(code);
        if (e != &no_memory)
                (void) socket_path_cure(client->socket_path, r, e->text, sizeof(e->text));
        return e;
}

int failure_is_older(struct lessor_error *error, struct lessor_error **reterr)
{
        if (error != &no_memory && (error->status == 405 || strcmp(error->type, URN "not-found") == 0)) {
                error->code = EOPNOTSUPP;
                (void) snprintf(error->text, sizeof(error->text),
                                "this lessord does not know that question yet; upgrade it to at least the version of "
                                "this program (%s)",
                                LESSOR_VERSION);
        }
        return failure_give(error, reterr);
}

struct lessor_error *failure_copy(const struct lessor_error *error)
{
        struct lessor_error *e = make(error->code);
        if (e == &no_memory || error == &no_memory)
                return e;
        *e = *error;
        e->json = error->json ? strdup(error->json) : NULL;
        return e;
}

int failure_give(struct lessor_error *error, struct lessor_error **reterr)
{
        int r = -error->code;
        if (reterr)
                *reterr = error;
        else
                lessor_error_free(error);
        return r;
}

/* ---- lessor.h ---- */

int lessor_error_errno(const struct lessor_error *error)
{
        return error ? error->code : 0;
}

int lessor_error_status(const struct lessor_error *error)
{
        return error ? error->status : 0;
}

const char *lessor_error_type(const struct lessor_error *error)
{
        return error ? error->type : "";
}

const char *lessor_error_title(const struct lessor_error *error)
{
        return error ? error->title : "";
}

const char *lessor_error_text(const struct lessor_error *error)
{
        return error ? error->text : "";
}

const char *lessor_error_json(const struct lessor_error *error)
{
        return error && error->json ? error->json : "";
}

void lessor_error_free(struct lessor_error *error)
{
        if (!error || error == &no_memory)
                return;
        free(error->json);
        free(error);
}
