/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal_audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "store/journal_private.h"

/* Beside the tables of the first days (journal_open.c). What pruning must not forget is the hash before the oldest. */
const char journal_audit_schema[] =
        "CREATE TABLE audit ("
        " id INTEGER PRIMARY KEY CHECK (id > 0),"
        " seq INTEGER NOT NULL CHECK (seq > 0),"
        " wall_ms INTEGER NOT NULL CHECK (wall_ms >= 0),"
        " boot_id TEXT NOT NULL CHECK (length(boot_id) < 37),"
        " pid INTEGER NOT NULL CHECK (pid BETWEEN 1 AND 4294967295),"
        " start_ticks INTEGER NOT NULL CHECK (start_ticks >= 0),"
        " uid INTEGER CHECK (uid BETWEEN 0 AND 4294967295)," /* NULL = not known */
        " facts BLOB NOT NULL,"
        " hash BLOB NOT NULL CHECK (length(hash) = 32)) STRICT;"
        "CREATE UNIQUE INDEX audit_identity ON audit (pid, start_ticks, boot_id);"
        "ALTER TABLE keep ADD COLUMN audit_hash BLOB NOT NULL CHECK (length(audit_hash) = 32)"
        " DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';";

/* ---- collecting ---- */

static bool is_pending(const struct journal *j, const struct journal_audit *audit)
{
        for (size_t i = 0; i < j->n_audits; i++) {
                const struct journal_audit *p = &j->audits[i];
                if (p->pid == audit->pid && p->start_ticks == audit->start_ticks &&
                    strcmp(p->boot_id, audit->boot_id) == 0)
                        return true;
        }
        return false;
}

int journal_append_audit(struct journal *j, const struct journal_audit *audit, struct error *err)
{
        if (j->options.read_only)
                return error_set(err, EROFS, "%s was opened for reading only", j->path);
        if (audit->n_facts > JOURNAL_AUDIT_FACTS_MAX)
                return error_set(err, EMSGSIZE, "%zu bytes are known of pid %u, and no more than %d are kept",
                                 audit->n_facts, audit->pid, JOURNAL_AUDIT_FACTS_MAX);
        if (audit->wall_ms >= CODEC_ID_END || audit->start_ticks >= CODEC_ID_END || audit->pid == 0)
                return error_set(err, EINVAL, "not an identity, or not a time");
        if (is_pending(j, audit)) /* of a batch that came to nothing, and is tried again */
                return 0;
        if (j->n_audits == JOURNAL_AUDITS_PENDING_MAX)
                return error_set(err, ENOBUFS, "%d audits wait to be written to %s, and no more can",
                                 JOURNAL_AUDITS_PENDING_MAX, j->path);
        if (j->n_audits == j->cap_audits) {
                size_t cap = j->cap_audits ? 2 * j->cap_audits : 16;
                void *grown = reallocarray(j->audits, cap, sizeof(*j->audits));
                if (!grown)
                        return error_set(err, ENOMEM, "no memory for an audit");
                j->audits = grown;
                j->cap_audits = cap;
        }

        char *facts = malloc(audit->n_facts + 1);
        if (!facts)
                return error_set(err, ENOMEM, "no memory for an audit");
        if (audit->n_facts > 0)
                memcpy(facts, audit->facts, audit->n_facts);
        facts[audit->n_facts] = '\0';
        j->audits[j->n_audits] = *audit;
        j->audits[j->n_audits++].facts = facts;
        return 0;
}

void journal_audits_forget(struct journal *j)
{
        for (size_t i = 0; i < j->n_audits; i++)
                free((void *) (uintptr_t) j->audits[i].facts);
        free(j->audits);
        j->audits = NULL;
        j->n_audits = j->cap_audits = 0;
}

/* ---- writing ---- */

static int newest(struct journal *j, uint64_t *ret_id, struct chain_hash *ret_hash, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_AUDIT_KEPT, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, 0);
        r = sql_step(j->db, stmt, "reading the end of the audits", err);
        *ret_id = r > 0 ? sql_u64(stmt, 0) : 0;
        *ret_hash = r > 0 ? chain_hash_read(stmt, 1) : (struct chain_hash){ 0 };
        return r < 0 ? r : 0;
}

static int is_known(struct journal *j, const struct journal_audit *audit, struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_AUDIT_FIND, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, audit->pid);
        sql_bind_u64(stmt, 2, audit->start_ticks);
        sql_bind_text(stmt, 3, audit->boot_id);
        return sql_step(j->db, stmt, "looking for an audit", err);
}

static struct chain_audit chained(const struct journal_audit *audit)
{
        return (struct chain_audit){
                .id = audit->id,
                .seq = audit->seq,
                .wall_ms = audit->wall_ms,
                .boot_id = audit->boot_id,
                .pid = audit->pid,
                .start_ticks = audit->start_ticks,
                .uid = audit->uid_known ? audit->uid : UINT32_MAX,
                .facts = { .data = audit->facts, .n = audit->n_facts },
        };
}

