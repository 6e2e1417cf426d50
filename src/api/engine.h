/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One question to a container engine (Docker, Podman), on its unix socket and without waiting: its deadline and 256 KiB at
 * most, then it has not answered. Most of all name, image and labels of a container (GET /containers/ID/json, two seconds),
 * read as strictly as any stranger's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>
#include "api/container.h"

enum { ENGINE_DEADLINE_MS = 2000, ENGINE_ANSWER_MAX_BYTES = 256 * 1024, ENGINE_QUESTIONS_MAX = 32 };

struct engine_question;

/* Of any call: the status of the answer and its body, good until control goes back to the loop. @status 0: none came, @why says
 * how so; @sent: and what was asked for may have been done all the same. */
struct engine_reply {
        int status;
        const char *body;
        size_t n_body;
        const char *why;
        bool sent;
};
typedef void engine_reply_fn(void *ctx, const struct engine_reply *reply);

/* @method and @path as they are to stand in the request ("POST", "/containers/ID/stop?t=30"): made by us, never by strangers. */
struct engine_question *engine_call(uv_loop_t *loop, const char *socket, const char *method, const char *path,
                                    uint64_t deadline_ms, engine_reply_fn *on_reply, void *ctx);

/* @facts NULL: no answer, @why says how so. Called once, from the loop, unless it was cancelled before. */
typedef void engine_answer_fn(void *ctx, const struct container_facts *facts, const char *why);

/* NULL: could not even be asked (out of memory or descriptors). */
struct engine_question *engine_ask(uv_loop_t *loop, const char *socket, const char *container_id,
                                   engine_answer_fn *on_answer, void *ctx);
void engine_cancel(struct engine_question *q);
