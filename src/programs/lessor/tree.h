/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What holds a command and everything it starts together, so that its memory is known to be its own: a systemd user scope,
 * else a cgroup of its own below ours, else only descent (this process is made the subreaper, and the token in the
 * environment tells workers that left).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

enum tree_kind { TREE_DESCENT, TREE_CGROUP, TREE_SCOPE };

struct tree {
        uint8_t kind;       /* enum tree_kind */
        uint64_t cgroup_id; /* inode; 0 = none */
        char path[512];     /* of the cgroup's folder */
};

/* Path of systemd-run where a user manager can be reached; false = no. */
bool tree_scope_possible(char *ret_program, size_t program_size);
/* A new folder in our own cgroup; false = not possible here. */
bool tree_make_cgroup(struct tree *tree, const char *lease_id);
bool tree_put(struct tree *tree, pid_t pid);
/* Where a process in a new scope is. */
bool tree_find_scope(struct tree *tree, pid_t pid);
/* How many processes are in it; TREE_DESCENT: how many children (orphans among them) this process has, at least 1. */
size_t tree_count(const struct tree *tree, pid_t *ret_first);
/* One of those that tree_count counted, by its number; 0 = it was not found. */
pid_t tree_any(const struct tree *tree);
/*
 * To every process in it; TREE_DESCENT: to @root, the command, and those of its descendants that still hang together; never to this process. Each
 * by a descriptor that is checked to be of the tree after it was opened. Returns how many were reached.
 */
size_t tree_signal(const struct tree *tree, pid_t root, int signal_number);
/* Removes what tree_make_cgroup made, when it is empty. */
void tree_remove(struct tree *tree);
/* Removes empty folders that wrappers left which could not tidy up. */
void tree_sweep(void);
