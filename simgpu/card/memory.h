/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* memory - the bytes of a device: what is used, who is listed, taking and giving back */

#include "card/card.h"

enum memory_kind { MEMORY_LISTED, MEMORY_MANAGED, MEMORY_CONTEXT };

/* memory_take - 0 or -ENOMEM (the card is full), -EIO (the card's lock is unusable). @bytes is ignored for a context. */
int memory_take(struct card *card, struct card_proc *proc, uint32_t device, enum memory_kind kind, uint64_t bytes);
void memory_give(struct card *card, struct card_proc *proc, uint32_t device, enum memory_kind kind, uint64_t bytes);

/* memory_park - all the process holds leaves the devices (its copy in host memory exists already) */
int memory_park(struct card *card, struct card_proc *proc);

/*
 * memory_unpark - all of it back, on all devices or on none
 * @map  where the bytes of each device go (identity without remapping)
 */
int memory_unpark(struct card *card, struct card_proc *proc, const uint32_t map[CARD_DEVICES_MAX]);

/* What one process holds on a device, contexts included. */
uint64_t memory_of(const struct card *card, const struct card_proc *proc, uint32_t device);
/* The part of it that NVML lists. */
uint64_t memory_listed(const struct card *card, const struct card_proc *proc, uint32_t device);

/* memory_used - the truth: reserve + processes + residue and ghosts. Caller holds the lock. */
uint64_t memory_used_locked(const struct card *card, uint32_t device);

/* memory_reading - what the driver *says* is used: the truth bent by lag-memory and list-skew. Takes the lock. */
int memory_reading(struct card *card, uint32_t device, uint64_t *ret_used_bytes);

struct listing {
        uint32_t pid;
        uint64_t bytes;
        bool known; /* false: the driver answers "not available" */
        bool compute, graphics;
};

/* memory_list - what the driver lists on a device, faults included; at most CARD_PROCS_MAX + CARD_FAULTS_MAX rows. Returns the count or -errno. */
int memory_list(struct card *card, uint32_t device, struct listing *rows, size_t n_rows);
