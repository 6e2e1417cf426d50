/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/clock.h"

void client_init(struct client *client)
{
        client->wake_fd = -1;
        (void) socket_path_find(client->socket_path, sizeof(client->socket_path));
}

int client_begin(const struct client *client, const char *method, const char *path, const json_t *body,
                 uint64_t timeout_ms, struct http_call *ret_call, struct error *err)
{
        auto_free char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        if (body && !text)
                return error_set(err, ENOMEM, "building the request");
        struct http_request request = { .method = method, .path = path, .body = text };
        int r = http_call_begin(ret_call, client->socket_path, &request, clock_now_ms() + timeout_ms, err);
        if (r < 0)
                http_call_end(ret_call);
        return r;
}

int client_answer_read(const struct http_call *call, struct client_answer *ret, struct error *err)
{
        json_error_t wrong;
        *ret = (struct client_answer){ .status = call->status, .retry_after_ms = call->retry_after_ms };
        if (call->body.len == 0)
                return 0;
        ret->body = json_loadb(call->body.data, call->body.len, JSON_REJECT_DUPLICATES, &wrong);
        if (!ret->body)
                return error_set(err, EPROTO, "what answers on the socket is not lessord: HTTP %d without JSON",
                                 call->status);
        return 0;
}

int client_call(const struct client *client, const char *method, const char *path, const json_t *body,
                uint64_t timeout_ms, struct client_answer *ret, struct error *err)
{
        struct http_call call;
        *ret = (struct client_answer){ 0 };
        int r = client_begin(client, method, path, body, timeout_ms, &call, err);
        if (r < 0)
                return r;
        r = http_call_go_on(&call, false, clock_now_ms() + timeout_ms, client->wake_fd, err);
        if (r == 0)
                r = client_answer_read(&call, ret, err);
        http_call_end(&call);
        return r;
}

void client_answer_fini(struct client_answer *answer)
{
        json_decref(answer->body);
        answer->body = NULL;
}

bool client_is_away(int r)
{
        return r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET || r == -ETIMEDOUT || r == -EPIPE;
}

const char *json_text(const json_t *object, const char *key, const char *fallback)
{
        const char *text = json_string_value(json_object_get(object, key));
        return text ? text : fallback;
}

bool json_amount(const json_t *object, const char *key, uint64_t *ret)
{
        const json_t *value = json_object_get(object, key);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return false;
        *ret = (uint64_t) json_integer_value(value);
        return true;
}

uint64_t json_amount_or(const json_t *object, const char *key, uint64_t fallback)
{
        uint64_t value;
        return json_amount(object, key, &value) ? value : fallback;
}
