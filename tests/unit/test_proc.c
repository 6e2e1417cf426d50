/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/proc.h"
#include "base/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "senses/process.h"
#include "senses/process_table.h"

#define TAIL                                                                                                           \
        ") S 77 4711 4710 34816 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 123456 9437184 512 18446744073709551615 1 1 0\n"

static int parse_stat_text(const char *text, struct proc_stat *ret)
{
        return proc_parse_stat(text, strlen(text), ret);
}

static void F57_stat_with_a_hostile_name_keeps_parent_and_start_time(void **state)
{
        (void) state;
        static const char *const names[] = {
                "",    "x",         "a) R 1 1", ")))))))))))))))",  "a\nb",         "((((",
                ") (", "tab\there", "x) R 1 (", "\x80\x81\xfe\xff", "4711 (x) S 1", " ",
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                struct proc_stat st;
                char text[512];

                (void) snprintf(text, sizeof(text), "4711 (%s%s", names[i], TAIL);
                assert_int_equal(parse_stat_text(text, &st), 0);
                assert_int_equal(st.pid, 4711);
                assert_string_equal(st.comm, names[i]);
                assert_int_equal(st.state, 'S');
                assert_int_equal(st.ppid, 77);
                assert_int_equal(st.session, 4710);
                assert_int_equal(st.n_threads, 3);
                assert_int_equal(st.cpu_ticks, 5 + 6 + 7 + 8);
                assert_int_equal(st.start_ticks, 123456);
        }
}

/* A fixed generator: the same million names on every machine. */
static uint32_t next_random(uint32_t *seed)
{
        *seed = *seed * 1664525U + 1013904223U;
        return *seed >> 8;
}

static void F57_stat_with_a_million_random_names_never_gets_a_wrong_parent(void **state)
{
        (void) state;
        uint32_t seed = 57;

        for (int i = 0; i < 1000000; i++) {
                struct proc_stat st;
                char text[256] = "7 (";
                size_t n = 3, n_name = next_random(&seed) % 16;

                for (size_t k = 0; k < n_name; k++) {
                        static const char nasty[] = ") ( \n\tR1S-";
                        uint32_t v = next_random(&seed);
                        text[n++] = v & 1 ? nasty[(v >> 1) % (sizeof(nasty) - 1)] : (char) ((v >> 1) % 255 + 1);
                }
                memcpy(text + n, TAIL, sizeof(TAIL));
                if (proc_parse_stat(text, n + sizeof(TAIL) - 1, &st) < 0 || st.ppid != 77 || st.start_ticks != 123456)
                        fail_msg("name %d of the series", i);
        }
}

static void stat_that_the_kernel_would_not_write_is_refused(void **state)
{
        (void) state;
        static const char *const texts[] = {
                "",
                " ",
                "(",
                ")",
                "1",
                "1 (",
                "1 (x",
                "1 (x)",
                "1 (x) ",
                "x (x" TAIL,
                "-1 (x" TAIL,
                "0 (x" TAIL,
                "4294967296 (x" TAIL,
                "1 (x) SS 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                "1 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0",
                "1 (x) S -2 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                "1 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 -5",
                "1 (x) S 1 1 1 z 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                "1 (x) 5 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                "1 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 18446744073709551616",
                ") 1 (x S 1",
                "1 (0123456789012345678901234567890123456789012345678901234567890123" TAIL,
        };

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                struct proc_stat st = { .pid = 99 };

                if (parse_stat_text(texts[i], &st) != -EBADMSG)
                        fail_msg("accepted: %s", texts[i]);
                assert_int_equal(st.pid, 99); /* written on success only */
        }
}

static void status_gives_owner_namespaces_and_memory(void **state)
{
        (void) state;
        static const char text[] = "Name:\ta\\nUid:\t9\t9\t9\t9\nUmask:\t0022\nPPid:\t77\nTracerPid:\t12\n"
                                   "Uid:\t1000\t1001\t1002\t1003\nNSpid:\t4711\t12\t1\nVmRSS:\t    2048 kB\n"
                                   "RssAnon:\t    1024 kB\nRssShmem:\t       0 kB\nFuture:\tthing\n";
        struct proc_status st;

        assert_int_equal(proc_parse_status(text, strlen(text), &st), 0);
        assert_true(st.uid_known);
        assert_int_equal(st.real_uid, 1000);
        assert_int_equal(st.effective_uid, 1001);
        assert_true(st.ppid_known);
        assert_int_equal(st.ppid, 77);
        assert_int_equal(st.tracer_pid, 12);
        assert_int_equal(st.n_ns_pids, 3);
        assert_int_equal(st.ns_pids[2], 1);
        assert_true(st.vm_rss.known);
        assert_int_equal(st.vm_rss.bytes, 2048 * 1024);
        assert_true(st.rss_shmem.known);
        assert_int_equal(st.rss_shmem.bytes, 0);
        assert_false(st.vm_swap.known); /* not there is unknown, never 0 */
}

