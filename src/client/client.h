/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calls to lessord's API (docs/api.md): JSON in, JSON out, one connection each. */
#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include "base/error.h"
#include "client/http.h"
#include "client/socket_path.h"

enum {
        CLIENT_CALL_MS = 10 * 1000, /* for an answer that nothing has to be waited for */
        CLIENT_POLL_MS = 30 * 1000, /* one turn of a long poll */
};

struct client {
        char socket_path[SOCKET_PATH_MAX];
        int wake_fd; /* calls return -EINTR when it is readable; -1 = none */
};

struct client_answer {
        int status;              /* HTTP's */
        uint64_t retry_after_ms; /* 0 = it does not say */
        json_t *body;            /* NULL when empty; freed by client_answer_fini() */
};

void client_init(struct client *client);
/*
 * One call. 0 for every answer that is HTTP and JSON, whatever its status; else as http_call_begin and http_call_go_on.
 * @body  borrowed, may be NULL
 */
int client_call(const struct client *client, const char *method, const char *path, const json_t *body,
                uint64_t timeout_ms, struct client_answer *ret, struct error *err);
/* The two halves of the same, for a call that takes its time. */
int client_begin(const struct client *client, const char *method, const char *path, const json_t *body,
                 uint64_t timeout_ms, struct http_call *ret_call, struct error *err);
int client_answer_read(const struct http_call *call, struct client_answer *ret, struct error *err);
void client_answer_fini(struct client_answer *answer);

/* Is this failure one that passes when lessord comes back (as opposed to: not allowed, path too long)? */
bool client_is_away(int r);

/* Fields of an answer, forgiving: a wrong type or a missing one is the fallback. */
const char *json_text(const json_t *object, const char *key, const char *fallback);
bool json_amount(const json_t *object, const char *key, uint64_t *ret); /* false: absent, null or negative */
uint64_t json_amount_or(const json_t *object, const char *key, uint64_t fallback);
