/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "api/consumer.h"
#include "api/peer.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "model/lease.h"
#include "senses/proc.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

enum {
        UID_UNMAPPED = 65534, /* what the kernel shows for a uid that has no place in our user namespace */
        GROUPS_AT_ONCE = 256,
        CHILDREN_MAX = 16 * 1024, /* bytes of a list of children: some two thousand */
};

static int deny(struct problem *reterr, const char *why)
{
        return problem_set(reterr, 403, "forbidden-caller", "%s", why);
}

/* ---- what the kernel says ---- */

/* It may well be allowed: we cannot look. */
static int not_now(struct problem *reterr, const char *why)
{
        return problem_set(reterr, 503, "busy", "who is calling cannot be found out now: %s; try again", why);
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

/* The groups it had when it connected, from the kernel: no name service that might hang is asked. */
static int read_groups(int fd, const struct ucred *cred, struct peer *peer)
{
        gid_t few[GROUPS_AT_ONCE];
        socklen_t size = sizeof(few);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &size) < 0 && errno != ERANGE)
                size = 0; /* before Linux 4.13: the primary one alone */
        gid_t *all = malloc(size + sizeof(*all));
        if (!all)
                return -ENOMEM;
        if (size <= sizeof(few))
                memcpy(all, few, size);
        else if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, all, &size) < 0)
                size = 0;
        peer->groups = all;
        peer->n_groups = (uint32_t) (size / sizeof(*all));
        peer->groups[peer->n_groups++] = cred->gid;
        return 0;
}

static bool is_in_group(const struct peer *peer, gid_t gid)
{
        for (uint32_t i = 0; i < peer->n_groups; i++)
                if (peer->groups[i] == gid)
                        return true;
        return false;
}

/* Who logged in and became root since (sudo, su): the kernel keeps it, and nobody without its own capability changes it. */
static uint32_t login_uid(const struct process_source *src, uint32_t pid)
{
        auto_close int dir = -1;
        char text[16];
        uint64_t uid;
        size_t n = 0;
        bool cut = false;

        if (proc_open_pid(src->proc_root, pid, &dir) < 0 ||
            proc_read(dir, "loginuid", text, sizeof(text) - 1, &n, &cut) < 0 || cut)
                return 0;
        text[n] = '\0';
        if (parse_u64("loginuid", text, 1, UINT32_MAX - 1, &uid, NULL) < 0) /* above: nobody logged in */
                return 0;
        return uid == UID_UNMAPPED ? 0 : (uint32_t) uid;
}

static int read_namespaces(const struct process_source *src, uint32_t pid, struct proc_status *ret)
{
        auto_close int dir = -1;
        int r = proc_open_pid(src->proc_root, pid, &dir);
        return r < 0 ? r : proc_read_status(dir, ret);
}

/* ---- containers ---- */

static int refuse_container(const struct peer *peer, const struct container_facts *facts, const char *why,
                            struct problem *reterr)
{
        char called[CONTAINER_NAME_MAX + 8] = "";

        if (!peer->place.id[0])
                return deny(reterr,
                            "the caller is in another pid namespace and in no container that its cgroup names; its "
                            "processes cannot be told from others here: run it with the host's pid namespace "
                            "(--pid=host), or start lessord where it runs");
        if (facts && facts->name[0])
                (void) snprintf(called, sizeof(called), " (%s)", facts->name);
        return problem_set(
                reterr, 403, "forbidden-container",
                "container %.12s%s is not allowed to ask%s%s; to allow it, put three lines into lessord.conf: "
                "`[container %s]`, `id = %.12s`, `uid = %" PRIu32
                "` (whose leases these will be), and reload; name, image and label can stand for the id",
                peer->place.id, called, why ? ": " : "", why ? why : "", facts && facts->name[0] ? facts->name : "NAME",
                peer->place.id, peer->place.of_user ? peer->place.user_uid : 1000);
}

static int admit_container(struct peer *peer, const struct container_rule *rule)
{
        /* Copied: a reload of the configuration takes the rule away. */
        peer->in_container = true;
        peer->priority_min = rule->priority_min;
        (void) snprintf(peer->section, sizeof(peer->section), "%s", rule->section);
        peer->uid = rule->uid;
        peer->is_admin = false;
        return 0;
}

