/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow verbs on a process that takes no notice: the signal itself is taken out (the linker puts __wrap_target_signal in its
 * place), everything else is real. So signals can be counted.
 */
#include "hands/slow.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cm.h"

int __wrap_target_signal(int pidfd, int signal);

static unsigned n_signals[NSIG];
static int signal_answer;

int __wrap_target_signal(int pidfd, int signal)
{
        (void) pidfd;
        n_signals[signal]++;
        return signal_answer;
}

static pid_t child;
static struct settings settings;
static struct protect_list protect;
static struct warden_order order;
static struct slow work;

static int begin(void **state)
{
        (void) state;
        child = fork();
        if (child == 0)
                for (;;)
                        (void) pause();
        settings_own(&settings, getuid());
        settings.kill_wait_ms = settings.freeze_wait_ms = 5;
        order = (struct warden_order){
                .order_id = 9, .verb = WARDEN_KILL_TREE, .pid = (uint32_t) child, .owner_uid = getuid()
        };
        work = (struct slow){ .settings = &settings,
                              .order = &order,
                              .protect = &protect,
                              .pidfd = (int) syscall(SYS_pidfd_open, child, 0),
                              .cgroup = -1 };
        for (int i = 0; i < NSIG; i++)
                n_signals[i] = 0;
        signal_answer = 0;
        return work.pidfd >= 0 ? 0 : -1;
}

static int end(void **state)
{
        (void) state;
        (void) syscall(SYS_pidfd_send_signal, work.pidfd, SIGKILL, NULL, 0);
        (void) waitpid(child, NULL, 0);
        return close(work.pidfd);
}

static void F55_process_that_does_not_die_gets_three_signals_and_is_unkillable(void **state)
{
        (void) state;
        struct warden_answer a = slow_run(&work);
        assert_int_equal(a.result, WARDEN_FAILED);
        assert_int_equal(a.why, WARDEN_WHY_UNKILLABLE);
        assert_int_equal(a.order_id, 9);
        assert_int_equal(n_signals[SIGKILL], 3);
}

static void signal_that_cannot_be_sent_is_blocked_and_not_tried_again(void **state)
{
        (void) state;
        signal_answer = -EPERM;
        struct warden_answer a = slow_run(&work);
        assert_int_equal(a.result, WARDEN_BLOCKED);
        assert_int_equal(a.why, WARDEN_WHY_SYSTEM);
        assert_int_equal(a.error, EPERM);
        assert_int_equal(n_signals[SIGKILL], 1);
}

static void process_that_is_gone_already_is_done(void **state)
{
        (void) state;
        signal_answer = -ESRCH;
        assert_int_equal(slow_run(&work).result, WARDEN_DONE);
        assert_int_equal(n_signals[SIGKILL], 1);
}

static void process_that_does_not_stand_still_goes_on(void **state)
{
        (void) state;
        order.verb = WARDEN_FREEZE;
        struct warden_answer a = slow_run(&work);
        assert_int_equal(a.result, WARDEN_FAILED);
        assert_int_equal(a.why, WARDEN_WHY_NOT_FROZEN);
        assert_int_equal(n_signals[SIGSTOP], 1);
        assert_int_equal(n_signals[SIGCONT], 1); /* what was begun is undone */
}

/* ---- a folder that looks like a cgroup's, on a kernel before cgroup.kill ---- */

static char folder[64];

static void put(const char *name, const char *text)
{
        int fd = openat(work.cgroup, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t) strlen(text));
        (void) close(fd);
}

