/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the kernel asks before a process opens a device: one small program, attached to the gated cgroups beside whatever others
 * are attached there (all of them must agree), and three tables that it reads.
 *
 *   a character device, opened (mknod passes), of a major in the table?   no: pass
 *   by a user below `users_from`?                                         pass
 *   its cgroup is in the table, or one around it is with all below it?    pass
 *   else counted, and refused with EPERM; in GATE_LOG it passes all the same
 *
 * Nothing is pinned: when this process ends, the kernel takes the program off, and everybody passes. What is open stays open.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "gate/conf.h"

enum {
        FENCE_PASSES_MAX = 16384,
        FENCE_EXACT = 1, /* who is in the cgroup itself */
        FENCE_BELOW = 2, /* and below it */
};

struct fence {
        int passes, devices, counts; /* maps; -1 = none */
        int links[GATE_CGROUPS_MAX]; /* -1 = none */
        enum gate_mode mode;         /* as it is in force */
};

/* The tables. -EPERM, -ENOSYS, …: this kernel, or this sandbox, has no such thing. */
int fence_init(struct fence *fence, struct error *err);
/*
 * In front of these cgroups, folders that are open; no longer in front of others. All or nothing: what was in force stays until
 * the new one is. GATE_OFF: nowhere.
 */
int fence_set(struct fence *fence, enum gate_mode mode, uint32_t users_from, const int *folders, size_t n,
              struct error *err);
/* @how: FENCE_…; 0 = not any more. Negative errno. */
int fence_pass(struct fence *fence, uint64_t cgroup_id, uint64_t how);
/* These majors and no others. */
void fence_set_devices(struct fence *fence, const uint32_t *majors, size_t n);
void fence_counts(const struct fence *fence, uint64_t *ret_refused, uint32_t *ret_last_uid);
