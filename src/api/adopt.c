/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for a lease over what runs already. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "api/routes.h"
#include "api/user_names.h"

/* A cgroup stands for what a unit or a container is. A login session's holds a terminal and all that was typed there. */
static bool is_unit_or_container(const char *path)
{
        static const char *const ends[] = { ".service", ".scope", ".slice" };
        const char *name = strrchr(path, '/');
        size_t n = name ? strlen(name) : 0;

        if (n < 2 || strncmp(name, "/session-", 9) == 0 || strncmp(name, "/user@", 6) == 0)
                return false;
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
                size_t n_end = strlen(ends[i]);
                if (n > n_end && strcmp(name + n - n_end, ends[i]) == 0)
                        return strcmp(ends[i], ".slice") != 0;
        }
        return true; /* a container engine without systemd names it as it likes */
}

/* Its own process, or an administrator's anybody's: the lease is that user's then. */
static int find_target(struct conn *c, const struct lease_ask *ask, struct request *request, bool *ret_heard,
                       const char **ret_unmanaged, struct problem *p)
{
        static struct eyes_process facts; /* 8 KiB */
        const struct peer_rules *rules = &c->server->options.rules;
        struct error err = { 0 };
        struct identity own;
        char given[24];

        if ((!c->peer.is_admin || c->peer.in_container) &&
            peer_process(&c->peer, rules, ask->adopt_pid, "pid", &own, p) < 0)
                return -1;
        uint32_t pid = c->peer.is_admin && !c->peer.in_container ? ask->adopt_pid : own.pid;
        int r = process_identify(rules->processes, pid, &facts, NULL, &err);
        int n = snprintf(given, sizeof(given), "%" PRIu32, ask->adopt_pid);
        if (r == -ESRCH)
                return problem_field(p, "pid", given, (size_t) n, "a living process", "name one that runs");
        if (r == -EACCES || (r == 0 && !facts.uid_known))
                return problem_set(p, 403, "not-yours",
                                   "who process %" PRIu32 " is may not be seen from here; only a process that can be "
                                   "looked at can come under a lease",
                                   ask->adopt_pid);
        if (r < 0)
                return problem_set(p, 503, "busy", "process %" PRIu32 " cannot be looked at just now: %s; try again",
                                   ask->adopt_pid, err.msg);
        if (ask->adopt_cgroup) {
                if (!facts.cgroup_id_known || !facts.cgroup_known)
                        return problem_set(p, 409, "no-cgroup",
                                           "the cgroup of process %" PRIu32
                                           " is not known here; adopt the process alone",
                                           ask->adopt_pid);
                if (!is_unit_or_container(facts.cgroup_path))
                        return problem_set(p, 409, "no-cgroup",
                                           "process %" PRIu32 " is in a login session's cgroup, which holds everything "
                                           "that was started there; adopt the process alone",
                                           ask->adopt_pid);
                request->binding.cgroup_id = facts.cgroup_id;
                bool admin = c->peer.is_admin && !c->peer.in_container;
                (void) c->server->host.manager_of(c->server->host.ctx, facts.cgroup_path, facts.uid, admin,
                                                  &request->binding.manager, ret_unmanaged);
        }
        uint32_t asker = c->peer.identity.pid; /* 0: by TCP, nobody the kernel knows */
        *ret_heard = asker != 0 && (facts.pid == asker || facts.ppid == asker);
        if (!c->peer.in_container)
                request->uid = facts.uid;
        request->binding.root = (struct identity){ .pid = facts.pid, .start_ticks = facts.start_ticks };
        request->binding.owner = request->binding.root;
        request->binding.kind = BINDING_PROCESS;
        if (request->consumer[0] == '\0')
                (void) snprintf(request->consumer, sizeof(request->consumer), "%.15s", facts.comm);
        return 0;
}

void ask_adopt(struct conn *c)
{
        struct input input = { .kind = INPUT_REQUEST };
        struct lease_ask ask;
        struct problem p;

        if (adopt_json_parse(strbuf_text(&c->body), c->body.len, &ask, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        char consumer[sizeof(ask.request.consumer)];
        memcpy(consumer, ask.request.consumer, sizeof(consumer));
        if (ask_fill_request(c, &ask.request, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        memcpy(ask.request.consumer, consumer, sizeof(consumer)); /* the program's, not the caller's */
        bool heard = false;
        const char *unmanaged = NULL;
        if (find_target(c, &ask, &ask.request, &heard, &unmanaged, &p) < 0 ||
            ask_check_ways(c, &ask.request, heard, unmanaged, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        c->mode = LEASE_ASK_NOW;
        input.request = ask.request;
        route_submit(c, &input, &input.request.token, WANT_LEASE);
}
