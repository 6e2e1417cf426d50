/* SPDX-License-Identifier: Apache-2.0 */
/* S04, S16: tokens of 256 bits, from files that nobody else can read; wrong ones are answered ever later. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/door.h"
#include "api/token.h"
#include "api/wrong_tokens.h"
#include "cm.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BASE43 "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE"

static void S04_token_is_at_least_256_bits_long(void **state)
{
        static const struct {
                const char *name, *text;
                bool good;
        } rows[] = {
                { "64 hexadecimal digits", HEX64, true },
                { "63 hexadecimal digits", &(HEX64)[1], false },
                { "43 characters of base64url", BASE43, true },
                { "42 characters of base64url", &(BASE43)[1], false },
                { "43 hexadecimal digits are 172 bits", "0123456789abcdef0123456789abcdef0123456789a", false },
                { "base64 with + and /", "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/AbCdE", false },
                { "blanks", HEX64 " ", false },
                { "nothing", "", false },
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                row_check(rows[i].name, token_is_wellformed(rows[i].text, strlen(rows[i].text)) == rows[i].good);
        rows_end();
}

static char folder[] = "/tmp/lessor-token-XXXXXX";
static char path[64];

static void write_file(const char *text, mode_t mode)
{
        (void) unlink(path);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        assert_int_equal(fchmod(fd, mode), 0);
        (void) close(fd);
}

static int make_folder(void **state)
{
        (void) state;
        if (!mkdtemp(folder))
                return -1;
        (void) snprintf(path, sizeof(path), "%s/token", folder);
        return 0;
}

static int remove_folder(void **state)
{
        (void) state;
        (void) unlink(path);
        return rmdir(folder);
}

static void S04_token_is_read_from_its_file_with_or_without_a_newline(void **state)
{
        struct error err = { 0 };
        (void) state;
        static const char *const texts[] = { HEX64, HEX64 "\n" };
        for (size_t i = 0; i < 2; i++) {
                struct token token = { 0 };
                write_file(texts[i], 0600);
                assert_int_equal(token_load(path, &token, &err), 0);
                assert_true(token_matches(&token, HEX64, 64));
                assert_false(token_matches(&token, HEX64, 63));
                assert_false(token_matches(&token, "", 0));
                assert_false(token_matches(&token, BASE43, 43));
        }
}

static void S04_token_file_that_others_can_read_is_refused(void **state)
{
        static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0644, 0610 };
        struct token token = { 0 };
        struct error err;
        (void) state;
        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
                write_file(HEX64 "\n", modes[i]);
                assert_int_equal(token_load(path, &token, &err), -EPERM);
                assert_non_null(strstr(err.msg, "chmod 600"));
        }
        write_file(HEX64 "\n", 0400);
        assert_int_equal(token_load(path, &token, &err), 0);
}

static void S04_token_file_that_is_none_is_refused(void **state)
{
        char link[80];
        struct token token = { 0 };
        struct error err;
        (void) state;

        write_file(HEX64 "\n", 0600);
        (void) snprintf(link, sizeof(link), "%s/link", folder);
        assert_int_equal(symlink(path, link), 0);
        assert_int_equal(token_load(link, &token, &err), -ELOOP);
        (void) unlink(link);
        assert_int_equal(token_load(folder, &token, &err), -EINVAL);
        assert_int_equal(mkfifo(link, 0600), 0); /* is not waited for */
        assert_int_equal(token_load(link, &token, &err), -EINVAL);
        (void) unlink(link);
        assert_int_equal(token_load(link, &token, &err), -ENOENT);
        write_file("secret\n", 0600);
        assert_int_equal(token_load(path, &token, &err), -EINVAL);
        assert_null(strstr(err.msg, "secret"));
        write_file(HEX64 "\n" HEX64 "\n", 0600);
        assert_int_equal(token_load(path, &token, &err), -EINVAL);
        assert_false(token.given);
}

static void role_is_what_the_door_gives_its_token(void **state)
{
        struct door door = { .kind = DOOR_TCP };
        (void) state;

        assert_int_equal(door_role_of(&door, "", 0), DOOR_ROLE_NONE); /* no token was given: nobody's */
        token_of_text(HEX64, 64, &door.user);
        token_of_text(BASE43, 43, &door.admin);
        assert_int_equal(door_role_of(&door, HEX64, 64), DOOR_ROLE_READER);
        assert_int_equal(door_role_of(&door, BASE43, 43), DOOR_ROLE_ADMIN);
        assert_int_equal(door_role_of(&door, BASE43, 42), DOOR_ROLE_NONE);
        door.uid_known = true;
        assert_int_equal(door_role_of(&door, HEX64, 64), DOOR_ROLE_USER);
        door.kind = DOOR_METRICS;
        assert_int_equal(door_role_of(&door, HEX64, 64), DOOR_ROLE_READER);
}

static void S04_tenth_wrong_token_and_each_after_it_is_answered_ever_later(void **state)
{
        static struct wrong_tokens w;
        const uint8_t here[WRONG_TOKENS_KEY] = { 1, 127, 0, 0, 1 }, there[WRONG_TOKENS_KEY] = { 1, 10, 0, 0, 1 };
        uint64_t before = 0;
        uint32_t count;
        (void) state;

        for (unsigned i = 1; i <= 9; i++) {
                assert_int_equal(wrong_tokens_note(&w, here, i, &count), 0);
                assert_int_equal(count, 0);
        }
        for (unsigned i = 10; i <= 100; i++) {
                uint64_t late_ms = wrong_tokens_note(&w, here, i, &count);
                assert_true(late_ms > before || late_ms == WRONG_TOKENS_MOST_MS);
                assert_int_equal(count, i == 10 || i == 100 ? i : 0); /* two lines in the log */
                before = late_ms;
        }
        assert_int_equal(before, WRONG_TOKENS_MOST_MS);
        assert_int_equal(wrong_tokens_note(&w, there, 100, &count), 0); /* elsewhere nobody pays for it */
        assert_int_equal(wrong_tokens_note(&w, here, 101 + WRONG_TOKENS_FORGOTTEN_MS, &count), 0);
}

static void S04_wrong_tokens_from_everywhere_fill_no_memory(void **state)
{
        static struct wrong_tokens w;
        uint32_t count;
        (void) state;
        for (uint32_t i = 0; i < 1000; i++) {
                const uint8_t key[WRONG_TOKENS_KEY] = { 1, (uint8_t) (i >> 8), (uint8_t) i };
                assert_int_equal(wrong_tokens_note(&w, key, i, &count), 0);
        }
        assert_int_equal(w.n, WRONG_TOKENS_ROWS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S04_token_is_at_least_256_bits_long),
                cmocka_unit_test(S04_token_is_read_from_its_file_with_or_without_a_newline),
                cmocka_unit_test(S04_token_file_that_others_can_read_is_refused),
                cmocka_unit_test(S04_token_file_that_is_none_is_refused),
                cmocka_unit_test(role_is_what_the_door_gives_its_token),
                cmocka_unit_test(S04_tenth_wrong_token_and_each_after_it_is_answered_ever_later),
                cmocka_unit_test(S04_wrong_tokens_from_everywhere_fill_no_memory),
        };
        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
