/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The messages between the daemon ("brain") and lessor-warden ("hands", design 3.2), over one SOCK_SEQPACKET socket: one
 * message per datagram, each kind of one fixed size but for a LOOK and its answer, which end with a path; no other text but the
 * program's version in HELLO.
 *
 *   both ways       HELLO    first message of each side, once, sent without waiting for the other's. Its layout never changes,
 *                            so that two versions can name each other; then the hands hang up
 *   brain -> hands  ORDER    do this to that process, once
 *                   SETTLED  what came of this order is in the brain's journal: forget it
 *                   PING     answer with a STATE
 *   hands -> brain  OUTCOME  what came of an order
 *                   HELD     this order is being carried out by a helper; its OUTCOME follows
 *                   STATE    the answer to a PING; and, with nonce 0, the end of what is told after a HELLO
 *
 * What the brain may rely on:
 *  - After the HELLOs come a HELD for each order that a helper carries out and an OUTCOME for each that ended and was not
 *    SETTLED, also from before a restart of the hands; then STATE. An order of before that is not among them is lost: whether
 *    it was carried out is not known.
 *  - An ORDER is answered by one OUTCOME, sooner or later. With `kept` set it comes again after each HELLO until SETTLED;
 *    the others are said once. The same order id twice while the first is held is answered by HELD.
 *  - LOOK asks for what only the hands may see: which program another user's process runs, and, with a path, which regular file that
 *    process means by it. It goes by that user and the identity, and counts with the steps of parking. The answer has the program's
 *    path. The hands do not read command lines (what lies behind one can be made to never answer), and look for the file in what the
 *    kernel has in memory alone.
 *  - The hands check every order themselves (hands/policy.h); BLOCKED means that nothing was done, FAILED that something
 *    was tried. `why` is for programs, warden_why_words() for people.
 *  - Anything malformed, unknown or out of place ends the connection; nothing of it is done.
 *
 * Parking (LOCK … HOLD, one process each; the brain orders them for a tree):
 *
 *   park    LOCK all, CHECKPOINT all, STOP all             hold    HOLD
 *   thaw    RESTORE all, UNLOCK all (the other way round)  let go  UNLOCK; UNLOCK after LOCK cancels it
 *
 *  - Each step is written into the process's record (wire/record.h) before it is taken and after it. A verb that the record
 *    does not allow is BLOCKED with STATE. The record outlives the brain and the hands; what it says is how things stand.
 *  - BLOCKED: nothing has changed; LOCK_TIMEOUT too is undone. FAILED of CHECKPOINT and RESTORE is final (all later verbs:
 *    FINAL). FAILED of LOCK, HOLD, UNLOCK, STOP and CONT: the record tells where it stands.
 *  - A call of the driver that does not return is never interrupted: its order stays HELD, whoever restarts meanwhile.
 *  - Sixteen orders at most are carried out by helpers at a time, all verbs together; one more is BUSY. RATE counts steps of parking
 *    apart (by default 640 at once, 200 a second).
 *  - What is parked is not signalled (PARKED). SIGKILL or KILL_TREE of who was restored once locks and checkpoints it first
 *    (drivers are known to hang otherwise); where that is BLOCKED nobody is killed.
 *  - HOLD is let go by the hands themselves when they have had no brain for WARDEN_ALONE_MS. What is parked stays parked.
 *
 * encode and decode keep the promises of wire/eyes.h: any bytes are safe; what is accepted is written again to the same bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum {
        WARDEN_VERSION = 3,
        WARDEN_MESSAGE_MAX = 768,
        WARDEN_PATH_SIZE = 512,   /* with its NUL */
        WARDEN_PROGRAM_SIZE = 32, /* "0.1.0", with its NUL */
        WARDEN_UUID_SIZE = 16,    /* of a device, binary: "GPU-1234…" is 0x12 0x34 … */
        WARDEN_DEADLINE_MOST_MS = 3600000,
        WARDEN_ALONE_MS = 2000,
};

enum warden_kind {
        WARDEN_NOTHING, /* 0 is no message */
        WARDEN_HELLO,
        WARDEN_ORDER,
        WARDEN_OUTCOME,
        WARDEN_SETTLED,
        WARDEN_HELD,
        WARDEN_PING,
        WARDEN_STATE,
        WARDEN_KIND_N,
};

