/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One process of ours, lessor-eyes or lessor-warden: forked with its end of a SOCK_SEQPACKET pair as descriptor 3, held by a pidfd. */
#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"

#define CHILD_FD_TEXT "3"

struct eyes_child {
        pid_t pid; /* 0 = none */
        int pidfd;
        int sock; /* ours; non-blocking */
};

/* The child dies with us (PDEATHSIG), inherits stderr and nothing else but its socket. */
/* @accounting: the folder of process accounting, "" = none. */
int eyes_child_start(const char *program, const char *accounting, struct eyes_child *ret, struct error *err);
/* The same for any program of ours: @argv as for execv(), its name first, naming descriptor 3 (CHILD_FD_TEXT). */
int child_start(const char *program, char *const argv[], struct eyes_child *ret, struct error *err);
/* What child_start() is made of, for whoever forks by themselves (launcher.c). The list is theirs to free, its texts are not. */
char **child_environment(void);
__attribute__((noreturn)) void child_become(const char *program, char *const argv[], char **environment, int sock,
                                            pid_t parent);
void eyes_child_kill(const struct eyes_child *child);
/* True when it has ended and was reaped; *ret_status as from waitid. Never waits. */
bool eyes_child_reap(struct eyes_child *child, int *ret_code, int *ret_status);
