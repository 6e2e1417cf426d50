/* SPDX-License-Identifier: Apache-2.0 */
/* The records of parked processes: what is written is read again, what is damaged or somebody else's is not. */
#include "wire/parked.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "cm.h"

static int rows_failed;
static char path[64], text[RECORD_MAX];
static int folder = -1;

static struct record sample(void)
{
        struct record r = { .boot_id = "0a1b2c3d-0000-1111-2222-333344445555",
                            .pid = 4711,
                            .start_ticks = 123456,
                            .pidfd_inode = 99,
                            .uid = 1000,
                            .bytes = 1 << 30,
                            .host_bytes = 1 << 29,
                            .step = RECORD_STOPPED,
                            .lease_id = 7,
                            .flags = WARDEN_FLAG_FILLER,
                            .restored = true,
                            .oom_kept = true,
                            .oom_score_adj = -17,
                            .time_s = 1700000000 };
        for (size_t i = 0; i < WARDEN_UUID_SIZE; i++)
                r.device_uuid[i] = (uint8_t) (0x10 * i + 15 - i);
        return r;
}

static size_t formatted(const struct record *r)
{
        struct error err = { 0 };
        size_t n = 0;

        if (record_format(r, text, sizeof(text), &n, &err) < 0)
                fail_msg("%s", err.msg);
        return n;
}

/* ---- bytes ---- */

static void record_survives_the_round_trip_and_reads_as_text(void **state)
{
        struct record r = sample(), back;

        (void) state;
        for (int step = RECORD_LOCKING; step < RECORD_STEP_N; step++) {
                r.step = (enum record_step) step;
                size_t n = formatted(&r);
                assert_int_equal(record_parse(text, n, &back, NULL), 0);
                assert_memory_equal(&r, &back, sizeof(r));
        }
        size_t n = formatted(&r);
        text[n] = '\0';
        assert_ptr_equal(strstr(text, "lessor_record=1\nboot_id=0a1b2c3d-"), text);
        assert_non_null(strstr(text, "\ndevice=GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n"));
        assert_non_null(strstr(text, "\nstep=restored\n"));
        assert_non_null(strstr(text, "\noom_score_adj=-17\n"));
}

static void record_cut_or_longer_is_damaged(void **state)
{
        struct record r = sample(), back, none = { 0 };
        size_t n = formatted(&r);

        (void) state;
        text[n] = '\n';
        for (size_t cut = 0; cut <= n + 1; cut++)
                if (cut != n) {
                        assert_int_equal(record_parse(text, cut, &back, NULL), -EBADMSG);
                        assert_memory_equal(&back, &none, sizeof(none));
                }
}

static void record_with_a_line_that_nobody_writes_is_damaged(void **state)
{
        const struct {
                const char *name, *from, *to;
                int want;
        } rows[] = {
                { "another version", "lessor_record=1", "lessor_record=2", -EPROTONOSUPPORT },
                { "version 0", "lessor_record=1", "lessor_record=0", -EBADMSG },
                { "pid 0", "pid=4711", "pid=0", -EBADMSG },
                { "a pid that is none", "pid=4711", "pid=2147483648", -EBADMSG },
                { "a negative pid", "pid=4711", "pid=-1", -EBADMSG },
                { "leading zero", "pid=4711", "pid=04711", -EBADMSG },
                { "a blank", "pid=4711", "pid= 4711", -EBADMSG },
                { "two keys changed places", "pid=4711\nstart_ticks=123456", "start_ticks=123456\npid=4711", -EBADMSG },
                { "a line twice", "pid=4711\n", "pid=4711\npid=4711\n", -EBADMSG },
                { "no uid", "uid=1000", "uid=4294967295", -EBADMSG },
                { "boot id without a dash", "0a1b2c3d-", "0a1b2c3d0", -EBADMSG },
                { "boot id in capitals", "0a1b2c3d-", "0A1b2c3d-", -EBADMSG },
                { "device of another form", "device=GPU", "device=MIG", -EBADMSG },
                { "device in capitals", "0f1e2d3c", "0F1e2d3c", -EBADMSG },
                { "a step nobody knows", "step=stopped", "step=asleep", -EBADMSG },
                { "no step", "step=stopped", "step=none", -EBADMSG },
                { "a flag nobody knows", "flags=2", "flags=4", -EBADMSG },
                { "neither yes nor no", "hold=0", "hold=2", -EBADMSG },
                { "oom_score_adj below the least", "adj=-17", "adj=-1001", -EBADMSG },
                { "minus nothing", "adj=-17", "adj=-0", -EBADMSG },
                { "two signs", "adj=-17", "adj=--17", -EBADMSG },
                { "kept and not kept", "oom_kept=1", "oom_kept=0", -EBADMSG },
        };
        struct record r = sample(), back;

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char changed[2 * RECORD_MAX];
                size_t n = formatted(&r);
                text[n] = '\0';
                const char *at = strstr(text, rows[i].from);
                assert_non_null(at);
                (void) snprintf(changed, sizeof(changed), "%.*s%s%s", (int) (at - text), text, rows[i].to,
                                at + strlen(rows[i].from));
                struct error err = { 0 };
                row_check(rows[i].name, record_parse(changed, strlen(changed), &back, &err) == rows[i].want);
                row_check(rows[i].name, err.msg[0] && back.pid == 0);
        }
        rows_end();
        r.uid = UINT32_MAX;
        size_t n;
        assert_int_equal(record_format(&r, text, sizeof(text), &n, NULL), -EINVAL);
        r = sample();
        assert_int_equal(record_format(&r, text, 40, &n, NULL), -EINVAL);
}

