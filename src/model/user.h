/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What one uid has used lately: decayed GPU-byte-seconds (half-life one day), kept in MiB·s so that a year of 64 cards fits. */
#include <stdbool.h>
#include <stdint.h>

struct user {
        uint32_t uid;
        uint32_t n_leases;  /* rows in the lease table, queued ones included */
        uint32_t n_waiting; /* entries in the queue */
        bool in_use;
        uint64_t held_bytes;  /* reserved by its leases right now: the rate at which usage grows */
        uint64_t usage_mib_s; /* as of usage_at_ms */
        uint64_t usage_at_ms;
};
