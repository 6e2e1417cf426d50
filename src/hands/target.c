/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/target.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/process_file.h"
#include "base/proc_text.h"

enum {
        STAT_MAX = 4096, /* 52 numbers and a name come to 1.2 KiB at the very most */
        STATUS_MAX = 8192,
        /* in field 9 of stat; ps(1) and systemd rely on them too */
        FLAG_KERNEL_THREAD = 0x00200000,
        FLAG_EXITING = 0x00000004,
};

bool target_parse_stat(const char *text, size_t n, struct target *ret)
{
        uint64_t ppid, flags, start;
        const char *p = n > 0 ? memrchr(text, ')', n) : NULL;

        if (!p || memchr(text, '\0', n) || n - (size_t) (p - text) < 5 || p[1] != ' ' || p[3] != ' ')
                return false;
        char state = p[2];
        p += 4; /* field 4, the parent */
        if (!proc_text_number(&p, &ppid) || ppid > INT32_MAX)
                return false;
        p = proc_text_skip(p, 4); /* group, session, terminal, its group (which may be -1) */
        if (!proc_text_number(&p, &flags))
                return false;
        p = proc_text_skip(p, 12); /* up to field 22 */
        if (!proc_text_number(&p, &start))
                return false;
        ret->state = state;
        ret->ppid = (uint32_t) ppid;
        ret->kernel_thread = (flags & FLAG_KERNEL_THREAD) != 0;
        ret->exiting = (flags & FLAG_EXITING) != 0;
        ret->start_ticks = start;
        return true;
}

static bool read_stat(int dir, struct target *t)
{
        char text[STAT_MAX];
        size_t n = 0;

        return proc_text_read(dir, "stat", text, sizeof(text), &n) && target_parse_stat(text, n, t);
}

/* The first number of "Uid:\t…" is the real one: who started it, which a set-uid program does not change. */
static bool read_uid(int dir, struct target *t)
{
        char text[STATUS_MAX];
        size_t n = 0;
        uint64_t uid;

        if (!proc_text_read(dir, "status", text, sizeof(text), &n))
                return false;
        const char *p = strstr(text, "\nUid:\t"); /* Name: comes first, and the kernel escapes newlines in it */
        if (!p)
                return false;
        p += strlen("\nUid:\t");
        if (!proc_text_number(&p, &uid) || uid >= UINT32_MAX)
                return false;
        t->real_uid = (uid_t) uid;
        return true;
}

/*
 * By what the kernel has in memory: a file server that does not answer must not stop the hands. A file system that a user mounted
 * for themselves (an AppImage) shows us its device and no more; no program that is protected lies there.
 */
static void read_program(int dir, struct target *t)
{
        enum { FLAGS = AT_STATX_DONT_SYNC, WANTED = STATX_INO | STATX_UID | STATX_NLINK };
        struct statx st;

        if (statx(dir, "exe", FLAGS, WANTED, &st) < 0 && (errno != EACCES || statx(dir, "exe", FLAGS, 0, &st) < 0))
                return;
        bool whole = (st.stx_mask & WANTED) == WANTED;
        t->program_known = true;
        t->program = (struct program_id){ makedev(st.stx_dev_major, st.stx_dev_minor), whole ? (ino_t) st.stx_ino : 0 };
        t->program_removed = whole && st.stx_nlink == 0 && st.stx_uid == 0;
        ssize_t n = readlinkat(dir, "exe", t->program_path, sizeof(t->program_path));
        t->program_path[n > 0 && (size_t) n < sizeof(t->program_path) ? n : 0] = '\0';
}

static void read_cgroup(int dir, struct target *t)
{
        char text[2 * TARGET_CGROUP_SIZE];
        size_t n = 0;

        if (proc_text_read(dir, "cgroup", text, sizeof(text), &n))
                (void) proc_text_cgroup(text, n, t->cgroup, sizeof(t->cgroup));
}

static int open_proc(uint32_t pid)
{
        char path[32];

        (void) snprintf(path, sizeof(path), "/proc/%u", pid);
        return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool target_look(uint32_t pid, struct target *ret)
{
        auto_close int dir = open_proc(pid);

        *ret = (struct target){ .pid = pid };
        ret->seen = dir >= 0 && read_stat(dir, ret);
        return ret->seen;
}

void target_file(const struct target *t, const char *path, uint64_t *ret_dev, uint64_t *ret_inode)
{
        auto_close int dir = open_proc(t->pid);

        if (dir >= 0)
                (void) process_file_look(dir, path, false, ret_dev, ret_inode);
}

bool target_is_dead(int pidfd)
{
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        return poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0;
}

int target_signal(int pidfd, int signal)
{
        return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

void target_open(uint32_t pid, struct target *ret, int *ret_pidfd)
{
        struct target again = { 0 };
        struct stat st;

        *ret = (struct target){ .pid = pid };
        *ret_pidfd = -1;
        auto_close int pidfd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (pidfd < 0) {
                /* EINVAL, lately ENOENT: the number is a thread's, whose process has another one */
                ret->gone = errno == ESRCH || errno == EINVAL || errno == ENOENT;
                ret->no_pidfd = errno == ENOSYS;
                ret->error = ret->gone || ret->no_pidfd ? 0 : errno;
                return;
        }
        auto_close int dir = open_proc(pid);
        bool seen = dir >= 0 && read_stat(dir, ret) && read_uid(dir, ret);
        if (seen) {
                read_program(dir, ret);
                read_cgroup(dir, ret);
                /* Alive before and after: the number cannot have changed hands between the pidfd and the folder. */
                seen = read_stat(dir, &again) && again.start_ticks == ret->start_ticks;
                ret->exiting =
                        again.exiting && again.state != 'Z'; /* a first thread that ended says nothing of the others */
        }
        if (target_is_dead(pidfd)) {
                *ret = (struct target){ .pid = pid, .gone = true };
                return;
        }
        ret->seen = seen && fstat(pidfd, &st) == 0;
        ret->pidfd_inode = ret->seen ? st.st_ino : 0;
        *ret_pidfd = take_fd(pidfd);
}
