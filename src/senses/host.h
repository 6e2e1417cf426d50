/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Host memory as the kernel tells it: how much there is, whether it is short, and what a process's memory cgroup still takes
 * (failures F10). host_parse_* are pure over bytes; what they do not understand is -EBADMSG, what is not in it -ENOENT.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "senses/process.h"

enum {
        HOST_PRESSURE_PERCENT = 10, /* memory is short once somebody waited for it so much of the last ten seconds */
        HOST_RELIEF_PERCENT = 5,    /* and no longer below this: it does not flutter */
};
#define HOST_NO_LIMIT UINT64_MAX

struct host_memory {
        uint64_t total_bytes, available_bytes;
};

/* /proc/meminfo: both figures, or none. */
int host_parse_meminfo(const void *text, size_t n, struct host_memory *ret);
/* The `some` line of /proc/pressure/memory, avg10, in thousandths of a percent. */
int host_parse_pressure(const void *text, size_t n, uint64_t *ret_milli);
/* Was it short, is it short? Where the kernel says nothing (@known false) there is no signal. */
bool host_is_short(bool was, bool known, uint64_t some_milli);
/* memory.max, memory.current and their v1 names: a number, or "max". What v1 has for "no limit" becomes HOST_NO_LIMIT. */
int host_parse_limit(const void *text, size_t n, uint64_t *ret_bytes);
/* The path of a process below the v1 hierarchy that has the memory controller: "4:cpu,memory:/docker/x". */
int host_parse_cgroup_v1(const void *text, size_t n, char *ret_path, size_t path_size);
/* First mount of that hierarchy; as proc_parse_cgroup_mount(). */
int host_parse_mount_v1(const void *text, size_t n, char *ret_point, char *ret_root, size_t each_size);

/* Where the memory limits of this machine are; found once. */
struct host_limits {
        bool v1_known, v2_known;
        char v1_point[EYES_PATH_SIZE], v1_root[EYES_PATH_SIZE];
        char v2_point[EYES_PATH_SIZE], v2_root[EYES_PATH_SIZE];
};

void host_limits_find(struct host_limits *ret, const char *proc_root);
int host_read_memory(const char *proc_root, struct host_memory *ret);
/* -ENOENT, -EOPNOTSUPP: a kernel without, or with it switched off. */
int host_read_pressure(const char *proc_root, uint64_t *ret_milli);
/*
 * What the memory cgroup of @pid and all above it still take: the least of max - current. HOST_NO_LIMIT: no limit anywhere;
 * 0: unknown (the process is gone, or its cgroup cannot be read); 1: nothing.
 */
uint64_t host_room_of(const struct host_limits *limits, const char *proc_root, uint32_t pid);
