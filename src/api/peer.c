/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "api/consumer.h"
#include "api/peer.h"
#include "base/cleanup.h"
#include "senses/proc.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

enum { UID_UNMAPPED = 65534 }; /* what the kernel shows for a uid that has no place in our user namespace */

static int deny(struct problem *reterr, const char *why)
{
        return problem_set(reterr, 403, "forbidden-caller", "%s", why);
}

/* The kernel's own handle on whoever connected, else the pid's, which is checked against the start time later. */
static int open_peer_pidfd(int fd, uint32_t pid, int *ret_pidfd)
{
        int pidfd = -1;
        socklen_t size = sizeof(pidfd);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0 && pidfd >= 0) {
                *ret_pidfd = pidfd;
                return 0;
        }
        if (errno != ENOPROTOOPT && errno != EINVAL && errno != EOPNOTSUPP)
                return -errno;
        return process_open_pidfd(pid, ret_pidfd);
}

/* A container's pid is visible here under another number; its status tells that it has one of its own (S03). */
static int refuse_other_namespace(const struct process_source *src, uint32_t pid, struct problem *reterr)
{
        struct proc_status status;
        auto_close int dir = -1;

        if (proc_open_pid(src->proc_root, pid, &dir) < 0 || proc_read_status(dir, &status) < 0)
                return deny(reterr, "who is calling cannot be found out: its /proc entry is gone or hidden");
        if (status.n_ns_pids > 1)
                return deny(reterr,
                            "the caller is in another pid namespace (a container); its processes cannot be told "
                            "from others here: start lessord where the program runs, or run the program with "
                            "the host's pid namespace (--pid=host)");
        return 0;
}

int peer_of_socket(int fd, const struct peer_rules *rules, struct peer *ret, struct problem *reterr)
{
        struct ucred cred = { .uid = (uid_t) -1, .gid = (gid_t) -1 };
        socklen_t size = sizeof(cred);

        *ret = (struct peer){ .pidfd = -1, .uid = UID_UNMAPPED };
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 || size != sizeof(cred) || cred.uid == (uid_t) -1)
                return deny(reterr, "the kernel does not say who is calling");
        if (cred.uid == UID_UNMAPPED)
                return deny(reterr, "the caller's user has no place in this user namespace (uid 65534)");
        ret->uid = cred.uid;
        if (cred.pid <= 0)
                return deny(reterr, "the caller is in another pid namespace and cannot be seen from here");
        if (rules->own_session && cred.uid != rules->own_uid && cred.uid != 0)
                return deny(reterr, "this daemon serves the user who started it, and root; ask the administrator for a "
                                    "system-wide one");

        if (open_peer_pidfd(fd, (uint32_t) cred.pid, &ret->pidfd) < 0)
                return deny(reterr, "the caller was gone before it could be identified");
        if (refuse_other_namespace(rules->processes, (uint32_t) cred.pid, reterr) < 0)
                return -1;

        /* The facts hold together by themselves; that they are of the caller follows from its pidfd being quiet after. */
        static struct eyes_process facts; /* 10 KiB, one thread */
        struct error err;
        if (process_identify(rules->processes, (uint32_t) cred.pid, &facts, NULL, &err) < 0 ||
            process_is_dead(ret->pidfd))
                return deny(reterr, "the caller was gone before it could be identified");
        ret->identity = (struct identity){ .pid = facts.pid, .start_ticks = facts.start_ticks };
        consumer_of_process(&facts, ret->consumer);
        ret->is_admin = cred.uid == 0 || (rules->own_session && cred.uid == rules->own_uid);
        return 0;
}

void peer_fini(struct peer *peer)
{
        closep(&peer->pidfd);
        peer->pidfd = -1;
}

int peer_process(const struct peer *peer, const struct peer_rules *rules, uint32_t pid, const char *field,
                 struct identity *ret, struct problem *reterr)
{
        static struct eyes_process facts;
        struct error err = { 0 };
        char given[24];
        int n = snprintf(given, sizeof(given), "%" PRIu32, pid);
        int r = process_identify(rules->processes, pid, &facts, NULL, &err);

        if (r == -ESRCH)
                return problem_field(reterr, field, given, (size_t) n, "a living process of the same user",
                                     "name one that runs, or leave it out");
        if (r < 0)
                return problem_set(reterr, 503, "busy", "process %" PRIu32 " cannot be looked at: %s", pid, err.msg);
        if (!facts.uid_known || facts.uid != peer->uid)
                return problem_set(reterr, 403, "not-yours",
                                   "%s: process %" PRIu32 " belongs to another user; name one of your own", field, pid);
        *ret = (struct identity){ .pid = facts.pid, .start_ticks = facts.start_ticks };
        return 0;
}
