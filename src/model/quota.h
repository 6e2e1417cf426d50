/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What one user may have at once. The configuration has one set for everyone and a row for each `[user NAME]` and
 * `[group NAME]` section; the shell finds out which row is a caller's (users and groups are facts of the machine), and the
 * core is told its number with each request, so that a decision can be replayed under another configuration.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
        QUOTAS_MAX = 32,    /* rows for users and groups */
        QUOTA_EVERYONE = 0, /* row number of whoever has no row of his own; row n is quotas[n - 1] */
};

struct quota {
        uint32_t priority_min; /* smallest priority number that may be asked for (2) */
        uint32_t leases_max;   /* leases, waiting ones included (1024) */
        uint32_t waiting_max;  /* requests that wait (256) */
        uint32_t pins_max;     /* pinned leases (2) */
        uint64_t bytes_max;    /* sum of what the leases asked for, waiting ones included; 0 = no limit */
        uint64_t slot_max_ms;  /* longest slot, extensions included; 0 = no limit, and a slot need not be named */
        uint64_t pin_max_ms;   /* longest pin (24 h); 0 = also without an end */
};
