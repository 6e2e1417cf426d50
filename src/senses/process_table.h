/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Every process seen so far, held by its pidfd until it has exited. While an entry is here and its pidfd is quiet, its
 * number cannot have been given to anybody else. Owns the pidfds. One entry a pid, sorted by pid.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct process_entry {
        uint32_t pid;
        int pidfd;
        uint64_t start_ticks;
        /* What it did (activity.c): its CPU time at the last look at that, when that was (0 = never), and what it came to. */
        uint64_t cpu_ticks, cpu_read_ms;
        uint8_t did; /* enum activity */
};

enum activity { ACTIVITY_UNKNOWN, ACTIVITY_RESTED, ACTIVITY_WORKED };

struct process_table {
        struct process_entry *entries;
        size_t n, cap, max; /* max: entries it may ever hold, below the descriptor limit */
        int epoll_fd;       /* readable when somebody exited: poll it beside the socket */
};

int process_table_init(struct process_table *t, size_t max, struct error *err);
void process_table_fini(struct process_table *t);
/* NULL when the pid is not held. The pointer is good until the next add or take_exited. */
const struct process_entry *process_table_find(const struct process_table *t, uint32_t pid);
/* Takes @pidfd over on success. -EEXIST: the pid is held already. -ENOSPC: full. */
int process_table_add(struct process_table *t, uint32_t pid, uint64_t start_ticks, int pidfd);
/* One process that has exited: out of the table, its pidfd closed. False: nobody (more). Never waits. */
bool process_table_take_exited(struct process_table *t, struct process_entry *ret);
