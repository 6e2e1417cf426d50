/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-checkpoint/host.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"

enum {
        STATUS_MAX = 8192,
        KIB = 1024,
        LOOK_FIRST_US = 50,
        LOOK_MOST_US = 2000,
        OOM_NEVER = -1000,
        OOM_WITHOUT_RIGHTS = 0
};

/* A file of /proc/PID; bytes read, or -1. */
static ssize_t read_proc(uint32_t pid, const char *name, char *buf, size_t size)
{
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1); /* /proc gives files this small in one piece */
        buf[n > 0 ? n : 0] = '\0';
        return n;
}

/* ---- memory ---- */

/* "RssAnon:     1024 kB" */
static bool line_bytes(const char *status, const char *name, uint64_t *sum)
{
        const char *at = strstr(status, name);
        char number[24];
        uint64_t kib;

        if (!at)
                return false;
        at += strlen(name);
        at += strspn(at, " \t");
        size_t n = strspn(at, "0123456789");
        if (n >= sizeof(number) || strncmp(at + n, " kB\n", 4) != 0)
                return false;
        (void) snprintf(number, sizeof(number), "%.*s", (int) n, at);
        if (parse_u64(name, number, 0, UINT64_MAX / KIB, &kib, NULL) < 0)
                return false;
        *sum = u64_add_sat(*sum, kib * KIB);
        return true;
}

bool host_bytes_of(uint32_t pid, uint64_t *ret)
{
        char status[STATUS_MAX];

        *ret = 0;
        return read_proc(pid, "status", status, sizeof(status)) > 0 && line_bytes(status, "\nRssAnon:", ret) &&
               line_bytes(status, "\nRssShmem:", ret) && line_bytes(status, "\nVmSwap:", ret);
}

/* ---- standing still ---- */

bool host_is_frozen(int cgroup_root, uint32_t pid)
{
        struct target t;
        int pidfd;

        target_open(pid, &t, &pidfd);
        closep(&pidfd);
        auto_close int folder = t.cgroup[0] == '/' && cgroup_root >= 0 ? cgroup2_open(cgroup_root, t.cgroup + 1) : -1;
        return folder >= 0 && cgroup2_wait(folder, "frozen", '1', 0) == 1; /* also when a folder above it is */
}

static bool is_stopped(uint32_t pid)
{
        struct target t;

        return target_look(pid, &t) && (t.state == 'T' || t.state == 't');
}

bool host_stands_still(int cgroup_root, uint32_t pid)
{
        return is_stopped(pid) || host_is_frozen(cgroup_root, pid);
}

bool host_wait_stopped(uint32_t pid, bool stopped, uint32_t wait_ms)
{
        uint64_t end_ms = clock_now_ms() + wait_ms;

        /* Mostly it is so at once, and somebody waits for its memory. */
        for (long us = LOOK_FIRST_US; is_stopped(pid) != stopped; us = us < LOOK_MOST_US / 2 ? 2 * us : LOOK_MOST_US) {
                if (clock_now_ms() >= end_ms)
                        return false;
                (void) ppoll(NULL, 0, &(struct timespec){ .tv_nsec = us * 1000 }, NULL);
        }
        return true;
}

/* ---- the OOM killer ---- */

void host_oom_look(struct record *record)
{
        char text[16];
        char *end = text;

        if (record->oom_kept || read_proc(record->pid, "oom_score_adj", text, sizeof(text)) <= 0)
                return;
        long v = strtol(text, &end, 10);
        if (end == text || *end != '\n' || v < -1000 || v > 1000)
                return;
        record->oom_kept = true;
        record->oom_score_adj = (int32_t) v;
}

/* The file is opened before the pidfd is asked: while that process lives, it is its file. */
static int write_adj(uint32_t pid, int pidfd, int32_t value)
{
        char path[64], text[16];
        int n = snprintf(text, sizeof(text), "%" PRId32, value);

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/oom_score_adj", pid);
        auto_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        if (target_is_dead(pidfd))
                return -ESRCH;
        return write(fd, text, (size_t) n) == n ? 0 : -errno;
}

void host_oom_protect(const struct record *record, int pidfd)
{
        if (!record->oom_kept)
                return;
        int r = write_adj(record->pid, pidfd, OOM_NEVER);
        if (r < 0 &&
            record->oom_score_adj > OOM_WITHOUT_RIGHTS) /* without CAP_SYS_RESOURCE: as low as it may once have been */
                r = write_adj(record->pid, pidfd, OOM_WITHOUT_RIGHTS);
        if (r < 0)
                log_info("event=oom-not-lowered pid=%" PRIu32 " errno=%d", record->pid, -r);
}

void host_oom_put_back(struct record *record, int pidfd)
{
        if (record->oom_kept) {
                int r = write_adj(record->pid, pidfd, record->oom_score_adj);
                if (r < 0 && r != -ESRCH)
                        log_warning("event=oom-not-put-back pid=%" PRIu32 " errno=%d", record->pid, -r);
        }
        record->oom_kept = false;
        record->oom_score_adj = 0;
}
