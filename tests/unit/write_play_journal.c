/* SPDX-License-Identifier: Apache-2.0 */
/* write_play_journal PATH: a journal for `lessor replay` of a core with a fault in it (a mutant), which must not find it equal. */
#include <stdio.h>
#include <stdlib.h>
#include "play_journal.h"

int main(int argc, char **argv)
{
        struct error err = { 0 };

        if (argc != 2) {
                (void) fprintf(stderr, "usage: write_play_journal PATH\n");
                return 2;
        }
        if (play_journal_write(argv[1], &err))
                return EXIT_SUCCESS;
        (void) fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
}
