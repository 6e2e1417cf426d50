/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the core decides: orders to the shell, and events (decisions that need no hand). All are journalled before any of
 * them leaves the process. The absence of an action is never an order.
 */
#include <stdint.h>
#include <stdbool.h>
#include "model/hand.h"
#include "model/identity.h"
#include "model/limits.h"
#include "model/reason.h"

enum action_kind {
        ACTION_NONE,
        ACTION_READ,    /* order: look at this device now */
        ACTION_QUEUED,  /* answer to a request: it waits; why */
        ACTION_GRANTED, /* answer: reserved; why it and not another */
        ACTION_REFUSED, /* answer to a request or a call: why not, and nothing changed */
        ACTION_ACTIVE,  /* collected */
        ACTION_RENEWED,
        ACTION_WAITING,  /* what keeps an entry waiting changed */
        ACTION_DRAINING, /* ended in the books, memory still there */
        ACTION_ORPHANED,
        ACTION_ENDED,    /* gone from the books, exactly once */
        ACTION_WARNING,  /* about a lease: slot nearly over, wrong card, over-use */
        ACTION_DEVICE,   /* about a device */
        ACTION_STRANGER, /* somebody without a lease came or went */
        ACTION_EYES,
        ACTION_RESTARTED,
        ACTION_CHANGED, /* answer: priority, slot or pin of a lease are others now */
        ACTION_HAND,    /* order to the hands: @hand on @process */
        ACTION_ASKED,   /* a lease is to give its device up; its client reads that in the lease's state */
        ACTION_PARKED,
        ACTION_THAWING,
        ACTION_THAWED, /* back at work */
        ACTION_STUCK,
        ACTION_PLAN, /* a plan to take memory back begins or ends; lease_id: for whom */
        ACTION_IDLE, /* a lease holds and does nothing, or does something again; why.start_ms: since when it was idle */
        ACTION_MANAGER, /* order: @manage by the manager of the lease's work (binding.manager) */
        ACTION_ENFORCE, /* about the enforcer itself: mode, approvals, doubt; answers a call */
        ACTION_KIND_N,
};

struct action {
        uint8_t kind;      /* enum action_kind */
        uint8_t hand;      /* enum hand_verb, of an order to the hands */
        uint8_t signal;    /* of HAND_SIGNAL */
        uint8_t manage;    /* enum manager_verb, of an order to a manager */
        uint32_t device;   /* index, or UINT32_MAX */
        uint64_t id;       /* 1, 2, 3 … over the life of the journal: the event id */
        uint64_t token;    /* of the request or call it answers; 0 = nobody's */
        uint64_t lease_id; /* 0 = about no lease */
        uint32_t uid;      /* owner of the lease, or of the stranger */
        uint8_t priority;
        uint64_t bytes;          /* of the lease, or of the stranger */
        struct identity process; /* the stranger, the misplaced process, or the hands' target */
        uint64_t limit_bytes;    /* of HAND_RESTORE: the device may not use more than this before */
        uint64_t wait_ms;        /* of HAND_LOCK: how long it may take; of MANAGER_STOP: its grace, where
                                    its manager has none of its own; of READ: so long after the last one */
        bool no_stop;            /* of HAND_CHECKPOINT: it will not be stopped */
        uint64_t cgroup_id;      /* of an order to the hands: the lease's own cgroup, or 0 */
        struct reason why;
};

struct actions {
        uint32_t n;
        bool more; /* the list was full: step again with a TICK at the same time */
        struct action items[ACTIONS_MAX];
};

const char *action_kind_name(enum action_kind kind); /* "granted" … as the event stream names it */