enum warden_verb {
        WARDEN_VERB_NONE,
        WARDEN_SIGNAL,    /* one signal to one process */
        WARDEN_FREEZE,    /* the cgroup, else the one process: until it stands still */
        WARDEN_THAW,      /* the opposite */
        WARDEN_KILL_TREE, /* SIGKILL to all of the cgroup, else to the one process: until nobody is left */
        /* from here on parking, one process each */
        WARDEN_LOCK,       /* its CUDA calls wait; `deadline_ms` is what running kernels get to drain */
        WARDEN_CHECKPOINT, /* device memory → its own host memory. Of who is locked */
        WARDEN_RESTORE, /* the way back, after a look at the device; locked afterwards. Of who is checkpointed or stopped */
        WARDEN_UNLOCK, /* it goes on. Of who is locked or held */
        WARDEN_STOP,   /* SIGSTOP. Of who is checkpointed */
        WARDEN_CONT,   /* SIGCONT. Of who is stopped */
        WARDEN_HOLD,   /* LOCK, to stay so with its memory where it is */
        /* to here */
        WARDEN_LOOK, /* which file it runs, and which it means by a path; answered at once, and nothing is done to it */
        WARDEN_VERB_N,
};

static inline bool warden_verb_parks(enum warden_verb verb)
{
        return verb >= WARDEN_LOCK && verb <= WARDEN_HOLD;
}

enum warden_result { WARDEN_DONE, WARDEN_BLOCKED, WARDEN_FAILED, WARDEN_RESULT_N };

/* Why not. Order and names are part of the wire format: append only. */
enum warden_why {
        WARDEN_WHY_NONE,              /* done */
        WARDEN_WHY_GONE,              /* no such process, or dead */
        WARDEN_WHY_RECYCLED,          /* the pid is somebody else's by now */
        WARDEN_WHY_UNSEEN,            /* it lives, but who it is cannot be seen */
        WARDEN_WHY_OTHER_OWNER,       /* its real uid is not the order's owner */
        WARDEN_WHY_UID_NOT_ALLOWED,   /* the configuration lets nobody signal that owner's processes */
        WARDEN_WHY_PROTECTED_INIT,    /* pid 1 */
        WARDEN_WHY_PROTECTED_KERNEL,  /* a kernel thread */
        WARDEN_WHY_PROTECTED_LESSOR,  /* the hands, the brain, or who started them */
        WARDEN_WHY_PROTECTED_PROGRAM, /* its program is on the protected list */
        WARDEN_WHY_VERB,              /* these hands do not know that verb */
        WARDEN_WHY_SIGNAL,            /* not one of the signals they send */
        WARDEN_WHY_NO_GRACE,          /* SIGKILL without a SIGTERM long enough ago */
        WARDEN_WHY_RATE,              /* too many orders at once */
        WARDEN_WHY_BUSY,              /* a helper already works on that process or cgroup, or all helpers are busy */
        WARDEN_WHY_NO_CGROUP,         /* no cgroup v2 here, or the folder cannot be opened */
        WARDEN_WHY_CGROUP_NOT_MEMBER, /* the process is not in that cgroup */
        WARDEN_WHY_CGROUP_NOT_OURS,   /* not a folder that lessor made, or not of that owner */
        WARDEN_WHY_CGROUP_HAS_OTHERS, /* somebody lives in it who may not be signalled */
        WARDEN_WHY_KERNEL_TOO_OLD,    /* no pidfd_open or pidfd_send_signal */
        WARDEN_WHY_SYSTEM,            /* a system call failed: errno says which way */
        WARDEN_WHY_UNKILLABLE,        /* lives after three SIGKILLs */
        WARDEN_WHY_NOT_FROZEN,        /* did not stand still in time; was thawed again */
        WARDEN_WHY_LOST,              /* hands or helper ended in the middle: what was done is not known */
        WARDEN_WHY_AWAY,              /* the brain's own: there are no hands at the moment */
        /* parking, BLOCKED */
        WARDEN_WHY_STATE,        /* what is recorded of it does not allow that verb */
        WARDEN_WHY_PARKED,       /* a signal, and it is parked */
        WARDEN_WHY_FINAL,        /* an earlier step failed for good: nothing is tried any more */
        WARDEN_WHY_RECORD,       /* its record is damaged, or could not be written (errno) */
        WARDEN_WHY_STANDS_STILL, /* somebody stopped or froze it: the driver would wait for it for ever */
        WARDEN_WHY_LOCK_TIMEOUT, /* a kernel did not drain; it runs on */
        WARDEN_WHY_DEVICE,       /* RESTORE: not the device it was parked from */
        WARDEN_WHY_HEADROOM, /* RESTORE: more is used on the device than `used_at_most_bytes`, or not known how much */
        WARDEN_WHY_CANNOT_MACHINE,   /* checkpoints exist on x86_64 only */
        WARDEN_WHY_CANNOT_LIBRARY,   /* no libcuda.so.1 */
        WARDEN_WHY_CANNOT_DRIVER,    /* older than 570 (CUDA 12.8) */
        WARDEN_WHY_CANNOT_PROCESS,   /* 1: no process with CUDA */
        WARDEN_WHY_CANNOT_INIT,      /* 3: not initialised, also after cuInit */
        WARDEN_WHY_CANNOT_PERMITTED, /* 800 */
        WARDEN_WHY_CANNOT_SUPPORTED, /* 801 */
        /* parking, FAILED */
        WARDEN_WHY_DRIVER,    /* the driver tried and failed: `driver_code` */
        WARDEN_WHY_NO_EFFECT, /* it said that it was done, and its state says otherwise */
        WARDEN_WHY_N,
};

