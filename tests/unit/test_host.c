/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/host.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cm.h"
#include "senses/driver.h"

static int rows_failed;

static void meminfo_gives_both_figures_or_none(void **state)
{
        static const struct {
                const char *name, *text;
                int r;
                uint64_t total, available;
        } rows[] = {
                { "as the kernel writes it",
                  "MemTotal:       24684084 kB\nMemFree:  9 kB\nMemAvailable:   24221240 kB\n", 0, 24684084ULL * 1024,
                  24221240ULL * 1024 },
                { "the other way round", "MemAvailable: 1 kB\nMemTotal: 2 kB\n", 0, 2048, 1024 },
                { "nothing left", "MemTotal: 2 kB\nMemAvailable: 0 kB", 0, 2048, 0 },
                { "before Linux 3.14", "MemTotal: 2 kB\nMemFree: 1 kB\n", -ENOENT, 0, 0 },
                { "empty", "", -ENOENT, 0, 0 },
                { "no total at all", "MemTotal: 0 kB\nMemAvailable: 0 kB\n", -EBADMSG, 0, 0 },
                { "more than there is", "MemTotal: 2 kB\nMemAvailable: 3 kB\n", -EBADMSG, 0, 0 },
                { "no unit", "MemTotal: 2\nMemAvailable: 1 kB\n", -EBADMSG, 0, 0 },
                { "another unit", "MemTotal: 2 MB\nMemAvailable: 1 kB\n", -EBADMSG, 0, 0 },
                { "too large", "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB\n", -EBADMSG, 0, 0 },
                { "too large in bytes", "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB\n", -EBADMSG, 0, 0 },
                { "a name that only begins so", "MemTotals: 2 kB\nMemAvailable: 1 kB\n", -ENOENT, 0, 0 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct host_memory m = { 0 };
                row_check(rows[i].name, host_parse_meminfo(rows[i].text, strlen(rows[i].text), &m) == rows[i].r);
                row_check(rows[i].name, m.total_bytes == rows[i].total && m.available_bytes == rows[i].available);
        }
        rows_end();
}

static void pressure_without_a_file_or_a_figure_is_no_signal(void **state)
{
        static const struct {
                const char *name, *text;
                int r;
                uint64_t milli;
        } rows[] = {
                { "calm", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=9.00\n", 0, 0 },
                { "short", "some avg10=12.34 avg60=0.00 avg300=0.00 total=0\n", 0, 12340 },
                { "all of it", "some avg10=100.00 avg60=1.00", 0, 100000 },
                { "behind another line", "full avg10=1.00 a\nsome avg10=2.50 b\n", 0, 2500 },
                { "no such line", "full avg10=1.00 a\n", -ENOENT, 0 },
                { "empty", "", -ENOENT, 0 },
                { "one digit", "some avg10=1.5 avg60=0.00\n", -EBADMSG, 0 },
                { "no point", "some avg10=1\n", -EBADMSG, 0 },
                { "more than all", "some avg10=101.00\n", -EBADMSG, 0 },
                { "negative", "some avg10=-1.00\n", -EBADMSG, 0 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                uint64_t milli = 0;
                row_check(rows[i].name, host_parse_pressure(rows[i].text, strlen(rows[i].text), &milli) == rows[i].r);
                row_check(rows[i].name, milli == rows[i].milli);
        }
        rows_end();
        assert_false(host_is_short(true, false, 100000));
        assert_false(host_is_short(false, true, 9990));
        assert_true(host_is_short(false, true, 10000));
        assert_true(host_is_short(true, true, 5000)); /* it does not flutter */
        assert_false(host_is_short(true, true, 4990));
}

static void limit_of_a_cgroup_is_a_number_or_none(void **state)
{
        static const struct {
                const char *name, *text;
                int r;
                uint64_t bytes;
        } rows[] = {
                { "a number", "1073741824\n", 0, 1073741824 },
                { "zero", "0\n", 0, 0 },
                { "none", "max\n", 0, HOST_NO_LIMIT },
                { "none, v1, pages of 4 KiB", "9223372036854771712\n", 0, HOST_NO_LIMIT },
                { "none, v1, pages of 64 KiB", "9223372036854710272\n", 0, HOST_NO_LIMIT },
                { "nothing", "", -EBADMSG, 7 },
                { "a word", "maximum\n", -EBADMSG, 7 },
                { "with a unit", "1G\n", -EBADMSG, 7 },
                { "too large", "99999999999999999999\n", -EBADMSG, 7 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                uint64_t bytes = 7;
                row_check(rows[i].name, host_parse_limit(rows[i].text, strlen(rows[i].text), &bytes) == rows[i].r);
                row_check(rows[i].name, bytes == rows[i].bytes);
        }
        rows_end();
}

static void memory_controller_of_v1_is_found_by_its_whole_name(void **state)
{
        static const struct {
                const char *name, *text, *path;
                int r;
        } groups[] = {
                { "alone", "9:name=systemd:/\n4:memory:/docker/x\n0::/\n", "/docker/x", 0 },
                { "with others", "4:cpu,memory,pids:/a\n", "/a", 0 },
                { "a colon in its path", "4:memory:/a:b\n", "/a:b", 0 },
                { "a name that only contains it", "4:memory_x:/a\n0::/b\n", "", -ENOENT },
                { "only v2", "0::/user.slice\n", "", -ENOENT },
                { "no path", "4:memory:\n", "", -EBADMSG },
                { "not a line of it", "hello\n", "", -EBADMSG },
        };
        static const char mounts[] =
                "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
                "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                "35 31 0:32 /part /sys/fs/cgroup/memory rw,relatime shared:9 master:3 - cgroup cgroup rw,memory\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,memory_recursiveprot\n";
        char path[64], point[64], root[64];

        (void) state;
        for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
                path[0] = '\0';
                row_check(groups[i].name, host_parse_cgroup_v1(groups[i].text, strlen(groups[i].text), path,
                                                               sizeof(path)) == groups[i].r);
                row_check(groups[i].name, strcmp(path, groups[i].path) == 0);
        }
        rows_end();
        assert_int_equal(host_parse_mount_v1(mounts, sizeof(mounts) - 1, point, root, sizeof(point)), 0);
        assert_string_equal(point, "/sys/fs/cgroup/memory");
        assert_string_equal(root, "/part");
        assert_int_equal(host_parse_mount_v1(mounts, strlen("31 23"), point, root, sizeof(point)), -ENOENT);
}

/* ---- a /proc and cgroups made for the test ---- */

static void put(const char *dir, const char *file, const char *text)
{
        char path[256];

        (void) snprintf(path, sizeof(path), "%s/%s", dir, file);
        for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                (void) mkdir(path, 0700);
                *slash = '/';
        }
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void F10_room_is_the_least_of_a_cgroup_and_all_above_it(void **state)
{
        char dir[] = "/tmp/test_host.XXXXXX";
        struct host_limits limits = { .v2_known = true };

        (void) state;
        assert_non_null(mkdtemp(dir));
        (void) snprintf(limits.v2_point, sizeof(limits.v2_point), "%s/cg", dir);
        (void) snprintf(limits.v2_root, sizeof(limits.v2_root), "/");
        put(dir, "7/cgroup", "0::/a/b/c\n");
        put(dir, "8/cgroup", "0::/a\n");
        put(dir, "9/cgroup", "0::/full\n");
        put(dir, "10/cgroup", "0::/odd\n");
        put(dir, "cg/cgroup.procs", "");
        put(dir, "cg/a/memory.max", "1000000\n");
        put(dir, "cg/a/memory.current", "400000\n");
        put(dir, "cg/a/b/memory.max", "max\n"); /* memory.current is not even looked for */
        put(dir, "cg/a/b/c/memory.max", "900000\n");
        put(dir, "cg/a/b/c/memory.current", "100000\n");
        put(dir, "cg/full/memory.max", "4096\n");
        put(dir, "cg/full/memory.current", "4096\n");
        put(dir, "cg/odd/memory.max", "4 KiB\n");

        assert_int_equal(host_room_of(&limits, dir, 7), 600000);
        assert_int_equal(host_room_of(&limits, dir, 8), 600000);
        assert_int_equal(host_room_of(&limits, dir, 9), 1);  /* nothing, which is not "unknown" */
        assert_int_equal(host_room_of(&limits, dir, 10), 0); /* unknown, which is not "none" */
        assert_int_equal(host_room_of(&limits, dir, 11), 0); /* gone */

        struct host_limits v1 = { .v1_known = true };
        (void) snprintf(v1.v1_point, sizeof(v1.v1_point), "%s/v1", dir);
        (void) snprintf(v1.v1_root, sizeof(v1.v1_root), "/docker");
        put(dir, "12/cgroup", "4:memory:/docker/x\n0::/a\n");
        put(dir, "13/cgroup", "4:memory:/elsewhere\n");
        put(dir, "v1/memory.limit_in_bytes", "9223372036854771712\n");
        put(dir, "v1/x/memory.limit_in_bytes", "5000\n");
        put(dir, "v1/x/memory.usage_in_bytes", "1000\n");
        assert_int_equal(host_room_of(&v1, dir, 12), 4000);
        assert_int_equal(host_room_of(&v1, dir, 13), 0); /* its limits are not to be seen from here */

        struct host_limits nowhere = { 0 };
        assert_true(host_room_of(&nowhere, dir, 7) == HOST_NO_LIMIT);
}

static void this_machine_has_memory_and_this_process_room(void **state)
{
        struct host_memory m;
        struct host_limits limits;
        uint64_t milli = 0;

        (void) state;
        assert_int_equal(host_read_memory("/proc", &m), 0);
        assert_true(m.total_bytes > 0 && m.available_bytes > 0);
        int r = host_read_pressure("/proc", &milli);
        assert_true(r == 0 || r == -ENOENT || r == -EOPNOTSUPP);
        host_limits_find(&limits, "/proc");
        assert_true(host_room_of(&limits, "/proc", (uint32_t) getpid()) > 0);
}

static void F07_drivers_known_to_be_broken_are_data(void **state)
{
        static const struct {
                const char *version;
                enum driver_verdict verdict;
                const char *reference; /* of the note, in part; NULL = none */
        } rows[] = {
                { "", DRIVER_UNKNOWN, NULL },
                { "abc", DRIVER_UNKNOWN, NULL },
                { "580", DRIVER_UNKNOWN, NULL },
                { "580.95.05.1", DRIVER_UNKNOWN, NULL },
                { "580.99999.1", DRIVER_UNKNOWN, NULL },
                { "580.95 open", DRIVER_UNKNOWN, NULL },
                { "535.54.03", DRIVER_OLD, NULL },
                { "569.99", DRIVER_OLD, NULL },
                { "570.00", DRIVER_FINE, "#24" },
                { "575.57.07", DRIVER_FINE, "#24" },
                { "575.57.08", DRIVER_FINE, NULL },
                { "580.95.05", DRIVER_FINE, NULL },
                { "595.71", DRIVER_FINE, "#53" },
                { "595.72", DRIVER_FINE, NULL },
                { "610.56.99", DRIVER_FINE, NULL },
                { "610.57", DRIVER_BROKEN, "#58" },
                { "610.57.04", DRIVER_BROKEN, "#58" },
                { "610.58", DRIVER_FINE, NULL },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                const struct driver_known *note;
                row_check(rows[i].version, driver_judge(rows[i].version, &note) == rows[i].verdict);
                row_check(rows[i].version, (note != NULL) == (rows[i].reference != NULL));
                row_check(rows[i].version, !note || (strstr(note->reference, rows[i].reference) && note->words[0]));
        }
        rows_end();
        assert_true(driver_number("570.124.06") < driver_number("575.57.08"));
        assert_true(driver_number("575.57") < driver_number("575.57.08"));
        assert_int_equal(driver_number("580."), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(meminfo_gives_both_figures_or_none),
                cmocka_unit_test(pressure_without_a_file_or_a_figure_is_no_signal),
                cmocka_unit_test(limit_of_a_cgroup_is_a_number_or_none),
                cmocka_unit_test(memory_controller_of_v1_is_found_by_its_whole_name),
                cmocka_unit_test(F10_room_is_the_least_of_a_cgroup_and_all_above_it),
                cmocka_unit_test(this_machine_has_memory_and_this_process_room),
                cmocka_unit_test(F07_drivers_known_to_be_broken_are_data),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
