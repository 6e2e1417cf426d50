/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A plan that is being carried out: whose memory is taken back, one after another, for whom (design 4.3). Nothing happens
 * before the whole plan is known to suffice; the victims of two plans are never the same. A gang has a plan on each of the devices it
 * is to start on: they begin in one step, fail together, and may have a victim in common, itself a gang.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/ref.h"

enum { PLANS_MAX = 128, VICTIMS_MAX = 32 };

enum victim_state { VICTIM_TO_DO, VICTIM_RUNNING, VICTIM_DONE, VICTIM_STATE_N };

struct victim {
        struct ref lease;
        uint8_t way;   /* enum way_out_kind */
        uint8_t state; /* enum victim_state */
};

struct plan {
        uint64_t id; /* 1, 2, 3 …; 0 = an empty row */
        uint32_t device;
        uint32_t n_victims;
        struct ref entry; /* for whom */
        struct ref claim; /* its row in the holder table; none while nothing is claimed */
        uint64_t need_bytes;
        uint64_t started_ms;
        struct victim victims[VICTIMS_MAX];
};
