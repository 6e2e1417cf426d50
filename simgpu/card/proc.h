/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* proc - who lives on the card: registering, liveness, and taking away what the dead held */

#include "card/card.h"

/* proc_start_ticks - start time in clock ticks since boot from /proc/PID/stat (tid 0) or /proc/PID/task/TID/stat; 0 = not there or a zombie */
uint64_t proc_start_ticks(uint32_t pid, uint32_t tid);

/* proc_tgid - the process a thread belongs to (checkpoint calls take tids for pids); 0 = none */
uint32_t proc_tgid(uint32_t tid);

/* proc_register - take a slot for the calling process; must be called by its helper thread. NULL = the table is full or unusable */
struct card_proc *proc_register(struct card *card, bool graphics);

/* proc_reap - look at every process and free what dead ones held. Called before each reading: the "driver" is never late. */
void proc_reap(struct card *card);

/* proc_find - the live slot of a pid, after a reap; NULL = no CUDA process */
struct card_proc *proc_find(struct card *card, uint32_t pid);

/*
 * viewer_enter / viewer_leave - a process has NVML initialised. The first client of an unloaded driver finds the
 * settings of devices without persistence gone.
 */
void viewer_enter(struct card *card);
void viewer_leave(struct card *card);

/* driver_settle - if nobody uses the card, forget what an unloaded driver forgets; under no lock */
void driver_settle(struct card *card);
