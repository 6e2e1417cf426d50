/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `lessor doctor`: what of this machine matters to leases, looked at one by one, and what works here because of it. Nothing is
 * changed, nothing needs rights, and everything ends in time: the driver is asked in a process of its own, others with a
 * deadline.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

enum {
        DOCTOR_CHECKS_MAX = 40,
        DOCTOR_TEXT_MAX = 512,
        DOCTOR_NAME_MAX = 24,
        DOCTOR_ASK_MS = 2000, /* another program, or lessord */
        DOCTOR_DRIVER_MS = 3000,
};

/* Of one check. FACT: neither good nor bad, worth knowing. */
enum finding { FINDING_OK, FINDING_FACT, FINDING_WARN, FINDING_BAD, FINDING_N };

struct check {
        char name[DOCTOR_NAME_MAX];
        uint8_t finding; /* enum finding */
        char text[DOCTOR_TEXT_MAX];
        char cure[DOCTOR_TEXT_MAX]; /* "" = none is needed, or there is none */
};

/* Where lessord runs, or would. The rows of the table. */
enum place { PLACE_SESSION, PLACE_SYSTEM, PLACE_WSL, PLACE_CONTAINER, PLACE_N };

enum driver_state {
        DRIVER_NONE, /* no library, or no driver below it */
        DRIVER_OK,
        DRIVER_MISMATCH,
        DRIVER_SILENT, /* did not answer in time */
        DRIVER_FAILED,
};

/* Of --prove. BLOCKED: it could not be tried, or not to its end, and nothing went wrong. */
enum proof { PROOF_NONE, PROOF_GOOD, PROOF_BLOCKED, PROOF_BAD };

/* What the table is made of. */
struct doctor {
        struct check checks[DOCTOR_CHECKS_MAX];
        size_t n_checks;

        enum place place;
        enum driver_state driver;
        bool host_pids; /* of this process, or of lessord where that answers */
        bool answers;   /* lessord does */
        bool may_ask;   /* and it lets this user ask */
        char why_not[DOCTOR_TEXT_MAX], why_not_cure[DOCTOR_TEXT_MAX]; /* !answers or !may_ask */
        bool grants; /* it has a usable device and its books are in order */
        char grants_not[DOCTOR_TEXT_MAX];
        bool hands_known, hands_up;
        char hands_words[DOCTOR_TEXT_MAX];
        bool checkpoint_known, checkpoints; /* lessord has looked whether driver and machine can; they can */
        char checkpoint_words[DOCTOR_TEXT_MAX];
        enum proof proof;
        char proof_words[DOCTOR_TEXT_MAX]; /* BLOCKED, BAD */
};

/* One more check. @cure "" = none. */
void doctor_add(struct doctor *d, const char *name, enum finding finding, const char *text, const char *cure);
/* The same, and the text is given like printf's. */
printf_like(5, 6) void doctor_addf(struct doctor *d, const char *name, enum finding finding, const char *cure,
                                   const char *fmt, ...);

/*
 * Files of the kernel and of other programs, below $LESSOR_DOCTOR_ROOT where that is set (for tests; ignored in a program
 * that runs with another user's rights).
 */
const char *doctor_root(void);
const char *doctor_path(const char *path, char *buf, size_t size);
/* At most size - 1 bytes, without a line end behind them. False: it cannot be read. */
bool doctor_read(const char *path, char *buf, size_t size);
bool doctor_exists(const char *path);

/* pids of what is called @comm, or begins with it where it ends in '*'; how many there are, at most @max of them in @ret. */
size_t doctor_find_processes(const char *comm, pid_t *ret, size_t max);
/* A number in hexadecimal behind @key ("CapEff:") in /proc/PID/status. */
bool doctor_mask(pid_t pid, const char *key, uint64_t *ret);

/* ---- the checks, in the order they are shown ---- */
void doctor_driver(struct doctor *d);  /* doctor_driver.c */
void doctor_lessord(struct doctor *d); /* doctor_lessord.c */
void doctor_host(struct doctor *d);    /* doctor_host.c */
void doctor_rights(struct doctor *d);  /* doctor_rights.c */

/* ---- the table (doctor_table.c) ---- */
enum ability { ABILITY_LEASE, ABILITY_RELEASE, ABILITY_PARK, ABILITY_ENFORCE, ABILITY_N };
struct cell_verdict {
        bool works;
        char why[DOCTOR_TEXT_MAX], cure[DOCTOR_TEXT_MAX]; /* where it does not */
};
void doctor_judge(const struct doctor *d, enum place place, enum ability ability, struct cell_verdict *ret);
extern const char *const place_names[PLACE_N], *const ability_names[ABILITY_N], *const finding_names[FINDING_N];

/* The rights each part needs, and what for (security S23). */
struct right {
        const char *feature, *who, *needs;
};
extern const struct right doctor_right_rows[];