static void status_with_a_malformed_known_line_is_refused(void **state)
{
        (void) state;
        static const char *const texts[] = {
                "",
                "Uid:\t1\t1\n",
                "Name:\tx\nUid:\t1\n",
                "Name:\tx\nUid:\t-1\t0\n",
                "Name:\tx\nVmRSS:\t12 MB\n",
                "Name:\tx\nVmRSS:\t18014398509481984 kB\n",
                "Name:\tx\nUid:\t4294967296\t0\n",
                "Name:\tx\nPPid:\t\n",
        };

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                struct proc_status st;

                if (proc_parse_status(texts[i], strlen(texts[i]), &st) != -EBADMSG)
                        fail_msg("accepted: %s", texts[i]);
        }
}

static void cgroup_path_comes_from_the_unified_line(void **state)
{
        (void) state;
        static const struct {
                const char *name, *text, *path;
                int r;
        } rows[] = {
                { "v2 only", "0::/user.slice/a\n", "/user.slice/a", 0 },
                { "hybrid", "12:devices:/x\n1:name=systemd:/y\n0::/z\n", "/z", 0 },
                { "root", "0::/\n", "/", 0 },
                { "name with colons and blanks", "0::/a:b c/(deleted)\n", "/a:b c/(deleted)", 0 },
                { "no newline at the end", "0::/a", "/a", 0 },
                { "v1 only", "12:devices:/x\n", NULL, -ENOENT },
                { "10::", "10::/x\n", NULL, -ENOENT },
                { "no path", "0::\n", NULL, -EBADMSG },
                { "longer than the buffer", "0::/0123456789012345678901234567890123456789\n", NULL, -ENAMETOOLONG },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                char path[32] = "";

                print_message("# %s\n", rows[i].name);
                assert_int_equal(proc_text_cgroup(rows[i].text, strlen(rows[i].text), path, sizeof(path)), rows[i].r);
                if (rows[i].path)
                        assert_string_equal(path, rows[i].path);
        }
}

static void cgroup_mount_is_found_beside_the_old_hierarchies(void **state)
{
        (void) state;
        static const char text[] =
                "22 28 0:20 / /proc rw,relatime shared:12 - proc proc rw\n"
                "30 28 0:26 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro,mode=755\n"
                "31 30 0:27 /docker/x /sys/fs/cgroup/uni\\040fied rw shared:10 master:1 - cgroup2 cgroup2 rw\n";
        char point[64], root[64];

        assert_int_equal(proc_parse_cgroup_mount(text, strlen(text), point, root, sizeof(point)), 0);
        assert_string_equal(point, "/sys/fs/cgroup/uni fied");
        assert_string_equal(root, "/docker/x");
        assert_int_equal(proc_parse_cgroup_mount(text, 60, point, root, sizeof(point)), -ENOENT);
        assert_int_equal(proc_parse_cgroup_mount(text, strlen(text), point, root, 10), -ENAMETOOLONG);
}

static void memory_and_boot_id_are_read_strictly(void **state)
{
        (void) state;
        static const char mem[] = "MemTotal:       16 kB\nMemAvailable:    12 kB\n";
        static const char boot[] = "b7f2b1f2-9d5e-4d8c-a0d6-2f6f8b6f1a2b\n";
        uint64_t bytes = 0;
        char id[PROC_BOOT_ID_SIZE];

        assert_int_equal(proc_parse_mem_available(mem, strlen(mem), &bytes), 0);
        assert_int_equal(bytes, 12 * 1024);
        assert_int_equal(proc_parse_mem_available("MemTotal: 1 kB\n", 15, &bytes), -ENOENT);
        assert_int_equal(proc_parse_boot_id(boot, strlen(boot), id), 0);
        assert_string_equal(id, "b7f2b1f2-9d5e-4d8c-a0d6-2f6f8b6f1a2b");
        assert_int_equal(proc_parse_boot_id(boot, 35, id), -EBADMSG);
        assert_int_equal(proc_parse_boot_id("B7f2b1f2-9d5e-4d8c-a0d6-2f6f8b6f1a2b", 36, id), -EBADMSG);
}

