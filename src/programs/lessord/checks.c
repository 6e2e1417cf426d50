/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/checks.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/log.h"
#include "programs/lessord/conf.h"
#include "programs/lessord/journal_check.h"

int check_config(const struct options *options, const struct paths *paths)
{
        static struct conf conf;
        struct error err = { 0 };
        const char *path = options->conf ? options->conf : paths->conf;

        conf_defaults(&conf);
        if (conf_load(path, options->conf != NULL, &conf, &err) < 0) {
                (void) fprintf(stderr, "%s\n", err.msg); /* FILE:LINE: words, as editors understand it */
                return EXIT_REFUSED;
        }
        if (options->print)
                conf_print(stdout, &conf);
        else
                (void) printf("%s: %s\n", path, access(path, F_OK) == 0 ? "good" : "not there: the defaults count");
        conf_fini(&conf);
        return EXIT_SUCCESS;
}

int check_journal(const struct paths *paths)
{
        struct journal_verified verified;
        struct error err = { 0 };

        if (journal_check(paths->journal, &verified, &err) < 0) {
                log_error("%s", err.msg);
                return EXIT_REFUSED;
        }
        journal_check_print(stdout, paths->journal, &verified);
        return verified.ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
