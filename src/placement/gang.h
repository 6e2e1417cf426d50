/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tasks that start together or not at all. A try takes what it needs and gives it back where that does not come to as many as
 * must start; nothing is held while waiting, so that no two can wait for each other.
 *
 * It goes to the lowest domain that has room for all of it, of those to the one that is left with least; within it to children
 * by falling room, but as soon as one child takes all the rest, to the tightest that does. For gangs of one role that is
 * complete: what is not found is not there. With several roles it is a search with bounds: not found is not impossible.
 */
#include "placement/topology.h"

enum {
        GANG_ROLES_MAX = 8,
        GANG_MEMBERS_MAX = 65536,
        GANG_ON_NODE_MAX = 4095, /* members on one node */
        GANG_TRIES_MAX = 64,     /* domains tried for a gang of several roles */
};

struct gang_role {
        struct task task;
        uint32_t count;
};

struct gang {
        const struct gang_role *roles;
        uint32_t n_roles;
        uint32_t min;       /* so many must start, of all; 0: all of them. Roles of smaller tasks go without first */
        uint32_t required;  /* level that it must not reach beyond; 0: none */
        uint32_t preferred; /* level to begin with; 0: the lowest */
        bool balanced;      /* over as few children as can be, but evenly: for traffic of all with all */
};

struct gang_member {
        uint32_t role;
        struct placement where;
};

struct gang_found {
        uint32_t n;             /* members */
        uint32_t level, domain; /* that they are in; on level 1 without islands the domain is the node */
};

struct gang_placer { /* what a search needs besides: of one cluster, for any number of gangs */
        struct cluster *cluster;
        const struct topology *topology;
        uint32_t *room;                             /* how many of a task fit on each node */
        uint32_t *room_of[TOPOLOGY_LEVELS_MAX + 1]; /* and in each domain */
        uint32_t *share;                            /* of each child while they are dealt out */
        uint32_t order[GANG_ROLES_MAX];
};

/* False: the arena was too small, or only counts. */
bool gang_placer_init(struct gang_placer *placer, struct cluster *cluster, const struct topology *topology,
                      struct arena *arena);

/* How many of @task fit there together. */
uint32_t node_room(const struct node *node, const uint16_t *left, const struct task *task);

/* -EINVAL with what is wrong with it. */
int gang_check(const struct gang *gang, struct error *err);
/* Takes the places of all, or of at least min where they are no more. @members has room for all. False: nowhere, nothing taken. */
bool gang_place(struct gang_placer *placer, const struct gang *gang, struct gang_member *members,
                struct gang_found *found);
/* One more of @role for one that started with fewer, in the domain in which it is. False: no room. */
bool gang_join(struct gang_placer *placer, const struct gang *gang, uint32_t role, const struct gang_found *found,
               struct gang_member *member);
/* Gives all of it back. */
void gang_give(struct cluster *cluster, const struct gang *gang, const struct gang_member *members, uint32_t n);
