/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One POST to a program that listens on this machine and gives its memory back itself (`lessor run --yield-hook`): plain HTTP
 * over loopback or a unix socket, with the rights of whoever runs it. It never waits; a loop polls for it.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "client/http.h"

enum { HOOK_PATH_MAX = 512 };

struct hook_target {
        bool is_unix;
        bool is_v6;
        uint16_t port;
        char socket_path[HTTP_SOCKET_PATH_MAX + 1];
        char path[HOOK_PATH_MAX]; /* of the request, with its query */
};

struct hook {
        bool busy;
        uint64_t due_ms;
        struct http_call call;
};

enum hook_news { HOOK_NOTHING, HOOK_DONE, HOOK_FAILED };

/* "http://127.0.0.1:8080/yield", "http://[::1]:8080/yield", "unix:/run/x.sock:/yield". -EINVAL with words for all else. */
int hook_parse(const char *text, struct hook_target *ret, struct error *err);
/* @body  JSON. Another one that is under way is given up. Negative errno with words. */
int hook_begin(struct hook *hook, const struct hook_target *target, const char *body, uint64_t due_ms,
               struct error *err);
/* As watch_wants(). */
nfds_t hook_wants(const struct hook *hook, struct pollfd *ret, int *timeout_ms);
/* DONE: it was answered with 2xx. FAILED with words. */
enum hook_news hook_go_on(struct hook *hook, struct error *err);
void hook_end(struct hook *hook);
