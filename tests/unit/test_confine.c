/* SPDX-License-Identifier: Apache-2.0 */
/* What is given up cannot be had back, so each test gives it up in a child and looks at what the child says. */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/confine.h"
#include "cm.h"

/* The wait status of a child that runs @body and exits with what it returns. */
static int in_child(int (*body)(void))
{
        int status = 0;

        (void) fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
                _exit(body());
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

#define assert_child_says_yes(body)                                                                                    \
        do {                                                                                                           \
                int status_ = in_child(body);                                                                          \
                assert_true(WIFEXITED(status_));                                                                       \
                assert_int_equal(WEXITSTATUS(status_), 0);                                                             \
        } while (0)

/* In a child: the line that was not so is its exit status, as far as that has room. */
#define want(condition)                                                                                                \
        do {                                                                                                           \
                if (!(condition)) {                                                                                    \
                        (void) fprintf(stderr, "# %s is not so (%s:%d, %s)\n", #condition, __FILE__, __LINE__,         \
                                       strerror(errno));                                                               \
                        return 1;                                                                                      \
                }                                                                                                      \
        } while (0)

static bool status_has(const char *line)
{
        char text[8192], with_ends[64];
        FILE *f = fopen("/proc/self/status", "re");
        size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

        if (f)
                (void) fclose(f);
        text[n] = '\0';
        (void) snprintf(with_ends, sizeof(with_ends), "\n%s\n", line);
        return strstr(text, with_ends) != NULL;
}

/* ---- cores ---- */

static int gives_up_cores(void)
{
        struct rlimit limit = { 1, 1 };

        want(confine_no_core(NULL) == 0);
        want(prctl(PR_GET_DUMPABLE) == 0);
        want(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 && limit.rlim_max == 0);
        return 0;
}

static void S16_no_core_is_dumpable_by_neither_way(void **state)
{
        (void) state;
        assert_child_says_yes(gives_up_cores);
}

/* ---- capabilities ---- */

static int keeps_none(void)
{
        struct error err = { 0 };
        bool can_bound = prctl(PR_CAPBSET_READ, CAP_SETPCAP) == 1 && geteuid() == 0;

        want(confine_capabilities(NULL, 0, &err) == 0);
        want(status_has("CapInh:\t0000000000000000"));
        want(status_has("CapPrm:\t0000000000000000"));
        want(status_has("CapEff:\t0000000000000000"));
        want(status_has("CapAmb:\t0000000000000000"));
        want(status_has("NoNewPrivs:\t1"));
        want(!can_bound || status_has("CapBnd:\t0000000000000000"));
        want(confine_capabilities(NULL, 0, &err) == 0); /* a child of a confined parent does it again */
        return 0;
}

static int has_none_after_exec(void)
{
        want(confine_capabilities(NULL, 0, NULL) == 0);
        (void) execlp("grep", "grep", "-qP", "^CapEff:\\t0{16}$", "/proc/self/status", (char *) NULL);
        return 1;
}

static int keeps_one(void)
{
        static const int keep[] = { CAP_KILL };
        struct error err = { 0 };
        bool privileged = geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_KILL) == 1;

        want(confine_capabilities(keep, 1, &err) == 0);
        want(status_has(privileged ? "CapPrm:\t0000000000000020" : "CapPrm:\t0000000000000000"));
        want(status_has(privileged ? "CapEff:\t0000000000000020" : "CapEff:\t0000000000000000"));
        return 0;
}

static void S23_capabilities_none_are_kept_and_the_kernel_shows_it(void **state)
{
        (void) state;
        assert_child_says_yes(keeps_none);
}

static void S23_capabilities_do_not_come_back_by_exec(void **state)
{
        (void) state;
        assert_child_says_yes(has_none_after_exec);
}

static void S23_capabilities_named_are_kept_alone(void **state)
{
        (void) state;
        assert_child_says_yes(keeps_one);
}

/* A kernel that says yes and does nothing: what is left is found out, and named. */
static int lies_about_capset(void)
{
        struct error err = { 0 };
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        if (geteuid() != 0)
                return 0; /* there is nothing that could be left */
        want(seccomp_rule_add(filter, SCMP_ACT_ERRNO(0), SCMP_SYS(capset), 0) == 0 && seccomp_load(filter) == 0);
        want(confine_capabilities(NULL, 0, &err) == -EPERM);
        want(strstr(err.msg, "more rights are left than this program may have: CapPrm is") != NULL);
        return 0;
}

