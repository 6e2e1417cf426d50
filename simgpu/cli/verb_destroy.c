/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "card/proc.h"
#include "cli/cli.h"

int verb_destroy(int argc, char **argv)
{
        const char *file = NULL;
        const struct cli_option options[] = {
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { NULL, NULL, NULL, NULL, NULL },
        };
        if (cli_parse("destroy", options, argc, argv) > 0)
                cli_die(EXIT_USAGE, "destroy: what is \"%s\"?", argv[1]);
        const char *path = cli_card_path(file);
        char err[256];
        struct card card;
        /* What is not a card is not ours to remove. */
        if (card_open(&card, path, err, sizeof err) < 0)
                cli_die(EXIT_FAILED, "destroy: %s", err);
        proc_reap(&card);
        for (uint32_t i = 0; i < CARD_PROCS_MAX; i++)
                if (atomic_load(&card.file->proc[i].pid) != 0)
                        fprintf(stderr, "simgpu: pid %u still uses this card\n", atomic_load(&card.file->proc[i].pid));
        char side[PATH_MAX], lib[PATH_MAX + 32];
        cli_side_dir(side, sizeof side, path);
        static const char *const libs[] = { "libcuda.so.1", "libnvidia-ml.so.1" };
        for (size_t i = 0; i < 2; i++) {
                snprintf(lib, sizeof lib, "%s/%s", side, libs[i]);
                (void) unlink(lib);
        }
        (void) rmdir(side);
        if (unlink(path) < 0)
                cli_die(EXIT_FAILED, "destroy: %s: %s", path, strerror(errno));
        card_close(&card);
        return EXIT_OK;
}
