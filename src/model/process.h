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

/* Why it may never be a target, whatever else is known of it. */
enum process_guard {
        GUARD_NONE,
        GUARD_INIT,    /* pid 1 */
        GUARD_KERNEL,  /* a kernel thread */
        GUARD_LESSOR,  /* lessor's own, or who started it */
        GUARD_DISPLAY, /* a display server, a compositor, or another program of the protected list */
        GUARD_SSHD,    /* what people log in by */
        GUARD_FOREIGN, /* its number is of a pid namespace that is not ours */
        GUARD_UNSEEN,  /* whose it is, or what it runs, could not be seen */
        GUARD_N,
};

/* What its program is told to run, as far as that is known. By the process's own command line, so it makes an approval narrower only. */
enum process_runs {
        RUNS_UNKNOWN, /* its program is an interpreter, or may be one, and what it runs could not be seen */
        RUNS_PROGRAM, /* nothing: its program is no interpreter */
        RUNS_SCRIPT,  /* the file @script */
        RUNS_COMMAND, /* a module, or code on its command line, which is @command */
        RUNS_N,
};

/* How the step from a process to its parent is known. */
enum process_link {
        LINK_PARENT,    /* both lived, and the kernel named the one as the other's parent */
        LINK_EVENT,     /* the kernel told of the fork when it happened */
        LINK_ACCOUNTED, /* the kernel's record of a process that ended names its parent (acct(2)) */
        LINK_TOKEN,     /* records leave a few to choose from; the token, which the same user gave it, tells which */
        LINK_SESSION,   /* it lives in the session that the other began: nobody joins one, it is inherited */
        LINK_N,
};

/* By what a process came under its lease. */
enum attributed_by {
        ATTRIBUTED_NOT,
        ATTRIBUTED_ROOT,     /* it is what the lease is bound to */
        ATTRIBUTED_CGROUP,   /* it lives in the lease's cgroup */
        ATTRIBUTED_ANCESTOR, /* it descends from what the lease is bound to */
        ATTRIBUTED_TOKEN,    /* it descends from several leases; its token tells which */
        ATTRIBUTED_ADOPTED,  /* a person named it */
        ATTRIBUTED_RECORD,   /* a record of the hands names it: it was parked */
        ATTRIBUTED_N,
};

struct process {
        struct identity identity;
        uint8_t state; /* enum process_state */
        uint32_t uid;
        uint32_t ppid;
        uint64_t cgroup_id;            /* inode of its cgroup v2 folder; 0 = unknown */
        uint64_t term_ms;              /* its lease is being ended: when it was sent SIGTERM; 0 = not */
        uint64_t kill_ms;              /* and SIGKILL */
        uint8_t member;                /* enum member_step: how far it is off its device */
        uint64_t order_id;             /* the order to the hands that is out for it; 0 = none */
        uint64_t device_bytes;         /* what it had on its devices when it was locked */
        uint64_t part_bytes[GANG_MAX]; /* of that, on each device of its lease, in the order of its parts */
        uint64_t parked_bytes;         /* by how much it grew in host memory */
        uint64_t room_bytes;           /* what its memory cgroup can still take; UINT64_MAX = no limit, 0 = unknown */
        uint64_t program;              /* a number for the file it runs (device, inode); 0 = unknown */
        uint64_t script;               /* the same for the script that an interpreter runs; 0 = not RUNS_SCRIPT */
        uint64_t command;              /* a number for its whole command line; 0 = unknown */
        uint64_t place;                /* a number for the unit or container it runs in; 0 = none, or unknown */
        uint64_t seen_ms;              /* when the core first heard of it */
        uint64_t token_id; /* the lease that its token names: its own word, which chooses among proven ones; 0 = none */
        uint8_t guard;     /* enum process_guard: never a target */
        uint8_t runs;      /* enum process_runs */
        uint8_t attributed_by; /* enum attributed_by, of @lease */
        uint32_t n_ancestors;
        struct identity ancestors[ANCESTORS_MAX]; /* parent first */
        uint8_t links
                [ANCESTORS_MAX]; /* enum process_link: how the step to ancestors[i], from whom stands before, is known */
        struct ref lease;        /* once attributed it stays so, also when it is re-parented */
        char comm[COMM_MAX];     /* as the kernel has it, any bytes; NUL-terminated here */
};

/* Under another lease it has not been asked to end. @by: enum attributed_by. */
static inline void process_put_under(struct process *p, struct ref lease, uint8_t by)
{
        if (ref_equal(p->lease, lease))
                return;
        p->lease = lease;
        p->attributed_by = by;
        p->term_ms = p->kill_ms = 0;
}

enum row_flags {
        ROW_USED_KNOWN = 1 << 0,
        ROW_COMPUTE = 1 << 1,
        ROW_GRAPHICS = 1 << 2,
        ROW_MPS = 1 << 3,
        ROW_GHOST = 1 << 4, /* the driver lists a pid that /proc does not have */
        /* What it did over the last whole interval in which that was watched; neither: unknown, which is never idle. */
        ROW_WORKED = 1 << 5,
        ROW_RESTED = 1 << 6, /* no work of it on the device, and none on a CPU */
};

/* One line of a reading, and one (process, device) pair in the world. Sorted by (device, pid, start). */
struct occupancy {
        struct identity identity; /* start 0 for a ghost */
        uint64_t used_bytes;
        uint32_t device;
        uint32_t flags; /* enum row_flags */
        struct ref holder;
};

/* Words for logs and JSON ("accounted", "display"); never NULL. */
const char *process_guard_name(enum process_guard guard);
const char *process_runs_name(enum process_runs runs);
const char *process_link_name(enum process_link link);
const char *attributed_by_name(enum attributed_by by);