static void S23_capabilities_that_stay_are_found_by_reading_back(void **state)
{
        (void) state;
        assert_child_says_yes(lies_about_capset);
}

/* ---- system calls ---- */

static const struct call {
        const char *name;
        long number;
        long args[4];
        bool for_root; /* refused to others by the kernel anyway */
} never_calls[] = {
        { "process_vm_readv", SYS_process_vm_readv, { 1, 0, 0, 0 }, false },
        { "kill of ourselves", SYS_kill, { 0, 0 }, false },
        { "bpf", SYS_bpf, { 99999 }, true },
        { "perf_event_open", SYS_perf_event_open, { 0 }, true },
        { "userfaultfd", SYS_userfaultfd, { -1 }, true },
        { "keyctl", SYS_keyctl, { 99999 }, false },
        { "io_uring_setup", SYS_io_uring_setup, { 0 }, true },
        { "mount", SYS_mount, { 0 }, true },
        { "umount2", SYS_umount2, { 0 }, true },
        { "chroot", SYS_chroot, { 0 }, true },
        { "unshare of nothing", SYS_unshare, { 0 }, false },
        { "setns", SYS_setns, { -1, 0 }, false },
        { "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0 }, true },
        { "pidfd_getfd", SYS_pidfd_getfd, { -1, -1, 0 }, false },
        { "reboot", SYS_reboot, { 0 }, true },
        { "settimeofday", SYS_settimeofday, { 1, 0 }, false },
        { "setresuid to nothing new", SYS_setresuid, { -1, -1, -1 }, false },
        { "setgroups", SYS_setgroups, { 99999999, 0 }, true },
};

static long answer_of(const struct call *call)
{
        errno = 0;
        return syscall(call->number, call->args[0], call->args[1], call->args[2], call->args[3]);
}

static int is_refused_all(void)
{
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(never_calls) / sizeof(never_calls[0]); i++)
                if (!never_calls[i].for_root || geteuid() == 0)
                        row_check(never_calls[i].name, answer_of(&never_calls[i]) >= 0 || errno != EPERM);
        want(confine_deny(confine_never, NULL) == 0);
        for (size_t i = 0; i < sizeof(never_calls) / sizeof(never_calls[0]); i++)
                row_check(never_calls[i].name, answer_of(&never_calls[i]) < 0 && errno == EPERM);
        return rows_failed;
}

static int is_refused_ptrace(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        return 0; /* left to the sanitizer: confine.c */
#else
        want(ptrace(PTRACE_CONT, getpid(), 0, 0) < 0 && errno == ESRCH);
        want(confine_deny(confine_never, NULL) == 0);
        want(ptrace(PTRACE_CONT, getpid(), 0, 0) < 0 && errno == EPERM);
        return 0;
#endif
}

static int is_refused_new_namespaces(void)
{
        uint64_t clone_args[11] = { CLONE_NEWUSER };

        want(confine_deny(confine_never, NULL) == 0);
        want(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) < 0 && errno == EPERM);
        want(syscall(SYS_clone, CLONE_NEWNET | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0) < 0 && errno == EPERM);
        want(syscall(SYS_clone3, clone_args, sizeof(clone_args)) < 0 && errno == ENOSYS);
        return 0;
}

static void *nothing(void *arg)
{
        return arg;
}

