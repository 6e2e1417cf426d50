/* SPDX-License-Identifier: Apache-2.0 */
#include "client/consumer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] != '\0' ? slash + 1 : path;
}

/* @with_value: the short options that eat the next word; @module: the one that names what runs. */
static const struct interpreter {
        const char *name; /* a version may follow: python3.11 */
        const char *with_value;
        const char *inline_code; /* the option whose next word is code: then the interpreter's own name counts */
        char module;
} interpreters[] = {
        { "python", "WXQ", "c", 'm' }, { "pypy", "WXQ", "c", 'm' }, { "perl", "IMm", "eE", 0 },
        { "ruby", "CIr", "e", 0 },     { "node", "rC", "ep", 0 },   { "bash", "oO", "c", 0 },
        { "sh", "o", "c", 0 },         { "dash", "o", "c", 0 },     { "zsh", "o", "c", 0 },
        { "ksh", "o", "c", 0 },        { "julia", "pJLE", "e", 0 }, { "Rscript", "", "e", 0 },
};

static const struct interpreter *interpreter_of(const char *program)
{
        for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
                size_t n = strlen(interpreters[i].name);
                if (strncmp(program, interpreters[i].name, n) == 0 &&
                    strspn(program + n, "0123456789.") == strlen(program + n))
                        return &interpreters[i];
        }
        return NULL;
}

/* What an interpreter is told to run; NULL = nothing with a name. */
static const char *script_of(const struct interpreter *in, char *const *argv)
{
        for (size_t i = 1; argv[i]; i++) {
                const char *word = argv[i];
                if (word[0] != '-' || word[1] == '\0')
                        return word[0] == '-' ? NULL : base_name(word);
                if (strcmp(word, "--") == 0)
                        return argv[i + 1] ? base_name(argv[i + 1]) : NULL;
                if (word[1] == '-')
                        continue; /* a long option with its value in it */
                for (const char *c = word + 1; *c != '\0'; c++) {
                        if (in->module != 0 && *c == in->module)
                                return c[1] != '\0' ? c + 1 : argv[i + 1];
                        if (strchr(in->inline_code, *c))
                                return NULL;
                        if (strchr(in->with_value, *c)) {
                                if (c[1] == '\0' && argv[i + 1])
                                        i++;
                                break;
                        }
                }
        }
        return NULL;
}

/* Past `env A=1`, `nice -n 5` and their like: to the program that does the work. */
static char *const *past_wrappers(char *const *argv)
{
        static const char *const wrappers[] = { "env", "nice", "nohup", "setsid", "stdbuf", "ionice", "time" };
        for (;;) {
                bool wraps = false;
                const char *program = base_name(argv[0]);
                for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
                        wraps = wraps || strcmp(program, wrappers[i]) == 0;
                if (!wraps)
                        return argv;
                size_t at = 1;
                while (argv[at] && (argv[at][0] == '-' || strchr(argv[at], '='))) {
                        bool eats = strcmp(argv[at], "-n") == 0 || strcmp(argv[at], "-u") == 0 ||
                                    strcmp(argv[at], "-c") == 0 || strcmp(argv[at], "-C") == 0;
                        at += eats && argv[at + 1] ? 2 : 1;
                }
                if (!argv[at])
                        return argv;
                argv += at;
        }
}

const char *consumer_of_command(char *const *argv, char buf[NAME_MAX_BYTES])
{
        argv = past_wrappers(argv);
        const char *name = base_name(argv[0]);
        const struct interpreter *in = interpreter_of(name);
        const char *script = in ? script_of(in, argv) : NULL;
        if (script && script[0] != '\0')
                name = script;
        (void) text_escape(name, strlen(name), buf, NAME_MAX_BYTES);
        if (buf[0] == '\0')
                (void) snprintf(buf, NAME_MAX_BYTES, "unknown");
        return buf;
}
