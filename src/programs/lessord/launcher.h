/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Starts lessor-warden with the rights that lessord gave up. A process without capabilities does not see which program a process
 * with capabilities runs, and what cannot be seen is never signalled: the hands of root's own session would do nothing at all, and
 * would carry lessord's filters besides. So before lessord confines itself it leaves a process behind that can do one thing:
 * fork, and become the one program, with the one folder, that it was told at its start. A lessord that was taken over chooses
 * the moment, and the socket: no option, no variable, no other program. It keeps of root's capabilities what the hands of root's
 * own session keep, and ends with lessord.
 */
#include "base/error.h"
#include "programs/lessord/eyes_child.h"

/* First thing in main(), while there is one thread. @program: path of lessor-warden; @dir: its --dir. Both stay the caller's. */
int launcher_start(const char *program, const char *dir, int *ret_launcher, struct error *err);
/*
 * As child_start() (eyes_child.h), by the launcher: the pid is no child of ours, so its end is seen by its pidfd and there is nothing
 * to reap. -EPIPE: the launcher is gone.
 */
int launcher_spawn(int launcher, struct eyes_child *ret, struct error *err);
