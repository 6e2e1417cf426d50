/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A desk for the tests of the journal: a private folder, a journal in it, a world, and the small core of books.h. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include "books.h"
#include "cm.h"
#include "store/journal.h"

/* A path into an array; it fits. */
#define desk_path(buf, ...) assert_true((size_t) snprintf(buf, sizeof(buf), __VA_ARGS__) < sizeof(buf))

struct desk {
        char dir[64];
        char path[96];
        struct journal_options options;
        struct journal *j;
        struct world *world;
        struct actions *out;
        uint64_t differs_at; /* the core decides otherwise on this action; 0 = it does not */
        uint32_t i;          /* the next line of the story */
        struct journal_restored restored;
        struct error err;
};

int desk_begin(void **state); /* cmocka setup and teardown; *state is the desk */
int desk_end(void **state);

/* Open, restore, world_init when fresh; without a snapshot. */
void desk_open(struct desk *d);
void desk_close(struct desk *d);
void desk_snapshot(struct desk *d);
void desk_start(struct desk *d); /* desk_open and desk_snapshot: as a daemon starts */
/* The next @n lines of the story, decided and appended; then committed, one transaction for all. */
void desk_append(struct desk *d, uint32_t n);
void desk_write(struct desk *d, uint32_t n);

/* The world as bytes: what "the same books" means. Freed by the caller. */
uint8_t *desk_books(const struct world *world, size_t *ret_n);
void desk_assert_same_books(const struct world *a, const struct world *b);
/* What the file says is the story up to line @n, to the byte; read over a connection of its own. */
void desk_assert_on_disk(const struct desk *d, uint32_t n);
void desk_assert_verifies(struct desk *d);

/* Behind the journal's back. */
void desk_sql(const struct desk *d, const char *sql);
uint64_t desk_sql_u64(const struct desk *d, const char *sql);
/* Whole files. desk_read gives NULL for one that is not there. */
uint8_t *desk_read(const char *path, size_t *ret_n);
void desk_write_file(const char *path, const void *data, size_t n);
/* Copies PATH with -wal and -shm to DIR/NAME, as they lie there in this moment; returns the new main file's path. */
const char *desk_copy(const struct desk *d, const char *name, char buf[PATH_MAX]);
/* How many files in the folder have a name with @part in it. */
unsigned desk_count(const struct desk *d, const char *part);
