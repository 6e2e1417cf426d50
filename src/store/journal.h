/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one truth (design 3.1): everything the core was told and everything it decided, in one SQLite file. A segment opens
 * with a snapshot of the world; its records follow, one for each arbiter_step(); SHA-256 chains them from the first day, over
 * segments too. Status, events, why, replay and restart read this and nothing else. Feeding the inputs to the core again
 * gives the same actions byte by byte.
 *
 * A daemon's life with it:
 *
 *         journal_open(&j, path, NULL, err);                        // a damaged file is moved aside whole; journal_degraded()
 *         journal_restore(j, world, step, ctx, &restored, err);     // always; world is zeroed memory
 *         if (restored.fresh)
 *                 world_init(world, &config), and its next ids not below restored.next_…;
 *         journal_snapshot(j, world, boot_id, wall_ms, err);        // a new segment; without one nothing can be written
 *         each turn of the loop:
 *                 for each input:
 *                         arbiter_step(world, &input, out);
 *                         journal_append(j, &input, out, wall_ms, err);   // memory only; skip ticks without actions
 *                 journal_commit(j, err);                           // one transaction
 *                 carry out the actions, answer the clients         // only now
 *                 if (journal_wants_snapshot(j)) journal_snapshot(…);
 *                 else if (journal_wants_tidying(j)) journal_tidy(j);     // when nobody waits
 *         journal_snapshot(…); journal_close(j);                    // a clean end needs no replay
 *
 * When journal_commit() fails nothing of the batch is in the file and all of it is still pending. Let no action out and
 * answer nobody (a request gets 503, or 507 for -ENOSPC); try journal_commit() again each turn: when it succeeds, go on as if
 * nothing had been. The other way: journal_discard(), zero the world, journal_restore(): the world is what the file says.
 *
 * Durable means: survives the death of this process at any moment (kill -9). After a power cut the last moments may be
 * missing (WAL with synchronous=NORMAL; every process is gone then too), never half a record, never the middle.
 *
 * What the chain proves: no row inside was changed, removed or added. That the newest rows were cut off together with their
 * events, or that the whole file was recomputed, only a copy of a later hash kept elsewhere can tell.
 *
 * Errors are negative errno with words:
 *   -ENOSPC  disk, quota, file size limit or max_bytes is full; goes away when space returns
 *   -EBUSY   another program holds the lock for longer than busy_ms; try again
 *   -EIO     the disk failed                 -EBADMSG  what was read is damaged (the words name the row)
 *   -ENOENT  a write found the file or its log deleted, replaced or emptied: journal_begin_anew()
 *   -EROFS   opened read_only, or the file system is      -EACCES, -ENOMEM  as usual
 *   -EPROTONOSUPPORT  written by a newer lessor (read_only: or an older one): refused, not one byte changed
 *   -EPROTOTYPE       not a journal: refused, not one byte changed
 *   -ESTALE  another program wrote into this journal: give up, restore again
 *   -EINVAL  our own bug (order of calls, a value that could not be read back)
 *
 * One thread at a time uses a journal; it may be handed from one to another. A process opens a path for writing once; further journals on it (another thread that
 * serves events, replay) are read_only and opened after that one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

struct journal;

struct journal_options {          /* zeroed = the defaults */
        bool read_only;           /* for replay, verify, events: changes nothing and moves nothing aside */
        uint32_t busy_ms;         /* how long a lock of others is waited for (250) */
        uint32_t segment_records; /* journal_wants_snapshot() after so many (10000) */
        uint32_t
                keep_segments; /* older ones are pruned with their records (8; at least 2, so that one may be damaged) */
        uint32_t keep_events;  /* older ones are pruned (100000); independent of segments */
        uint32_t keep_audits;  /* older ones are pruned (10000; journal_audit.h) */
        uint64_t max_bytes;    /* of the file, write-ahead log not included; 0 = no limit */
        const char *core_version; /* NULL = this program's version; tests set others. At most 31 bytes */
};

enum {
        JOURNAL_BOOT_ID_SIZE = 37, /* /proc/sys/kernel/random/boot_id, NUL included */
        JOURNAL_VERSION_SIZE = 32,
        JOURNAL_HASH_SIZE = 32,
        JOURNAL_EVENTS_LIMIT = 1000,
};

/*
 * A damaged file is moved aside together with its -wal, -shm and -journal (kept as PATH.aside-YYYYMMDDThhmmssZ…), a fresh
 * one is started and journal_degraded() says so. One of an older lessor goes on as ours, after a whole copy of it was kept
 * as PATH.vFORMAT for the way back (journal_upgraded() has words). Failures change nothing.
 */
int journal_open(struct journal **ret, const char *path, const struct journal_options *options, struct error *err);
void journal_close(struct journal *j); /* NULL is fine. What was not committed is gone */
/* One sentence about what was lost or damaged, where the evidence lies; NULL when all is well. */
const char *journal_degraded(const struct journal *j);
const char *journal_upgraded(const struct journal *j); /* the same about a conversion; NULL = there was none */

/* How long a lock of others is waited for from now on (options.busy_ms until then). */
void journal_set_busy_ms(struct journal *j, uint32_t busy_ms);

/* ---- restart ---- */

/* arbiter_step() behind a pointer: the store decides nothing. */
typedef void journal_step_fn(void *ctx, struct world *world, const struct input *input, struct actions *out);

