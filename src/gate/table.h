/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who may pass, and why: one row a lease, and one for each cgroup that always may. Several rows can name one cgroup; it passes as
 * long as one of them does. What the kernel is to be told follows from the table. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        TABLE_ROWS_MAX = 8192,
        TABLE_ALWAYS_MAX =
                4096, /* of them: a user can make folders that always pass, and must not take the leases' rows */
};

struct table_row {
        uint64_t lease_id;  /* 0 = always */
        uint64_t cgroup_id; /* 0 = an empty row */
        uint64_t how;       /* FENCE_… */
        bool confirmed;     /* told since the brain came */
};

struct table {
        struct table_row rows[TABLE_ROWS_MAX];
        size_t n;        /* rows behind these are empty */
        size_t n_always; /* rows without a lease */
};

/* Replaces the row of that lease, or of that cgroup where @lease_id is 0. @ret_old: the cgroup of before whose how may have
 * changed; 0 = none. False: full. */
bool table_put(struct table *t, uint64_t lease_id, uint64_t cgroup_id, uint64_t how, uint64_t *ret_old);
/* The cgroup of that lease, which is forgotten; 0 = it had none. */
uint64_t table_drop(struct table *t, uint64_t lease_id);
uint64_t table_drop_at(struct table *t, size_t i);
/* How that cgroup passes by all rows together; 0 = it does not. */
uint64_t table_how(const struct table *t, uint64_t cgroup_id);
size_t table_count_leases(const struct table *t);
void table_doubt_leases(struct table *t); /* none is confirmed any more */
