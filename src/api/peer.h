/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is at the other end of a connection, as the kernel says at accept (security S01): uid, groups and pid of whoever
 * connected, held by a pidfd, with the start time that makes the pid an identity. Nothing a client writes changes it.
 *
 * Root under sudo asks in the name of the person who typed it (the login uid) and keeps an administrator's rights. A caller
 * in another pid namespace is in a container and is refused unless lessord.conf allows that container; it has the rights
 * of that section and no others, whatever uid it has inside (S03).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "api/container.h"
#include "api/problem.h"
#include "model/identity.h"
#include "model/input.h"
#include "senses/process.h"

struct peer_rules {
        const struct process_source *processes;
        bool own_session;     /* a person's own daemon: only that person and root */
        uint32_t own_uid;     /* the daemon's */
        bool admin_gid_known; /* members of this group are administrators */
        gid_t admin_gid;
        const char *admin_group;                 /* its name, for words; NULL where there is none */
        const struct container_rule *containers; /* who else may call; the caller's */
        uint32_t n_containers;
        const char *engine_socket; /* whom to ask about them; NULL: nobody */
};

struct peer {
        uint32_t uid;        /* whose leases it asks for */
        uint32_t kernel_uid; /* whose process it is; both are the unmapped uid for who was refused */
        struct identity identity;
        int pidfd;     /* -1 = none: it came by TCP */
        gid_t *groups; /* as the kernel says, the primary one last; none in a container and by TCP */
        uint32_t n_groups;
        bool is_admin;
        bool reads_only;
        bool in_container; /* with the rights of [container @section] */
        uint8_t priority_min;
        char section[CONTAINER_SECTION_MAX];
        struct container_place place;
        char consumer[64]; /* from its program: what a lease is remembered under unless it says otherwise */
};

enum { PEER_ASK_ENGINE = 1 };

/* 0: known. PEER_ASK_ENGINE: in a container that only its engine knows by name; peer_settle() when it has answered.
 * -1 with *reterr (403): who it is could not be found out, or it may not talk to us. peer_fini() in every case. */
int peer_of_socket(int fd, const struct peer_rules *rules, struct peer *ret, struct problem *reterr);
/* @facts NULL: the engine did not answer; @why says how so. */
int peer_settle(struct peer *peer, const struct peer_rules *rules, const struct container_facts *facts, const char *why,
                struct problem *reterr);
/* Somebody by TCP: nobody, until a token says otherwise. */
void peer_of_tcp(struct peer *ret);
void peer_fini(struct peer *peer);
/* A process that @peer may name: alive, its own (security S09: nobody else's, also for administrators). From a container
 * the number is the container's own, and itself and its children can be named. */
int peer_process(const struct peer *peer, const struct peer_rules *rules, uint32_t pid, const char *field,
                 struct identity *ret, struct problem *reterr);
/* Does the caller have what it needs to make this request at all: a process to bind to, the priority its container may
 * have? What concerns everybody is the core's. */
int peer_may_ask(const struct peer *peer, const struct request *request, struct problem *reterr);
int peer_may_have_priority(const struct peer *peer, uint8_t priority, struct problem *reterr);
