/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "programs/lessord/owners.h"

struct owner_watch {
        struct owners *owners;
        struct identity who;
        int pidfd;
        uv_poll_t poll;
        uint32_t n_leases;
        bool gone;
};

void owners_init(struct owners *o, enum owners_role role, uv_loop_t *loop, const struct process_source *processes,
                 owners_submit_fn *submit, void *ctx)
{
        o->role = role;
        o->loop = loop;
        o->processes = processes;
        o->submit = submit;
        o->ctx = ctx;
}

static void tell_gone(struct owners *o, struct identity who, uint64_t lease_id, enum end_reason end)
{
        if (o->role == ROOTS_OF_LEASES) {
                struct input ended = { .kind = INPUT_PROCESS_ENDED, .process_ended = who };
                o->submit(o->ctx, &ended);
                return;
        }

        struct input input = {
                .kind = INPUT_OWNER_ENDED,
                .call = { .lease_id = lease_id, .by_system = true, .end_reason = (uint8_t) end },
        };
        o->submit(o->ctx, &input);
}

static void on_exit_seen(uv_poll_t *poll, int status, int events)
{
        struct owner_watch *w = poll->data;

        (void) status;
        (void) events;
        (void) uv_poll_stop(poll);
        w->gone = true;
        for (uint32_t row = 0; row < w->owners->n_rows; row++)
                if (w->owners->watch[row] == w)
                        tell_gone(w->owners, w->who, w->owners->lease_id[row], END_OWNER_EXITED);
}

int owners_hold(const struct process_source *processes, struct identity who, int *ret_pidfd)
{
        uint64_t ticks = 0;
        int pidfd = -1;
        int r = process_open_pidfd(who.pid, &pidfd);

        if (r == -ESRCH)
                return 1;
        if (r == -EINVAL || r == -ENOENT)
                return 1; /* the number belongs to a thread now, so the process is gone */
        if (r < 0)
                return r;
        /* The pidfd first, then the start time: if it matches, the pidfd is of that process. */
        r = process_start_ticks(processes, who.pid, &ticks);
        if (r == 0 && ticks == who.start_ticks && !process_is_dead(pidfd)) {
                *ret_pidfd = pidfd;
                return 0;
        }
        (void) close(pidfd);
        return r == 0 || r == -ESRCH ? 1 : r;
}

static struct owner_watch *find(struct owners *o, struct identity who)
{
        for (uint32_t i = 0; i < o->n_watches; i++)
                if (identity_equal(o->watches[i]->who, who))
                        return o->watches[i];
        return NULL;
}

static void on_closed(uv_handle_t *handle)
{
        free(handle->data);
}

static void drop(struct owners *o, struct owner_watch *w)
{
        for (uint32_t i = 0; i < o->n_watches; i++) {
                if (o->watches[i] == w) {
                        o->watches[i] = o->watches[--o->n_watches];
                        break;
                }
        }
        (void) uv_poll_stop(&w->poll);
        (void) close(w->pidfd);
        uv_close((uv_handle_t *) &w->poll, on_closed);
}

static struct owner_watch *add(struct owners *o, struct identity who, int *ret_state)
{
        int pidfd = -1;

        if (o->n_watches == o->cap_watches) {
                uint32_t cap = o->cap_watches ? o->cap_watches * 2 : 16;
                void *grown = reallocarray(o->watches, cap, sizeof(struct owner_watch *));
                if (!grown) {
                        *ret_state = -ENOMEM;
                        return NULL;
                }
                o->watches = grown;
                o->cap_watches = cap;
        }
        *ret_state = owners_hold(o->processes, who, &pidfd);
        if (*ret_state != 0)
                return NULL;

        struct owner_watch *w = calloc(1, sizeof(*w));
        if (!w || uv_poll_init(o->loop, &w->poll, pidfd) != 0) {
                free(w);
                (void) close(pidfd);
                *ret_state = -ENOMEM;
                return NULL;
        }
        w->owners = o;
        w->who = who;
        w->pidfd = pidfd;
        w->poll.data = w;
        (void) uv_poll_start(&w->poll, UV_READABLE, on_exit_seen);
        o->watches[o->n_watches++] = w;
        return w;
}

static bool row_is_watched(const struct owners *o, const struct world *world, uint32_t row)
{
        const struct lease *l = &world->leases[row];

        if (o->role == ROOTS_OF_LEASES)
                return row < world->n_leases && world->lease_ids[row] != 0 && l->root_living;
        return row < world->n_leases && world->lease_ids[row] != 0 && l->binding.kind == BINDING_PROCESS &&
               !l->owner_gone && l->state != LEASE_DRAINING;
}

static struct identity who_is_watched(const struct owners *o, const struct world *world, uint32_t row)
{
        const struct binding *binding = &world->leases[row].binding;

        return o->role == ROOTS_OF_LEASES ? binding->root : binding->owner;
}

static void forget_row(struct owners *o, uint32_t row)
{
        struct owner_watch *w = o->watch[row];

        o->watch[row] = NULL;
        o->lease_id[row] = 0;
        if (w && --w->n_leases == 0)
                drop(o, w);
}

static void watch_row(struct owners *o, const struct world *world, uint32_t row, enum end_reason end)
{
        uint64_t id = world->lease_ids[row];
        struct identity who = who_is_watched(o, world, row);
        struct owner_watch *w = find(o, who);
        int state = 0;

        if (!w)
                w = add(o, who, &state);
        if (!w && state < 0) {
                if (!o->incomplete)
                        log_error("event=owner-not-watched lease=L%llu pid=%u words=\"%s\"", (unsigned long long) id,
                                  who.pid, strerror(-state));
                o->incomplete = true;
                return;
        }
        o->lease_id[row] = id;
        o->watch[row] = w;
        o->who[row] = who;
        if (w)
                w->n_leases++;
        if (!w || w->gone)
                tell_gone(o, who, id, w ? END_OWNER_EXITED : end);
}

void owners_sync(struct owners *o, const struct world *world, enum end_reason end)
{
        uint32_t n = world->n_leases > o->n_rows ? world->n_leases : o->n_rows;

        o->incomplete = false;
        for (uint32_t row = 0; row < n; row++) {
                bool wanted = row_is_watched(o, world, row);
                if (o->lease_id[row] != 0 && (!wanted || o->lease_id[row] != world->lease_ids[row] ||
                                              !identity_equal(o->who[row], who_is_watched(o, world, row))))
                        forget_row(o, row);
        }
        o->n_rows = world->n_leases;
        for (uint32_t row = 0; row < o->n_rows; row++)
                if (o->lease_id[row] == 0 && row_is_watched(o, world, row))
                        watch_row(o, world, row, end);
}

uint64_t owners_pidfd_inode(const struct owners *o, struct identity who)
{
        struct stat st;

        for (uint32_t i = 0; i < o->n_watches; i++)
                if (identity_equal(o->watches[i]->who, who))
                        return fstat(o->watches[i]->pidfd, &st) == 0 ? (uint64_t) st.st_ino : 0;
        return 0;
}

void owners_close(struct owners *o)
{
        for (uint32_t row = 0; row < o->n_rows; row++)
                if (o->lease_id[row] != 0)
                        forget_row(o, row);
        free(o->watches);
        o->watches = NULL;
        o->n_watches = o->cap_watches = 0;
        o->n_rows = 0;
}
