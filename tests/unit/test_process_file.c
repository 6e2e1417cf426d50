/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a process means by a path, looked for from its own folders; this process is the one here. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include "cm.h"
#include "base/process_file.h"

static char folder[] = "/tmp/lessor-file-XXXXXX";
static int proc_dir = -1;

static void make(const char *path)
{
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        (void) fputs("print()\n", f);
        assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
        (void) state;
        proc_dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(proc_dir >= 0);
        assert_non_null(mkdtemp(folder));
        assert_int_equal(chdir(folder), 0);
        assert_int_equal(mkdir("deep", 0755), 0);
        make("a.py");
        make("deep/b.py");
        return 0;
}

static int tear_down(void **state)
{
        static const char *const names[] = { "a.py",    "deep/b.py", "there.py", "whole.py", "up.py",
                                             "loop.py", "fifo.py",   "fd.py",    "long" };
        (void) state;
        assert_int_equal(chdir(folder), 0);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                (void) unlink(names[i]);
        (void) rmdir("deep");
        return rmdir(folder);
}

/* As whoever uses it does, until the kernel need not write down that it was: that is what it cannot do from memory alone. */
static void follow(const char *path)
{
        const struct timespec tick = { .tv_nsec = 1000000 };
        struct statvfs fs;
        struct stat st, behind;

        assert_int_equal(statvfs(path, &fs), 0);
        for (unsigned i = 0; i < 60000; i++) {
                assert_int_equal(stat(path, &behind), 0);
                assert_int_equal(lstat(path, &st), 0);
                if ((fs.f_flag & ST_NOATIME) || !S_ISLNK(st.st_mode) || st.st_atim.tv_sec > st.st_ctim.tv_sec ||
                    (st.st_atim.tv_sec == st.st_ctim.tv_sec && st.st_atim.tv_nsec > st.st_ctim.tv_nsec))
                        return;
                (void) nanosleep(&tick, NULL);
        }
        fail_msg("%s was never used after it was made", path);
}

static void path_means_the_file_that_the_process_would_find(void **state)
{
        (void) state;
        char whole[128], above[128], from_root[128];
        (void) snprintf(whole, sizeof(whole), "%s/a.py", folder);
        (void) snprintf(above, sizeof(above), "../%s/deep/../a.py", strrchr(folder, '/') + 1);
        (void) snprintf(from_root, sizeof(from_root), "/../../%s/a.py", folder);
        assert_int_equal(symlink("a.py", "there.py"), 0);
        assert_int_equal(symlink(whole, "whole.py"), 0);
        assert_int_equal(symlink(above, "up.py"), 0);
        assert_int_equal(symlink("loop.py", "loop.py"), 0);
        assert_int_equal(mkfifo("fifo.py", 0644), 0);
        assert_int_equal(symlink("/proc/self/fd/0", "fd.py"), 0);
        follow("there.py");
        follow("whole.py");
        follow("up.py");
        const struct {
                const char *name, *path, *file; /* file: NULL = none */
        } rows[] = {
                { "as it is called", "a.py", "a.py" },
                { "its whole path", whole, "a.py" },
                { "above its folder", above, "a.py" },
                { "above the root there is nothing", from_root, "a.py" },
                { "in a folder", "deep/b.py", "deep/b.py" },
                { "a link", "there.py", "a.py" },
                { "a link to a whole path", "whole.py", "a.py" },
                { "a link that leads above", "up.py", "a.py" },
                { "a link to itself", "loop.py", NULL },
                { "nothing", "none.py", NULL },
                { "no path", "", NULL },
                { "a folder", "deep", NULL },
                { "a FIFO, which is not opened", "fifo.py", NULL },
                { "a device", "/dev/null", NULL },
                { "a descriptor", "/proc/self/fd/0", NULL },
                { "a link to one", "fd.py", NULL },
        };
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                for (int wait = 0; wait < 2; wait++) {
                        uint64_t dev = 7, inode = 7;
                        struct stat st = { .st_dev = 7, .st_ino = 7 };
                        if (rows[i].file)
                                assert_int_equal(stat(rows[i].file, &st), 0); /* now the kernel has it in memory */
                        row_check(rows[i].name, process_file_look(proc_dir, rows[i].path, wait, &dev, &inode) ==
                                                        (rows[i].file != NULL));
                        row_check(rows[i].name, dev == st.st_dev && inode == st.st_ino);
                }
        }
        rows_end();
}

static void path_that_is_too_long_is_no_other_file(void **state)
{
        (void) state;
        char path[4096];
        uint64_t dev, inode;
        memset(path, '/', sizeof(path));
        (void) snprintf(path + sizeof(path) - 16, 16, "dev/../a.py");
        assert_false(process_file_look(proc_dir, path, true, &dev, &inode));
}

static void folder_that_is_gone_has_no_files(void **state)
{
        (void) state;
        uint64_t dev, inode;
        assert_int_equal(mkdir("gone", 0755), 0);
        assert_int_equal(chdir("gone"), 0);
        assert_int_equal(rmdir("../gone"), 0);
        assert_false(process_file_look(proc_dir, "a.py", true, &dev, &inode));
        assert_int_equal(chdir(folder), 0);
        assert_true(process_file_look(proc_dir, "a.py", true, &dev, &inode));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(path_means_the_file_that_the_process_would_find),
                cmocka_unit_test(path_that_is_too_long_is_no_other_file),
                cmocka_unit_test(folder_that_is_gone_has_no_files),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
