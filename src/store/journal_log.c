/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When SQLite's write-ahead log is moved into the file. Left alone SQLite does it within the commit that makes the log long: that
 * one waits for the disk, some 20 ms, and so does whoever waits for that commit. So it is done while the journal is tidied.
 */
#include "store/journal_private.h"

enum {
        PAGES_WANTED = 500, /* worth the disk's time */
        PAGES_MOST = 2000,  /* nobody tidied: then within a commit after all. 8 MiB, as long as the file may stay */
};

static void move(struct journal *j)
{
        int n_pages = 0, n_moved = 0;

        /* What cannot be moved now stays where it is, and is tried again: nothing is lost by that. */
        int rc = sqlite3_wal_checkpoint_v2(j->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &n_pages, &n_moved);
        if (rc == SQLITE_OK && n_moved == n_pages)
                j->log_pages = 0; /* the next commit begins it anew */
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int n_pages)
{
        struct journal *j = ctx;

        (void) db;
        (void) name;
        j->log_pages = (uint32_t) n_pages;
        if (n_pages >= PAGES_MOST)
                move(j);
        return SQLITE_OK;
}

void journal_log_watch(struct journal *j)
{
        (void) sqlite3_wal_hook(j->db, on_commit, j); /* in place of SQLite's own */
}

bool journal_log_is_long(const struct journal *j)
{
        return j->log_pages >= PAGES_WANTED;
}

void journal_log_tidy(struct journal *j)
{
        if (journal_log_is_long(j))
                move(j);
}
