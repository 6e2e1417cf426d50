/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which cgroup a lease means, and whether it may be let through: looked at here, whatever the brain says of it. A cgroup is named
 * by the inode of its folder, which is also what the kernel calls it.
 */
#include <stdbool.h>
#include <stdint.h>
#include "gate/conf.h"
#include "wire/gate.h"

/* The folder with that inode, below @root (of the hierarchy); -1 with errno (ESTALE: it is gone). */
int place_open_id(int root, uint64_t cgroup_id);
/* Of a folder that is open: "user.slice/x.scope", "" for @root itself. False: outside of what is to be seen here. */
bool place_path(int root, int folder, char ret[1024]);
/* Inodes of this folder and of each around it, the root not among them. */
size_t place_around(int root, const char *path, uint64_t *ret, size_t max);

struct gate_place {
        uint64_t cgroup_id;
        uint64_t how; /* FENCE_… */
        bool covered; /* in a cgroup that is gated */
};

/*
 * GATE_WHY_NONE: @ret may pass.
 *   with a cgroup_id   that folder with all below it: it is that user's (lessor run makes it as him), or
 *                      the lease's process is in it
 *   else               the folder in which the lease's process is, without those below it
 */
enum gate_why place_find(int root, const struct gate_conf *conf, const struct gate_allow *allow,
                         struct gate_place *ret);