static int lives_on(void)
{
        pthread_t thread;
        int status = 0;

        want(confine_no_core(NULL) == 0 && confine_capabilities(NULL, 0, NULL) == 0);
        want(confine_deny(confine_never, NULL) == 0);
        want(confine_deny(confine_never, NULL) == 0); /* as a child would */
        want(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
        pid_t pid = fork();
        if (pid == 0) {
                (void) execlp("sleep", "sleep", "100", (char *) NULL);
                _exit(127);
        }
        int pidfd = pidfd_open(pid, 0);
        want(pid > 0 && pidfd >= 0 && pidfd_send_signal(pidfd, SIGTERM, NULL, 0) == 0);
        want(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        return 0;
}

static int aborts(void)
{
        want(confine_no_core(NULL) == 0 && confine_deny(confine_never, NULL) == 0);
        (void) signal(SIGABRT, SIG_DFL);
        abort();
}

struct other {
        int go[2];
        bool refused;
};

static void *try_in_other_thread(void *arg)
{
        struct other *other = arg;
        char c;

        if (read(other->go[0], &c, 1) == 1)
                other->refused = unshare(0) < 0 && errno == EPERM;
        return NULL;
}

static int holds_for_other_threads(void)
{
        struct other other = { 0 };
        pthread_t thread;

        want(pipe(other.go) == 0 && pthread_create(&thread, NULL, try_in_other_thread, &other) == 0);
        want(confine_deny(confine_never, NULL) == 0);
        want(write(other.go[1], "g", 1) == 1 && pthread_join(thread, NULL) == 0);
        want(other.refused);
        return 0;
}

static void S22_calls_that_are_never_needed_are_refused(void **state)
{
        (void) state;
        assert_child_says_yes(is_refused_all);
        assert_child_says_yes(is_refused_ptrace);
}

static void S22_calls_that_make_namespaces_are_refused_by_their_flags(void **state)
{
        (void) state;
        assert_child_says_yes(is_refused_new_namespaces);
}

static void S22_calls_of_daily_work_go_on(void **state)
{
        (void) state;
        assert_child_says_yes(lives_on);
        int status = in_child(aborts);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        assert_false(WCOREDUMP(status));
}

static void S22_calls_are_refused_to_threads_that_were_there_before(void **state)
{
        (void) state;
        assert_child_says_yes(holds_for_other_threads);
}

static const char *const few[] = { "write", "no_such_call_in_any_kernel", NULL };

static int may_do_few_else_refused(void)
{
        if (confine_allow(few, CONFINE_REFUSE, NULL) < 0)
                return 1;
        bool good = write(STDOUT_FILENO, "", 0) == 0 && syscall(SYS_getppid) < 0 && errno == EPERM;
        return (int) syscall(SYS_exit_group, good ? 0 : 1); /* a sanitizer's _exit() wants more calls than these */
}

static int may_do_few_else_ends(void)
{
        if (confine_allow(few, CONFINE_KILL, NULL) < 0)
                return 1;
        return write(STDOUT_FILENO, "", 0) == 0 && syscall(SYS_getppid) > 0 ? 2 : 3;
}

static void allow_list_refuses_or_ends_what_it_does_not_name(void **state)
{
        (void) state;
        assert_child_says_yes(may_do_few_else_refused);
        int status = in_child(may_do_few_else_ends);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
}

/* What valgrind, qemu-user and kernels without filters answer. */
static int has_no_filters(void)
{
        struct error err = { 0 };
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        want(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(seccomp), 0) == 0);
        want(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
                              SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)) == 0);
        want(seccomp_load(filter) == 0);
        want(confine_deny(confine_never, &err) == -EOPNOTSUPP);
        want(strstr(err.msg, "no filters of system calls") != NULL);
        return 0;
}

static void deny_without_filters_in_the_kernel_says_so(void **state)
{
        (void) state;
        int status = in_child(has_no_filters);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S16_no_core_is_dumpable_by_neither_way),
                cmocka_unit_test(S23_capabilities_none_are_kept_and_the_kernel_shows_it),
                cmocka_unit_test(S23_capabilities_do_not_come_back_by_exec),
                cmocka_unit_test(S23_capabilities_named_are_kept_alone),
                cmocka_unit_test(S23_capabilities_that_stay_are_found_by_reading_back),
                cmocka_unit_test(S22_calls_that_are_never_needed_are_refused),
                cmocka_unit_test(S22_calls_that_make_namespaces_are_refused_by_their_flags),
                cmocka_unit_test(S22_calls_of_daily_work_go_on),
                cmocka_unit_test(S22_calls_are_refused_to_threads_that_were_there_before),
                cmocka_unit_test(allow_list_refuses_or_ends_what_it_does_not_name),
                cmocka_unit_test(deny_without_filters_in_the_kernel_says_so),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
