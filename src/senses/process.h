/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who a process is: identity = (boot id, pid, start_ticks), held by a pidfd from first sight on, and the facts that a
 * person or a rule may want (struct eyes_process). Used by the eyes for what the driver lists and by the daemon for the
 * owners of leases.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "wire/eyes.h"

/* What is the same for every process of this machine and boot; read once. */
struct process_source {
        char proc_root[256];             /* "/proc" outside tests */
        char boot_id[EYES_BOOT_ID_SIZE]; /* "" when /proc does not tell */
        bool host_pids;                  /* we see the host's pids: our pid namespace is the initial one */
        bool cgroup_known;               /* a cgroup2 mount was found (also the unified part of a hybrid) */
        char cgroup_point[EYES_PATH_SIZE];
        char cgroup_root[EYES_PATH_SIZE]; /* which part of the hierarchy the mount shows */
};

/* Fails only when @proc_root cannot be used at all; what is merely missing is left unknown. */
int process_source_init(struct process_source *ret, const char *proc_root, struct error *err);

/*
 * process_identify - take hold of a pid and find out who it is
 * @ret_facts  may not be NULL
 * @ret_pidfd  the caller's to close; NULL: only the facts are wanted
 *
 * Order: pidfd, start time, the rest, start time again and "still alive" by the pidfd. So the facts and the pidfd are of
 * one and the same process, or the call fails. Facts that are not ours to see (another user's program, environment)
 * are marked unknown and are no failure.
 *
 * -ESRCH    no living process has this pid (gone, or a zombie), or it died while we looked
 * -EACCES   it lives, but this /proc does not show it (hidepid), or the pid is no thread group leader
 * -EMFILE, -ENFILE, -ENOMEM   out of descriptors or memory: it may well live
 */
int process_identify(const struct process_source *src, uint32_t pid, struct eyes_process *ret_facts, int *ret_pidfd,
                     struct error *err);

/* The same identity check alone, without pidfd: the start time of whoever has the pid now. -ESRCH as above. */
int process_start_ticks(const struct process_source *src, uint32_t pid, uint64_t *ret_ticks);

/* True when the process behind @pidfd is dead (a zombie, or reaped). */
bool process_is_dead(int pidfd);
/* pidfd_open(2), CLOEXEC. Negative errno. */
int process_open_pidfd(uint32_t pid, int *ret_pidfd);
