/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's side of lessor-warden-admin (wire/gate.h): connects to it where it listens, and again, with back-off 0.25 … 8 s; asks
 * every few seconds whether it lives. It is never started from here.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "base/error.h"
#include "wire/gate.h"

enum { GATE_BACKOFF_FIRST_MS = 250, GATE_BACKOFF_MOST_MS = 8000, GATE_TICK_MS = 5000 };

struct gate_link;

/* Callbacks run on the loop; on_away also from within gate_link_say(). */
struct gate_link_host {
        void *ctx;
        void (*on_up)(void *ctx); /* hellos were said; it knows of nothing yet, or of leases of before */
        void (*on_away)(void *ctx, const char *words);
        void (*on_answer)(void *ctx, const struct gate_answer *answer);
        void (*on_state)(void *ctx, const struct gate_state *state);
};

/* @socket and @version are copied. Nothing is connected yet. */
int gate_link_new(struct gate_link **ret, uv_loop_t *loop, const char *socket, const char *version,
                  const struct gate_link_host *host, struct error *err);
void gate_link_start(struct gate_link *g);
/* Hangs up and closes the handles; the loop has to run once more before gate_link_free(). */
void gate_link_stop(struct gate_link *g);
void gate_link_free(struct gate_link *g);

/* False: not now; what does not fit is not kept here. */
bool gate_link_say(struct gate_link *g, const struct gate_message *msg);
/* It is asked now how it stands. */
void gate_link_ask(struct gate_link *g);
/* What was said is lost, so it is told all of it anew. */
void gate_link_begin_again(struct gate_link *g, const char *why);
bool gate_link_is_up(const struct gate_link *g);
/* "lessor-warden-admin 0.1.0", or why it is away. */
const char *gate_link_words(const struct gate_link *g);
