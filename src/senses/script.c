/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/script.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

/* "python3.11" is python, "sh" is sh: the name without digits and dots behind it. */
bool script_is_interpreter(const char *program)
{
        static const char *const names[] = { "python",  "pypy", "perl", "ruby", "node", "java", "julia",  "lua",
                                             "Rscript", "bash", "dash", "sh",   "zsh",  "ksh",  "busybox" };
        const char *name = base_name(program);
        size_t n = strlen(name);

        while (n > 0 && (isdigit((unsigned char) name[n - 1]) || name[n - 1] == '.'))
                n--;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
                        return true;
        return false;
}

/* The word at or after *at, NUL-terminated into @word; false at the end of the command line. */
static bool next_word(const char *cmdline, size_t n, size_t *at, char *word, size_t size)
{
        size_t from = *at, to = from;

        if (from >= n)
                return false;
        while (to < n && cmdline[to] != '\0')
                to++;
        size_t len = to - from < size - 1 ? to - from : size - 1;
        memcpy(word, cmdline + from, len);
        word[len] = '\0';
        *at = to + 1;
        return true;
}

enum script_kind script_of_command(const char *program, const char *cmdline, size_t n, char *ret, size_t ret_size)
{
        size_t at = 0;

        ret[0] = '\0';
        if (!script_is_interpreter(program) || !next_word(cmdline, n, &at, ret, ret_size))
                return SCRIPT_NONE;
        while (next_word(cmdline, n, &at, ret, ret_size)) { /* the first was the interpreter's own name */
                if (strcmp(ret, "-m") == 0 && next_word(cmdline, n, &at, ret, ret_size))
                        return SCRIPT_MODULE;
                if (strcmp(ret, "-c") == 0 || strcmp(ret, "-e") == 0)
                        break;
                if (ret[0] != '-' && ret[0] != '\0')
                        return SCRIPT_FILE;
        }
        ret[0] = '\0';
        return SCRIPT_NONE;
}
