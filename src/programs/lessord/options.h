/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What lessord is told on its command line. */
#include <stdbool.h>
#include "base/log.h"
#include "programs/lessord/paths.h"

enum exit_code {
        EXIT_USAGE = 2,
        EXIT_REFUSED = 78, /* sysexits' EX_CONFIG: starting again will not help */
};

struct options {
        enum paths_mode mode;
        const char *dir;
        const char *conf;
        enum log_level level;
        bool check_config, check_journal, print;
};

/* Negative errno, and what is wrong was said. --help and --version answer and end the program. */
int options_parse(int argc, char **argv, struct options *ret);
