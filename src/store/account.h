/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who had what for how long: the sum over a journal, from the oldest snapshot that is kept to its last record. Each input goes
 * through the core again (the world of each moment follows from it); what lies between two records is as it was after the
 * first of them. Sums by (uid, consumer); of bounded size, whatever the journal has.
 *
 *   held    on a device, from its grant on until it has ended in the books, parked time not included: what fairness counts too
 *   idle    of that, while its program said that it has nothing to do and its memory did not grow, or where it says nothing of that,
 *           while it was seen to do nothing (design 4.3; unknown is at work)
 *   waited  in the queue; of a booking, from the moment it was booked for
 *   parked  off its device, to come back
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/limits.h"
#include "store/journal.h"

enum { ACCOUNT_ROWS_MAX = 4096 };

enum account_what { ACCOUNT_HELD, ACCOUNT_IDLE, ACCOUNT_WAITED, ACCOUNT_PARKED, ACCOUNT_WHAT_N };

struct account_row {
        uint32_t uid;
        bool is_rest;                  /* everybody for whom there was no row left; uid and consumer say nothing */
        char consumer[NAME_MAX_BYTES]; /* "" = it had no name */
        uint64_t n_leases;
        uint64_t ms[ACCOUNT_WHAT_N];
        unsigned __int128 byte_ms[ACCOUNT_WHAT_N]; /* of the bytes that were promised, or asked for */
};

struct account_options {
        uint64_t since_wall_ms; /* nothing before it counts; 0 = all */
        uint64_t
                until_now_ms; /* a lessord that runs: as the last record left it, until then; 0 = until the last record */
        uint64_t until_wall_ms;
};

struct account {
        struct account_row *rows; /* by uid, then by consumer; the rest last */
        size_t n_rows;
        uint64_t from_wall_ms; /* from when on it is known: the oldest snapshot, or since when was asked */
        uint64_t until_wall_ms;
        uint64_t n_records;
        uint64_t n_damages;
        char damage[200]; /* the first one in words; what follows it until the next snapshot is missing */
        bool same_core;
        char core_version[JOURNAL_VERSION_SIZE]; /* else the first other one that had decided */
};

/* Errors as journal_walk() has them. @ret is to be ended by account_fini() in any case. */
int account_read(struct journal *j, const struct account_options *options, journal_step_fn *step, void *ctx,
                 struct account *ret, struct error *err);
void account_fini(struct account *account);

const char *account_what_name(enum account_what what); /* "held" */
/* MiB·s, rounded down; as much as a number can hold. */
uint64_t account_mib_s(unsigned __int128 byte_ms);

/* Rows of one uid become one, without a consumer; or only of those whose details @uid may not see (is_admin: of none). */
void account_fold_by_user(struct account *account);
void account_fold_for(struct account *account, uint32_t uid);
