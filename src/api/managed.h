/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who runs what is in a cgroup: a unit of systemd, or a container. From the kernel's name of the cgroup alone, never from what a
 * client says; only where everything above it is a slice, or an engine's folder, so that whoever was given a cgroup to divide cannot make
 * one that passes for somebody's unit. Pure over text.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/manager.h"

struct managed {
        struct manager manager;
        bool of_user; /* below a person's own service manager: who could have made it up, so it is that person's and nobody else's */
        uint32_t user_uid; /* whose */
};

/* False: nobody who could be asked (a scope, a login session, a folder of unknown kind). */
bool managed_of_cgroup(const char *cgroup_path, struct managed *ret);
