/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's process accounting, by the real kernel: in a pid namespace of our own, which has one of its own, and with folders of
 * our own where distributions put theirs.
 */
#include "programs/lessor-accounting/accounting.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cm.h"
#include "senses/descent.h"
#include "wire/acct.h"

enum { LOOK_MS = 20, PATIENCE_S = 60, FILE_RECORDS = 64, READERS = 4711 };

static char folder[64];
static struct accounting accounting;

/* ---- what happens ---- */

static uint32_t somebody_ends(void)
{
        pid_t pid = fork();

        if (pid == 0)
                _exit(7);
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        return (uint32_t) pid;
}

static const char *in_folder(const char *name)
{
        static char path[2][128];
        static unsigned turn;
        char *at = path[turn++ % 2];

        (void) snprintf(at, sizeof(path[0]), "%s/%s", folder, name);
        return at;
}

static bool is_there(const char *name)
{
        struct stat st;
        return stat(in_folder(name), &st) == 0;
}

static off_t size_of(const char *path)
{
        struct stat st;
        return stat(path, &st) == 0 ? st.st_size : -1;
}

static bool has_record_of(const char *path, uint32_t pid)
{
        uint8_t bytes[ACCT_RECORD_SIZE];
        struct acct_record r;
        bool found = false;

        FILE *f = fopen(path, "re");
        while (f && !found && fread(bytes, sizeof(bytes), 1, f) == 1)
                found = acct_parse(bytes, sizeof(bytes), &r) == 0 && r.pid == pid && r.exit_code == 7 << 8;
        if (f)
                (void) fclose(f);
        return found;
}

static int start(uint32_t file_records, struct error *err)
{
        const struct accounting_options options = { .folder = folder,
                                                    .readers = READERS,
                                                    .file_max_bytes = file_records * ACCT_RECORD_SIZE,
                                                    .look_ms = LOOK_MS };
        return accounting_start(&options, &accounting, err);
}

static void assert_starts(uint32_t file_records)
{
        struct error err = { 0 };

        if (start(file_records, &err) < 0)
                fail_msg("%s", err.msg);
}

static void end_it(void)
{
        char byte;

        (void) close(accounting.alive);
        assert_int_equal(read(accounting.gone, &byte, 1), 0);
        (void) close(accounting.gone);
        assert_false(is_there("records"));
}

/* ---- the cases ---- */

