/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "card/proc.h"
#include "cli/cli.h"

int verb_work(int argc, char **argv)
{
        const char *file = NULL;
        const struct cli_option options[] = {
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { NULL, NULL, NULL, NULL, NULL },
        };
        if (cli_parse("work", options, argc, argv) != 2)
                cli_die(EXIT_USAGE, "work: wants PID PERCENT; 0 ends it");
        uint32_t pid = (uint32_t) cli_number("PID", argv[1], 1, INT32_MAX);
        uint32_t percent = (uint32_t) cli_number("PERCENT", argv[2], 0, 100);
        struct card card;
        cli_open(&card, file);
        struct card_proc *p = proc_find(&card, pid);
        if (!p)
                cli_die(EXIT_FAILED, "work: no process %u on this card", pid);
        atomic_store(&p->work_percent, percent);
        return EXIT_OK;
}
