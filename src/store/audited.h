/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the journal knows of who had device memory: the rows of store/journal_audit.h, and for one pid, from the records that are
 * kept, how much it had when, and who waited because of it. A row is of first sight and stays when the records are pruned.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/identity.h"
#include "store/journal_audit.h"

enum {
        AUDITED_POINTS_MAX = 48,
        AUDITED_DISPLACED_MAX = 32,
        AUDITED_SERIES_MAX = 16, /* processes that had one pid, one after another: the latest */
        AUDITED_HOUR_MS = 60 * 60 * 1000,
};

/* Which rows, the newest first. */
struct audited_look {
        uint32_t pid;                /* 0 = any; else with what it had, and whom it displaced */
        const struct identity *only; /* NULL = any; of this boot. Borrowed */
        size_t n_only;               /* ascending by pid and start */
        char boot_id[JOURNAL_BOOT_ID_SIZE];
        uint64_t before_id; /* 0 = no bound */
        uint32_t limit;     /* at most JOURNAL_AUDITS_LIMIT; 0 and more count as that */
};

/* What it had within an hour, on all devices together, as far as figures were known. An hour without a point was as the one
 * before it ended. */
struct audited_point {
        uint64_t hour_ms; /* wall time of its beginning */
        uint64_t min_bytes, max_bytes, last_bytes;
};

/* A lease that did not get its memory, and was told that this process is in its way. */
struct audited_displaced {
        uint64_t lease_id;
        uint64_t first_wall_ms, last_wall_ms;
        uint64_t bytes; /* that were in its way, the last time */
};

struct audited_series {
        struct identity identity;
        struct audited_point points[AUDITED_POINTS_MAX]; /* oldest first; older ones are forgotten */
        uint32_t n_points;
        struct audited_displaced displaced[AUDITED_DISPLACED_MAX]; /* in their order; later ones are left out */
        uint32_t n_displaced;
};

struct audited_row {
        struct journal_audit audit; /* its facts are ours */
        uint64_t until_wall_ms;     /* another process had the pid from then on; 0 = none that is known */
};

struct audited {
        struct audited_row *rows;
        size_t n_rows;
        bool is_cut;                   /* there are more, older */
        struct audited_series *series; /* with look.pid: of the records */
        uint32_t n_series;
        uint64_t n_damages; /* records passed over */
};

/* 0, with no row where nothing is known. @ret is to be ended by audited_fini() in any case. */
int audited_read(struct journal *j, const struct audited_look *look, struct audited *ret, struct error *err);
void audited_fini(struct audited *audited);
/* One that the journal has no row of, as the newest, copied; one that it has is passed over. -ENOMEM. */
int audited_add(struct audited *audited, const struct journal_audit *audit);
/* NULL: no record that is kept tells of it. */
const struct audited_series *audited_series_of(const struct audited *audited, struct identity who);
