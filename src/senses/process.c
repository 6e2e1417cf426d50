/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mask.h"
#include "base/proc_text.h"
#include "base/process_file.h"
#include "base/script.h"
#include "senses/proc.h"

enum {
        ENVIRON_MAX = 1024 * 1024,   /* what lies further back is not looked at; a shell's is 4 KiB */
        MOUNTINFO_MAX = 1024 * 1024, /* thousands of container mounts are normal */
        COMMAND_MAX = 128 * 1024,    /* of a longer one no number is known; the kernel allows megabytes */
};

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int process_open_pidfd(uint32_t pid, int *ret_pidfd)
{
        long fd = syscall(SYS_pidfd_open, (pid_t) pid, 0); /* CLOEXEC by itself */
        if (fd < 0)
                return -errno;
        *ret_pidfd = (int) fd;
        return 0;
}

bool process_is_dead(int pidfd)
{
        struct pollfd p = { .fd = pidfd, .events = POLLIN };
        return poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0;
}

int process_source_init(struct process_source *ret, const char *proc_root, struct error *err)
{
        char path[PATH_MAX];
        size_t n = 0;
        bool cut = false;

        memset(ret, 0, sizeof(*ret));
        if (strlen(proc_root) >= sizeof(ret->proc_root))
                return error_set(err, ENAMETOOLONG, "the proc folder %s has a name over %zu bytes", proc_root,
                                 sizeof(ret->proc_root) - 1);
        (void) snprintf(ret->proc_root, sizeof(ret->proc_root), "%s", proc_root);
        if (access(proc_root, R_OK | X_OK) < 0)
                return error_errno(err, errno, "%s cannot be read", proc_root);
        if (proc_read_boot_id(proc_root, ret->boot_id) < 0)
                ret->boot_id[0] = '\0';
        ret->host_pids = proc_sees_host_pids(proc_root);

        auto_free char *mounts = malloc(MOUNTINFO_MAX);
        if (!mounts)
                return error_set(err, ENOMEM, "no memory to read the mounts");
        (void) snprintf(path, sizeof(path), "%s/self/mountinfo", proc_root);
        ret->cgroup_known =
                proc_read(AT_FDCWD, path, mounts, MOUNTINFO_MAX, &n, &cut) == 0 &&
                proc_parse_cgroup_mount(mounts, n, ret->cgroup_point, ret->cgroup_root, sizeof(ret->cgroup_point)) == 0;
        return 0;
}

/*
 * The kernel appends " (deleted)" to the link of a program whose file was removed or replaced; a file may also simply be
 * called that. It is deleted when no name is left, or when that longer name is not this file.
 */
static void note_deleted(struct eyes_process *p, uint64_t n_links)
{
        static const char suffix[] = " (deleted)";
        size_t n = strlen(p->exe_path), n_suffix = sizeof(suffix) - 1;
        struct stat named;

        if (n <= n_suffix || strcmp(p->exe_path + n - n_suffix, suffix) != 0)
                return;
        if (n_links > 0 && stat(p->exe_path, &named) == 0 && named.st_ino == p->exe_inode && named.st_dev == p->exe_dev)
                return;
        p->exe_deleted = true;
        p->exe_path[n - n_suffix] = '\0';
}

static void collect_exe(int pid_fd, struct eyes_process *p)
{
        struct stat st;

        ssize_t n = readlinkat(pid_fd, "exe", p->exe_path, sizeof(p->exe_path) - 1);
        if (n < 0 || fstatat(pid_fd, "exe", &st, 0) < 0) {
                memset(p->exe_path, 0, sizeof(p->exe_path));
                return;
        }
        p->exe_path[n] = '\0';
        p->exe_known = true;
        p->exe_dev = st.st_dev;
        p->exe_inode = st.st_ino;
        note_deleted(p, st.st_nlink);
}

