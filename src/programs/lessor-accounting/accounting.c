/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-accounting/accounting.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/log.h"

enum { RECORD_BYTES = 64, TELL_MS = 10000, ALIVE_FD = 3, TELL_FD, FIRST_OTHER_FD };

#define RECORDS "records"
#define RECORDS_BEFORE "records.1"
#define RECORDS_NEW "records.new"

struct keeper {
        const struct accounting_options *options;
        int folder;
        int file; /* the kernel writes to it */
        bool was_silent;
};

/* Where distributions keep theirs. */
static const char *const known_files[] = { "/var/log/account/pacct", "/var/account/pacct", "/var/log/pacct" };
enum { KNOWN_FILES = sizeof(known_files) / sizeof(known_files[0]) };

/* ---- is it on? The kernel does not say; somebody ends, and whoever keeps it writes that down ---- */

static void somebody_ends(void)
{
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

static off_t size_of(const char *path)
{
        struct stat st;
        return stat(path, &st) == 0 ? st.st_size : -1;
}

static const char *kept_by_others(void)
{
        off_t before[KNOWN_FILES];

        for (size_t i = 0; i < KNOWN_FILES; i++)
                before[i] = size_of(known_files[i]);
        somebody_ends();
        for (size_t i = 0; i < KNOWN_FILES; i++)
                if (before[i] >= 0 && size_of(known_files[i]) > before[i])
                        return known_files[i];
        return NULL;
}

static bool is_written(const struct keeper *k)
{
        struct stat before, after;

        if (fstat(k->file, &before) < 0)
                return false;
        somebody_ends();
        return fstat(k->file, &after) == 0 && after.st_size >= before.st_size + RECORD_BYTES;
}

/* Somebody, the next one of us maybe, has put a file of his own in the place of ours. */
static bool is_in_place(const struct keeper *k)
{
        struct stat ours, there;

        return fstat(k->file, &ours) == 0 && fstatat(k->folder, RECORDS, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
               ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* ---- files ---- */

static int open_folder(const char *path, gid_t readers, int *ret, struct error *err)
{
        struct stat st;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return error_errno(err, errno, "making %s", path);
        auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_errno(err, errno, "opening %s", path);
        if (st.st_uid != geteuid() || (st.st_mode & 022) != 0)
                return error_set(err, EPERM, "%s is not root's alone: chown root, chmod go-w", path);
        /* What is made in it later has its group: who keeps it may not give files away any more. */
        if (fchown(fd, (uid_t) -1, readers) < 0 || fchmod(fd, readers == (gid_t) -1 ? 0700 : 02750) < 0)
                return error_errno(err, errno, "opening %s to its readers", path);
        *ret = take_fd(fd);
        return 0;
}

/* The kernel takes a path: of the folder that is open, whatever has become of its name. */
static int write_to(int folder, const char *name, struct error *err)
{
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder, name);
        return acct(path) == 0 ? 0 : error_errno(err, errno, "switching process accounting on");
}

/* The next file is there under its name before and after: first the kernel goes over to it, then the name does. */
static int begin_file(struct keeper *k, struct error *err)
{
        (void) unlinkat(k->folder, RECORDS_NEW, 0);
        auto_close int fd = openat(k->folder, RECORDS_NEW, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (fd < 0 || fchmod(fd, 0640) < 0)
                return error_errno(err, errno, "making a file for process accounting");
        int r = write_to(k->folder, RECORDS_NEW, err);
        if (r < 0) {
                (void) unlinkat(k->folder, RECORDS_NEW, 0);
                return r;
        }
        if (k->file >= 0) { /* a second name for it: at no moment is there no file by the first */
                (void) unlinkat(k->folder, RECORDS_BEFORE, 0);
                if (linkat(k->folder, RECORDS, k->folder, RECORDS_BEFORE, 0) < 0)
                        log_debug("event=gap words=\"%s\"", strerror(errno)); /* who reads it sees one */
        }
        if (renameat(k->folder, RECORDS_NEW, k->folder, RECORDS) < 0) {
                r = error_errno(err, errno, "giving the file of process accounting its name");
                (void) acct(NULL);
                return r;
        }
        if (k->file >= 0)
                (void) close(k->file);
        k->file = take_fd(fd);
        return 0;
}

static void forget_files(const struct keeper *k)
{
        (void) unlinkat(k->folder, RECORDS, 0);
        (void) unlinkat(k->folder, RECORDS_BEFORE, 0);
        (void) unlinkat(k->folder, RECORDS_NEW, 0);
}

/* ---- as long as whoever started it lives ---- */

/* False: it is somebody else's now. On a full disk the kernel pauses by itself and goes on by itself. */
static bool look_after(struct keeper *k)
{
        struct error err = { 0 };
        struct stat st;

        if (!is_in_place(k))
                return false;
        bool written = is_written(k);
        if (!written && k->was_silent) {
                log_warning("event=accounting-lost words=\"process accounting was switched off, taken over by another "
                            "program, or its disk is full; it is left as it is: start lessor-accounting again to have "
                            "it back\"");
                forget_files(k);
                return false;
        }
        k->was_silent = !written;
        if (fstat(k->file, &st) == 0 && st.st_size >= k->options->file_max_bytes && begin_file(k, &err) < 0)
                log_warning("event=accounting-not-rotated words=\"%s\"", err.msg);
        return true;
}

static void keep(struct keeper *k, int alive)
{
        struct pollfd p = { .fd = alive, .events = POLLIN };
        int n;

        while ((n = poll(&p, 1, (int) k->options->look_ms)) == 0 || (n < 0 && errno == EINTR))
                if (n == 0 && !look_after(k))
                        return;
        (void) flock(k->folder, LOCK_EX); /* not while the next one begins */
        if (!is_in_place(k))
                return;
        if (is_written(k))
                (void) acct(NULL);
        forget_files(k);
}

/* CAP_SYS_PACCT is all it takes: the folder is ours. */
static int give_up_rights(struct error *err)
{
        static const int kept[] = { CAP_SYS_PACCT };
        static const char *const calls[] = { "acct",
                                             "brk",
                                             "clone",
                                             "clone3",
                                             "close",
                                             "exit",
                                             "exit_group",
                                             "fchmod",
                                             "flock",
                                             "fork",
                                             "fstat",
                                             "futex",
                                             "getpid",
                                             "gettid",
                                             "linkat",
                                             "lseek",
                                             "madvise",
                                             "mmap",
                                             "mprotect",
                                             "munmap",
                                             "newfstatat",
                                             "openat",
                                             "poll",
                                             "ppoll",
                                             "read",
                                             "renameat",
                                             "renameat2",
                                             "restart_syscall",
                                             "rseq",
                                             "rt_sigaction",
                                             "rt_sigprocmask",
                                             "rt_sigreturn",
                                             "set_robust_list",
                                             "stat",
                                             "statx",
                                             "unlinkat",
                                             "wait4",
                                             "write",
                                             "writev",
                                             "clock_gettime",
                                             "sendto",
                                             NULL };
        int r = confine_no_core(err);

        if (r == 0)
                r = confine_capabilities(kept, 1, err);
#ifdef LESSOR_SANITIZED
        (void) calls;
        return r;
#else
        if (r == 0)
                r = confine_allow(calls, CONFINE_REFUSE, err);
        return r == -EOPNOTSUPP ? 0 : r;
#endif
}

static int begin(struct keeper *k, struct error *err)
{
        int r = open_folder(k->options->folder, k->options->readers, &k->folder, err);
        if (r < 0)
                return r;
        const char *others = kept_by_others();
        if (others)
                return error_set(err, EBUSY, "process accounting is kept by another program, in %s", others);
        r = give_up_rights(err);
        if (r < 0)
                return r;
        (void) flock(k->folder, LOCK_EX);
        forget_files(k); /* of one before: what lies between is a gap */
        r = begin_file(k, err);
        (void) flock(k->folder, LOCK_UN);
        return r;
}

/* What else is open is not to outlive its owner here. */
static void close_others(int *alive, int *tell)
{
        int a = fcntl(*alive, F_DUPFD_CLOEXEC, FIRST_OTHER_FD), t = fcntl(*tell, F_DUPFD_CLOEXEC, FIRST_OTHER_FD);

        if (a < 0 || t < 0 || dup2(a, ALIVE_FD) < 0 || dup2(t, TELL_FD) < 0)
                _exit(1);
        *alive = ALIVE_FD;
        *tell = TELL_FD;
        if (syscall(SYS_close_range, FIRST_OTHER_FD, ~0U, 0) == 0)
                return;
        for (int fd = FIRST_OTHER_FD; fd < (int) sysconf(_SC_OPEN_MAX); fd++) /* before Linux 5.9 */
                (void) close(fd);
}

/* In a process of its own, which nobody waits for. Tells how it began, then works. */
static _Noreturn void be_keeper(const struct accounting_options *options, int alive, int tell)
{
        struct keeper k = { .options = options, .folder = -1, .file = -1 };
        struct error err = { 0 };

        (void) signal(SIGTERM, SIG_IGN); /* of a service manager, to all of us: the other's end is ours */
        (void) signal(SIGINT, SIG_IGN);
        close_others(&alive, &tell);
        (void) begin(&k, &err);
        if (write(tell, &err, sizeof(err)) != (ssize_t) sizeof(err))
                _exit(1);
        if (err.code == 0)
                keep(&k, alive); /* tell: its end says that we have ended */
        _exit(0);
}

int accounting_start(const struct accounting_options *given, struct accounting *ret, struct error *err)
{
        struct accounting_options options = *given;
        int alive[2], tell[2];

        if (options.file_max_bytes == 0)
                options.file_max_bytes = ACCOUNTING_FILE_MAX;
        if (options.look_ms == 0)
                options.look_ms = ACCOUNTING_LOOK_MS;
        if (pipe2(alive, O_CLOEXEC) < 0)
                return error_errno(err, errno, "a pipe");
        auto_close int alive_theirs = alive[0];
        auto_close int alive_ours = alive[1];
        if (pipe2(tell, O_CLOEXEC) < 0)
                return error_errno(err, errno, "a pipe");
        auto_close int tell_ours = tell[0];
        auto_close int tell_theirs = tell[1];

        pid_t pid = fork();
        if (pid < 0)
                return error_errno(err, errno, "starting the process that keeps the accounting");
        if (pid == 0) { /* a child of nobody: nobody's signals and ends are its */
                (void) close(alive_ours);
                (void) close(tell_ours);
                if (fork() == 0)
                        be_keeper(&options, alive_theirs, tell_theirs);
                _exit(0);
        }
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        (void) close(take_fd(tell_theirs));

        struct pollfd p = { .fd = tell_ours, .events = POLLIN };
        struct error theirs;
        if (poll(&p, 1, TELL_MS) <= 0 || read(tell_ours, &theirs, sizeof(theirs)) != (ssize_t) sizeof(theirs))
                return error_set(err, EIO, "the process that keeps the accounting ended before it began");
        if (theirs.code != 0) {
                *err = theirs;
                return theirs.code > 0 ? -theirs.code : theirs.code;
        }
        *ret = (struct accounting){ .alive = take_fd(alive_ours), .gone = take_fd(tell_ours) };
        return 0;
}