static void who_ends_is_written_down_for_one_group_and_nobody_else(void **state)
{
        struct stat st;

        (void) state;
        assert_starts(0);
        assert_true(has_record_of(in_folder("records"), somebody_ends()));
        assert_int_equal(stat(in_folder("records"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
        assert_int_equal(st.st_gid, READERS);
        assert_int_equal(stat(folder, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0750);
        end_it();
}

static void accounting_ends_with_who_started_it(void **state)
{
        (void) state;
        assert_starts(0);
        int fd = open(in_folder("records"), O_RDONLY | O_CLOEXEC);
        struct stat before, after;

        assert_true(fd >= 0);
        end_it();
        assert_int_equal(fstat(fd, &before), 0);
        (void) somebody_ends();
        assert_int_equal(fstat(fd, &after), 0);
        assert_int_equal(after.st_size, before.st_size);
        assert_false(is_there("records.1") || is_there("records.new"));
        (void) close(fd);
}

/* Nobody who ended is missing over the change from file to file, and the reader knows that nobody is. */
static void next_file_follows_the_one_before_without_a_gap(void **state)
{
        struct process_source source;
        struct error err = { 0 };
        time_t give_up = time(NULL) + PATIENCE_S;
        uint64_t now_ms = 1, n_gaps = 0;
        static bool ended[1 << 16];
        uint32_t n_ended = 0;
        ino_t file = 0;
        unsigned n_files = 0;

        (void) state;
        struct descent *d = calloc(1, sizeof(*d));
        assert_non_null(d);
        assert_int_equal(process_source_init(&source, "/proc", &err), 0);
        assert_starts(FILE_RECORDS);
        descent_listen(d);
        descent_account_at(d, folder);
        descent_begin(d, &source, now_ms);
        for (; n_files < 4 && time(NULL) < give_up; now_ms += DESCENT_ACCOUNT_EVERY_MS + DESCENT_PAUSE_MS) {
                struct stat st;
                uint32_t pid = n_ended < 1500 ? somebody_ends() : 0;
                descent_turn(d, now_ms);
                if (pid != 0 && pid < sizeof(ended)) {
                        ended[pid] = true;
                        n_ended++;
                }
                assert_int_equal(fstat(d->accounting_fd, &st), 0);
                n_files += st.st_ino != file;
                file = st.st_ino;
        }
        assert_int_equal(n_files, 4);
        (void) somebody_ends();
        descent_turn(d, now_ms);
        for (uint64_t i = 0; i < d->lineage.n_records && i < LINEAGE_RECORDS; i++) {
                ended[d->lineage.records[i].pid % sizeof(ended)] = false;
                n_gaps += i > 0 && d->lineage.records[i].gap;
        }
        assert_int_equal(n_gaps, 0);
        for (size_t i = 0; i < sizeof(ended); i++)
                assert_false(ended[i]);
        end_it();
        descent_turn(d, now_ms + DESCENT_ACCOUNT_EVERY_MS);
        assert_int_equal(d->accounting_fd, -1);
        descent_fini(d);
        free(d);
}

static void what_another_program_keeps_is_left_alone(void **state)
{
        static const char theirs[] = "/var/log/account/pacct";
        struct error err = { 0 };

        (void) state;
        assert_int_equal(mkdir("/var/log/account", 0755), 0);
        int fd = open(theirs, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(acct(theirs), 0);
        assert_int_equal(start(0, &err), -EBUSY);
        assert_non_null(strstr(err.msg, theirs));
        assert_false(is_there("records"));
        off_t before = size_of(theirs);
        (void) somebody_ends();
        assert_true(size_of(theirs) > before);
        assert_int_equal(acct(NULL), 0);
        (void) close(fd);
}

static void what_another_program_takes_over_is_not_taken_back(void **state)
{
        (void) state;
        assert_starts(0);
        int fd = open(in_folder("theirs"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(acct(in_folder("theirs")), 0);
        char byte;
        assert_int_equal(read(accounting.gone, &byte, 1), 0); /* it has ended by itself */
        assert_false(is_there("records"));
        (void) close(accounting.alive);
        (void) close(accounting.gone);
        uint32_t pid = somebody_ends();
        assert_true(has_record_of(in_folder("theirs"), pid));
        assert_int_equal(acct(NULL), 0);
        (void) close(fd);
}

/* Started anew, while the one before has not ended yet. */
static void next_one_takes_over_and_the_one_before_switches_nothing_off(void **state)
{
        (void) state;
        assert_starts(0);
        struct accounting before = accounting;
        char byte;
        assert_starts(0);
        (void) close(before.alive);
        assert_int_equal(read(before.gone, &byte, 1), 0);
        (void) close(before.gone);
        for (unsigned i = 0; i < 50; i++) {
                assert_true(has_record_of(in_folder("records"), somebody_ends()));
                (void) usleep(2000);
        }
        end_it();
}

static void folder_that_others_may_write_to_is_refused(void **state)
{
        struct error err = { 0 };

        (void) state;
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(chmod(folder, 0777), 0);
        assert_int_equal(start(0, &err), -EPERM);
        assert_non_null(strstr(err.msg, "chmod go-w"));
        assert_false(is_there("records"));
}

/* What who could write there made up is not read. */
static void records_that_are_not_roots_are_not_read(void **state)
{
        struct process_source source;
        struct error err = { 0 };

        (void) state;
        struct descent *d = calloc(1, sizeof(*d));
        assert_non_null(d);
        assert_int_equal(process_source_init(&source, "/proc", &err), 0);
        assert_int_equal(mkdir(folder, 0755), 0);
        int fd = open(in_folder("records"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        descent_listen(d);
        descent_account_at(d, folder);
        assert_int_equal(fchown(fd, 1000, 1000), 0);
        descent_begin(d, &source, 1);
        descent_turn(d, 1 + DESCENT_ACCOUNT_EVERY_MS);
        assert_int_equal(d->accounting_fd, -1);
        assert_int_equal(fchown(fd, 0, 0), 0);
        descent_turn(d, 1 + 3 * DESCENT_ACCOUNT_EVERY_MS);
        assert_true(d->accounting_fd >= 0);
        (void) close(fd);
        descent_fini(d);
        free(d);
}

/* ---- a world of our own ---- */

static int begin(void **state)
{
        (void) state;
        (void) snprintf(folder, sizeof(folder), "/var/log/accounting-%u", (unsigned) rand());
        return 0;
}

static int run_all(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(who_ends_is_written_down_for_one_group_and_nobody_else, begin),
                cmocka_unit_test_setup(accounting_ends_with_who_started_it, begin),
                cmocka_unit_test_setup(next_file_follows_the_one_before_without_a_gap, begin),
                cmocka_unit_test_setup(what_another_program_keeps_is_left_alone, begin),
                cmocka_unit_test_setup(what_another_program_takes_over_is_not_taken_back, begin),
                cmocka_unit_test_setup(next_one_takes_over_and_the_one_before_switches_nothing_off, begin),
                cmocka_unit_test_setup(folder_that_others_may_write_to_is_refused, begin),
                cmocka_unit_test_setup(records_that_are_not_roots_are_not_read, begin),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

static void skip_all(const char *why)
{
        (void) printf("1..0 # SKIP %s\n", why);
        (void) fflush(stdout);
        _exit(0);
}

int main(void)
{
        int status = 0;

        if (geteuid() != 0 || unshare(CLONE_NEWPID | CLONE_NEWNS) < 0) {
                (void) printf("1..0 # SKIP needs root, and namespaces of its own\n");
                return 0;
        }
        pid_t pid = fork();
        if (pid == 0) {
                if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    mount("tmpfs", "/var/log", "tmpfs", 0, "mode=755,size=8m") < 0 ||
                    mount("proc", "/proc", "proc", 0, NULL) < 0)
                        skip_all("needs to mount");
                if (acct(NULL) < 0)
                        skip_all("process accounting is not ours to switch here");
                status = run_all();
                (void) fflush(stdout);
                _exit(status);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        (void) fflush(stdout);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status)
                                : 1); /* no leak can be looked for: children would be of a namespace that is over */
}