static void collect_cgroup(const struct process_source *src, int pid_fd, struct eyes_process *p)
{
        char text[2 * EYES_PATH_SIZE], dir[2 * EYES_PATH_SIZE];
        size_t n = 0;
        bool cut = false;
        struct stat st;

        if (proc_read(pid_fd, "cgroup", text, sizeof(text), &n, &cut) < 0 || cut)
                return;
        if (proc_text_cgroup(text, n, p->cgroup_path, sizeof(p->cgroup_path)) < 0) {
                p->cgroup_path[0] = '\0';
                return;
        }
        p->cgroup_known = true;

        const char *below = p->cgroup_path;
        size_t n_root = strcmp(src->cgroup_root, "/") == 0 ? 0 : strlen(src->cgroup_root);
        if (!src->cgroup_known || strncmp(below, src->cgroup_root, n_root) != 0)
                return;
        (void) snprintf(dir, sizeof(dir), "%s%s", src->cgroup_point, below + n_root);
        if (stat(dir, &st) == 0) {
                p->cgroup_id_known = true;
                p->cgroup_id = st.st_ino;
        }
}

/* All of its words, in a number that nobody finds other words for. */
static void number_command(const char *words, size_t n, struct eyes_process *p)
{
        uint8_t digest[SHA256_DIGEST_LENGTH];
        SHA2_CTX sha;

        SHA256Init(&sha);
        SHA256Update(&sha, (const uint8_t *) words, n);
        SHA256Final(digest, &sha);
        p->command_known = true;
        for (size_t i = 0; i < sizeof(p->command); i++)
                p->command = p->command << 8 | digest[i];
}

/* What it was started with, and of an interpreter the file that is its script, as its own folders have it. */
static void collect_command(int pid_fd, struct eyes_process *p)
{
        char path[EYES_CMDLINE_MAX];
        size_t n = 0;
        bool cut = false;

        auto_free char *words = malloc(COMMAND_MAX);
        if (!words || proc_read(pid_fd, "cmdline", words, COMMAND_MAX, &n, &cut) < 0)
                return;
        if (n > 0 && !cut)
                number_command(words, n, p);
        p->cmdline_cut = n > sizeof(p->cmdline);
        p->n_cmdline = (uint32_t) (p->cmdline_cut ? sizeof(p->cmdline) : n);
        memcpy(p->cmdline, words, p->n_cmdline);
        if (!p->exe_known)
                return;
        p->script_kind = (uint8_t) script_of_command(p->exe_path, p->cmdline, p->n_cmdline, path, sizeof(path));
        if (p->script_kind == SCRIPT_FILE)
                p->script_known = process_file_look(pid_fd, path, true, &p->script_dev, &p->script_inode);
}

static bool token_is_wellformed(const char *token)
{
        for (; *token; token++)
                if (!((*token >= 'a' && *token <= 'z') || (*token >= 'A' && *token <= 'Z') ||
                      (*token >= '0' && *token <= '9') || *token == '-' || *token == '_' || *token == '.'))
                        return false;
        return true;
}

static void collect_token(int pid_fd, struct eyes_process *p)
{
        size_t n = 0;
        bool cut = false;

        auto_free char *block = malloc(ENVIRON_MAX);
        if (!block || proc_read(pid_fd, "environ", block, ENVIRON_MAX, &n, &cut) < 0)
                return;
        if (proc_find_environ(block, n, "LESSOR_TOKEN", p->token, sizeof(p->token)) < 0 ||
            !token_is_wellformed(p->token))
                memset(p->token, 0, sizeof(p->token));
}

/* Parents up to the root. A "parent" that started after its child is a later owner of the number: the chain ends there. */
static void collect_ancestors(const struct process_source *src, struct eyes_process *p)
{
        uint32_t pid = p->ppid;
        uint64_t child_start = p->start_ticks;

        while (pid > 0 && p->n_ancestors < EYES_ANCESTORS_MAX) {
                struct proc_stat st;
                auto_close int fd = -1;

                if (proc_open_pid(src->proc_root, pid, &fd) < 0 || proc_read_stat(fd, &st) < 0)
                        return;
                if (st.pid != pid || st.start_ticks > child_start)
                        return;
                p->ancestors[p->n_ancestors++] = (struct eyes_ancestor){ .pid = pid, .start_ticks = st.start_ticks };
                child_start = st.start_ticks;
                pid = st.ppid;
        }
}

