/* SPDX-License-Identifier: Apache-2.0 */
/* What an interpreter runs, by the words it was started with: sure only where nothing else is run before it (S10). */
#include <string.h>
#include "cm.h"
#include "base/script.h"

#define WORDS(text) text "\0", sizeof(text "\0") - 1

static const struct row {
        const char *program;
        const char *words;
        size_t n;
        enum script_kind kind;
        const char *name;
} rows[] = {
        /* programs */
        { "/opt/x/bench", WORDS("bench\0--size\0004"), SCRIPT_NONE, "" },
        { "/opt/x/bench", WORDS("bench\0in.dat"), SCRIPT_NONE, "" },
        { "/usr/bin/pythonista", WORDS("pythonista\0x"), SCRIPT_NONE, "" },
        { "/usr/bin/shred", WORDS("shred\0x"), SCRIPT_NONE, "" },
        { "bench", "", 0, SCRIPT_NONE, "" },
        /* scripts */
        { "/usr/bin/python3.11", WORDS("python3\0train.py\0--epochs\0003"), SCRIPT_FILE, "train.py" },
        { "/usr/bin/python3.11", WORDS("anything\0-u\0/home/a/train.py"), SCRIPT_FILE, "/home/a/train.py" },
        { "/usr/bin/python3.11", WORDS("p\0-W\0ignore\0-Xdev\0train.py"), SCRIPT_FILE, "train.py" },
        { "/usr/bin/python3.11", WORDS("p\0-Es\0--\0-odd.py"), SCRIPT_FILE, "-odd.py" },
        { "/usr/bin/python3.12-dbg", WORDS("p\0train"), SCRIPT_FILE, "train" },
        { "/usr/bin/python3.11 (deleted)", WORDS("p\0train.py"), SCRIPT_FILE, "train.py" },
        { "/usr/bin/bash", WORDS("bash\0-e\0-o\0pipefail\0run.sh"), SCRIPT_FILE, "run.sh" },
        { "/usr/bin/perl", WORDS("perl\0-w\0a.pl"), SCRIPT_FILE, "a.pl" },
        { "/usr/bin/node", WORDS("node\0app.js"), SCRIPT_FILE, "app.js" },
        /* modules and code */
        { "/usr/bin/python3", WORDS("python3\0-m\0vllm.serve\0--port\0001"), SCRIPT_MODULE, "vllm.serve" },
        { "/usr/bin/python3", WORDS("python3\0-um\0vllm.serve"), SCRIPT_MODULE, "vllm.serve" },
        { "/usr/bin/python3", WORDS("python3\0-mvllm.serve"), SCRIPT_MODULE, "vllm.serve" },
        { "/usr/bin/python3", WORDS("python3\0-c\0import torch\0train.py"), SCRIPT_CODE, "" },
        { "/usr/bin/python3", WORDS("python3\0-cimport torch\0train.py"), SCRIPT_CODE, "" },
        { "/usr/bin/bash", WORDS("bash\0-ec\0train"), SCRIPT_CODE, "" },
        { "/usr/bin/perl", WORDS("perl\0-we\0print"), SCRIPT_CODE, "" },
        /* what may have something else run first, or takes the next word for its value: nobody's script by a guess */
        { "/usr/bin/python3", WORDS("python3\0--check-hash-based-pycs\0a.py\0b.py"), SCRIPT_OPTIONS, "a.py" },
        { "/usr/bin/python3", WORDS("python3\0-i\0a.py"), SCRIPT_OPTIONS, "a.py" },
        { "/usr/bin/perl", WORDS("perl\0-Mevil\0a.pl"), SCRIPT_OPTIONS, "a.pl" },
        { "/usr/bin/node", WORDS("node\0-r\0evil.js\0a.js"), SCRIPT_OPTIONS, "evil.js" },
        { "/usr/bin/bash", WORDS("bash\0--rcfile\0evil\0-i"), SCRIPT_OPTIONS, "evil" },
        { "/usr/bin/java", WORDS("java\0-jar\0x.jar"), SCRIPT_OPTIONS, "x.jar" },
        { "/usr/bin/java", WORDS("java\0-version"), SCRIPT_CODE, "" },
        { "/usr/bin/deno", WORDS("deno\0run\0a.ts"), SCRIPT_OPTIONS, "a.ts" },
        { "/usr/bin/busybox", WORDS("busybox\0sh\0run.sh"), SCRIPT_OPTIONS, "run.sh" },
        { "/usr/lib/ld-linux-x86-64.so.2", WORDS("ld.so\0/usr/bin/python3\0a.py"), SCRIPT_OPTIONS, "a.py" },
        { "/usr/lib/ld-linux-x86-64.so.2", WORDS("ld.so\0/usr/bin/python3"), SCRIPT_CODE, "" },
        /* not on the command line */
        { "/usr/bin/python3", WORDS("python3"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", WORDS("python3\0-u"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", WORDS("python3\0-\0a.py"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", WORDS("python3\0-W"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", WORDS("python3\0-m"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", WORDS("python3\0\0a.py"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", WORDS("python3\0--"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", "", 0, SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3", "python3\0train.py", 16, SCRIPT_UNSEEN, "" }, /* cut: the name may go on */
        { "/usr/bin/python3", WORDS("VLLM::EngineCore"), SCRIPT_UNSEEN, "" },
        { "/usr/bin/python3",
          WORDS("python3\0a-path-of-more-than-sixty-three-bytes-which-does-not-fit-into-what-is-there/a.py"),
          SCRIPT_UNSEEN, "" },
        { "", WORDS("python3\0a.py"), SCRIPT_UNSEEN, "" },
        { "", WORDS("bench"), SCRIPT_UNSEEN, "" },
        /* a copy of an interpreter under another name */
        { "/home/a/trainer", WORDS("trainer\0a.py"), SCRIPT_FILE, "a.py" },
        { "/home/a/trainer", WORDS("trainer\0-u\0a.py"), SCRIPT_OPTIONS, "a.py" },
        { "/home/a/trainer", WORDS("trainer\0.py"), SCRIPT_NONE, "" },
};

static void script_is_sure_only_where_nothing_else_runs_before_it(void **state)
{
        (void) state;
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char name[64];
                enum script_kind kind =
                        script_of_command(rows[i].program, rows[i].words, rows[i].n, name, sizeof(name));
                print_message("# %s, %s\n", rows[i].program,
                              rows[i].n > 0 ? rows[i].words + strlen(rows[i].words) + 1 : "");
                row_check(rows[i].program, kind == rows[i].kind);
                row_check(rows[i].program, strcmp(name, rows[i].name) == 0);
                row_check(rows[i].program, script_has_name(kind) == (rows[i].name[0] != '\0'));
        }
        rows_end();
}

/* Whatever is cut off a command line, no other script comes out of it. */
static void command_line_that_is_cut_names_no_other_script(void **state)
{
        (void) state;
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                for (size_t n = 0; n < rows[i].n; n++) {
                        char name[64];
                        enum script_kind kind =
                                script_of_command(rows[i].program, rows[i].words, n, name, sizeof(name));
                        row_check(rows[i].program, kind != SCRIPT_FILE || (rows[i].kind == SCRIPT_FILE &&
                                                                           strcmp(name, rows[i].name) == 0));
                        row_check(rows[i].program, kind != SCRIPT_NONE || !script_is_interpreter(rows[i].program));
                }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(script_is_sure_only_where_nothing_else_runs_before_it),
                cmocka_unit_test(command_line_that_is_cut_names_no_other_script),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
