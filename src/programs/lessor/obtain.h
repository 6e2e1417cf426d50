/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ask for a lease and wait for it, through everything that can happen meanwhile: the daemon goes away and comes back, the
 * person gives up, the wait is over, the lease is gone and must be asked for again.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "client/client.h"
#include "client/lessor.h"
#include "model/lease.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/progress.h"
#include "programs/lessor/signals.h"

enum { OBTAIN_AWAY_MS = 60 * 1000, OBTAIN_AGAIN_MS = 200 };

struct obtain {
        struct client client; /* for questions that are not about the lease */
        struct lessor *handle;
        struct lessor_lease *lease; /* NULL = none yet */
        const struct ask *ask;
        struct signals *signals;
        struct progress progress;
        uint64_t deadline_ms;   /* of the whole wait; UINT64_MAX = none */
        uint64_t away_since_ms; /* 0 = it answered last time */
        uint64_t
                unread_since_ms; /* since when it waits only because the daemon has no fresh reading; 0 = it does not */
        bool waited;
        bool size_told; /* what was asked for where no size was named */
        uint64_t asked_ms;
        char id[LEASE_ID_TEXT_MAX]; /* "" = has none yet */
        char device[UUID_TEXT_MAX]; /* the first of those below */
        char devices[GANG_MAX][UUID_TEXT_MAX];
        int n_devices;
        uint64_t bytes;
};

/* OBTAINED: id and device are there, `granted` or `active`. OBTAIN_WITHOUT: --if-down run. Else the exit code, ≥ 0,
 * with the words already on stderr. */
enum { OBTAINED = -1, OBTAIN_WITHOUT = -2 };

/* OBTAINED, or an exit code. Whatever is obtained lives on when this process ends without more ado. */
int obtain_init(struct obtain *o, const struct ask *ask, struct signals *signals, const char *verb);
/* Gives nothing back: the lease lives as long as what it is bound to. */
void obtain_fini(struct obtain *o);
/* Once more after the grant was lost: keeps the deadline. */
int obtain_lease(struct obtain *o);
/* The same of what was booked (ask.booking). What is not collected stays booked, whatever becomes of us. */
int obtain_booked(struct obtain *o);
/* GET @path with the same patience; 0 = *ret_body is the caller's. Else as obtain_lease. */
int obtain_get(struct obtain *o, const char *path, json_t **ret_body);
/*
 * Collect the grant: what runs under it. OBTAINED; OBTAIN_AGAIN: the grant is gone, ask again; else an exit code.
 */
enum { OBTAIN_AGAIN = -3 };
int obtain_activate(struct obtain *o, uint64_t pid, uint64_t cgroup_id);
/*
 * Books that were begun anew know nothing of the lease: the same again, over the process that runs. 0; -EAGAIN: not yet (the
 * card was not looked at, the daemon is away); another negative errno: it will not be. One try, not longer than a question.
 */
int obtain_adopted(struct obtain *o, pid_t pid);
/* Give it back, or give up the place. Short: the daemon frees it anyway when this process is gone. */
void obtain_release(struct obtain *o);
