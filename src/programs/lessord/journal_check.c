/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/journal_check.h"
#include <errno.h>
#include <inttypes.h>

enum { BUSY_MS = 2000 };

int journal_check(const char *path, struct journal_verified *ret, struct error *err)
{
        const struct journal_options options = { .read_only = true, .busy_ms = BUSY_MS };
        struct journal *journal = NULL;

        *ret = (struct journal_verified){ 0 };
        int r = journal_open(&journal, path, &options, err);
        if (r == 0)
                r = journal_verify(journal, ret, err);
        journal_close(journal);
        if (r != -EBADMSG)
                return r;
        ret->ok = false;
        (void) snprintf(ret->words, sizeof(ret->words), "%.*s", (int) sizeof(ret->words) - 1, err->msg);
        return 0;
}

void journal_check_print(FILE *out, const char *path, const struct journal_verified *v)
{
        (void) fprintf(out,
                       "%s: %" PRIu64 " segments, %" PRIu64 " records, %" PRIu64 " events, %" PRIu64 " audits: %s\n",
                       path, v->n_segments, v->n_records, v->n_events, v->n_audits,
                       v->ok ? "whole, and as they were written" : v->words);
}
