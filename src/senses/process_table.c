/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/process_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

int process_table_init(struct process_table *t, size_t max, struct error *err)
{
        *t = (struct process_table){ .max = max, .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
        if (t->epoll_fd < 0)
                return error_errno(err, errno, "epoll_create1");
        return 0;
}

void process_table_fini(struct process_table *t)
{
        for (size_t i = 0; i < t->n; i++)
                (void) close(t->entries[i].pidfd);
        free(t->entries);
        if (t->epoll_fd >= 0)
                (void) close(t->epoll_fd);
        *t = (struct process_table){ .epoll_fd = -1 };
}

/* Where @pid is, or would be put. */
static size_t place_of(const struct process_table *t, uint32_t pid)
{
        size_t low = 0, high = t->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;
                if (t->entries[mid].pid < pid)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

const struct process_entry *process_table_find(const struct process_table *t, uint32_t pid)
{
        size_t i = place_of(t, pid);
        return i < t->n && t->entries[i].pid == pid ? &t->entries[i] : NULL;
}

int process_table_add(struct process_table *t, uint32_t pid, uint64_t start_ticks, int pidfd)
{
        struct epoll_event ev = { .events = EPOLLIN, .data.u64 = pid };

        if (process_table_find(t, pid))
                return -EEXIST;
        if (t->n >= t->max)
                return -ENOSPC;
        if (t->n == t->cap) {
                size_t cap = t->cap ? 2 * t->cap : 64;
                struct process_entry *more = reallocarray(t->entries, cap, sizeof(*more));
                if (!more)
                        return -ENOMEM;
                t->entries = more;
                t->cap = cap;
        }
        if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, pidfd, &ev) < 0)
                return -errno;

        size_t i = place_of(t, pid);
        memmove(&t->entries[i + 1], &t->entries[i], (t->n - i) * sizeof(*t->entries));
        t->entries[i] = (struct process_entry){ .pid = pid, .pidfd = pidfd, .start_ticks = start_ticks };
        t->n++;
        return 0;
}

bool process_table_take_exited(struct process_table *t, struct process_entry *ret)
{
        struct epoll_event ev;
        int n;

        do {
                n = epoll_wait(t->epoll_fd, &ev, 1, 0);
        } while (n < 0 && errno == EINTR);
        if (n <= 0)
                return false;

        size_t i = place_of(t, (uint32_t) ev.data.u64);
        if (i >= t->n || t->entries[i].pid != ev.data.u64)
                return false; /* cannot be: entries leave the epoll set with the table */
        *ret = t->entries[i];
        (void) epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, ret->pidfd,
                         NULL); /* the brain may hold a copy: close alone is not enough */
        (void) close(ret->pidfd);
        ret->pidfd = -1;
        memmove(&t->entries[i], &t->entries[i + 1], (t->n - i - 1) * sizeof(*t->entries));
        t->n--;
        return true;
}
