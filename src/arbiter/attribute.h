/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which lease a process belongs to: by its own identity or that of an ancestor (nearest first), or by its cgroup. Once
 * attributed it stays, also when it is re-parented.
 */
#include <stdbool.h>
#include "model/world.h"

/* Finds the lease of @process for memory on @device (several leases may share one owner, a shell script's: the one on that
 * device with the most of its reservation not taken yet). A none ref where there is none. */
struct ref attribute_process(const struct world *world, const struct process *process, uint32_t device,
                             uint8_t *ret_by /* enum attributed_by */);
/* Processes of the lease that are alive as far as is known, and listed on its device; its owner itself not counted. */
uint32_t attribute_count_workers(const struct world *world, const struct lease *lease);
/* A lease begins to run: processes on the card that belong to it (their own, or nearer than the one they were under) are its
 * own from the next look on. True when there were any. */
bool attribute_take(struct world *world, const struct lease *lease);
