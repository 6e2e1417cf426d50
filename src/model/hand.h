/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the hands are ordered to do with a process, and what came of it. The hands check each order themselves. */
#include <stdint.h>

enum hand_verb {
        HAND_NONE,
        HAND_SIGNAL,    /* one process, by its pidfd */
        HAND_KILL_TREE, /* everything in the lease's own cgroup; without one, the process alone */
        HAND_FREEZE,
        HAND_THAW,
        HAND_LOCK, /* CUDA checkpoint (design 4.4): no new work begins, what was begun ends; within action.wait_ms */
        HAND_CHECKPOINT,
        HAND_STOP,    /* SIGSTOP: only what is checkpointed */
        HAND_RESTORE, /* a last look at the card, SIGCONT, restore; the process stays locked */
        HAND_UNLOCK,
        HAND_HOLD, /* a lock in place, memory kept */
        HAND_VERB_N,
};

enum outcome {
        OUTCOME_NONE,
        OUTCOME_DONE,
        OUTCOME_BLOCKED, /* could not be tried: nothing is known against the process, try again later */
        OUTCOME_FAILED,  /* was tried and went wrong */
        OUTCOME_N,
};

/* Why an order was not done, as the hands, the link to them, and managers say it. */
enum hand_why {
        HAND_WHY_NONE,
        HAND_WHY_AWAY,      /* no hands to be had just now */
        HAND_WHY_GONE,      /* the process has ended: what was wanted */
        HAND_WHY_PROTECTED, /* may never be a target */
        HAND_WHY_OWNER,     /* is not the owner's process */
        HAND_WHY_GRACE,     /* was not given its grace */
        HAND_WHY_RATE,      /* too many orders at once */
        HAND_WHY_KERNEL,    /* this kernel cannot do it safely */
        HAND_WHY_UNKILLABLE,
        HAND_WHY_OTHER,
        HAND_WHY_LOCK_TIMEOUT, /* a kernel runs on the device: undone */
        HAND_WHY_HEADROOM,     /* the last look before a restore: too little is free there, or nobody knows */
        HAND_WHY_CANNOT,       /* the driver, the program or the machine cannot */
        HAND_WHY_STATE,        /* the record says that it is not at that step */
        HAND_WHY_PARKED,       /* it is checkpointed: brought back first, or it hangs the driver */
        HAND_WHY_MEMORY,       /* host memory would not do */
        HAND_WHY_DRIVER,       /* the driver's call failed: final */
        HAND_WHY_LOST,         /* the hands ended in the middle: what was done is not known */
        /* of a manager (model/manager.h) */
        HAND_WHY_MANAGER_AWAY, /* nobody to be asked: no bus, no engine, or it does not answer */
        HAND_WHY_FORBIDDEN,    /* it does not let us */
        HAND_WHY_NO_WAY_BACK,  /* what is stopped could not be started again, so it is not stopped */
        HAND_WHY_MANAGER_FAILED,
        HAND_WHY_RUNS_AGAIN, /* it was stopped, and was started by somebody else at once */
        HAND_WHY_N,
};

const char *hand_verb_name(enum hand_verb verb);
const char *outcome_name(enum outcome outcome);
const char *hand_why_name(enum hand_why why); /* "protected" */
const char *hand_why_text(enum hand_why why); /* for people */
