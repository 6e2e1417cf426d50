/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cgroup of a lease: a folder that `lessor run` made (its name begins with "lessor-"), found by its inode on the way from
 * a process up. Never a folder in which anybody else lives: a whole session was killed for one process once (failures F52).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "hands/target.h"
#include "wire/warden.h"

/* The folder with the inode @cgroup_id among those that @t is in, if lessor made it for @owner. */
enum warden_why cgroup_find(int root, const struct target *t, uint64_t cgroup_id, uid_t owner, int *ret_fd);
/* Lets go on whatever lessor froze of @owner's that @t is in. */
void cgroup_thaw_above(int root, const struct target *t, uid_t owner);

/* Calls @each for each process in it and below until one answers something else than NONE, which is returned;
 * WARDEN_WHY_SYSTEM with errno where they cannot be listed, with ETIME where that is not through in @most_ms. */
enum warden_why cgroup_each(int folder, uint32_t most_ms, enum warden_why (*each)(void *ctx, uint32_t pid), void *ctx);