static void F33_kernel_of_windows_is_told_by_its_release(void **state)
{
        (void) state;
        static const struct {
                const char *release;
                bool wsl;
        } rows[] = {
                { "5.15.153.1-microsoft-standard-WSL2\n", true },
                { "4.4.0-19041-Microsoft\n", true },
                { "6.1.0-18-amd64\n", false },
                { "", false },
        };
        char root[] = "/tmp/lessor-proc-XXXXXX", folder[64], path[96];

        assert_non_null(mkdtemp(root));
        assert_false(proc_kernel_is_wsl(root)); /* it cannot be read */
        (void) snprintf(folder, sizeof(folder), "%s/sys", root);
        assert_int_equal(mkdir(folder, 0700), 0);
        (void) snprintf(folder, sizeof(folder), "%s/sys/kernel", root);
        assert_int_equal(mkdir(folder, 0700), 0);
        (void) snprintf(path, sizeof(path), "%s/osrelease", folder);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                FILE *f = fopen(path, "we");
                assert_non_null(f);
                assert_true(fputs(rows[i].release, f) >= 0);
                assert_int_equal(fclose(f), 0);
                assert_int_equal(proc_kernel_is_wsl(root), rows[i].wsl);
        }
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(folder), 0);
        *strrchr(folder, '/') = '\0';
        assert_int_equal(rmdir(folder), 0);
        assert_int_equal(rmdir(root), 0);
}

static void environment_variable_is_found_by_its_whole_name(void **state)
{
        (void) state;
        static const char block[] = "XLESSOR_TOKEN=no\0LESSOR_TOKENS=no\0LESSOR_TOKEN=yes\0LESSOR_TOKEN=later";
        char value[16];

        assert_int_equal(proc_find_environ(block, sizeof(block), "LESSOR_TOKEN", value, sizeof(value)), 0);
        assert_string_equal(value, "yes");
        assert_int_equal(proc_find_environ(block, 30, "LESSOR_TOKEN", value, sizeof(value)), -ENOENT);
        assert_int_equal(proc_find_environ(block, sizeof(block), "LESSOR_TOKEN", value, 3), -ENAMETOOLONG);
}

/* ---- real processes ---- */

static struct process_source source;
static struct eyes_process facts;

static void identify(uint32_t pid, int *ret_pidfd)
{
        struct error err = { 0 };

        if (process_source_init(&source, "/proc", &err) < 0 ||
            process_identify(&source, pid, &facts, ret_pidfd, &err) < 0)
                fail_msg("%s", err.msg);
}

/* A child that waits until it is killed, its name set; the pipe tells when it is ready. */
static pid_t start_child(const char *name)
{
        int ready[2];

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) prctl(PR_SET_NAME, name);
                (void) !write(ready[1], "", 1);
                for (;;)
                        (void) pause();
        }
        char c;
        assert_int_equal(read(ready[0], &c, 1), 1);
        (void) close(ready[0]);
        (void) close(ready[1]);
        return pid;
}

