/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When a queue head can start (design 4.2): the declared ends on its device are gone through in the order of time until its
 * demand fits. A slot that is over counts only where its lease has a usable way out; what drains counts as gone by the time
 * settling may take.
 */
#include "arbiter/free.h"
#include "model/world.h"

struct projection {
        bool finite;
        uint64_t start_ms;    /* may lie in the past: it could start now, once others have left */
        struct sums at_start; /* the device at that time, without the head */
};

/* @now: the device's sums without the claims of heads. Holders that went ahead of @head as backfill and can be taken back
 * count as gone when it wants to start. */
void project_start(struct world *world, uint32_t device, const struct sums *now, const struct entry *head,
                   struct projection *ret);
/* Would @bytes more fit beside what is there? */
static inline bool sums_fit(const struct sums *s, uint64_t bytes)
{
        uint64_t committed = sums_committed_bytes(s);
        return committed <= s->total_bytes && bytes <= s->total_bytes - committed;
}
