/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a parked process costs the host, and what is done there so that it stays alive. */
#include <stdbool.h>
#include <stdint.h>
#include "hands/target.h"
#include "wire/record.h"

/* Its anonymous, shared and swapped-out memory: where device memory goes. False: not to be seen. */
bool host_bytes_of(uint32_t pid, uint64_t *ret);

/* Stopped by whomever, or in a frozen cgroup: the driver's thread inside it does not answer. */
bool host_stands_still(int cgroup_root, uint32_t pid);
/* The second half of that. */
bool host_is_frozen(int cgroup_root, uint32_t pid);
/* Waits until it is stopped, or no longer is. False: not in time. */
bool host_wait_stopped(uint32_t pid, bool stopped, uint32_t wait_ms);

/*
 * The OOM killer goes for the largest, which a parked process often is. host_oom_look() notes the old value in @record (nothing
 * where it cannot be read, or stands there already); host_oom_protect() lowers it as far as we may, host_oom_put_back() is the opposite and clears the note.
 */
void host_oom_look(struct record *record);
void host_oom_protect(const struct record *record, int pidfd);
void host_oom_put_back(struct record *record, int pidfd);