static int insert(struct journal *j, const struct journal_audit *audit, const struct chain_hash *hash,
                  struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_AUDIT_INSERT, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, audit->id);
        sql_bind_u64(stmt, 2, audit->seq);
        sql_bind_u64(stmt, 3, audit->wall_ms);
        sql_bind_text(stmt, 4, audit->boot_id);
        sql_bind_u64(stmt, 5, audit->pid);
        sql_bind_u64(stmt, 6, audit->start_ticks);
        if (audit->uid_known)
                sql_bind_u64(stmt, 7, audit->uid);
        sql_bind_blob(stmt, 8, audit->facts, audit->n_facts);
        sql_bind_blob(stmt, 9, hash->bytes, sizeof(hash->bytes));
        return sql_step(j->db, stmt, "writing an audit to the journal", err);
}

int journal_audits_write(struct journal *j, uint64_t seq, struct error *err)
{
        struct chain_hash hash;
        uint64_t id;

        if (j->n_audits == 0)
                return 0;
        int r = newest(j, &id, &hash, err);
        for (size_t i = 0; r >= 0 && i < j->n_audits; i++) {
                struct journal_audit *audit = &j->audits[i];
                r = is_known(j, audit, err);
                if (r != 0)
                        continue;
                audit->id = ++id;
                audit->seq = seq;
                struct chain_audit link = chained(audit);
                hash = chain_hash_audit(&hash, &link);
                r = insert(j, audit, &hash, err);
        }
        return r < 0 ? r : 0;
}

int journal_audits_prune(struct journal *j, struct error *err)
{
        struct chain_hash hash;
        uint64_t id;

        {
                auto_reset sqlite3_stmt *stmt = NULL;
                int r = journal_stmt(j, STMT_AUDIT_KEPT, &stmt, err);
                if (r < 0)
                        return r;
                sql_bind_u64(stmt, 1, j->options.keep_audits);
                r = sql_step(j->db, stmt, "pruning the audits", err);
                if (r <= 0)
                        return r;
                id = sql_u64(stmt, 0);
                hash = chain_hash_read(stmt, 1);
        }
        {
                auto_reset sqlite3_stmt *stmt = NULL;
                int r = journal_stmt(j, STMT_AUDITS_PRUNE, &stmt, err);
                if (r < 0)
                        return r;
                sql_bind_u64(stmt, 1, id);
                r = sql_step(j->db, stmt, "pruning the audits", err);
                if (r < 0)
                        return r;
        }

        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_KEEP_AUDIT_HASH, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_blob(stmt, 1, hash.bytes, sizeof(hash.bytes));
        return sql_step(j->db, stmt, "pruning the audits", err);
}

/* ---- reading ---- */

/* Texts are borrowed from the statement. */
static void row_read(sqlite3_stmt *stmt, struct journal_audit *ret)
{
        struct chain_blob facts = sql_blob(stmt, 7);

        *ret = (struct journal_audit){
                .id = sql_u64(stmt, 0),
                .seq = sql_u64(stmt, 1),
                .wall_ms = sql_u64(stmt, 2),
                .pid = (uint32_t) sql_u64(stmt, 4),
                .start_ticks = sql_u64(stmt, 5),
                .uid_known = sqlite3_column_type(stmt, 6) != SQLITE_NULL,
                .facts = facts.data,
                .n_facts = facts.n,
        };
        ret->uid = ret->uid_known ? (uint32_t) sql_u64(stmt, 6) : 0;
        (void) snprintf(ret->boot_id, sizeof(ret->boot_id), "%s", sql_text(stmt, 3));
}

int journal_audits(struct journal *j, const struct journal_audits_filter *filter, journal_audit_fn *each, void *ctx,
                   struct error *err)
{
        uint64_t before = filter->before_id > 0 && filter->before_id < CODEC_ID_END ? filter->before_id : INT64_MAX;
        uint32_t limit =
                filter->limit > 0 && filter->limit < JOURNAL_AUDITS_LIMIT ? filter->limit : JOURNAL_AUDITS_LIMIT;
        auto_reset sqlite3_stmt *stmt = NULL;

        if (filter->start_ticks >= CODEC_ID_END)
                return 0;
        int r = journal_stmt(j, filter->pid != 0 ? STMT_AUDITS_DOWN_PID : STMT_AUDITS_DOWN, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, before);
        sql_bind_u64(stmt, 2, limit);
        if (filter->pid != 0) {
                sql_bind_u64(stmt, 3, filter->pid);
                sql_bind_u64(stmt, 4, filter->start_ticks);
        }
        while ((r = sql_step(j->db, stmt, "reading the audits", err)) > 0) {
                struct journal_audit audit;
                row_read(stmt, &audit);
                r = each(ctx, &audit);
                if (r != 0)
                        return r;
        }
        return r;
}

int journal_audits_verify(struct journal *j, struct chain_hash before, journal_audit_check_fn *found, void *ctx,
                          struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        int r = journal_stmt(j, STMT_AUDITS_ALL, &stmt, err);
        if (r < 0)
                return r;
        while ((r = sql_step(j->db, stmt, "reading the audits", err)) > 0) {
                struct journal_audit audit;
                row_read(stmt, &audit);
                struct chain_audit link = chained(&audit);
                struct chain_hash hash = chain_hash_audit(&before, &link), kept = chain_hash_read(stmt, 8);
                bool ok = chain_hash_equal(&hash, &kept);
                before = hash;
                r = found(ctx, audit.id, ok);
                if (r != 0)
                        return r;
        }
        return r;
}
