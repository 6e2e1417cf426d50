/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* lessor-prove (programs/lessor-prove), started and spoken with: one line each way, each with a deadline. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

enum { PROVE_LINE_MAX = 128 };

struct prove_child {
        pid_t pid;
        int pidfd, sock; /* -1 = none */
        uint64_t start_ticks;
};

/*
 * @device: the UUID that it is to use; "" = any. It has a process group of its own: when we end and it is stopped, the kernel wakes and
 * ends it, as it does with every orphaned group. -ENOENT: there is no such program here.
 */
int prove_child_start(struct prove_child *ret, const char *device, struct error *err);
/* The next line, without its end. -ETIMEDOUT; -EPIPE: it said no more. */
int prove_child_hear(struct prove_child *child, uint64_t wait_ms, char line[PROVE_LINE_MAX]);
/* "go": it looks at its memory. */
int prove_child_ask(struct prove_child *child);
/* Nothing is asked any more. True: it ended within @wait_ms, also when it had before. */
bool prove_child_leave(struct prove_child *child, uint64_t wait_ms);
/* SIGKILL, and waits. Never of one that was restored and runs: drivers are known to hang then. */
bool prove_child_kill(struct prove_child *child, uint64_t wait_ms);