static void name_of_a_record_is_read_only_as_it_is_written(void **state)
{
        const char *const others[] = { "",
                                       "-",
                                       "4711",
                                       "4711-",
                                       "-5",
                                       "04711-5",
                                       "4711-05",
                                       "4711-5.aside",
                                       ".4711-5.new",
                                       "lock",
                                       "0-5",
                                       "2147483648-5",
                                       "4711-18446744073709551616",
                                       "4711-5-6",
                                       "+4711-5" };
        char name[RECORD_NAME_SIZE];
        uint64_t start = 0;
        uint32_t pid = 0;

        (void) state;
        record_name(INT32_MAX, UINT64_MAX, name);
        assert_string_equal(name, "2147483647-18446744073709551615");
        assert_true(record_name_parse(name, &pid, &start));
        assert_true(pid == INT32_MAX && start == UINT64_MAX);
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                row_check(others[i], !record_name_parse(others[i], &pid, &start));
        rows_end();
}

/* ---- the folder ---- */

static int begin(void **state)
{
        struct error err = { 0 };

        (void) state;
        (void) snprintf(path, sizeof(path), "/tmp/lessor-parked-XXXXXX");
        if (!mkdtemp(path) || parked_open(path, (gid_t) -1, &folder, &err) < 0)
                fail_msg("%s", err.msg);
        return 0;
}

static int end(void **state)
{
        char command[96];

        (void) state;
        (void) close(folder);
        (void) snprintf(command, sizeof(command), "rm -rf %s", path);
        return system(command);
}

static void put(const char *name, const void *data, size_t n)
{
        auto_close int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && write(fd, data, n) == (ssize_t) n);
}

static void record_written_is_read_until_it_is_removed(void **state)
{
        struct record r = sample(), back;
        struct stat st;

        (void) state;
        assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), -ENOENT);
        assert_int_equal(parked_write(folder, &r, NULL), 0);
        r.step = RECORD_RESTORING;
        assert_int_equal(parked_write(folder, &r, NULL), 0);
        assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), 0);
        assert_memory_equal(&r, &back, sizeof(r));
        assert_int_equal(fstatat(folder, "4711-123456", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(parked_read(folder, 4711, 123457, &back, NULL), -ENOENT);
        assert_int_equal(parked_remove(folder, 4711, 123456), 0);
        assert_int_equal(parked_remove(folder, 4711, 123456), 0);
        assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), -ENOENT);
}

