/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that hangs, crashes, is too new, too old or not there; and a brain that leaves or speaks another language. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "harness.h"
#include "senses/proc.h"

#define MIB (UINT64_C(1) << 20)

static struct card card;
static struct brain brain;
#define READING(i) (&brain.devices[i].reading)

static void begin(const char *options)
{
        card_create(&card, options);
        brain_start(&brain, &card);
        UNTIL(&brain, brain.has_hello);
        assert_int_equal(brain.hello.driver_state, EYES_DRIVER_OK);
}

static void end_well(void)
{
        int status = brain_stop(&brain);

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* Silence for a moment: long enough for an answer on any machine that works, short enough to try. */
enum { HANG_MS = 500 };

static void F22_eyes_that_hang_in_the_driver_are_killed_and_new_ones_recover(void **state)
{
        (void) state;
        begin("--memory 64M");
        pid_t pid = card_hog(&card, "20M", "");
        UNTIL(&brain, find_row(READING(0), pid));
        card_fault(&card, "nvml-hang");
        while (brain_ask(&brain, HANG_MS)) /* one that was on its way may still be answered */
                ;
        assert_false(brain.closed); /* alive, and mute */
        assert_int_equal(kill(brain.pid, SIGKILL), 0);
        int status = brain_stop(&brain);
        assert_true(WIFSIGNALED(status));

        brain_start(&brain, &card); /* a new one hangs as well, at its first call: not a word */
        assert_false(brain_ask(&brain, HANG_MS));
        assert_false(brain.has_hello);
        card_clear(&card); /* and goes on when the driver does */
        UNTIL(&brain, brain.has_hello && brain.n_devices == 1 && find_row(READING(0), pid));
        assert_int_equal(READING(0)->used_bytes, 20 * MIB);
        end_well();
        card_destroy(&card);
}

static void eyes_that_hang_while_the_brain_leaves_die_with_the_kill(void **state)
{
        (void) state;
        begin("--memory 64M");
        card_fault(&card, "nvml-hang");
        while (brain_ask(&brain, HANG_MS))
                ;
        assert_int_equal(kill(brain.pid, SIGKILL), 0);
        assert_true(WIFSIGNALED(brain_stop(&brain)));
        card_destroy(&card);
}

static void eyes_that_crash_in_the_driver_close_the_socket_and_can_be_replaced(void **state)
{
        (void) state;
        begin("--memory 64M");
        card_fault(&card, "nvml-crash --times 1");
        uint64_t until = now_ms() + DEADLINE_MS;
        while (!brain.closed && now_ms() < until)
                (void) brain_ask(&brain, DEADLINE_MS);
        assert_true(brain.closed);
        int status = brain_stop(&brain);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
        brain_start(&brain, &card);
        UNTIL(&brain, brain.has_hello && READING(0)->settled);
        end_well();
        card_destroy(&card);
}

static unsigned count_descriptors(pid_t pid)
{
        char path[64];
        unsigned n = 0;

        (void) snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        DIR *d = opendir(path);
        assert_non_null(d);
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n;
}

static uint64_t anonymous_bytes(pid_t pid)
{
        struct proc_status st;
        auto_close int fd = -1;

        assert_int_equal(proc_open_pid("/proc", (uint32_t) pid, &fd), 0);
        assert_int_equal(proc_read_status(fd, &st), 0);
        assert_true(st.rss_anon.known);
        return st.rss_anon.bytes;
}

static void F23_ten_thousand_looks_cost_no_descriptor_and_no_memory(void **state)
{
        (void) state;
        const bool sanitized = getenv("LESSOR_SANITIZED") && *getenv("LESSOR_SANITIZED");

        begin("--gpus 2 --memory 64M");
        pid_t pid = card_hog(&card, "20M", "");
        UNTIL(&brain, find_row(READING(0), pid));
        for (int i = 0; i < 100; i++)
                assert_true(brain_ask(&brain, DEADLINE_MS));
        unsigned descriptors = count_descriptors(brain.pid);
        uint64_t bytes = anonymous_bytes(brain.pid);

        for (int i = 0; i < 10000; i++)
                assert_true(brain_ask(&brain, DEADLINE_MS));
        uint64_t until = now_ms() + DEADLINE_MS;
        unsigned open_now;
        while ((open_now = count_descriptors(brain.pid)) > descriptors + 2 && now_ms() < until)
                (void) brain_hear(&brain, 5); /* they may be looking just now */
        assert_in_range(open_now, 0, descriptors + 2);
        if (!sanitized) /* a sanitizer keeps what was freed for a while */
                assert_true(anonymous_bytes(brain.pid) < bytes + MIB);
        assert_int_equal(brain.n_hellos, 1); /* the driver was started once */
        assert_int_equal(brain.n_processes, 1);
        end_well();
        card_destroy(&card);
}

static void F24_driver_upgraded_under_its_module_is_told_and_tried_again(void **state)
{
        (void) state;
        card_create(&card, "--memory 64M");
        card_fault(&card, "nvml-error 18 --symbol nvmlInit_v2");
        brain_start(&brain, &card);
        UNTIL(&brain, brain.has_hello);
        assert_int_equal(brain.hello.driver_state, EYES_DRIVER_MISMATCH);
        assert_int_equal(brain.hello.rc, 18);
        assert_int_equal(brain.hello.n_devices, 0);
        for (int i = 0; i < 10; i++)
                assert_true(brain_ask(&brain, DEADLINE_MS)); /* up, and answering */
        assert_int_equal(brain.n_hellos, 1);
        card_clear(&card);
        UNTIL(&brain, brain.hello.driver_state == EYES_DRIVER_OK && READING(0)->settled);
        end_well();
        card_destroy(&card);
}

static void library_without_a_needed_symbol_is_named_old(void **state)
{
        (void) state;
        card_create(&card, "--memory 64M --hide nvmlDeviceGetUUID");
        brain_start(&brain, &card);
        UNTIL(&brain, brain.has_hello);
        assert_int_equal(brain.hello.driver_state, EYES_DRIVER_OLD_LIBRARY);
        assert_int_equal(brain.n_alarms[EYES_ALARM_SYMBOL_MISSING], 1);
        end_well();
        card_destroy(&card);
}

static void machine_without_the_library_is_told_and_answered(void **state)
{
        (void) state;
        char dir[] = "/tmp/lessor-nolib-XXXXXX", path[64];
        const char *before = getenv("LD_LIBRARY_PATH");
        char *kept = before ? strdup(before) : NULL;

        assert_non_null(mkdtemp(dir)); /* a file that is no library, where a real one might be found otherwise */
        (void) snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", dir);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(setenv("LD_LIBRARY_PATH", dir, 1), 0);
        brain_start(&brain, NULL);
        UNTIL(&brain, brain.has_hello);
        assert_int_equal(brain.hello.driver_state, EYES_DRIVER_NO_LIBRARY);
        assert_int_equal(brain.hello.n_devices, 0);
        end_well();
        if (kept)
                (void) setenv("LD_LIBRARY_PATH", kept, 1);
        else
                (void) unsetenv("LD_LIBRARY_PATH");
        free(kept);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(dir), 0);
}

