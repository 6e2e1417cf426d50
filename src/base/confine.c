/* SPDX-License-Identifier: Apache-2.0 */
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/confine.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED /* clang */
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

enum { STATUS_MAX = 8192 }; /* /proc/self/status has about 1.5 KiB */

/*
 * Children inherit this list: the eyes, and what they might start. The hands have a list of their own, of what they may do.
 * Whether the driver's checkpoint calls ptrace(2) or reads memory from the caller's side is not documented (the work is done by
 * a thread inside the target, over a channel of the driver's): try it on a card before this list is given to who checkpoints.
 *
 * Also not here:
 *   tgkill                   abort() and assert() end a thread of our own with it, and a filter that compares with our pid
 *                            would be inherited by children with another one
 *   ioctl, mmap, mknodat     what the driver's libraries do
 *   capset, prctl, seccomp   children confine themselves further
 */
const char *const confine_never[] = {
/* other processes' memory, registers and descriptors */
#ifndef SANITIZED
        "ptrace",      /* the leak checker stops our own threads with it */
        "personality", /* the thread sanitizer starts the program again with it */
#endif
        "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd",
        "move_pages", "migrate_pages", "perf_event_open", "userfaultfd", "lookup_dcookie",
        /* signals by number: pidfd_send_signal names a process, these name whoever has its number by now */
        "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
        /* file systems and namespaces */
        "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig",
        "fsmount", "fspick", "mount_setattr", "setns", "unshare", "open_by_handle_at", "fanotify_init", "quotactl",
        "quotactl_fd", "swapon", "swapoff", "acct",
        /* the kernel */
        "init_module", "finit_module", "delete_module", "create_module", "kexec_load", "kexec_file_load", "reboot",
        "bpf", "syslog", "iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "uselib", "nfsservctl", "_sysctl",
        "vhangup", "io_uring_setup", "io_uring_enter", "io_uring_register", /* a way around this filter */
        /* keys */
        "add_key", "request_key", "keyctl",
        /* the machine's clocks and names */
        "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex", "settimeofday", "stime",
        "sethostname", "setdomainname",
        /* becoming somebody else */
        "setuid", "setuid32", "setgid", "setgid32", "setreuid", "setreuid32", "setregid", "setregid32", "setresuid",
        "setresuid32", "setresgid", "setresgid32", "setfsuid", "setfsuid32", "setfsgid", "setfsgid32", "setgroups",
        "setgroups32", NULL
};

int confine_no_core(struct error *err)
{
        struct rlimit none = { 0 };

        /* Both: where cores go to a program (core_pattern "|…"), the kernel does not look at the limit. */
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
                return error_errno(err, errno, "forbidding core dumps (PR_SET_DUMPABLE)");
        if (setrlimit(RLIMIT_CORE, &none) < 0)
                return error_errno(err, errno, "forbidding core dumps (RLIMIT_CORE)");
        return 0;
}

/* ---- capabilities ---- */

/* The lines of /proc/self/status that tell what this thread may. */
struct masks {
        uint64_t inherited, permitted, effective, bounding, ambient, no_new_privs;
};

static int read_status(char *buf, size_t size, struct error *err)
{
        auto_close int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
        size_t n = 0;
        ssize_t k = 1;

        while (fd >= 0 && k > 0 && n < size - 1) {
                k = read(fd, buf + n, size - 1 - n);
                if (k < 0)
                        break;
                n += (size_t) k;
        }
        if (fd < 0 || k < 0)
                return error_errno(err, errno, "reading /proc/thread-self/status");
        buf[n] = '\0';
        return 0;
}

/* The number in base @base after "\n@name:\t". */
static bool mask_of(const char *status, const char *name, int base, uint64_t *ret)
{
        char *end;
        char key[32];
        int n = snprintf(key, sizeof(key), "\n%s:\t", name);
        const char *at = strstr(status, key);

        if (!at)
                return false;
        errno = 0;
        *ret = strtoull(at + n, &end, base);
        return errno == 0 && end > at + n && *end == '\n';
}

static int read_masks(struct masks *ret, struct error *err)
{
        char text[STATUS_MAX];
        const struct {
                const char *name;
                int base;
                uint64_t *to;
        } lines[] = {
                { "CapInh", 16, &ret->inherited }, { "CapPrm", 16, &ret->permitted },
                { "CapEff", 16, &ret->effective }, { "CapBnd", 16, &ret->bounding },
                { "CapAmb", 16, &ret->ambient },   { "NoNewPrivs", 10, &ret->no_new_privs },
        };
        int r = read_status(text, sizeof(text), err);

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
                if (!mask_of(text, lines[i].name, lines[i].base, lines[i].to))
                        return error_set(err, EPROTO, "/proc/thread-self/status has no readable line %s",
                                         lines[i].name);
        return 0;
}

static int check_masks(const struct masks *want, struct error *err)
{
        struct masks got;
        int r = read_masks(&got, err);

        if (r < 0)
                return r;
        const struct {
                const char *name;
                uint64_t want, got;
        } lines[] = {
                { "CapInh", want->inherited, got.inherited }, { "CapPrm", want->permitted, got.permitted },
                { "CapEff", want->effective, got.effective }, { "CapBnd", want->bounding, got.bounding },
                { "CapAmb", want->ambient, got.ambient },     { "NoNewPrivs", want->no_new_privs, got.no_new_privs },
        };
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
                if (lines[i].want != lines[i].got)
                        return error_set(err, EPERM,
                                         "more rights are left than this program may have: %s is %016" PRIx64
                                         ", not %016" PRIx64,
                                         lines[i].name, lines[i].got, lines[i].want);
        return 0;
}

