/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often one source may write a line: LOG_BURST at once, then LOG_PER_S a second; the others are counted. Who makes events
 * without end fills no disk, and whoever else has something to say is still read. Pure: time is an argument.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
        LOG_BURST = 200,
        LOG_PER_S = 50,
        LOG_TOLD_MS = 1000,   /* how often it is said that lines of a source were dropped */
        LOG_SOURCES_MAX = 96, /* the last row is shared by all that come later */
        LOG_SOURCE_SIZE = 32, /* with the NUL; a longer name is cut */
};

struct log_source {
        char name[LOG_SOURCE_SIZE];
        uint64_t full_at_ms; /* when all of its burst is there again */
        uint64_t since_ms;   /* the first drop that was not told yet */
        uint64_t n_dropped;
};

struct log_limit { /* all zero is one that saw nothing yet */
        uint32_t n;
        struct log_source rows[LOG_SOURCES_MAX];
};

/* May @name write one more line? Where not, it is counted as dropped. */
bool log_limit_take(struct log_limit *limit, const char *name, uint64_t now_ms);
/*
 * log_limit_owed - what has to be said about lines that were dropped
 * Returns the name of a source whose first untold drop is LOG_TOLD_MS ago, with *ret_n; then it counts as told. NULL: none.
 * The name lives as long as @limit.
 */
const char *log_limit_owed(struct log_limit *limit, uint64_t now_ms, uint64_t *ret_n);
