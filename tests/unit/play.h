/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A day of a busy machine, made from a number: devices, processes, readings, requests and calls, also about leases that are
 * not there. For the real core; what it decides is nobody's business here. */
#include <stdint.h>
#include "model/input.h"

enum { PLAY_DEVICES = 3, PLAY_PIDS = 40 };

struct play {
        uint64_t random;
        uint64_t now_ms;
        uint64_t used_bytes[PLAY_PIDS]; /* of process 100 + i on device i % PLAY_DEVICES; 0 = not there */
        struct occupancy rows[ROWS_MAX];
};

uint32_t play_pick(struct play *p, uint32_t n); /* 0 … n-1 */
/* The @step-th input; a reading's rows are the play's. The beginning: eyes, devices, processes; then whatever comes. */
void play_input(struct play *p, uint32_t step, struct input *in);
