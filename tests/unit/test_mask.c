/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in command lines (issue: masked before anything is stored or shown). Words are written here with blanks between
 * them where the kernel has NULs; '|' stands for a blank inside a word. */
#include <stdint.h>
#include <string.h>
#include "base/mask.h"
#include "cm.h"

static void check(const char *line, const char *expected)
{
        char args[512], shown[512];
        size_t n = strlen(line);

        assert_true(n < sizeof(args));
        memcpy(args, line, n + 1);
        for (size_t i = 0; i < n; i++)
                args[i] = args[i] == ' ' ? '\0' : args[i] == '|' ? ' ' : args[i];
        (void) mask_arguments(args, n);
        for (size_t i = 0; i < n; i++)
                shown[i] = args[i] == '\0' ? ' ' : args[i] == ' ' ? '|' : args[i];
        shown[n] = '\0';
        assert_string_equal(shown, expected);
}

static void S16_values_of_what_is_called_a_secret_are_unreadable(void **state)
{
        (void) state;
        check("vllm serve m --api-key=abc --port 8000", "vllm serve m --api-key=*** --port 8000");
        check("vllm serve m --api-key abc --port 8000", "vllm serve m --api-key *** --port 8000");
        check("env HF_TOKEN=abcdef python train.py", "env HF_TOKEN=****** python train.py");
        check("x --Password=S3cret", "x --Password=******");
        check("x --db.passwd=a=b|c", "x --db.passwd=*****");
        check("x --auth u:p", "x --auth ***");
        check("x -e AWS_SECRET_ACCESS_KEY=a/b+c==", "x -e AWS_SECRET_ACCESS_KEY=*******");
        check("curl -H Authorization:|Bearer|xyz http://h/", "curl -H Authorization:|********** http://h/");
        check("curl http://h/?a=1&token=xyz&b=2", "curl http://h/?a=1&token=***&b=2");
        check("x {\"token\":\"xyz\",\"a\":1}", "x {\"token\":\"***\",\"a\":1}");
        check("x --key=k", "x --key=*");
}

static void credentials_in_addresses_are_unreadable(void **state)
{
        (void) state;
        check("git clone https://user:pass@host/x.git", "git clone https://user:****@host/x.git");
        check("git clone https://ghs@host/x.git", "git clone https://***@host/x.git");
        check("x postgres://u:p@ss@h:5432/db", "x postgres://u:****@h:5432/db");
        check("x http://host/a@b", "x http://host/a@b");
}

static void tokens_are_known_by_their_form(void **state)
{
        (void) state;
        check("x hf_abcdefghijklmnopqrst", "x hf_********************");
        check("x sk-proj-0123456789abcdef", "x sk-*********************");
        check("x a=ghp_0123456789abcdef0123", "x a=ghp_********************");
        check("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
              "x eyJ*************************************************");
        check("x hf_short sk-short", "x hf_short sk-short");
}

static void what_is_no_secret_stays_readable(void **state)
{
        (void) state;
        check("python train.py --max-tokens 512 --tokenizer gpt2", "python train.py --max-tokens 512 --tokenizer gpt2");
        check("llama-server -m model.gguf --n-tokens=4 --author me",
              "llama-server -m model.gguf --n-tokens=4 --author me");
        check("x --monkey=banana --keyboard=de --passes=3", "x --monkey=banana --keyboard=de --passes=3");
        check("python -c print(1)", "python -c print(1)");
        check("x C:\\a b:c", "x C:\\a b:c");
        check("", "");
        check("x --token", "x --token");
        check("x --token --port 1", "x --token --port 1");
}

static void any_bytes_are_safe(void **state)
{
        char args[64];
        uint32_t seed = 1;

        (void) state;
        for (int round = 0; round < 20000; round++) {
                static const char letters[] = "token=:/@hf_sk-\"' \0--keyA&\xff";
                size_t n = (seed >> 8) % sizeof(args);
                for (size_t i = 0; i < n; i++) {
                        seed = seed * 1664525 + 1013904223;
                        args[i] = letters[(seed >> 10) % (sizeof(letters) - 1)];
                }
                seed = seed * 1664525 + 1013904223;
                (void) mask_arguments(args, n);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S16_values_of_what_is_called_a_secret_are_unreadable),
                cmocka_unit_test(credentials_in_addresses_are_unreadable),
                cmocka_unit_test(tokens_are_known_by_their_form),
                cmocka_unit_test(what_is_no_secret_stays_readable),
                cmocka_unit_test(any_bytes_are_safe),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
