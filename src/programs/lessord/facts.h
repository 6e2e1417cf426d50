/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the core is told of this machine besides its cards (model/host.h): host memory, whether it is short, and whether CUDA
 * checkpoints can be had; and what the memory cgroups of processes still take. Looked at once a second while something could be
 * parked, else every ten; told when it has changed by enough to matter.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "model/host.h"
#include "senses/host.h"
#include "wire/warden.h"

struct daemon;

enum {
        FACTS_BUSY_MS = 1000,
        FACTS_CALM_MS = 10000,
        FACTS_PROCESSES_A_LOOK = 32, /* whose cgroups are read at one look; the others' turn comes */
};
#define FACTS_CHANGE_BYTES ((uint64_t) 64 << 20)

struct facts {
        uv_timer_t timer;
        bool started, told_once;
        bool calm;        /* the next look is far away */
        struct host told; /* what the core was told last */
        struct host_limits limits;
        uint32_t next_process;
        uint8_t cannot; /* enum checkpoint_cannot: what the hands found out; UNKNOWN = nothing against it */
        uint64_t noted; /* the driver that was spoken of in the log */
};

void facts_start(struct daemon *d);
/* The hands came or went, the driver, the configuration: the next look is now. */
void facts_look_soon(struct daemon *d);
/* A lease came or went: the next look is within a second. */
void facts_leases_changed(struct daemon *d);
/* An order of the hands ended so. */
void facts_heard(struct daemon *d, enum warden_why why);
/* struct process.room_bytes */
uint64_t facts_room_of(const struct daemon *d, uint32_t pid);
void facts_stop(struct daemon *d);
