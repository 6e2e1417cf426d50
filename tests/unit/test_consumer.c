/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "cm.h"
#include "base/escape.h"
#include "client/consumer.h"

enum { WORDS_MAX = 10 };

static const struct row {
        const char *expected;
        const char *words[WORDS_MAX];
} rows[] = {
        { "bench", { "./bench", "--size", "4" } },
        { "bench", { "/opt/x/bench" } },
        { "train.py", { "python3", "/home/a/train.py", "--epochs", "3" } },
        { "train.py", { "/usr/bin/python3.11", "-u", "train.py" } },
        { "train.py", { "python", "-W", "ignore", "-X", "dev", "train.py" } },
        { "train.py", { "python", "-Wignore", "train.py" } },
        { "vllm.serve", { "python", "-m", "vllm.serve", "--port", "1" } },
        { "vllm.serve", { "python", "-um", "vllm.serve" } },
        { "python3", { "python3", "-c", "import torch" } },
        { "python3", { "python3" } },
        { "python3", { "python3", "-" } },
        { "run.sh", { "bash", "-e", "/x/run.sh" } },
        { "bash", { "bash", "-lc", "train" } },
        { "a.pl", { "perl", "-w", "a.pl" } },
        { "a.pl", { "perl", "--", "a.pl" } },
        { "pythonista", { "pythonista", "x.py" } },
        { "bench", { "env", "A=1", "B=2", "nice", "-n", "5", "./bench" } },
        { "train.py", { "nohup", "env", "-i", "python3", "train.py" } },
        { "env", { "env" } },
        { "env", { "env", "A=1" } },
        { "a\\x1Bb", { "/tmp/a\033b" } },
        { "x/", { "x/" } },
        { "unknown", { "" } },
};

static void consumer_is_the_script_or_the_program(void **state)
{
        (void) state;
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char copies[WORDS_MAX][64], *argv[WORDS_MAX + 1] = { 0 }, name[NAME_MAX_BYTES];
                for (size_t k = 0; k < WORDS_MAX && rows[i].words[k]; k++) {
                        (void) snprintf(copies[k], sizeof(copies[k]), "%s", rows[i].words[k]);
                        argv[k] = copies[k];
                }
                row_check(rows[i].expected, strcmp(consumer_of_command(argv, name), rows[i].expected) == 0);
        }
        rows_end();
}

static void long_name_is_cut_to_what_the_api_takes(void **state)
{
        (void) state;
        char word[512], name[NAME_MAX_BYTES], *argv[] = { word, NULL };
        memset(word, 'x', sizeof(word) - 1);
        word[sizeof(word) - 1] = '\0';
        (void) consumer_of_command(argv, name);
        assert_true(strlen(name) < NAME_MAX_BYTES);
        assert_true(text_is_plain(name, strlen(name)));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(consumer_is_the_script_or_the_program),
                cmocka_unit_test(long_name_is_cut_to_what_the_api_takes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