static int look_at_container(struct peer *peer, const struct peer_rules *rules, const struct eyes_process *facts,
                             struct problem *reterr)
{
        const struct container_rule *rule;

        if (!facts->cgroup_known || !container_of_cgroup(facts->cgroup_path, &peer->place))
                return refuse_container(peer, NULL, NULL, reterr);
        rule = container_match(rules->containers, rules->n_containers, &peer->place, NULL);
        if (rule)
                return admit_container(peer, rule);
        if (!container_needs_engine(rules->containers, rules->n_containers, &peer->place))
                return refuse_container(peer, NULL, NULL, reterr);
        if (!rules->engine_socket)
                return refuse_container(peer, NULL,
                                        "names, images and labels are known to its engine alone, and engine_socket is "
                                        "not set",
                                        reterr);
        return PEER_ASK_ENGINE;
}

int peer_settle(struct peer *peer, const struct peer_rules *rules, const struct container_facts *facts, const char *why,
                struct problem *reterr)
{
        const struct container_rule *rule =
                container_match(rules->containers, rules->n_containers, &peer->place, facts);

        if (peer->pidfd < 0 || process_is_dead(peer->pidfd))
                return deny(reterr, "the caller was gone before it could be identified");
        return rule ? admit_container(peer, rule) : refuse_container(peer, facts, why, reterr);
}

/* ---- who it is ---- */

static int identify(int fd, const struct ucred *cred, const struct peer_rules *rules, struct peer *peer,
                    struct problem *reterr)
{
        static struct eyes_process facts; /* 10 KiB, one thread */
        struct proc_status status;
        struct error err;

        if (read_namespaces(rules->processes, (uint32_t) cred->pid, &status) < 0)
                return deny(reterr, "who is calling cannot be found out: its /proc entry is gone or hidden");
        /* The facts hold together by themselves; that they are of the caller follows from its pidfd being quiet after. */
        int r = process_identify(rules->processes, (uint32_t) cred->pid, &facts, NULL, &err);
        if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
                return not_now(reterr, err.msg);
        if (r < 0 || process_is_dead(peer->pidfd))
                return deny(reterr, "the caller was gone before it could be identified");
        peer->identity = (struct identity){ .pid = facts.pid, .start_ticks = facts.start_ticks };
        consumer_of_process(&facts, peer->consumer);

        /* A container's pid is visible here under another number; its status tells that it has one of its own. Unlike the
         * links in /proc/PID/ns this may be read of any process. */
        if (status.n_ns_pids > 1)
                return look_at_container(peer, rules, &facts, reterr);

        if (read_groups(fd, cred, peer) < 0)
                return not_now(reterr, "out of memory");
        peer->uid = peer->kernel_uid = cred->uid;
        peer->is_admin = cred->uid == 0 || (rules->own_session && cred->uid == rules->own_uid) ||
                         (rules->admin_gid_known && is_in_group(peer, rules->admin_gid));
        uint32_t person = cred->uid == 0 ? login_uid(rules->processes, (uint32_t) cred->pid) : 0;
        if (person != 0 && !process_is_dead(peer->pidfd))
                peer->uid = person;
        return 0;
}

int peer_of_socket(int fd, const struct peer_rules *rules, struct peer *ret, struct problem *reterr)
{
        struct ucred cred = { .uid = (uid_t) -1, .gid = (gid_t) -1 };
        socklen_t size = sizeof(cred);

        *ret = (struct peer){ .pidfd = -1, .uid = UID_UNMAPPED, .kernel_uid = UID_UNMAPPED };
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 || size != sizeof(cred) || cred.uid == (uid_t) -1)
                return deny(reterr, "the kernel does not say who is calling");
        if (cred.uid == UID_UNMAPPED)
                return deny(reterr, "the caller's user has no place in this user namespace (uid 65534)");
        if (cred.pid <= 0)
                return deny(reterr, "the caller is in another pid namespace and cannot be seen from here");
        if (rules->own_session && cred.uid != rules->own_uid && cred.uid != 0)
                return deny(reterr, "this daemon serves the user who started it, and root; ask the administrator for a "
                                    "system-wide one");
        if (open_peer_pidfd(fd, (uint32_t) cred.pid, &ret->pidfd) < 0)
                return deny(reterr, "the caller was gone before it could be identified");
        return identify(fd, &cred, rules, ret, reterr);
}

