/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow verbs on a process that takes no notice: the signal itself is taken out (the linker puts __wrap_target_signal in its
 * place), everything else is real. So signals can be counted.
 */
#include "hands/slow.h"
#include <errno.h>
#include <signal.h>
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(F55_process_that_does_not_die_gets_three_signals_and_is_unkillable,
                                                begin, end),
                cmocka_unit_test_setup_teardown(signal_that_cannot_be_sent_is_blocked_and_not_tried_again, begin, end),
                cmocka_unit_test_setup_teardown(process_that_is_gone_already_is_done, begin, end),
                cmocka_unit_test_setup_teardown(process_that_does_not_stand_still_goes_on, begin, end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
