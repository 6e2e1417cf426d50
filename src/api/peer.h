/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is at the other end of a connection, as the kernel says at accept (security S01): uid and pid of whoever connected,
 * held by a pidfd, with the start time that makes the pid an identity. Nothing a client writes changes it.
 */
#include <stdbool.h>
#include <stdint.h>
#include "api/problem.h"
#include "model/identity.h"
#include "senses/process.h"

struct peer_rules {
        const struct process_source *processes;
        bool own_session; /* a person's own daemon: only that person and root */
        uint32_t own_uid; /* the daemon's */
};

struct peer {
        uint32_t uid;
        struct identity identity;
        int pidfd; /* -1 = none */
        bool is_admin;
        char consumer[64]; /* from its program: what a lease is remembered under unless it says otherwise */
};

/* -1 with *reterr (403): who it is could not be found out, or it may not talk to us. peer_fini() either way. */
int peer_of_socket(int fd, const struct peer_rules *rules, struct peer *ret, struct problem *reterr);
void peer_fini(struct peer *peer);
/* A process that @peer may name: alive, its own (security S09: nobody else's, also for administrators). */
int peer_process(const struct peer *peer, const struct peer_rules *rules, uint32_t pid, const char *field,
                 struct identity *ret, struct problem *reterr);
