/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "api/consumer.h"
#include "base/escape.h"

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

/* "python3.11" is python, "sh" is sh: the name without digits and dots behind it. */
static bool is_interpreter(const char *program)
{
        static const char *const names[] = { "python",  "pypy", "perl", "ruby", "node", "java", "julia",  "lua",
                                             "Rscript", "bash", "dash", "sh",   "zsh",  "ksh",  "busybox" };
        size_t n = strlen(program);

        while (n > 0 && (isdigit((unsigned char) program[n - 1]) || program[n - 1] == '.'))
                n--;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strlen(names[i]) == n && strncmp(names[i], program, n) == 0)
                        return true;
        return false;
}

/* The argument at or after *at, NUL-terminated into @arg; false at the end of the command line. */
static bool next_argument(const struct eyes_process *facts, size_t *at, char arg[256])
{
        size_t n = facts->n_cmdline, from = *at;

        if (from >= n)
                return false;
        size_t to = from;
        while (to < n && facts->cmdline[to] != '\0')
                to++;
        (void) snprintf(arg, 256, "%.*s", (int) (to - from), facts->cmdline + from);
        *at = to + 1;
        return true;
}

void consumer_of_process(const struct eyes_process *facts, char ret[NAME_MAX_BYTES])
{
        char arg[256];
        const char *name = facts->exe_known ? base_name(facts->exe_path) : facts->comm;
        size_t at = 0;

        if (is_interpreter(name) && next_argument(facts, &at, arg)) { /* the first is the interpreter's own name */
                while (next_argument(facts, &at, arg)) {
                        if (strcmp(arg, "-m") == 0 && next_argument(facts, &at, arg)) {
                                name = arg;
                                break;
                        }
                        if (strcmp(arg, "-c") == 0 || strcmp(arg, "-e") == 0)
                                break; /* a program on the command line has no name */
                        if (arg[0] != '-' && arg[0] != '\0') {
                                name = base_name(arg);
                                break;
                        }
                }
        }
        text_escape(name, strlen(name), ret, NAME_MAX_BYTES);
        if (ret[0] == '\0')
                (void) snprintf(ret, NAME_MAX_BYTES, "unknown");
}