static int start_and_say(const void *bytes, size_t n)
{
        brain_start(&brain, NULL);
        (void) send(brain.sock, bytes, n, MSG_NOSIGNAL);
        while (!brain.closed)
                if (!brain_hear(&brain, DEADLINE_MS) && !brain.closed)
                        fail_msg("the eyes went on");
        int status = brain_stop(&brain);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void brain_that_sends_garbage_ends_the_eyes(void **state)
{
        (void) state;
        static const uint8_t no_kind[] = { EYES_VERSION, 0, 0xff, 0xff };
        static const uint8_t cut[] = { EYES_VERSION, 0, EYES_DEVICE, 0 }; /* and the eyes' own to send */

        assert_int_equal(start_and_say(no_kind, sizeof(no_kind)), 1);
        assert_int_equal(start_and_say(cut, sizeof(cut)), 1);
}

static int run_raw(const char *const argv[], int fd, const void *first, size_t n_first)
{
        int pair[2], status = 0;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        if (n_first > 0)
                assert_int_equal(send(pair[0], first, n_first, MSG_NOSIGNAL), n_first);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                char *args[4] = { NULL };
                for (int i = 0; i < 3 && argv[i]; i++)
                        args[i] = strdup(argv[i]);
                if (fd >= 0) {
                        int high = fcntl(pair[1], F_DUPFD, 100);
                        (void) dup2(high, fd);
                        (void) close(high);
                }
                int null = open("/dev/null", O_WRONLY | O_CLOEXEC); /* its words are for people, our stdout is TAP */
                (void) dup2(null, STDOUT_FILENO);
                (void) dup2(null, STDERR_FILENO);
                (void) execv(getenv("LESSOR_EYES"), args);
                _exit(127);
        }
        (void) close(pair[1]);
        if (n_first == 0)
                (void) close(pair[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (n_first > 0)
                (void) close(pair[0]);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void program_explains_wrong_use_by_its_exit_status(void **state)
{
        (void) state;
        static const uint8_t other_version[] = { EYES_VERSION + 1, 0, EYES_BRAIN_HELLO, 0, EYES_VERSION + 1, 0, 0, 0 };
        static const uint8_t other_hello[] = { EYES_VERSION, 0, EYES_BRAIN_HELLO, 0, EYES_VERSION + 1, 0, 0, 0 };
        static const uint8_t not_hello[] = { EYES_VERSION, 0, EYES_INTERVAL, 0, 0xe8, 3, 0, 0, 0xe8, 3, 0, 0 };

        assert_int_equal(run_raw((const char *[]){ "lessor-eyes", NULL }, -1, NULL, 0), 2);
        assert_int_equal(run_raw((const char *[]){ "lessor-eyes", "--fd", "x" }, -1, NULL, 0), 2);
        assert_int_equal(run_raw((const char *[]){ "lessor-eyes", "--fd", "2" }, -1, NULL, 0), 2); /* no socket */
        assert_int_equal(run_raw((const char *[]){ "lessor-eyes", "--help", NULL }, -1, NULL, 0), 0);
        assert_int_equal(run_raw((const char *[]){ "lessor-eyes", "--fd", "3" }, 3, NULL, 0),
                         0); /* the brain left at once */
        assert_int_equal(
                run_raw((const char *[]){ "lessor-eyes", "--fd", "3" }, 3, other_version, sizeof(other_version)), 3);
        assert_int_equal(run_raw((const char *[]){ "lessor-eyes", "--fd", "3" }, 3, other_hello, sizeof(other_hello)),
                         3);
        assert_int_equal(run_raw((const char *[]){ "lessor-eyes", "--fd", "3" }, 3, not_hello, sizeof(not_hello)), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F22_eyes_that_hang_in_the_driver_are_killed_and_new_ones_recover),
                cmocka_unit_test(eyes_that_hang_while_the_brain_leaves_die_with_the_kill),
                cmocka_unit_test(eyes_that_crash_in_the_driver_close_the_socket_and_can_be_replaced),
                cmocka_unit_test(F23_ten_thousand_looks_cost_no_descriptor_and_no_memory),
                cmocka_unit_test(F24_driver_upgraded_under_its_module_is_told_and_tried_again),
                cmocka_unit_test(library_without_a_needed_symbol_is_named_old),
                cmocka_unit_test(machine_without_the_library_is_told_and_answered),
                cmocka_unit_test(brain_that_sends_garbage_ends_the_eyes),
                cmocka_unit_test(program_explains_wrong_use_by_its_exit_status),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
