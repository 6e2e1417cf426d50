/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is remembered of strangers: processes with device memory that are under no lease (design 4.7). A row of the audit begins when
 * one has kept more than the threshold for a while, and stays for a day after it is gone: "what would have been done" is read
 * from it. Approvals say whose program may stay without a lease.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/identity.h"
#include "model/limits.h"
#include "model/process.h"

enum enforce_mode {
        ENFORCE_OBSERVE, /* say what would be done, and do nothing */
        ENFORCE_WARN,    /* and tell their owners */
        ENFORCE_ENFORCE, /* notice, SIGTERM, grace, SIGKILL */
        ENFORCE_MODE_N,
};

/* How long the grace of a process is depends on what it is. */
enum grace_class {
        GRACE_PROGRAM, /* neither of these */
        GRACE_SCRIPT,  /* an interpreter with a script: work that is often not saved */
        GRACE_PLACE,   /* part of a unit or container */
        GRACE_CLASS_N,
};

enum verdict {
        VERDICT_NONE,      /* nothing to be said (yet) */
        VERDICT_SPARE,     /* never, or not while that lasts */
        VERDICT_WOULD_END, /* observing: enforcement would end it */
        VERDICT_WARN,      /* its owner is told */
        VERDICT_END,       /* noticed, then ended */
        VERDICT_STOPPED,   /* its unit or container starts it again and again: a person has to look */
        VERDICT_N,
};

/* Why that verdict. Order and names are in the journal: append only. */
enum verdict_why {
        VERDICT_WHY_NONE,
        VERDICT_WHY_BELOW,      /* too little memory, an open device file alone is nothing */
        VERDICT_WHY_UNKNOWN,    /* how much it has is not known */
        VERDICT_WHY_YOUNG,      /* not there for long enough */
        VERDICT_WHY_GUARD,      /* may never be a target (process.guard) */
        VERDICT_WHY_GRAPHICS,   /* draws somebody's screen */
        VERDICT_WHY_LEASE,      /* under a lease, on another device than granted */
        VERDICT_WHY_UNSEEN,     /* who it is is not known, or not confirmed since a start */
        VERDICT_WHY_OTHER,      /* somebody else's, and this daemon is one person's */
        VERDICT_WHY_APPROVED,   /* an approval covers it */
        VERDICT_WHY_LAPSED,     /* one did until a moment ago */
        VERDICT_WHY_MODE,       /* what the mode says */
        VERDICT_WHY_RETURNS,    /* came back after it was ended */
        VERDICT_WHY_PARKED,     /* being parked, or on its way back */
        VERDICT_WHY_UNKILLABLE, /* was sent all there is */
        VERDICT_WHY_N,
};

/* Why nothing is done, with anybody or with some. */
enum enforce_doubt {
        DOUBT_NONE,
        DOUBT_BOOKS, /* they were damaged */
        DOUBT_EYES,  /* the driver does not answer */
        DOUBT_SWEEP, /* not everything was seen once since the start */
        /* The others are looked at all the same: */
        DOUBT_BLIND, /* somebody has memory, and who it is cannot be seen */
        DOUBT_FULL,  /* there are more of them than can be remembered */
        DOUBT_N,
};

/*
 * Whom it covers: this user's process that runs this file, and of an interpreter the same script, or where there is none the same command
 * line; with @place only in that unit or container. Never by a name. All of what is recorded has to be so. RUNS_UNKNOWN is recorded
 * only with @place: whatever that interpreter runs there.
 */
struct approval {
        uint64_t id; /* 1, 2, 3 …; 0 = an empty row */
        uint32_t uid;
        uint32_t by_uid; /* who said so */
        uint64_t program;
        uint64_t script;   /* RUNS_SCRIPT, else 0 */
        uint64_t command;  /* RUNS_COMMAND, else 0 */
        uint64_t place;    /* 0 = wherever it runs */
        uint64_t since_ms; /* when it was given */
        uint64_t until_ms; /* 0 = until it is taken back */
        uint8_t runs;      /* enum process_runs */
        bool lapse_told;
        char comm[COMM_MAX]; /* what it was called then, for people only */
};

enum audit_told {
        AUDIT_TOLD_BLOCKED = 1 << 0,
        AUDIT_TOLD_UNKILLABLE = 1 << 1,
        AUDIT_TOLD_STOPPED = 1 << 2,
        AUDIT_TOLD_WOULD = 1 << 3,
        AUDIT_TOLD_ALL = (1 << 4) - 1,
};

struct audit {
        struct identity identity;
        uint32_t uid;
        uint32_t device; /* where it has most */
        uint64_t bytes;  /* now, or when it was last there */
        uint64_t program;
        uint64_t script;
        uint64_t place;
        uint64_t over_ms;    /* above the threshold since; 0 = not now */
        uint64_t audited_ms; /* for long enough, and something was said of it; 0 = not yet */
        uint64_t warned_ms;  /* its owner was told; 0 = not */
        uint64_t noticed_ms; /* told that it will be ended */
        uint64_t term_ms;    /* SIGTERM */
        uint64_t kill_ms;    /* SIGKILL */
        uint64_t again_ms;   /* nothing more before */
        uint64_t order_id;   /* the order to the hands that is out for it; 0 = none */
        uint64_t gone_ms;    /* it has nothing on any device any more since; 0 = it has */
        uint8_t n_signals;   /* that were sent, at most ENFORCE_SIGNALS_MAX */
        uint8_t told;        /* enum audit_told */
        char comm[COMM_MAX];
};

enum { ENFORCE_SIGNALS_MAX = 3 };

struct enforce {
        uint8_t mode;         /* enum enforce_mode, as a person said; the configuration may allow less */
        uint8_t doubt_told;   /* enum enforce_doubt that was said */
        uint32_t mode_by_uid; /* who said so */
        uint64_t mode_ms;     /* when; 0 = never: a new installation observes */
        uint64_t began_ms;    /* the daemon's start, or the driver's return */
        uint64_t swept_ms;    /* everything was seen once since then; 0 = not yet */
        uint64_t hidden_ms;   /* somebody has memory who cannot be judged, since; 0 = nobody */
};

static inline bool audit_is_none(const struct audit *audit)
{
        return audit->identity.pid == 0;
}

const char *enforce_mode_name(enum enforce_mode mode);
bool enforce_mode_parse(const char *text, enum enforce_mode *ret);
const char *verdict_name(enum verdict verdict);
const char *verdict_why_name(enum verdict_why why);
const char *verdict_why_text(enum verdict_why why); /* for people */
const char *enforce_doubt_name(enum enforce_doubt doubt);
const char *enforce_doubt_text(enum enforce_doubt doubt);