static void end_child(pid_t pid)
{
        (void) kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void process_identified_is_described_and_held(void **state)
{
        (void) state;
        char exe[4096];
        int pidfd = -1;
        struct stat st;
        uint64_t ticks = 0;
        pid_t pid = start_child("a) R 1 1\n");

        identify((uint32_t) pid, &pidfd);
        assert_int_equal(facts.pid, pid);
        assert_string_equal(facts.comm, "a) R 1 1\n");
        assert_int_equal(facts.ppid, getpid());
        assert_int_equal(facts.sid, getsid(0));
        assert_true(facts.uid_known);
        assert_int_equal(facts.uid, getuid());
        assert_true(facts.start_ticks > 0);
        assert_int_equal(process_start_ticks(&source, (uint32_t) pid, &ticks), 0);
        assert_true(ticks == facts.start_ticks);

        ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
        assert_true(n > 0);
        exe[n] = '\0';
        assert_true(facts.exe_known);
        assert_false(facts.exe_deleted);
        assert_string_equal(facts.exe_path, exe);
        assert_int_equal(stat(exe, &st), 0);
        assert_true(facts.exe_inode == st.st_ino);
        assert_true(facts.n_cmdline > 0);
        assert_true(facts.n_ancestors >= 1);
        assert_int_equal(facts.ancestors[0].pid, getpid());
        assert_true(facts.ancestors[0].start_ticks <= facts.start_ticks);

        assert_false(process_is_dead(pidfd));
        end_child(pid);
        assert_true(process_is_dead(pidfd));
        (void) close(pidfd);
}

static void process_that_ended_is_nobody(void **state)
{
        (void) state;
        struct error err = { 0 };
        uint64_t ticks = 0;
        int pidfd = -7;
        pid_t pid = start_child("gone");

        assert_int_equal(process_source_init(&source, "/proc", NULL), 0);
        (void) kill(pid, SIGKILL);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0); /* a zombie now */
        assert_int_equal(process_identify(&source, (uint32_t) pid, &facts, &pidfd, &err), -ESRCH);
        assert_int_equal(process_start_ticks(&source, (uint32_t) pid, &ticks), -ESRCH);
        assert_int_equal(waitpid(pid, NULL, 0), pid); /* and now not even that */
        assert_int_equal(process_identify(&source, (uint32_t) pid, &facts, &pidfd, &err), -ESRCH);
        assert_int_equal(process_start_ticks(&source, (uint32_t) pid, &ticks), -ESRCH);
        assert_int_equal(process_identify(&source, 0, &facts, &pidfd, &err), -ESRCH);
        assert_int_equal(process_identify(&source, (uint32_t) EYES_PID_MAX + 1, &facts, &pidfd, &err), -ESRCH);
        assert_int_equal(pidfd, -7);
}

static void F50_process_that_proc_does_not_show_is_not_called_dead(void **state)
{
        (void) state;
        char root[] = "/tmp/lessor-proc-XXXXXX";
        pid_t pid = start_child("hidden");

        assert_non_null(mkdtemp(root)); /* an empty /proc, as hidepid makes it */
        assert_int_equal(process_source_init(&source, root, NULL), 0);
        assert_false(source.host_pids);
        assert_int_equal(process_identify(&source, (uint32_t) pid, &facts, NULL, NULL), -EACCES);
        end_child(pid);
        assert_int_equal(process_identify(&source, (uint32_t) pid, &facts, NULL, NULL), -ESRCH);
        assert_int_equal(rmdir(root), 0);
}

/* Runs this program again as `test_proc --wait`, so that its environment and program file can be chosen. */
static pid_t start_program(const char *path, const char *const envp[])
{
        int ready[2];

        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) dup2(ready[1], STDOUT_FILENO);
                (void) close(ready[0]);
                (void) close(ready[1]);
                char *argv[] = { strdup("waiter"), strdup("--wait"), NULL };
                char *env[4] = { NULL };
                for (size_t i = 0; envp[i] && i < 3; i++)
                        env[i] = strdup(envp[i]);
                (void) execve(path, argv, env);
                _exit(127);
        }
        (void) close(ready[1]);
        char c = 0;
        assert_int_equal(read(ready[0], &c, 1), 1);
        (void) close(ready[0]);
        return pid;
}

static void process_token_is_read_from_its_environment(void **state)
{
        (void) state;
        static const struct {
                const char *name, *variable, *token;
        } rows[] = {
                { "a token", "LESSOR_TOKEN=abc-1._Z", "abc-1._Z" },
                { "none", "OTHER=1", "" },
                { "64 bytes", "LESSOR_TOKEN=0123456789012345678901234567890123456789012345678901234567890123",
                  "0123456789012345678901234567890123456789012345678901234567890123" },
                { "65 bytes", "LESSOR_TOKEN=01234567890123456789012345678901234567890123456789012345678901234", "" },
                { "bytes that are no token", "LESSOR_TOKEN=a b\n", "" },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                const char *const env[] = { "A=1", rows[i].variable, "ASAN_OPTIONS=detect_leaks=0", NULL };
                pid_t pid = start_program("/proc/self/exe", env);

                print_message("# %s\n", rows[i].name);
                identify((uint32_t) pid, NULL);
                assert_string_equal(facts.token, rows[i].token);
                assert_memory_equal(facts.cmdline, "waiter\0--wait", 14);
                assert_int_equal(facts.n_cmdline, 14);
                assert_false(facts.cmdline_cut);
                end_child(pid);
        }
}

