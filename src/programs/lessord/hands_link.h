/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's side of lessor-warden (wire/warden.h): starts it (a person's session, --dir) or connects to it (the system's),
 * passes orders on, and matches what came of them by order id, also across restarts of either side.
 *
 *   it ends, hangs up or does not answer → on_state(false), orders from then on are BLOCKED "hands_away" at once; a new one after
 *   the old was reaped (never two), a new connection, with back-off 0.25 … 8 s
 *   it is there again → orders that a helper carries on, or has carried out, keep their outcome; the others of before are FAILED
 *   "lost", since nobody knows whether they were carried out; then on_state(true)
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "base/error.h"
#include "wire/warden.h"

enum {
        HANDS_ORDERS_MAX = 256, /* asked and not answered, or answered and not settled */
        HANDS_BACKOFF_FIRST_MS = 250,
        HANDS_BACKOFF_MOST_MS = 8000,
        HANDS_TICK_MS = 5000, /* how often they are asked whether they live; a tick without an answer ends them */
};

struct hands_link;

/* Callbacks run on the loop; on_outcome also from within hands_link_order(), for what is refused here. */
struct hands_host {
        void *ctx;
        /* Once for an order. It may be of an earlier daemon: who does not know it still calls hands_link_settled(). */
        void (*on_outcome)(void *ctx, const struct warden_answer *answer);
        void (*on_state)(void *ctx, bool up, const char *words);
};

struct hands_options {
        const char *socket;  /* the system's hands; NULL = start our own */
        const char *program; /* own: path of lessor-warden */
        const char *dir;     /* own: its folder, such as DIR/warden; ours alone, made when missing */
        bool has_launcher;   /* own: */
        int launcher;        /* from launcher_start(), stays the caller's; without one they have lessord's few rights */
        const char *version; /* of this program, for the hello */
        const char *const *extra; /* own, without a launcher: more options, ends with NULL; NULL = none */
        uint64_t tick_ms;         /* 0 = HANDS_TICK_MS */
};

/* Options are copied. Nothing is started yet. */
int hands_link_new(struct hands_link **ret, uv_loop_t *loop, const struct hands_options *options,
                   const struct hands_host *host, struct error *err);
void hands_link_start(struct hands_link *h);
/* Hangs up and closes the handles; the loop has to run once more before hands_link_free(). Helpers go on. */
void hands_link_stop(struct hands_link *h);
void hands_link_free(struct hands_link *h);

/* Always answered by on_outcome, once. The id is the caller's, not 0, never used twice. */
void hands_link_order(struct hands_link *h, const struct warden_order *order);
/* The same of a LOOK; @path: what the process calls a file, "" = nothing is asked. */
void hands_link_look(struct hands_link *h, const struct warden_order *order, const char *path);
/* What the program is called, of the LOOK that on_outcome is telling of; "" of all others. A stranger's bytes. */
const char *hands_link_path(const struct hands_link *h);
/* The outcome is in the journal: the hands may forget it. After every on_outcome; not before the commit. */
void hands_link_settled(struct hands_link *h, uint64_t order_id);

/* The order is under way, or its outcome was told and is not settled yet. */
bool hands_link_knows(const struct hands_link *h, uint64_t order_id);

bool hands_link_is_up(const struct hands_link *h);
/* For status and doctor: "lessor-warden 0.1.0", or why it is away. */
const char *hands_link_words(const struct hands_link *h);
uint32_t hands_link_can(const struct hands_link *h); /* WARDEN_CAN_…; 0 while away */