struct journal_restored {
        bool fresh;     /* nothing could be restored (a new file, or nothing of it provable): @world is zeroed */
        bool degraded;  /* something was damaged; journal_degraded() has words */
        bool agreed;    /* the core decided the same again, byte by byte */
        bool same_core; /* and it is the version that decided then; otherwise it may differ, which is no damage */
        uint64_t differs_at_seq; /* the first record on which it did not agree; the world is what the core says now */
        uint64_t n_records;      /* fed to the core again */
        uint64_t n_lost;         /* behind the damage, in no world any more */
        uint64_t last_seq;       /* the last record that is in the world */
        uint64_t last_wall_ms;   /* when that was, for people; 0 = never */
        uint64_t
                next_lease_id; /* the world's, or what a damaged file had come to: with @fresh raise world_init()'s to these */
        uint64_t next_action_id;
        char boot_id[JOURNAL_BOOT_ID_SIZE]; /* of the newest segment in the world */
        char core_version[JOURNAL_VERSION_SIZE];
};

/*
 * journal_restore - the world as of the last record
 * Takes the newest snapshot that proves true, checks each record after it against the chain, feeds its input to @step and
 * compares. @world: zeroed memory. Its clock afterwards is world->now_ms.
 *
 * Damage: a bad snapshot is rebuilt from the segment before; at a bad record the world stays as of the record before. Then the
 * file is moved aside as a whole, a fresh one goes on with its sequence and its hash, the world's next ids skip what the old
 * file had given out, and ret->degraded is set. A bad world_check() is degraded too, but kept. In a journal that has been
 * written into since it was opened damage is -EBADMSG and nothing is moved: close it and start from journal_open().
 */
int journal_restore(struct journal *j, struct world *world, journal_step_fn *step, void *ctx,
                    struct journal_restored *ret, struct error *err);

/*
 * After -ENOENT: moves aside what is left of the file, starts a fresh one and sets journal_degraded(). The sequence and the
 * chain go on; journal_snapshot() comes next. Where the files are as they were it does nothing.
 */
int journal_begin_anew(struct journal *j, struct error *err);
/* Are the file and its log what they were? A write looks at the folder only, which emptying them does not change; the owner
 * looks closer, once a second. -ENOENT, as a write would find it. */
int journal_look(struct journal *j, struct error *err);

/* ---- writing ---- */

/*
 * Begins a segment, in a transaction of its own; prunes. Nothing may be pending. On failure the old segment goes on.
 * In two steps: encoded into memory while the world stands still, then written, by another thread if one likes.
 */
int journal_snapshot(struct journal *j, const struct world *world, const char *boot_id, uint64_t wall_ms,
                     struct error *err);
int journal_snapshot_prepare(struct journal *j, const struct world *world, const char *boot_id, uint64_t wall_ms,
                             struct error *err);
int journal_snapshot_write(struct journal *j, struct error *err); /* what was prepared last; then it is forgotten */
bool journal_wants_snapshot(const struct journal *j);

/* Encodes into memory; nothing of @input and @actions is kept. -ENOBUFS: 64 MiB are pending. On failure nothing is added. */
int journal_append(struct journal *j, const struct input *input, const struct actions *actions, uint64_t wall_ms,
                   struct error *err);
/* Writes all that is pending in one transaction; nothing pending is fine and costs nothing. */
int journal_commit(struct journal *j, struct error *err);
void journal_discard(struct journal *j); /* forgets what is pending: the caller's world is ahead then, restore it */
/*
 * A commit writes records and nothing else: one page, as a rule. The table of events is made from them later, by this, by
 * journal_snapshot(), or by a commit when far too many are behind; reading events does not depend on it. It also moves a long
 * write-ahead log into the file, which waits for the disk: no commit should (the log of SQLite's, 8 MiB at most before one does).
 */
int journal_tidy(struct journal *j, struct error *err);
bool journal_wants_tidying(const struct journal *j);
size_t journal_pending(const struct journal *j);
size_t journal_pending_bytes(const struct journal *j); /* as they will stand in the file */
uint64_t journal_last_seq(const struct journal *j);    /* committed */

/* ---- reading ---- */

struct journal_event {
        uint64_t seq;
        uint64_t wall_ms;
        uint64_t now_ms;      /* of the input: reason_text() wants it */
        struct action action; /* action.id is the event's id */
};

struct journal_events_filter {
        uint64_t after_id;  /* only ids above */
        uint64_t before_id; /* only ids below; 0 = no bound */
        uint64_t lease_id;  /* 0 = any */
        uint32_t limit;     /* at most JOURNAL_EVENTS_LIMIT; 0 and more count as that */
        bool newest_first;
};

/* Committed actions that are events: all but ACTION_READ, which is an order. So ids ascend with gaps. @each returns nonzero to
 * stop early; its value is returned. */
typedef int journal_event_fn(void *ctx, const struct journal_event *event);
int journal_events(struct journal *j, const struct journal_events_filter *filter, journal_event_fn *each, void *ctx,
                   struct error *err);

struct journal_verified {
        bool ok;
        uint64_t n_segments;
        uint64_t n_records;
        uint64_t n_events;
        uint64_t n_audits;
        uint64_t bad_segment; /* the first finding, 0 = not there */
        uint64_t bad_seq;
        uint64_t bad_event;
        uint64_t bad_audit;
        char words[200]; /* "record 17: …" */
        uint64_t
                last_seq; /* with @ok: the newest record, and the chain's hash there: kept elsewhere it proves later that */
        uint8_t hash[JOURNAL_HASH_SIZE]; /* nothing was cut off behind it */
};

/* Walks the chain, the events and how they belong together (S27). 0: walked to the end or to the first finding. */
int journal_verify(struct journal *j, struct journal_verified *ret, struct error *err);
