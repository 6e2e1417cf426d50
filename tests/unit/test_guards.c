/* SPDX-License-Identifier: Apache-2.0 */
/* Who is never a target by the file it runs: as the hands refuse it, known beforehand (F49, S10). */
#include "programs/lessord/guards.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cm.h"

static int rows_failed;

enum { OWN = 1, SSHD = 2, XORG = 3, TRAINER = 9, DEV = 8 };

static const struct guards listed = {
        .list = { .n = 3, .n_own = 1, .programs = { { DEV, OWN }, { DEV, SSHD }, { DEV, XORG } } },
        .n_way_in = 1,
        .way_in = { { DEV, SSHD } },
};

static enum process_guard guard(uint64_t dev, uint64_t inode, bool known, const char *name, enum process_guard facts)
{
        struct eyes_process p = { .pid = 7, .exe_known = known, .exe_dev = dev, .exe_inode = inode };

        (void) snprintf(p.comm, sizeof(p.comm), "%s", name);
        (void) snprintf(p.exe_path, sizeof(p.exe_path), "/usr/bin/%s", name);
        return guards_of(&listed, &p, facts);
}

static void F49_file_is_what_guards_and_no_name(void **state)
{
        const struct {
                const char *title, *name;
                uint64_t dev, inode;
                bool known;
                enum process_guard facts, expected;
        } rows[] = {
                { "lessor's own", "lessord", DEV, OWN, true, GUARD_NONE, GUARD_LESSOR },
                { "the way in", "sshd", DEV, SSHD, true, GUARD_NONE, GUARD_SSHD },
                { "a display server", "Xorg", DEV, XORG, true, GUARD_NONE, GUARD_DISPLAY },
                { "a display server that is called otherwise", "trainer", DEV, XORG, true, GUARD_NONE, GUARD_DISPLAY },
                { "S10: a trainer that is called Xorg", "Xorg", DEV, TRAINER, true, GUARD_NONE, GUARD_NONE },
                { "S10: a trainer that is called sshd", "sshd", DEV, TRAINER, true, GUARD_NONE, GUARD_NONE },
                { "the same number on another device", "Xorg", DEV + 1, XORG, true, GUARD_NONE, GUARD_NONE },
                { "no number", "Xorg", DEV, 0, true, GUARD_NONE, GUARD_NONE },
                { "a file that is not known is nobody's", "Xorg", DEV, XORG, false, GUARD_UNSEEN, GUARD_UNSEEN },
                { "what the facts say stays", "Xorg", DEV, XORG, true, GUARD_FOREIGN, GUARD_FOREIGN },
                { "pid 1 stays pid 1", "init", DEV, SSHD, true, GUARD_INIT, GUARD_INIT },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                row_check(rows[i].title, guard(rows[i].dev, rows[i].inode, rows[i].known, rows[i].name,
                                               rows[i].facts) == rows[i].expected);
        rows_end();
}

static enum process_guard guard_of_file(const struct guards *g, const char *path)
{
        struct eyes_process p = { .pid = 7, .exe_known = true };
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        p.exe_dev = st.st_dev;
        p.exe_inode = st.st_ino;
        return guards_of(g, &p, GUARD_NONE);
}

static void put(const char *path)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fclose(file), 0);
}

static void programs_beside_the_eyes_are_lessors_own_and_looked_at_again(void **state)
{
        char folder[] = "/tmp/lessor-guards-XXXXXX", eyes[64], other[64], moved[64];
        struct guards g = { 0 };

        (void) state;
        assert_non_null(mkdtemp(folder));
        (void) snprintf(eyes, sizeof(eyes), "%s/lessor-eyes", folder);
        (void) snprintf(other, sizeof(other), "%s/Xorg", folder);
        (void) snprintf(moved, sizeof(moved), "%s/old", folder);
        put(eyes);
        put(other);
        guards_look(&g, eyes, 5);
        assert_int_equal(guard_of_file(&g, "/proc/self/exe"), GUARD_LESSOR);
        assert_int_equal(guard_of_file(&g, eyes), GUARD_LESSOR);
        assert_int_equal(guard_of_file(&g, other), GUARD_NONE);
        /* An upgrade puts another file there. */
        assert_int_equal(rename(eyes, moved), 0);
        put(eyes);
        guards_look(&g, eyes, 5 + GUARDS_KEPT_MS - 1);
        assert_int_equal(guard_of_file(&g, eyes), GUARD_NONE);
        guards_look(&g, eyes, 5 + GUARDS_KEPT_MS);
        assert_int_equal(guard_of_file(&g, eyes), GUARD_LESSOR);
        (void) unlink(eyes);
        (void) unlink(moved);
        (void) unlink(other);
        (void) rmdir(folder);
}

static void helper_without_a_folder_guards_nobody_beside_it(void **state)
{
        struct guards g = { 0 };

        (void) state;
        guards_look(&g, "", 0);
        assert_int_equal(guard_of_file(&g, "/proc/self/exe"), GUARD_LESSOR);
        assert_true(g.list.n_own >= 1 && g.list.n_own <= g.list.n);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F49_file_is_what_guards_and_no_name),
                cmocka_unit_test(programs_beside_the_eyes_are_lessors_own_and_looked_at_again),
                cmocka_unit_test(helper_without_a_folder_guards_nobody_beside_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
