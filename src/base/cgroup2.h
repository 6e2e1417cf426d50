/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files of cgroup version 2: which folder is meant, and by what right, is its users' matter. */
#include <stdbool.h>
#include <stdint.h>

/* The v2 hierarchy, also beside v1 ones; -1 = none here. */
int cgroup2_open_root(void);
/* A folder below @root ("a/b"): step by step, no step through a link or up, which is what openat2(2) would do, on any kernel. -1 = none. */
int cgroup2_open(int root, const char *path);

/* One value into one of its files ("cgroup.freeze", "1"); 0 or a negative errno. */
int cgroup2_write(int folder, const char *file, const char *value);
bool cgroup2_has_kill(int folder);
/* Waits until "populated" or "frozen" of cgroup.events has @value, @wait_ms at most; 1 yes, 0 no, or a negative errno. */
int cgroup2_wait(int folder, const char *event, char value, uint32_t wait_ms);
