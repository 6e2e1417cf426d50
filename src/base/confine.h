/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a program of ours gives up for good when it starts: core dumps, capabilities, system calls it has no use for.
 * Nothing here can be taken back, and all of it but "dumpable" is inherited by children, through exec too.
 *
 * Order: confine_no_core() first thing in main(); confine_capabilities() while there is one thread (capabilities belong to
 * a thread); then confine_deny() or confine_allow(). Needs /proc. Never called by what starts a user's command.
 */
#include <stddef.h>
#include "base/error.h"

/* No core dump, and no debugger, profiler or /proc reader of the same user (security S16). Ours again after an exec: the
 * new program calls it for itself. */
int confine_no_core(struct error *err);

/*
 * Keeps the capabilities @keep (CAP_…, @n_keep of them; NULL and 0 = none) in the sets they are in, drops all others from
 * each set, forbids to gain any by exec, and then reads back from /proc what is left (security S23).
 * A kept capability that was not there stays away; that is no error. The bounding set can be changed only by who has
 * CAP_SETPCAP: for anybody else it stays as it was, and without capabilities and with no_new_privs it gives nothing.
 * -EPERM with words that name the mask: what is left is not what was asked for; do not go on.
 */
int confine_capabilities(const int *keep, size_t n_keep, struct error *err);

/*
 * Filters of system calls, by name. @names ends with NULL; a name that this kernel's or libseccomp's table does not know is
 * passed over. Calls of another architecture (32 bit, x32) end the process. Filters add up: what one of them refuses is
 * refused. They hold for all threads.
 * -EOPNOTSUPP: there are no filters here (an old or emulated kernel): worth one warning, not an end. Others are failures.
 */
enum confine_otherwise {
        CONFINE_REFUSE, /* EPERM */
        CONFINE_KILL,   /* the process ends by SIGSYS */
};

/*
 * Each call of @names answers EPERM from now on, others are as they were. With "unshare" on the list, clone() with a flag
 * of a new namespace is refused too, and clone3(), into whose flags no filter can see, answers ENOSYS: libc then uses clone().
 */
int confine_deny(const char *const *names, struct error *err);

/* The calls of @names and no others. What is needed to end (exit, exit_group, rt_sigreturn) is always among them. */
int confine_allow(const char *const *names, enum confine_otherwise otherwise, struct error *err);

/*
 * All of it, for what parses the words of strangers and needs no rights (brain and eyes): no core, no capability, none of
 * confine_never. -EOPNOTSUPP: all but the filter.
 */
int confine_unprivileged(struct error *err);

/*
 * What neither brain nor eyes ever ask the kernel for, for confine_deny(): looking into other processes, mounting, namespaces,
 * kernel modules, clocks, other users' rights, signals by pid.
 */
extern const char *const confine_never[];
