/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One lessor-eyes process: forked with its end of a SOCK_SEQPACKET pair as descriptor 3, held by a pidfd. */
#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"

struct eyes_child {
        pid_t pid; /* 0 = none */
        int pidfd;
        int sock; /* ours; non-blocking */
};

/* The child dies with us (PDEATHSIG), inherits stderr and nothing else but its socket. */
int eyes_child_start(const char *program, struct eyes_child *ret, struct error *err);
void eyes_child_kill(const struct eyes_child *child);
/* True when it has ended and was reaped; *ret_status as from waitid. Never waits. */
bool eyes_child_reap(struct eyes_child *child, int *ret_code, int *ret_status);
