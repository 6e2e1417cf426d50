/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/parked_watch.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"

struct parked_one {
        struct parked_watch *watch;
        struct identity who;
        int pidfd;
        uv_poll_t poll;
        bool wanted;
};

void parked_watch_init(struct parked_watch *p, uv_loop_t *loop, const struct process_source *processes,
                       owners_submit_fn *submit, void *ctx)
{
        *p = (struct parked_watch){ .loop = loop, .processes = processes, .submit = submit, .ctx = ctx };
}

static void tell_ended(const struct parked_watch *p, struct identity who)
{
        struct input input = { .kind = INPUT_PROCESS_ENDED, .process_ended = who };
        p->submit(p->ctx, &input);
}

static void on_exit_seen(uv_poll_t *poll, int status, int events)
{
        struct parked_one *one = poll->data;

        (void) status;
        (void) events;
        (void) uv_poll_stop(poll);
        tell_ended(one->watch, one->who);
}

static void on_closed(uv_handle_t *handle)
{
        free(handle->data);
}

static void drop(struct parked_watch *p, uint32_t i)
{
        struct parked_one *one = p->items[i];

        p->items[i] = p->items[--p->n];
        (void) uv_poll_stop(&one->poll);
        (void) close(one->pidfd);
        uv_close((uv_handle_t *) &one->poll, on_closed);
}

static struct parked_one *find(const struct parked_watch *p, struct identity who)
{
        for (uint32_t i = 0; i < p->n; i++)
                if (identity_equal(p->items[i]->who, who))
                        return p->items[i];
        return NULL;
}

static bool make_room(struct parked_watch *p)
{
        if (p->n < p->cap)
                return true;
        uint32_t cap = p->cap ? p->cap * 2 : 16;
        void *grown = reallocarray(p->items, cap, sizeof(struct parked_one *));
        if (!grown)
                return false;
        p->items = grown;
        p->cap = cap;
        return true;
}

static void add(struct parked_watch *p, struct identity who)
{
        struct parked_one *one = make_room(p) ? calloc(1, sizeof(*one)) : NULL;
        int pidfd = -1, r = one ? owners_hold(p->processes, who, &pidfd) : -ENOMEM;

        if (r > 0)
                tell_ended(p, who);
        if (r == 0 && uv_poll_init(p->loop, &one->poll, pidfd) != 0) {
                (void) close(pidfd);
                r = -ENOMEM;
        }
        if (r != 0) {
                if (r < 0 && !p->incomplete)
                        log_error("event=parked-not-watched pid=%u words=\"%s\"", who.pid, strerror(-r));
                p->incomplete = p->incomplete || r < 0;
                free(one);
                return;
        }
        one->watch = p;
        one->who = who;
        one->pidfd = pidfd;
        one->poll.data = one;
        one->wanted = true;
        (void) uv_poll_start(&one->poll, UV_READABLE, on_exit_seen);
        p->items[p->n++] = one;
}

static void want(struct parked_watch *p, struct identity who)
{
        struct parked_one *one = find(p, who);

        if (one)
                one->wanted = true;
        else
                add(p, who);
}

void parked_watch_sync(struct parked_watch *p, const struct world *world)
{
        p->incomplete = false;
        for (uint32_t i = 0; i < p->n; i++)
                p->items[i]->wanted = false;
        for (uint32_t i = 0; i < world->n_processes; i++) {
                const struct process *process = &world->processes[i];
                if (process->member == MEMBER_RUNNING || process->state == PROCESS_ENDED)
                        continue;
                want(p, process->identity);
        }
        for (uint32_t i = 0; i < world->n_audits; i++)
                if (world->audits[i].noticed_ms != 0 && world->audits[i].gone_ms == 0)
                        want(p, world->audits[i].identity);
        for (uint32_t i = p->n; i > 0; i--)
                if (!p->items[i - 1]->wanted)
                        drop(p, i - 1);
}

uint64_t parked_watch_pidfd_inode(const struct parked_watch *p, struct identity who)
{
        const struct parked_one *one = find(p, who);
        struct stat st;

        return one && fstat(one->pidfd, &st) == 0 ? (uint64_t) st.st_ino : 0;
}

void parked_watch_close(struct parked_watch *p)
{
        while (p->n > 0)
                drop(p, p->n - 1);
        free(p->items);
        p->items = NULL;
        p->cap = 0;
}