static void copy_self(const char *to)
{
        char cmd[256];

        (void) snprintf(cmd, sizeof(cmd), "cp /proc/%d/exe '%s'", getpid(), to);
        assert_int_equal(system(cmd), 0);
}

static void process_with_a_removed_program_file_is_marked(void **state)
{
        (void) state;
        const char *const env[] = { "ASAN_OPTIONS=detect_leaks=0", NULL };
        char dir[] = "/tmp/lessor-exe-XXXXXX", plain[128], honest[128];

        assert_non_null(mkdtemp(dir));
        (void) snprintf(plain, sizeof(plain), "%s/prog", dir);
        (void) snprintf(honest, sizeof(honest), "%s/prog (deleted)", dir);
        copy_self(plain);
        pid_t pid = start_program(plain, env);
        assert_int_equal(unlink(plain), 0);
        identify((uint32_t) pid, NULL);
        assert_true(facts.exe_deleted);
        assert_string_equal(facts.exe_path, plain);
        end_child(pid);

        copy_self(honest); /* a file that is really called that is not deleted */
        pid = start_program(honest, env);
        identify((uint32_t) pid, NULL);
        assert_false(facts.exe_deleted);
        assert_string_equal(facts.exe_path, honest);
        end_child(pid);
        assert_int_equal(unlink(honest), 0);
        assert_int_equal(rmdir(dir), 0);
}

static void process_table_gives_each_exit_once(void **state)
{
        (void) state;
        struct process_table t;
        struct process_entry gone;
        pid_t pids[3];

        assert_int_equal(process_table_init(&t, 3, NULL), 0);
        for (size_t i = 0; i < 3; i++) {
                int pidfd = -1;
                pids[i] = start_child("held");
                identify((uint32_t) pids[i], &pidfd);
                assert_int_equal(process_table_add(&t, facts.pid, facts.start_ticks, pidfd), 0);
                assert_int_equal(process_table_add(&t, facts.pid, facts.start_ticks, pidfd), -EEXIST);
        }
        assert_int_equal(process_table_add(&t, 1, 1, 0), -ENOSPC);
        assert_false(process_table_take_exited(&t, &gone));

        end_child(pids[1]);
        assert_true(process_table_take_exited(&t, &gone));
        assert_int_equal(gone.pid, pids[1]);
        assert_false(process_table_take_exited(&t, &gone));
        assert_null(process_table_find(&t, (uint32_t) pids[1]));
        assert_non_null(process_table_find(&t, (uint32_t) pids[2]));
        end_child(pids[0]);
        end_child(pids[2]);
        assert_true(process_table_take_exited(&t, &gone));
        assert_true(process_table_take_exited(&t, &gone));
        assert_int_equal(t.n, 0);
        process_table_fini(&t);
}

int main(int argc, char **argv)
{
        if (argc == 2 && strcmp(argv[1], "--wait") == 0) {
                (void) !write(STDOUT_FILENO, "r", 1);
                for (;;)
                        (void) pause();
        }
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F57_stat_with_a_hostile_name_keeps_parent_and_start_time),
                cmocka_unit_test(F57_stat_with_a_million_random_names_never_gets_a_wrong_parent),
                cmocka_unit_test(stat_that_the_kernel_would_not_write_is_refused),
                cmocka_unit_test(status_gives_owner_namespaces_and_memory),
                cmocka_unit_test(status_with_a_malformed_known_line_is_refused),
                cmocka_unit_test(cgroup_path_comes_from_the_unified_line),
                cmocka_unit_test(cgroup_mount_is_found_beside_the_old_hierarchies),
                cmocka_unit_test(memory_and_boot_id_are_read_strictly),
                cmocka_unit_test(F33_kernel_of_windows_is_told_by_its_release),
                cmocka_unit_test(environment_variable_is_found_by_its_whole_name),
                cmocka_unit_test(process_identified_is_described_and_held),
                cmocka_unit_test(process_that_ended_is_nobody),
                cmocka_unit_test(F50_process_that_proc_does_not_show_is_not_called_dead),
                cmocka_unit_test(process_token_is_read_from_its_environment),
                cmocka_unit_test(process_with_a_removed_program_file_is_marked),
                cmocka_unit_test(process_table_gives_each_exit_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
