/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Was this name there before? What is kept of each is a hash of 8 bytes: all that a trace of any length costs in memory. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ids {
        uint64_t *slots; /* 0: empty */
        size_t n, n_slots;
};

/* 1: it is new, and kept. 0: it was there. -ENOMEM. */
int ids_add(struct ids *ids, const char *name);
void ids_fini(struct ids *ids); /* fine on a zeroed one, and twice */