static void collect_facts(const struct process_source *src, int pid_fd, const struct proc_stat *st,
                          struct eyes_process *p)
{
        struct proc_status status;

        p->pid = st->pid;
        p->start_ticks = st->start_ticks;
        p->ppid = st->ppid;
        p->sid = st->session;
        p->kernel_thread = st->kernel_thread;
        memcpy(p->comm, st->comm, sizeof(p->comm));
        if (proc_read_status(pid_fd, &status) == 0 && status.uid_known) {
                p->uid_known = true;
                p->uid = status.real_uid;
        }
        collect_exe(pid_fd, p);
        collect_cgroup(src, pid_fd, p);
        collect_command(pid_fd, p);
        (void) mask_arguments(p->cmdline, p->n_cmdline); /* before anybody sees it: nothing else here reads one */
        collect_token(pid_fd, p);
        collect_ancestors(src, p);
}

/* What a failure to look into /proc/PID means depends on whether the process lives. */
static int not_visible(int pidfd, uint32_t pid, int r, struct error *err)
{
        if (process_is_dead(pidfd))
                return error_set(err, ESRCH, "process %u ended while it was looked at", pid);
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
                return error_errno(err, -r, "process %u", pid);
        return error_errno(err, EACCES, "process %u lives, but /proc does not show it", pid);
}

int process_identify(const struct process_source *src, uint32_t pid, struct eyes_process *ret_facts, int *ret_pidfd,
                     struct error *err)
{
        struct proc_stat st, again;
        auto_close int pidfd = -1;
        auto_close int pid_fd = -1;

        if (pid == 0 || pid > EYES_PID_MAX)
                return error_set(err, ESRCH, "%u is no pid; they go from 1 to %d", pid, EYES_PID_MAX);
        int r = process_open_pidfd(pid, &pidfd);
        if (r == -ESRCH)
                return error_set(err, ESRCH, "no process has the pid %u", pid);
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
                return error_errno(err, -r, "taking hold of process %u", pid);
        if (r < 0)
                return error_errno(err, EACCES, "taking hold of process %u (%s)", pid, strerror(-r));
        if (process_is_dead(pidfd))
                return error_set(err, ESRCH, "process %u has ended and waits for its parent", pid);
        r = proc_open_pid(src->proc_root, pid, &pid_fd);
        if (r < 0)
                return not_visible(pidfd, pid, r, err);
        r = proc_read_stat(pid_fd, &st);
        if (r < 0 || st.pid != pid)
                return not_visible(pidfd, pid, r, err);

        memset(ret_facts, 0, sizeof(*ret_facts));
        collect_facts(src, pid_fd, &st, ret_facts);

        /* Alive before and after: the number cannot have changed hands between pidfd_open() and open("/proc/PID"). */
        r = proc_read_stat(pid_fd, &again);
        if (r < 0)
                return not_visible(pidfd, pid, r, err);
        if (again.start_ticks != st.start_ticks || process_is_dead(pidfd))
                return error_set(err, ESRCH, "process %u ended while it was looked at", pid);
        if (ret_pidfd)
                *ret_pidfd = take_fd(pidfd);
        return 0;
}

int process_start_ticks(const struct process_source *src, uint32_t pid, uint64_t *ret_ticks)
{
        struct proc_stat st;
        auto_close int fd = -1;

        int r = proc_open_pid(src->proc_root, pid, &fd);
        if (r == 0)
                r = proc_read_stat(fd, &st);
        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        if (st.state == 'Z' && st.n_threads <= 1) /* a leader whose threads live on is a zombie too, and alive */
                return -ESRCH;
        *ret_ticks = st.start_ticks;
        return 0;
}
