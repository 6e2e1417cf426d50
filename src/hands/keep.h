/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parked processes and signals: who is parked gets none, and who was restored once is checkpointed before it is killed (wire/warden.h). */
#include "wire/parked.h"
#include "wire/warden.h"

/* Calls @each for the record of each process that a signal, freeze, thaw or kill would reach, as parked_each() does. */
int keep_each(int parked, int cgroup_root, const struct warden_order *order, parked_fn each, void *ctx);

/* Restored once, and with its memory on the device. */
bool keep_needs_checkpoint(const struct record *record);

/* NONE: nothing is in the way, but for a checkpoint where @ret_checkpoint_first. PARKED; RECORD: a record that cannot be read. */
enum warden_why keep_check(int parked, int cgroup_root, const struct warden_order *order, bool *ret_checkpoint_first);