/* Each step replaces the file: who has just opened the one before it is not told of a damaged record. */
static void record_that_is_replaced_while_it_is_read_is_read_again(void **state)
{
        struct record r = sample(), back;
        struct error err = { 0 };
        int status;

        (void) state;
        assert_int_equal(parked_write(folder, &r, NULL), 0);
        pid_t writer = fork();
        assert_true(writer >= 0);
        if (writer == 0) {
                for (unsigned i = 0; i < 3000; i++)
                        if (parked_write(folder, &r, NULL) < 0)
                                _exit(1);
                _exit(0);
        }
        pid_t ended = 0;
        while (ended == 0) {
                ended = waitpid(writer, &status, WNOHANG);
                int code = parked_read(folder, 4711, 123456, &back, &err);
                if (code != 0)
                        fail_msg("%s", err.msg);
        }
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_int_equal(back.step, r.step);
}

static void record_for_a_reader_is_its_groups_and_nobody_elses(void **state)
{
        struct record r = sample();
        struct stat st;
        char below[96];
        int shared = -1;

        (void) state;
        (void) snprintf(below, sizeof(below), "%s/shared", path);
        assert_int_equal(parked_open(below, getegid(), &shared, NULL), 0);
        assert_int_equal(parked_write(shared, &r, NULL), 0);
        assert_int_equal(fstatat(shared, "4711-123456", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
        assert_int_equal(st.st_gid, getegid());
        assert_int_equal(fstat(shared, &st), 0);
        assert_int_equal(st.st_mode & 07777, 02750);
        (void) close(shared);
}

static void record_that_is_a_link_open_to_others_or_of_another_process_is_not_read(void **state)
{
        struct record r = sample(), back;

        (void) state;
        assert_int_equal(parked_write(folder, &r, NULL), 0);
        assert_int_equal(linkat(folder, "4711-123456", folder, "4712-1", 0), 0);
        assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), -EPERM);
        assert_int_equal(unlinkat(folder, "4712-1", 0), 0);
        assert_int_equal(symlinkat("4711-123456", folder, "4712-1"), 0);
        assert_int_equal(parked_read(folder, 4712, 1, &back, NULL), -EPERM);
        assert_int_equal(mkdirat(folder, "4713-1", 0700), 0);
        assert_int_equal(parked_read(folder, 4713, 1, &back, NULL), -EPERM);
        assert_int_equal(mknodat(folder, "4714-1", S_IFIFO | 0600, 0), 0);
        assert_int_equal(parked_read(folder, 4714, 1, &back, NULL), -EPERM);
        assert_int_equal(renameat(folder, "4711-123456", folder, "4715-9"), 0);
        assert_int_equal(parked_read(folder, 4715, 9, &back, NULL), -EBADMSG);
        put("4716-1", "lessor_record=1\n", 16);
        assert_int_equal(parked_read(folder, 4716, 1, &back, NULL), -EBADMSG);
        assert_int_equal(parked_write(folder, &r, NULL), 0);
        assert_int_equal(fchmodat(folder, "4711-123456", 0622, 0), 0);
        assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), -EPERM);
        if (geteuid() == 0) {
                assert_int_equal(fchmodat(folder, "4711-123456", 0600, 0), 0);
                assert_int_equal(fchownat(folder, "4711-123456", 61001, 61001, 0), 0);
                assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), -EPERM);
        }
}

static void record_of_another_boot_is_told_apart_and_set_aside(void **state)
{
        struct record r = sample(), back;

        (void) state;
        size_t n = formatted(&r);
        put("4711-123456", text, n);
        assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), -ESTALE);
        assert_int_equal(back.pid, 4711);
        assert_int_equal(parked_set_aside(folder, 4711, 123456), 0);
        assert_int_equal(parked_read(folder, 4711, 123456, &back, NULL), -ENOENT);
        assert_int_equal(faccessat(folder, "4711-123456.aside", F_OK, 0), 0);
}

struct seen {
        int n, n_wrong;
        uint32_t pids;
};

static bool see(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        struct seen *seen = ctx;

        (void) start_ticks;
        seen->n++;
        seen->n_wrong += error < 0;
        seen->pids += pid;
        return error < 0 || record->pid == pid;
}

