/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/options.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "programs/lessord/conf.h"

static void usage(FILE *out)
{
        struct conf conf;

        conf_defaults(&conf);
        (void) fputs(
                "Usage: lessord [--dir DIR | --system] [--config FILE] [--log-level LEVEL]\n"
                "\n"
                "Grants leases on GPU memory over a unix socket. Without --dir and --system it serves the user who\n"
                "starts it: socket below $XDG_RUNTIME_DIR/lessor, state below $XDG_STATE_HOME/lessor.\n"
                "\n"
                "  --dir DIR          everything (lessord.conf, socket, journal) in this private folder\n"
                "  --system           /run/lessor, /var/lib/lessor, /etc/lessor/lessord.conf\n"
                "  --config FILE      another configuration file\n"
                "  --log-level LEVEL  error, warning, info (default) or debug\n"
                "  --check-config     read the configuration, say what is wrong with it, and end; with --print: what "
                "every\n"
                "                     key is\n"
                "  --check-journal    walk the journal from its first record to its last, say what was changed or is\n"
                "                     damaged, and end\n"
                "  --version, --help\n"
                "\n"
                "Keys of lessord.conf (key = value), with their defaults:\n",
                out);
        conf_print(out, &conf);
        (void) fputs("\nExit status: 0 ended by SIGTERM or SIGINT, 1 failed, 2 wrong usage, 78 refused to start\n"
                     "(configuration, folder, another lessord, a journal of a newer version).\n",
                     out);
}

static int parse_level(const char *text, enum log_level *ret)
{
        static const char *const names[] = { "error", "warning", "info", "debug" };

        for (int i = 0; i <= LOG_LEVEL_DEBUG; i++) {
                if (strcmp(names[i], text) == 0) {
                        *ret = (enum log_level) i;
                        return 0;
                }
        }
        return -EINVAL;
}

int options_parse(int argc, char **argv, struct options *ret)
{
        static const struct option longs[] = {
                { "dir", required_argument, NULL, 'd' },    { "system", no_argument, NULL, 's' },
                { "config", required_argument, NULL, 'c' }, { "log-level", required_argument, NULL, 'l' },
                { "check-config", no_argument, NULL, 'k' }, { "check-journal", no_argument, NULL, 'j' },
                { "print", no_argument, NULL, 'p' },        { "version", no_argument, NULL, 'v' },
                { "help", no_argument, NULL, 'h' },         { 0 },
        };
        bool system = false;
        int c;

        *ret = (struct options){ .level = LOG_LEVEL_INFO };
        while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
                switch (c) {
                case 'd':
                        ret->dir = optarg;
                        break;
                case 's':
                        system = true;
                        break;
                case 'c':
                        ret->conf = optarg;
                        break;
                case 'l':
                        if (parse_level(optarg, &ret->level) == 0)
                                break;
                        log_error("--log-level: \"%s\" is not allowed; allowed: error, warning, info, debug", optarg);
                        return -EINVAL;
                case 'k':
                        ret->check_config = true;
                        break;
                case 'j':
                        ret->check_journal = true;
                        break;
                case 'p':
                        ret->print = true;
                        break;
                case 'v':
                        (void) printf("lessord %s\n", LESSORD_VERSION);
                        exit(EXIT_SUCCESS);
                case 'h':
                        usage(stdout);
                        exit(EXIT_SUCCESS);
                default:
                        log_error("lessord --help shows the options");
                        return -EINVAL;
                }
        }
        if (optind < argc) {
                log_error("\"%s\" is not understood; lessord takes options only (--help)", argv[optind]);
                return -EINVAL;
        }
        if (system && ret->dir) {
                log_error("--dir and --system exclude each other: leave one out");
                return -EINVAL;
        }
        if (ret->dir && ret->dir[0] == '\0') {
                log_error("--dir is empty; name a folder");
                return -EINVAL;
        }
        ret->mode = ret->dir ? PATHS_DIR : system ? PATHS_SYSTEM : PATHS_SESSION;
        return 0;
}
