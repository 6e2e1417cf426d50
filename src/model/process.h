/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Facts about processes that were seen with device memory, and what they have where. The facts come once, at first sight;
 * the memory comes with each reading.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/identity.h"
#include "model/limits.h"
#include "model/park.h"
#include "model/ref.h"

enum { COMM_MAX = 16 };

enum process_state {
        PROCESS_LIVE,
        PROCESS_UNCONFIRMED, /* known from before the eyes or the daemon came back; its end may have been missed */
        PROCESS_ENDED,       /* its pidfd says so; stays until the device does not list it any more */
};

struct process {
        struct identity identity;
        uint8_t state; /* enum process_state */
        uint32_t uid;
        uint32_t ppid;
        uint64_t cgroup_id;    /* inode of its cgroup v2 folder; 0 = unknown */
        uint64_t term_ms;      /* its lease is being ended: when it was sent SIGTERM; 0 = not */
        uint64_t kill_ms;      /* and SIGKILL */
        uint8_t member;        /* enum member_step: how far it is off its device */
        uint64_t order_id;     /* the order to the hands that is out for it; 0 = none */
        uint64_t device_bytes; /* what it had on its device when it was locked */
        uint64_t parked_bytes; /* by how much it grew in host memory */
        uint64_t room_bytes;   /* what its memory cgroup can still take; UINT64_MAX = no limit, 0 = unknown */
        uint64_t program;      /* a number for the file it runs (device, inode); 0 = unknown */
        uint32_t n_ancestors;
        struct identity ancestors[ANCESTORS_MAX]; /* parent first */
        struct ref lease;                         /* once attributed it stays so, also when it is re-parented */
        char comm[COMM_MAX];                      /* as the kernel has it, any bytes; NUL-terminated here */
};

/* Under another lease it has not been asked to end. */
static inline void process_put_under(struct process *p, struct ref lease)
{
        if (ref_equal(p->lease, lease))
                return;
        p->lease = lease;
        p->term_ms = p->kill_ms = 0;
}

enum row_flags {
        ROW_USED_KNOWN = 1 << 0,
        ROW_COMPUTE = 1 << 1,
        ROW_GRAPHICS = 1 << 2,
        ROW_MPS = 1 << 3,
        ROW_GHOST = 1 << 4, /* the driver lists a pid that /proc does not have */
};

/* One line of a reading, and one (process, device) pair in the world. Sorted by (device, pid, start). */
struct occupancy {
        struct identity identity; /* start 0 for a ghost */
        uint64_t used_bytes;
        uint32_t device;
        uint32_t flags; /* enum row_flags */
        struct ref holder;
};
