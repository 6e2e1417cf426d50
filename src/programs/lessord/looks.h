/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Looks that the core ordered one after another: while memory moves it asks to be told every few ms. The first one is at once: what
 * was waited for is mostly there. One a device at a time, no closer together than LOOKS_APART_MS; what is due first counts.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "model/limits.h"

struct daemon;

enum { LOOKS_APART_MS = 3 };

struct looks {
        uv_timer_t timer;
        bool started;
        uint64_t due_ms[DEVICES_MAX];  /* CLOCK_MONOTONIC, as the loop has it; 0 = none */
        uint64_t last_ms[DEVICES_MAX]; /* the last one ordered */
};

void looks_start(struct daemon *d);
/* ACTION_READ: at once, or @wait_ms after the last one. */
void looks_order(struct daemon *d, uint32_t device, uint64_t wait_ms);
void looks_stop(struct daemon *d);
