/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known in words of each process that had device memory (design 4.7): program, command line, ancestors, place. The
 * core decides by numbers and never sees these; they are kept beside its records, in the same transaction, so that an audit
 * of a process that is long gone can be shown. One row an identity, as of first sight, never changed; a hash chain of their
 * own, since they outlive records (journal_verify() walks it). The store reads nothing of the facts.
 */
#include "store/journal.h"

enum {
        JOURNAL_AUDIT_FACTS_MAX = 64 * 1024,
        JOURNAL_AUDITS_PENDING_MAX = 1024,
        JOURNAL_AUDITS_KEPT = 10000, /* older ones are pruned with a new segment */
        JOURNAL_AUDITS_LIMIT = 1000,
};

struct journal_audit {
        uint64_t id;      /* 1, 2, 3 …; append: not looked at */
        uint64_t seq;     /* the last record of the batch it came with; append: not looked at */
        uint64_t wall_ms; /* when it was seen first */
        char boot_id[JOURNAL_BOOT_ID_SIZE];
        uint32_t pid;
        uint64_t start_ticks; /* of /proc/PID/stat */
        bool uid_known;
        uint32_t uid;
        const char *facts; /* UTF-8, secrets masked; borrowed */
        size_t n_facts;
};

/*
 * Keeps a copy for the next commit that has a record; journal_discard() leaves it. An identity that the file has already is
 * passed over then. -ENOBUFS: so many are pending; -EMSGSIZE: longer than may be.
 */
int journal_append_audit(struct journal *j, const struct journal_audit *audit, struct error *err);

struct journal_audits_filter {
        uint64_t before_id;   /* only ids below; 0 = no bound */
        uint32_t pid;         /* 0 = any */
        uint64_t start_ticks; /* 0 = any; only with pid */
        uint32_t limit;       /* at most JOURNAL_AUDITS_LIMIT; 0 and more count as that */
};

/* Committed ones, the newest first. @each returns nonzero to stop early; its value is returned. */
typedef int journal_audit_fn(void *ctx, const struct journal_audit *audit);
int journal_audits(struct journal *j, const struct journal_audits_filter *filter, journal_audit_fn *each, void *ctx,
                   struct error *err);