static const char *read_back(const char *name)
{
        static char text[64];
        int fd = openat(work.cgroup, name, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = '\0';
        (void) close(fd);
        return text;
}

static int begin_folder(void **state)
{
        (void) snprintf(folder, sizeof(folder), "/tmp/lessor-s-XXXXXX");
        if (begin(state) < 0 || !mkdtemp(folder))
                return -1;
        work.cgroup = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        settings.look_ms = SETTINGS_LOOK_DEFAULT_MS;
        put("cgroup.freeze", "-");
        put("cgroup.events", "populated 1\nfrozen 1\n");
        return 0;
}

static int end_folder(void **state)
{
        static const char *const names[] = { "cgroup.freeze", "cgroup.events", "cgroup.procs" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                (void) unlinkat(work.cgroup, names[i], 0);
        (void) rmdir(folder);
        (void) close(work.cgroup);
        return end(state);
}

/* A tree that forks faster than anybody looks: the list of its processes has no end. Lines of 8 bytes: a reader who
 * comes while the last one's bytes still lie there begins with a whole one. */
static pid_t endless_list(void)
{
        char path[96], line[16];

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
        assert_int_equal(snprintf(line, sizeof(line), "%07d\n", (int) child), 8);
        assert_int_equal(mkfifo(path, 0600), 0);
        pid_t writer = fork();
        if (writer != 0)
                return writer;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        for (;;) {
                int fd = open(path, O_WRONLY | O_CLOEXEC);
                while (fd >= 0 && write(fd, line, strlen(line)) > 0)
                        ;
                (void) close(fd);
        }
}

static void F54_tree_that_forks_without_end_holds_no_helper_for_ever(void **state)
{
        (void) state;
        pid_t writer = endless_list();
        settings.look_ms = 20;
        struct warden_answer a = slow_run(&work);
        assert_int_equal(a.result, WARDEN_BLOCKED);
        assert_int_equal(a.why, WARDEN_WHY_SYSTEM);
        assert_int_equal(a.error, ETIME);
        assert_string_equal(read_back("cgroup.freeze"), "0"); /* it was tried while all stood still, and they go on */
        order.verb = WARDEN_FREEZE;
        assert_int_equal(slow_run(&work).error, ETIME);
        (void) kill(writer, SIGKILL);
        (void) waitpid(writer, NULL, 0);
}

static void F52_tree_that_may_not_be_ended_is_not_even_stopped(void **state)
{
        char list[64];

        (void) state;
        (void) snprintf(list, sizeof(list), "%d\n1\n", (int) child);
        put("cgroup.procs", list);
        assert_int_equal(slow_run(&work).why, WARDEN_WHY_CGROUP_HAS_OTHERS);
        assert_string_equal(read_back("cgroup.freeze"), "-");
        assert_int_equal(n_signals[SIGKILL], 0);
}

/* What the kernel runs for a virtual machine is put into its cgroup. */
static void kernel_thread_in_a_tree_keeps_it_not_alive_and_gets_no_signal(void **state)
{
        struct target t;
        char list[64];

        (void) state;
        if (!target_look(2, &t) || !t.kernel_thread) {
                print_message("# this pid namespace shows no kernel threads\n");
                return;
        }
        (void) snprintf(list, sizeof(list), "%d\n2\n", (int) child);
        put("cgroup.procs", list);
        assert_int_equal(slow_run(&work).why, WARDEN_WHY_UNKILLABLE); /* this folder never becomes empty */
        assert_int_equal(n_signals[SIGKILL], 3);                      /* one a round: the child's */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(F55_process_that_does_not_die_gets_three_signals_and_is_unkillable,
                                                begin, end),
                cmocka_unit_test_setup_teardown(signal_that_cannot_be_sent_is_blocked_and_not_tried_again, begin, end),
                cmocka_unit_test_setup_teardown(process_that_is_gone_already_is_done, begin, end),
                cmocka_unit_test_setup_teardown(process_that_does_not_stand_still_goes_on, begin, end),
                cmocka_unit_test_setup_teardown(F54_tree_that_forks_without_end_holds_no_helper_for_ever, begin_folder,
                                                end_folder),
                cmocka_unit_test_setup_teardown(F52_tree_that_may_not_be_ended_is_not_even_stopped, begin_folder,
                                                end_folder),
                cmocka_unit_test_setup_teardown(kernel_thread_in_a_tree_keeps_it_not_alive_and_gets_no_signal,
                                                begin_folder, end_folder),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