int confine_capabilities(const int *keep, size_t n_keep, struct error *err)
{
        const capng_type_t everywhere =
                CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE | CAPNG_BOUNDING_SET | CAPNG_AMBIENT;
        struct masks before, want;
        uint64_t kept = 0;

        int r = read_masks(&before, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_keep; i++)
                kept |= UINT64_C(1) << keep[i];
        bool may_bound = (before.effective & UINT64_C(1) << CAP_SETPCAP) != 0;
        want = (struct masks){
                .inherited = before.inherited & kept,
                .permitted = before.permitted & kept,
                .effective = before.effective & kept,
                .bounding = may_bound ? before.bounding & kept : before.bounding,
                .ambient = before.ambient & kept,
                .no_new_privs = 1,
        };

        if (capng_get_caps_process() < 0)
                return error_set(err, EPROTO, "the capabilities of this process cannot be read");
        for (unsigned cap = 0; cap <= CAP_LAST_CAP && cap < 64; cap++)
                if (!(kept & UINT64_C(1) << cap))
                        (void) capng_update(CAPNG_DROP, everywhere, cap);
        (void) capng_apply(CAPNG_SELECT_ALL); /* judged by what the kernel shows afterwards */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return error_errno(err, errno, "forbidding to gain rights (PR_SET_NO_NEW_PRIVS)");
        return check_masks(&want, err);
}

/* ---- system calls ---- */

static void free_filter(scmp_filter_ctx *filter)
{
        if (*filter)
                seccomp_release(*filter);
}

static int filter_failed(int r, const char *what, struct error *err)
{
        return error_errno(err, -r, "filtering system calls: %s", what);
}

/* A kernel with filters complains about the missing program (EFAULT); an old one, valgrind and qemu-user about the question. */
static bool has_filters(void)
{
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}

static int new_filter(uint32_t action, scmp_filter_ctx *ret, struct error *err)
{
        if (!has_filters())
                return error_set(err, EOPNOTSUPP, "this kernel has no filters of system calls (%s)", strerror(errno));
        scmp_filter_ctx filter = seccomp_init(action);
        if (!filter)
                return error_set(err, ENOMEM, "no memory for a filter of system calls");
        *ret = filter;
        int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
        if (r < 0)
                return filter_failed(r, "other architectures", err);
        (void) seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);    /* before Linux 3.17: this thread alone */
        (void) seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1); /* the kernel's errno, not ECANCELED */
        return 0;
}

static int load_filter(scmp_filter_ctx filter, struct error *err)
{
        int r = seccomp_load(filter);

        return r < 0 ? filter_failed(r, "loading", err) : 0;
}

static int add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names, struct error *err)
{
        for (; *names; names++) {
                int number = seccomp_syscall_resolve_name(*names);
                if (number < 0)
                        continue; /* unknown, or of other architectures only */
                int r = seccomp_rule_add(filter, action, number, 0);
                if (r < 0)
                        return filter_failed(r, *names, err);
        }
        return 0;
}

static bool on_list(const char *const *names, const char *name)
{
        for (; *names; names++)
                if (strcmp(*names, name) == 0)
                        return true;
        return false;
}

/* Each flag by itself: a filter can ask for "this bit is set", not for "one of these". */
static int deny_new_namespaces(scmp_filter_ctx filter, struct error *err)
{
        static const uint64_t flags[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                          CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };

        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
                int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                         SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
                if (r < 0)
                        return filter_failed(r, "clone", err);
        }
        int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        return r < 0 ? filter_failed(r, "clone3", err) : 0;
}

int confine_deny(const char *const *names, struct error *err)
{
        auto_call(free_filter) scmp_filter_ctx filter = NULL;

        int r = new_filter(SCMP_ACT_ALLOW, &filter, err);
        if (r == 0)
                r = add_names(filter, SCMP_ACT_ERRNO(EPERM), names, err);
        if (r == 0 && on_list(names, "unshare"))
                r = deny_new_namespaces(filter, err);
        return r < 0 ? r : load_filter(filter, err);
}

int confine_allow(const char *const *names, enum confine_otherwise otherwise, struct error *err)
{
        static const char *const to_end[] = { "exit", "exit_group", "rt_sigreturn", NULL };
        auto_call(free_filter) scmp_filter_ctx filter = NULL;

        int r = new_filter(otherwise == CONFINE_KILL ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM), &filter, err);
        if (r == 0)
                r = add_names(filter, SCMP_ACT_ALLOW, to_end, err);
        if (r == 0)
                r = add_names(filter, SCMP_ACT_ALLOW, names, err);
        return r < 0 ? r : load_filter(filter, err);
}

int confine_unprivileged(struct error *err)
{
        int r = confine_no_core(err);

        if (r == 0)
                r = confine_capabilities(NULL, 0, err);
        return r < 0 ? r : confine_deny(confine_never, err);
}
