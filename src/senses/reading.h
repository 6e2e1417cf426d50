/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One look at one device: total, list, total; judged by plain sanity before anybody sees it (failures F17, F21).
 * The rows carry pids only; who they are is found out afterwards (watcher.c).
 */
#include <stddef.h>
#include <stdint.h>
#include "senses/gpu.h"
#include "wire/eyes.h"

enum { READING_RETRIES = 3 }; /* looks beyond the first while the two totals disagree */

/*
 * reading_take - look at one device
 * @ret       everything but request_id, rows' identities; per_process_valid false leaves n_rows = 0 and rows_taken_ms = 0:
 *            the caller puts the last good rows there
 * @why       words for an alarm when something was rejected, else ""
 *
 * taken_ms is CLOCK_MONOTONIC just after the second total. used = total - free, never the driver's own "used".
 */
void reading_take(const struct gpu_ops *ops, void *gpu, const char *uuid, struct eyes_reading *ret,
                  char why[EYES_ALARM_SIZE]);

/*
 * reading_merge - the driver's entries as rows: one a pid, ascending, largest figure (a pid in the compute and in the
 * graphics list shows the same memory twice: never the sum), flags or-ed. Reorders @listed.
 * @total_bytes  0 = unknown: figures are not held against it
 * -EBADMSG with words in @why: a pid that cannot be one, twice in one list, more memory than the device has, too many rows.
 */
int reading_merge(struct gpu_listed *listed, size_t n_listed, uint64_t total_bytes, struct eyes_reading *ret,
                  char why[EYES_ALARM_SIZE]);
