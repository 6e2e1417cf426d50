/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How full a device is, asked in a process of its own: a driver that hangs must not hang whoever wants to help. */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct room {
        uint64_t total_bytes, free_bytes;
        bool listed; /* the process that was asked about is on the device's list */
};

/* @uuid "GPU-…"; @pid whom to look for on its list, 0 = nobody. -ENODEV: no such device here; others as apart.h. */
int room_look(const char *uuid, uint32_t pid, struct room *ret, struct error *err);
/*
 * How much must be free before @bytes come back (design 4.4): 2 % of the device more than that, and never more than the whole of it.
 * What does not fit after this look is lost for good, so the two percent are not politeness.
 */
uint64_t room_needed_bytes(const struct room *room, uint64_t bytes);