static void walk_tells_each_record_and_what_is_wrong_with_it(void **state)
{
        struct record r = sample();
        struct seen seen = { 0 };

        (void) state;
        for (r.pid = 1; r.pid <= 3; r.pid++)
                assert_int_equal(parked_write(folder, &r, NULL), 0);
        put("4-123456", "no record", 9);
        put("4-123456.aside", "no record", 9);
        put(".5-123456.new", "half a rec", 10);
        assert_int_equal(parked_each(folder, see, &seen), 0);
        assert_int_equal(seen.n, 4);
        assert_int_equal(seen.n_wrong, 1);
        assert_int_equal(seen.pids, 10);
}

static void folder_that_others_could_have_filled_is_refused(void **state)
{
        char below[96], link[96];
        struct error err = { 0 };
        int fd = -1;

        (void) state;
        (void) snprintf(below, sizeof(below), "%s/open", path);
        (void) snprintf(link, sizeof(link), "%s/link", path);
        assert_int_equal(mkdir(below, 0700), 0);
        assert_int_equal(symlink(below, link), 0);
        assert_int_equal(parked_open(link, (gid_t) -1, &fd, &err), -EPERM);
        assert_int_equal(chmod(below, 0770), 0);
        assert_int_equal(parked_open(below, (gid_t) -1, &fd, &err), -EPERM);
        assert_non_null(strstr(err.msg, "chmod go-w"));
        if (geteuid() == 0) {
                assert_int_equal(chmod(below, 0700), 0);
                assert_int_equal(chown(below, 61001, 61001), 0);
                assert_int_equal(parked_open(below, (gid_t) -1, &fd, &err), -EPERM);
        }
}

static void lock_of_a_process_is_one_workers_and_goes_with_it(void **state)
{
        int ours = -1, other = -1, pipes[2];

        (void) state;
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        if (child == 0) {
                int lock;
                if (parked_lock(folder, 4711, false, &lock, NULL) < 0 || write(pipes[1], "l", 1) != 1)
                        _exit(1);
                (void) pause();
        }
        char byte;
        assert_int_equal(read(pipes[0], &byte, 1), 1);
        assert_int_equal(parked_lock(folder, 4711, false, &ours, NULL), -EBUSY);
        assert_int_equal(parked_lock(folder, 4712, false, &other, NULL), 0);
        (void) kill(child, SIGKILL);
        assert_int_equal(parked_lock(folder, 4711, true, &ours, NULL), 0);
        (void) waitpid(child, NULL, 0);
        (void) close(ours);
        (void) close(other);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
}

static int write_corpus(const char *to)
{
        for (int step = RECORD_LOCKING; step < RECORD_STEP_N; step += 3) {
                struct record r = sample();
                char file[4096];
                r.step = (enum record_step) step;
                size_t n = formatted(&r);
                (void) snprintf(file, sizeof(file), "%s/%s", to, record_step_name(r.step));
                FILE *f = fopen(file, "we");
                if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0)
                        return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(record_survives_the_round_trip_and_reads_as_text),
                cmocka_unit_test(record_cut_or_longer_is_damaged),
                cmocka_unit_test(record_with_a_line_that_nobody_writes_is_damaged),
                cmocka_unit_test(name_of_a_record_is_read_only_as_it_is_written),
                cmocka_unit_test_setup_teardown(record_written_is_read_until_it_is_removed, begin, end),
                cmocka_unit_test_setup_teardown(record_for_a_reader_is_its_groups_and_nobody_elses, begin, end),
                cmocka_unit_test_setup_teardown(record_that_is_a_link_open_to_others_or_of_another_process_is_not_read,
                                                begin, end),
                cmocka_unit_test_setup_teardown(record_of_another_boot_is_told_apart_and_set_aside, begin, end),
                cmocka_unit_test_setup_teardown(record_that_is_replaced_while_it_is_read_is_read_again, begin, end),
                cmocka_unit_test_setup_teardown(walk_tells_each_record_and_what_is_wrong_with_it, begin, end),
                cmocka_unit_test_setup_teardown(folder_that_others_could_have_filled_is_refused, begin, end),
                cmocka_unit_test_setup_teardown(lock_of_a_process_is_one_workers_and_goes_with_it, begin, end),
        };
        const char *corpus = getenv("LESSOR_WRITE_CORPUS");

        return corpus ? write_corpus(corpus) : cmocka_run_group_tests(tests, NULL, NULL);
}
