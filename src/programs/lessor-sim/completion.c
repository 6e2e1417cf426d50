/* SPDX-License-Identifier: Apache-2.0 */
/* `completion`: lessor's scripts, over this program's table, with this program's name in them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "programs/lessor-sim/sim.h"

const char sim_completion_more[] =
        "  lessor-sim completion bash > ~/.local/share/bash-completion/completions/lessor-sim\n"
        "  lessor-sim completion zsh > ~/.zfunc/_lessor-sim     a folder that is in fpath\n"
        "\n"
        "Where lessor is installed as a package, both are in their places already.\n"
        "\n"
        "Exit status: 0 done, 2 wrong use.";

/* Functions are called _lessor…, everything else is the name of the program. */
static void print_renamed(const char *text)
{
        static const char name[] = "lessor";

        for (const char *found; (found = strstr(text, name)); text = found + strlen(name)) {
                (void) fwrite(text, 1, (size_t) (found - text), stdout);
                (void) fputs(found > text && found[-1] == '_' ? "lessor_sim" : "lessor-sim", stdout);
        }
        (void) fputs(text, stdout);
}

int sim_completion_main(const struct verb *verb, int argc, char **argv)
{
        FILE *real = stdout;
        auto_free char *text = NULL;
        size_t n = 0;
        FILE *memory = open_memstream(&text, &n);

        if (!memory) {
                struct error err = { 0 };
                (void) error_errno(&err, errno, "making the script");
                return sim_fail(verb, &err);
        }
        stdout = memory; /* which the C library lets one set: lessor's file prints there */
        int code = verb_completion_main(verb, argc, argv);
        stdout = real;
        bool whole = fclose(memory) == 0;
        if (!whole || !text)
                return SIM_EXIT_BAD;
        print_renamed(text);
        return code;
}
