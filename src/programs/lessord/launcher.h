/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Starts lessor-warden with the rights that lessord gave up. A process without capabilities does not see which program a process
 * with capabilities runs, and what cannot be seen is never signalled: the hands of root's own session would do nothing at all, and
 * would carry lessord's filters besides. So before lessord confines itself it leaves a process behind that can do one thing:
 * fork, and become the one program it was told at its start, with a socket that lessord made. It ends with lessord.
 */
#include "base/error.h"
#include "programs/lessord/eyes_child.h"

enum { LAUNCHER_ARGUMENTS_MAX = 8192 }; /* bytes of all of them, with their NULs */

/* First thing in main(), while there is one thread. @program: path of lessor-warden. */
int launcher_start(const char *program, int *ret_launcher, struct error *err);
/*
 * As child_start() (eyes_child.h), by the launcher: the pid is no child of ours, so its end is seen by its pidfd and there is nothing
 * to reap. -EPIPE: the launcher is gone.
 */
int launcher_spawn(int launcher, char *const argv[], struct eyes_child *ret, struct error *err);