enum {
        WARDEN_CAN_CGROUP = 1 << 0,      /* there is a cgroup v2 hierarchy */
        WARDEN_CAN_CGROUP_KILL = 1 << 1, /* with cgroup.kill */
        WARDEN_CAN_CHECKPOINT =
                1 << 2, /* they have the program for it, on a machine for it; says nothing of the driver */
        WARDEN_CAN_ALL = (1 << 3) - 1,
};

/* What a record remembers for whoever reads it; the hands themselves do nothing by them. */
enum {
        WARDEN_FLAG_NO_STOP = 1 << 0, /* is not stopped while parked */
        WARDEN_FLAG_FILLER = 1 << 1,
        WARDEN_FLAG_ALL = (1 << 2) - 1,
};

struct warden_hello {
        uint32_t version;                  /* WARDEN_VERSION of the sender */
        char program[WARDEN_PROGRAM_SIZE]; /* its program's version, printable ASCII */
};

struct warden_order {
        uint64_t order_id;     /* not 0 */
        enum warden_verb verb; /* not NONE */
        uint32_t signal;       /* 1 … 64 for SIGNAL, else 0 */
        uint32_t pid;          /* not 0; with the next two: who was audited */
        uint64_t start_ticks;
        uint64_t
                pidfd_inode; /* st_ino of a pidfd of it; 0 = not known. Unique since Linux 6.9, else the same for all */
        uint32_t owner_uid;
        uint64_t cgroup_id; /* inode of the folder the process is in or below; 0 = only the one process */
        uint32_t reason;    /* the core's rule, for the log */
        /* parking only, else all 0 */
        uint8_t device_uuid[WARDEN_UUID_SIZE]; /* LOCK, HOLD, RESTORE: not 0 */
        uint64_t lease_id;                     /* for the record */
        uint64_t bytes;                        /* its device memory, for the record */
        uint64_t
                used_at_most_bytes; /* RESTORE: used (total - free) of the device must not be above it at the last look */
        uint32_t deadline_ms;       /* LOCK, HOLD: not 0; others: ignored */
        uint32_t flags;             /* WARDEN_FLAG_… */
};

struct warden_answer {
        uint64_t order_id;
        enum warden_result result;
        enum warden_why why; /* NONE exactly when done */
        int32_t error;       /* errno behind it, 0 = none */
        bool kept;           /* the hands remember it until SETTLED */
        /* parking, else 0 */
        uint32_t driver_code; /* CUresult of the call that decided, 0 = success, or none was made */
        uint64_t host_bytes;  /* CHECKPOINT: by how much the process's host memory really grew */
        uint32_t duration_ms; /* of the driver's call; saturates */
        /* DONE of LOOK, else 0: the file that it runs; dev alone where its inode is not known */
        uint64_t program_dev, program_inode;
        uint64_t file_dev, file_inode; /* of the path that was asked about; 0 = none, or not seen */
};

struct warden_state {
        uint64_t nonce; /* of the PING; 0 = after HELLO */
        uint32_t n_running;
        uint32_t can; /* WARDEN_CAN_… */
};

struct warden_message {
        enum warden_kind kind; /* which of these is meant */
        union {
                struct warden_hello hello;
                struct warden_order order;
                struct warden_answer outcome;
                struct warden_state state;
                uint64_t order_id; /* SETTLED, HELD; not 0 */
                uint64_t nonce;    /* PING; not 0 */
        };
        /* LOOK: what the process calls a file, "" = nothing is asked. Its answer: what the link to its program says, "" = longer. Any
         * bytes; "" for all other messages. */
        char path[WARDEN_PATH_SIZE];
};

int warden_encode(const struct warden_message *msg, void *buf, size_t buf_size, size_t *ret_n, struct error *err);
/* A HELLO of any version is accepted; anything else of another version is -EPROTONOSUPPORT. */
int warden_decode(const void *data, size_t n_data, struct warden_message *ret, struct error *err);

/* Words for logs and JSON ("kill_tree", "no_grace"); never NULL. */
const char *warden_kind_name(enum warden_kind kind);
const char *warden_verb_name(enum warden_verb verb);
const char *warden_result_name(enum warden_result result);
const char *warden_why_name(enum warden_why why);
/* The same for a person: "its program is on the protected list". */
const char *warden_why_words(enum warden_why why);
