/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The keeper of the gate: what is in force, from what the brain asks, what the file allows, and what is looked at here. It knows no
 * sockets (serve.h).
 */
#include <stdint.h>
#include "gate/always.h"
#include "gate/conf.h"
#include "gate/fence.h"
#include "gate/table.h"
#include "wire/gate.h"

struct keeper {
        const char *config; /* path of lessord.conf */
        int root;           /* of the hierarchy; -1 = no cgroup v2 */
        int no_fence;       /* errno: the kernel has no such thing, or does not permit it; 0 = it does */
        struct gate_conf conf;
        struct fence fence;
        struct table table;
        struct always always;
        enum gate_mode wanted;               /* by the brain, and allowed; what is in force may lag behind */
        uint64_t standing[GATE_CGROUPS_MAX]; /* inodes of the cgroups that the fence stands in front of */
        size_t n_standing;
};

/* With the kernel's tables made: before rights are given up. */
void keeper_init(struct keeper *k, const char *config, const char *sessions);
void keeper_allow(struct keeper *k, const struct gate_allow *allow, struct gate_answer *ret);
void keeper_forget(struct keeper *k, uint64_t lease_id);
/* The brain came: leases that it does not name again before its SET are forgotten then. */
void keeper_greet(struct keeper *k);
void keeper_set(struct keeper *k, enum gate_mode mode, uint64_t now_ms, struct gate_answer *ret);
/* Modules come with their devices, cgroups go and come again: looked at now. */
void keeper_look(struct keeper *k, uint64_t now_ms);
void keeper_state(const struct keeper *k, struct gate_state *ret);
/* Nobody says any more who may pass: everybody does. */
void keeper_open(struct keeper *k, const char *why);
