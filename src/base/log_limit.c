/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_limit.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MS_PER_LINE = 1000 / LOG_PER_S };

static struct log_source *source_of(struct log_limit *limit, const char *name)
{
        for (uint32_t i = 0; i < limit->n; i++)
                if (strncmp(limit->rows[i].name, name, LOG_SOURCE_SIZE - 1) == 0)
                        return &limit->rows[i];
        if (limit->n == LOG_SOURCES_MAX)
                return &limit->rows[LOG_SOURCES_MAX - 1];

        struct log_source *row = &limit->rows[limit->n++];
        (void) snprintf(row->name, sizeof(row->name), "%s", limit->n == LOG_SOURCES_MAX ? "others" : name);
        return row;
}

bool log_limit_take(struct log_limit *limit, const char *name, uint64_t now_ms)
{
        struct log_source *row = source_of(limit, name);
        uint64_t full_at_ms = (row->full_at_ms > now_ms ? row->full_at_ms : now_ms) + MS_PER_LINE;

        if (full_at_ms - now_ms <= (uint64_t) LOG_BURST * MS_PER_LINE) {
                row->full_at_ms = full_at_ms;
                return true;
        }
        if (row->n_dropped++ == 0)
                row->since_ms = now_ms;
        return false;
}

const char *log_limit_owed(struct log_limit *limit, uint64_t now_ms, uint64_t *ret_n)
{
        for (uint32_t i = 0; i < limit->n; i++) {
                struct log_source *row = &limit->rows[i];
                if (row->n_dropped == 0 || now_ms < row->since_ms || now_ms - row->since_ms < LOG_TOLD_MS)
                        continue;
                *ret_n = row->n_dropped;
                row->n_dropped = 0;
                return row->name;
        }
        return NULL;
}