void peer_of_tcp(struct peer *ret)
{
        *ret = (struct peer){ .pidfd = -1, .uid = UID_UNMAPPED, .kernel_uid = UID_UNMAPPED, .reads_only = true };
}

void peer_fini(struct peer *peer)
{
        closep(&peer->pidfd);
        peer->pidfd = -1;
        free(peer->groups);
        peer->groups = NULL;
        peer->n_groups = 0;
}

/* ---- what it may name ---- */

static bool has_inner_pid(const struct process_source *src, uint32_t outer, uint32_t inner)
{
        struct proc_status status;
        return read_namespaces(src, outer, &status) == 0 && status.n_ns_pids > 1 &&
               status.ns_pids[status.n_ns_pids - 1] == inner;
}

/* The number that @inner, a number of the caller's container, has here: the caller itself or a child of its first thread.
 * 0: neither. */
static uint32_t outer_pid(const struct process_source *src, const struct peer *peer, uint32_t inner)
{
        char path[48], list[CHILDREN_MAX];
        auto_close int dir = -1;
        size_t n = 0;
        bool cut = false;

        if (has_inner_pid(src, peer->identity.pid, inner))
                return peer->identity.pid;
        (void) snprintf(path, sizeof(path), "task/%" PRIu32 "/children", peer->identity.pid);
        if (proc_open_pid(src->proc_root, peer->identity.pid, &dir) < 0 ||
            proc_read(dir, path, list, sizeof(list) - 1, &n, &cut) < 0 || cut)
                return 0;
        list[n] = '\0';
        char *rest = list;
        for (char *word; (word = strsep(&rest, " ")) != NULL;) {
                uint64_t pid;
                if (parse_u64("pid", word, 1, UINT32_MAX, &pid, NULL) == 0 && has_inner_pid(src, (uint32_t) pid, inner))
                        return (uint32_t) pid;
        }
        return 0;
}

int peer_process(const struct peer *peer, const struct peer_rules *rules, uint32_t pid, const char *field,
                 struct identity *ret, struct problem *reterr)
{
        static struct eyes_process facts;
        struct error err = { 0 };
        char given[24];
        int n = snprintf(given, sizeof(given), "%" PRIu32, pid);
        uint32_t here = pid;

        if (peer->pidfd < 0)
                return problem_set(reterr, 403, "not-yours", "%s: who comes by TCP cannot name processes; leave it out",
                                   field);
        if (peer->in_container && (here = outer_pid(rules->processes, peer, pid)) == 0)
                return problem_set(reterr, 403, "not-yours",
                                   "%s: from a container only the caller itself and its children can be named, by the "
                                   "container's own numbers; %" PRIu32 " is neither",
                                   field, pid);
        int r = process_identify(rules->processes, here, &facts, NULL, &err);
        if (r == -ESRCH)
                return problem_field(reterr, field, given, (size_t) n, "a living process of the same user",
                                     "name one that runs, or leave it out");
        if (r < 0)
                return problem_set(reterr, 503, "busy", "process %" PRIu32 " cannot be looked at: %s", pid, err.msg);
        if (!peer->in_container && (!facts.uid_known || (facts.uid != peer->kernel_uid && facts.uid != peer->uid)))
                return problem_set(reterr, 403, "not-yours",
                                   "%s: process %" PRIu32 " belongs to another user; name one of your own", field, pid);
        *ret = (struct identity){ .pid = facts.pid, .start_ticks = facts.start_ticks };
        return 0;
}

/* ---- what it may ask for ---- */

int peer_may_have_priority(const struct peer *peer, uint8_t priority, struct problem *reterr)
{
        if (!peer->in_container || priority >= peer->priority_min)
                return 0;
        return problem_set(reterr, 403, "priority-ceiling",
                           "[container %s] in lessord.conf lets this container ask for priority %u and larger numbers, "
                           "not for %u; ask for a larger number",
                           peer->section, peer->priority_min, priority);
}

int peer_may_ask(const struct peer *peer, const struct request *request, struct problem *reterr)
{
        if (peer->pidfd < 0 && request->binding.kind == BINDING_PROCESS)
                return problem_field(reterr, "bind", "process", strlen("process"),
                                     "{\"to\":\"connection\"} or {\"to\":\"heartbeat\"} by TCP",
                                     "say bind: nothing is known here of processes behind a TCP connection");
        return peer_may_have_priority(peer, request->priority, reterr);
}
