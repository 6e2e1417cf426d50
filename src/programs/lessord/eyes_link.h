/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's side of lessor-eyes (wire/eyes.h): starts it, turns what it says into inputs, asks it to look, and replaces
 * it when it does not answer. A driver call that never returns costs the deadline and one process, never this one.
 *
 *   no HELLO, or no DONE to a READ, within the deadline → INPUT_EYES{answering = false} once, SIGKILL by pidfd
 *   a new one after the old was reaped, with back-off 0.25 … 8 s, from its beginning again once one has lasted so long; an
 *   old one stuck in the kernel (D state) is left to itself, but there are never more than two alive
 *   its first look → INPUT_EYES{answering = true}: recovery needs nobody
 */
#include <stdbool.h>
#include <uv.h>
#include "base/error.h"
#include "model/input.h"
#include "model/world.h"
#include "wire/eyes.h"

enum {
        EYES_ALIVE_MAX = 2,
        EYES_READS_MAX = 32,
        EYES_BACKOFF_FIRST_MS = 250,
        EYES_BACKOFF_MOST_MS = 8000,
        EYES_REAP_PATIENCE_MS = 2000, /* a killed one that is not reaped by then is stuck: start the second */
        EYES_MESSAGES_AT_ONCE = 64,
};

struct eyes_link;

struct eyes_host {
        void *ctx;
        const struct world *(*world)(void *ctx);
        void (*submit)(void *ctx, const struct input *input);
        void (*submit_patiently)(void *ctx, const struct input *input); /* what only confirms what is known */
        uint64_t (*of_monotonic)(void *ctx, uint64_t monotonic_ms);     /* world time of a CLOCK_MONOTONIC time */
        uint64_t (*room_of)(void *ctx, uint32_t pid);                   /* struct process.room_bytes */
        /* All that they said of a process, and what of it the core will be told. */
        void (*told_process)(void *ctx, const struct eyes_process *told, const struct process *settled);
        void (*driver_changed)(void *ctx); /* eyes_link_driver() says something else */
        void (*named_all)(void *ctx);      /* these eyes, or a driver that came back, have named every device */
        void (*first_look)(void *ctx);     /* the first complete look, or the first failure, since the start: once */
};

/* @program: path of lessor-eyes. @accounting: where lessor-accounting keeps its records, "" = nowhere. Nothing is started yet. */
int eyes_link_new(struct eyes_link **ret, uv_loop_t *loop, const char *program, const char *accounting,
                  uint64_t deadline_ms, const struct eyes_host *host, struct error *err);
void eyes_link_start(struct eyes_link *e);
/* Ends the children and closes the handles; the loop has to run once more before eyes_link_free(). */
void eyes_link_stop(struct eyes_link *e);
void eyes_link_free(struct eyes_link *e);

/* The core wants a look at this device; whatever is seen becomes an input, changed or not. */
void eyes_link_read(struct eyes_link *e, const char *uuid);
/* The machine was suspended: nothing that was read before is of today; as if they had been silent until they answer. */
void eyes_link_slept(struct eyes_link *e);
/* How often the eyes look by themselves, and at what processes do; the first also is how often they are asked whether they
 * still answer (not below 1 s). */
void eyes_link_interval(struct eyes_link *e, uint64_t ms, uint64_t activity_ms);
/* Take nothing from the socket for a while: what is not taken stays there, nothing is lost (the journal is full). */
void eyes_link_pause(struct eyes_link *e, bool pause);

/* For health: "ok", "stale", "none", "mismatch". */
const char *eyes_link_gpu(const struct eyes_link *e);
const char *eyes_link_driver(const struct eyes_link *e);         /* its version; "" = unknown */
bool eyes_link_age_ms(const struct eyes_link *e, uint64_t *ret); /* since the last answer; false = never */
/* What of @known, the guard that @facts alone gave, the list of the protected programs makes (guards.h). */
enum process_guard eyes_link_guard(struct eyes_link *e, const struct eyes_process *facts, enum process_guard known);
/* Do they read the kernel's process accounting? False: not said yet. */
bool eyes_link_accounting(const struct eyes_link *e, bool *ret);
bool eyes_link_host_pids(const struct eyes_link *e,
                         bool *ret); /* do the eyes see every pid (F19)? false = not said yet */
/* Does the kernel tell them of forks and ends (enum eyes_events, in words)? NULL: not said yet. @ret_errno: why not; 0 = nothing to say. */
const char *eyes_link_process_events(const struct eyes_link *e, int *ret_errno);
bool eyes_link_looked_ms(const struct eyes_link *e, const char *uuid, uint64_t *ret);
