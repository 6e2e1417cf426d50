/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* work - what processes do on a device, as far as a driver's utilisation samples tell */

#include "card/card.h"

struct work_sample {
        uint32_t pid;
        uint64_t at_us;      /* since 1970, as the driver stamps its samples */
        uint32_t sm, memory; /* percent */
};

enum work_kind { WORK_KERNEL, WORK_COPY };

/* work_note - this process has just launched something, or copied */
void work_note(struct card_proc *proc, uint32_t device, enum work_kind kind);

/* work_samples - those younger than @since_us of the processes on a device; at most CARD_PROCS_MAX. Returns how many. */
unsigned work_samples(const struct card *card, uint32_t device, uint64_t since_us, struct work_sample *ret);
