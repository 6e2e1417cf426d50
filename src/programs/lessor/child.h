/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command: started, but held back before exec until its lease is active; then it has the terminal, the signals and the
 * exit status to itself, and this process only stands beside it.
 *
 * It stays in our process group: so a pipeline stays one job of the shell, and Ctrl-C and Ctrl-Z reach the command (and its
 * neighbours in the pipeline) from the terminal itself. What the kernel sent to the whole group is therefore not passed on;
 * what a person sent to this process alone is.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"
#include "programs/lessor/signals.h"
#include "programs/lessor/tree.h"

#define CHILD_IN_SCOPE_WORD "__in-scope"

struct watch;

struct child {
        pid_t pid;
        int pidfd;
        int report_fd; /* from it: 'R' when it waits at the barrier, later an errno when exec failed */
        int go_fd;     /* to it */
        struct tree tree;
};

/* Started and waiting at the barrier. @argv ends with NULL. */
int child_prepare(struct child *child, const struct signals *signals, char *const *argv, const char *lease_id,
                  struct error *err);
/* Its lease is not to be: it ends without having run. */
void child_abandon(struct child *child);
/* Past the barrier. 0 = it runs; else a negative errno of exec. */
int child_go(struct child *child);
/* Until it ends; its wait status. @watch is kept going meanwhile; NULL = none. */
int child_wait(struct child *child, struct signals *signals, struct watch *watch);
void child_fini(struct child *child);

/* `lessor __in-scope REPORT GO CHLD COMMAND…`: the barrier's inner side, started by systemd-run in the new scope. */
int child_in_scope_main(int argc, char **argv);
