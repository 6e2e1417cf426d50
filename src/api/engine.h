/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One question to a container engine (Docker, Podman): name, image and labels of a container, asked on the engine's unix
 * socket without waiting: GET /containers/ID/json, two seconds and 256 KiB at most, then it has not answered. The answer is
 * read as strictly as any stranger's.
 */
#include <uv.h>
#include "api/container.h"

enum { ENGINE_DEADLINE_MS = 2000, ENGINE_ANSWER_MAX_BYTES = 256 * 1024, ENGINE_QUESTIONS_MAX = 32 };

struct engine_question;

/* @facts NULL: no answer, @why says how so. Called once, from the loop, unless it was cancelled before. */
typedef void engine_answer_fn(void *ctx, const struct container_facts *facts, const char *why);

/* NULL: could not even be asked (out of memory or descriptors). */
struct engine_question *engine_ask(uv_loop_t *loop, const char *socket, const char *container_id,
                                   engine_answer_fn *on_answer, void *ctx);
void engine_cancel(struct engine_question *q);
