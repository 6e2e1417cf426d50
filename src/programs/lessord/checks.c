/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/checks.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/log.h"
#include "programs/lessord/conf.h"
#include "store/journal.h"

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
        const struct journal_options options = { .read_only = true, .busy_ms = 2000 };
        struct journal_verified verified;
        struct journal *journal = NULL;
        struct error err = { 0 };

        int r = journal_open(&journal, paths->journal, &options, &err);
        if (r == 0)
                r = journal_verify(journal, &verified, &err);
        journal_close(journal);
        if (r < 0) {
                log_error("%s", err.msg);
                return EXIT_REFUSED;
        }
        (void) printf("%s: %" PRIu64 " segments, %" PRIu64 " records, %" PRIu64 " events: %s\n", paths->journal,
                      verified.n_segments, verified.n_records, verified.n_events,
                      verified.ok ? "whole, and as they were written" : verified.words);
        return verified.ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
