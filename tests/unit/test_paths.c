/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S12: names that change hands between two system calls. A thread puts a link, a pipe, a second name or the right file in one
 * place, as fast as it can; what is read is the right file or nothing, and what the links lead to is left alone.
 * $LESSOR_SWAP_ROUNDS: how often (100,000).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/token.h"
#include "base/error.h"
#include "base/number.h"
#include "cm.h"
#include "programs/lessord/world_clock.h"

#define OURS "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define THEIRS "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\n"

static char folder[64], place[96], other[96], fresh[96];
static atomic_bool stop;

static void write_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        (void) close(fd);
}

static uint64_t rounds(uint64_t by_default)
{
        const char *text = getenv("LESSOR_SWAP_ROUNDS");
        uint64_t n = by_default;

        if (text)
                assert_int_equal(parse_u64("LESSOR_SWAP_ROUNDS", text, 1, UINT32_MAX, &n, NULL), 0);
        return n;
}

static int begin(void **state)
{
        (void) state;
        (void) snprintf(folder, sizeof(folder), "/tmp/lessor-test-paths-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        (void) snprintf(place, sizeof(place), "%s/place", folder);
        (void) snprintf(other, sizeof(other), "%s/other", folder);
        (void) snprintf(fresh, sizeof(fresh), "%s/fresh", folder);
        write_file(other, THEIRS);
        atomic_store(&stop, false);
        return 0;
}

static int end(void **state)
{
        char name[128];

        (void) state;
        static const char *const names[] = { "place", "other", "fresh", "clock", "clock.new" };
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                (void) snprintf(name, sizeof(name), "%s/%s", folder, names[i]);
                (void) unlink(name);
        }
        return rmdir(folder);
}

/* Each is there for a moment: rename() takes the place of what was there in one step. Asserts are for the thread of the test. */
static void *swap_place(void *unused)
{
        (void) unused;
        for (unsigned i = 0; !atomic_load(&stop); i++) {
                int r = 0;
                if (i % 3 == 0)
                        write_file(fresh, OURS);
                else if (i % 3 == 1)
                        r = symlink(other, fresh);
                else
                        r = mkfifo(fresh, 0600);
                if (r < 0 || rename(fresh, place) < 0)
                        return fresh; /* could not be put into its place */
        }
        return NULL;
}

static void S12_token_that_is_swapped_while_it_is_read_is_ours_or_none(void **state)
{
        uint64_t n_read = 0, n_refused = 0, n_wrong = 0, n = rounds(100000);
        void *trouble = NULL;
        struct token ours, got;
        struct error err = { 0 };
        pthread_t thread;

        (void) state;
        write_file(place, OURS);
        assert_int_equal(token_load(place, &ours, &err), 0);
        assert_int_equal(pthread_create(&thread, NULL, swap_place, NULL), 0);
        /* As often as was asked for, and until both happened: on one processor the thread needs its turn. */
        while (n_wrong == 0 && (n_read + n_refused < n || n_read == 0 || n_refused == 0)) {
                memset(&got, 0, sizeof(got));
                int r = token_load(place, &got, &err);
                if (r == 0 && memcmp(&got, &ours, sizeof(got)) == 0)
                        n_read++;
                else if (r == -ELOOP || r == -EINVAL)
                        n_refused++;
                else
                        n_wrong++;
        }
        atomic_store(&stop, true);
        assert_int_equal(pthread_join(thread, &trouble), 0);
        assert_null(trouble);
        assert_int_equal(n_wrong, 0);
}

/* Wherever our file is being made, somebody's link is put, again and again. */
static void *link_fresh_clock(void *unused)
{
        char name[128];

        (void) unused;
        (void) snprintf(name, sizeof(name), "%s/clock.new", folder);
        while (!atomic_load(&stop)) {
                (void) !symlink(other, name); /* it is there already: one more round */
                (void) !link(other, name);
        }
        return NULL;
}

static void S12_file_that_is_written_is_never_written_through_a_link(void **state)
{
        uint64_t n_wrong = 0, n = rounds(100000) / 200; /* each waits for the disk */
        char name[128], text[sizeof(THEIRS) + 1] = "";
        struct error err = { 0 };
        struct stat before, after;
        pthread_t thread;

        (void) state;
        (void) snprintf(name, sizeof(name), "%s/clock", folder);
        assert_int_equal(stat(other, &before), 0);
        assert_int_equal(pthread_create(&thread, NULL, link_fresh_clock, NULL), 0);
        for (uint64_t i = 0; i < n; i++) {
                struct world_clock clock;
                int r = world_clock_init(&clock, name, "a-boot", i + 1, 0, &err);
                n_wrong += r != 0 && r != -EEXIST;
                (void) unlink(name); /* the next one has to be written again */
        }
        atomic_store(&stop, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(n_wrong, 0);
        int fd = open(other, O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(THEIRS));
        (void) close(fd);
        assert_string_equal(text, THEIRS);
        assert_int_equal(stat(other, &after), 0);
        assert_int_equal(after.st_mode, before.st_mode);
        assert_true(after.st_mtim.tv_sec == before.st_mtim.tv_sec && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(S12_token_that_is_swapped_while_it_is_read_is_ours_or_none, begin, end),
                cmocka_unit_test_setup_teardown(S12_file_that_is_written_is_never_written_through_a_link, begin, end),
        };
        return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
