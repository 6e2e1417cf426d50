/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Our folder ahead of what is there; never twice, so that nested runs do not pile up. */
static char *library_path(const char *libdir)
{
        const char *old = getenv("LD_LIBRARY_PATH");
        size_t len = strlen(libdir);
        char *path;
        if (!old || !*old)
                return strdup(libdir);
        if (strncmp(old, libdir, len) == 0 && (old[len] == ':' || old[len] == 0))
                return strdup(old);
        return asprintf(&path, "%s:%s", libdir, old) < 0 ? NULL : path;
}

/* lessord gives the process that opens the driver's library a small environment; here it is told what else belongs there. */
static const char eyes_variable[] = "LESSOR_EYES_ENV", eyes_names[] = "SIMGPU:SIMGPU_";

static char *eyes_environment(void)
{
        const char *old = getenv(eyes_variable);
        char *names;
        if (!old || !*old || strstr(old, eyes_names))
                return strdup(old && *old ? old : eyes_names);
        return asprintf(&names, "%s:%s", eyes_names, old) < 0 ? NULL : names;
}

int verb_run(int argc, char **argv)
{
        const char *file = NULL;
        const struct cli_option options[] = {
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { NULL, NULL, NULL, NULL, NULL },
        };
        /* Options end at the command, also without "--": its own options are its own. */
        int at = 1;
        while (at < argc && strncmp(argv[at], "--", 2) == 0 && argv[at][2] != 0)
                at += strchr(argv[at], '=') || strcmp(argv[at], "--help") == 0 ? 1 : 2;
        if (at > argc)
                at = argc;
        char **command = argv + at + (at < argc && strcmp(argv[at], "--") == 0);
        if (at > 1)
                (void) cli_parse("run", options, at, argv);
        if (!*command)
                cli_die(EXIT_USAGE, "run: which command? simgpu run [--file F] -- CMD…");
        struct card card;
        cli_open(&card, file);
        const char *path = cli_card_path(file);
        char *libs = library_path(cli_libdir(path));
        char *names = eyes_environment();
        if (!libs || !names || setenv("SIMGPU", path, 1) < 0 || setenv("LD_LIBRARY_PATH", libs, 1) < 0 ||
            setenv(eyes_variable, names, 1) < 0)
                cli_die(EXIT_FAILED, "run: %s", strerror(errno));
        execvp(*command, command);
        int e = errno;
        free(libs);
        free(names);
        fprintf(stderr, "simgpu: run: %s: %s\n", *command, strerror(e));
        return e == ENOENT ? 127 : 126;
}

static void export_line(const char *name, const char *value)
{
        printf("export %s='", name);
        for (const char *p = value; *p; p++)
                if (*p == '\'')
                        fputs("'\\''", stdout);
                else
                        putchar(*p);
        puts("'");
}

int verb_env(int argc, char **argv)
{
        const char *file = NULL;
        const struct cli_option options[] = {
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { NULL, NULL, NULL, NULL, NULL },
        };
        if (cli_parse("env", options, argc, argv) > 0)
                cli_die(EXIT_USAGE, "env: what is \"%s\"?", argv[1]);
        const char *path = cli_card_path(file);
        char *libs = library_path(cli_libdir(path));
        char *names = eyes_environment();
        if (!libs || !names)
                cli_die(EXIT_FAILED, "env: no memory");
        export_line("SIMGPU", path);
        export_line("LD_LIBRARY_PATH", libs);
        export_line(eyes_variable, names);
        free(libs);
        free(names);
        return EXIT_OK;
}
