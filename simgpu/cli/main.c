/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const struct cli_verb cli_verbs[] = {
        { "create", "--file F [options]", "make a card: a file that all its processes share; prints the UUIDs",
          verb_create },
        { "run", "[--file F] -- CMD…", "run a command that sees the card", verb_run },
        { "env", "[--file F]", "print the exports for a shell", verb_env },
        { "hog", "--alloc SIZE [options]", "hold device memory, as a client of the CUDA driver API", verb_hog },
        { "show", "[--file F] [--json]", "print devices, processes and faults, straight from the file", verb_show },
        { "fault", "KIND [args] [options] | clear [KIND] | list | xid N",
          "make the card lie; simgpu fault list tells the kinds", verb_fault },
        { "trace", "[--file F] [--follow] [--json]", "print what happened on the card", verb_trace },
        { "work", "PID PERCENT [--file F]", "let a process compute all the time, as utilisation tells; 0 ends it",
          verb_work },
        { "destroy", "[--file F]", "remove the card", verb_destroy },
        { NULL, NULL, NULL, NULL },
};

static void usage(FILE *to)
{
        fputs("usage: simgpu VERB [options]; the card is $SIMGPU or --file F\n\n", to);
        for (const struct cli_verb *v = cli_verbs; v->name; v++)
                fprintf(to, "  %-8s %s\n           simgpu %s %s\n", v->name, v->help, v->name, v->usage);
        fputs("\nsimgpu VERB --help tells more.\n", to);
}

int main(int argc, char **argv)
{
        if (argc < 2) {
                usage(stderr);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
                usage(stdout);
                return EXIT_OK;
        }
        for (const struct cli_verb *v = cli_verbs; v->name; v++)
                if (strcmp(argv[1], v->name) == 0)
                        return v->run(argc - 1, argv + 1);
        fprintf(stderr, "simgpu: unknown verb \"%s\"; simgpu --help lists them\n", argv[1]);
        return EXIT_USAGE;
}
