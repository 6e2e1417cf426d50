/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One connection to a D-Bus daemon on the daemon's loop (sd-bus). It comes and goes: who uses it is told, and asks nothing while
 * it is down. Nothing here waits: what is called answers by a callback, also when the bus goes away (as "no reply").
 */
#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <uv.h>

enum bus_kind {
        BUS_USER, /* of the person whose session this is */
        BUS_SYSTEM,
};

enum { BUS_CALL_MS = 10000, BUS_RETRY_FIRST_MS = 1000, BUS_RETRY_MOST_MS = 60000, BUS_WORDS_MAX = 160 };

typedef void bus_state_fn(void *ctx, bool up);

struct bus {
        uv_loop_t *loop;
        enum bus_kind kind;
        bus_state_fn *on_state;
        void *ctx;
        sd_bus *sd;       /* NULL: not connected; it is tried again */
        uv_poll_t *poll;  /* of its descriptor; frees itself */
        uv_timer_t timer; /* sd-bus' own deadlines, or the next try */
        uint64_t retry_ms;
        bool up, stopping, inside;
        char words[BUS_WORDS_MAX]; /* why it is down */
};

void bus_start(struct bus *bus, uv_loop_t *loop, enum bus_kind kind, bus_state_fn *on_state, void *ctx);
/* Closes its handles; the loop has to run once more. Calls that are out are answered by nobody. */
void bus_stop(struct bus *bus);
/* After something was queued: it is written, and its answer waited for. */
void bus_touch(struct bus *bus);
/* The peer is not there, or did not answer: nothing is known of what was asked. */
bool bus_error_is_silence(const sd_bus_error *error);
/* It says that we may not. */
bool bus_error_is_refusal(const sd_bus_error *error);
