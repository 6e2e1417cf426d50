/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who was whose parent: a bounded memory of forks, sessions, ends and accounting records, which gives the ancestors of a process also
 * where some of them are gone and the kernel names another parent since (failures F54: workers re-parented to init).
 * Pure over its inputs; what /proc says of the living is asked through a function.
 *
 * What a step from child to parent may rest on, best first (enum lineage_link):
 *
 *   PARENT     both lived, and the kernel named the one as the other's parent
 *   EVENT      the kernel told of the fork when it happened
 *   SESSION    it lives in the session that the other began: nobody joins one, it is inherited, and the number of who began it
 *              is given to nobody else while anybody lives in it
 *   ACCOUNTED  the record of one that ended names its parent at the end. Of an orphan that is an ancestor all the same, or init
 *
 * The kernel tells of an end a moment late: the number may be somebody else's by then, and his fork be told before.
 *
 * A number alone is nobody: each process is (pid, when it started), where that is known from a moment to another. Numbers are
 * given out again, and seconds are long, so wherever two processes could be meant there is no step. The memory forgets who has
 * ended and left nobody behind, so it grows with who lives; a full one learns nothing new.
 *
 * Times are ticks (1/100 s) since boot, as field 22 of /proc/PID/stat.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        LINEAGE_NODES = 16384,  /* processes remembered: the living, and ancestors of theirs */
        LINEAGE_BUCKETS = 8192, /* a power of 2 */
        LINEAGE_RECORDS = 4096, /* of accounting, the last so many */
        LINEAGE_GONE_RUN = 6, /* ended ancestors in a row that are kept; what forks itself anew for ever has no more */
        LINEAGE_ABOVE_MAX = 64,  /* parents that are asked for, to find a session's leader among them */
        LINEAGE_FORK_SLACK = 10, /* the kernel stamps a process some moments before it tells of it */
        LINEAGE_SECOND = 100,
};

/* As the core has them (model/process.h). */
enum lineage_link { LINEAGE_PARENT, LINEAGE_EVENT, LINEAGE_ACCOUNTED, LINEAGE_TOKEN, LINEAGE_SESSION, LINEAGE_LINK_N };

/* A process, as well as it is known: it started at from_ticks or up to slack_ticks later. */
struct lineage_who {
        uint32_t pid;
        uint64_t from_ticks;
        uint64_t slack_ticks; /* 0 = known */
};

struct lineage_step {
        struct lineage_who who;
        enum lineage_link link; /* how the step to it is known */
};

/* What /proc says of a living process. */
struct lineage_look {
        uint64_t start_ticks;
        uint32_t ppid; /* 0 = none, or not ours to see */
        uint32_t sid;
};

/* False: no living process has that number. */
typedef bool lineage_look_fn(void *ctx, uint32_t pid, struct lineage_look *ret);

struct lineage_node {
        struct lineage_who who; /* pid 0 = free */
        uint32_t parent;        /* row + 1; 0 = not known */
        uint32_t next;          /* row + 1 in its bucket, newest first; of a free row: the next free one */
        uint32_t n_children;    /* rows whose parent this is */
        uint8_t link;           /* enum lineage_link, of @parent */
        bool seen;              /* since lineage_scan_begin() */
        bool gone;
        bool told;           /* its fork was */
        uint8_t n_owed;      /* ends that are still to be told, of those who had its number before */
        uint64_t gone_ticks; /* it lived until then at least */
};

struct lineage_record {
        uint32_t pid, ppid;
        uint64_t from_ticks, slack_ticks; /* when it started */
        uint64_t end_ticks;               /* when it ended, as early as can be; slack_ticks later at the latest */
        bool gap;                         /* records before it are missing */
};

struct lineage {
        uint32_t free;   /* row + 1 */
        uint32_t n_used; /* rows that were ever used */
        uint32_t n_nodes;
        uint64_t n_refused; /* not taken in, because it was full */
        uint64_t gap_ticks; /* since then every fork was told; UINT64_MAX: none is */
        bool scanning;
        uint32_t buckets[LINEAGE_BUCKETS];
        struct lineage_node nodes[LINEAGE_NODES];
        uint64_t n_records; /* ever; the last LINEAGE_RECORDS are here */
        bool record_gap;    /* the next one has one before it */
        struct lineage_record records[LINEAGE_RECORDS];
};

/* @l must be zeroed memory, or was used before. */
void lineage_init(struct lineage *l);

/* ---- what happens, in its order ---- */

void lineage_fork(struct lineage *l, uint32_t parent, uint32_t child, uint64_t at_ticks);
void lineage_exit(struct lineage *l, uint32_t pid, uint64_t at_ticks);
/* A process that lives, as /proc shows it: in a scan, or soon behind its fork, of which a scan can know it again only then: the
 * kernel tells when it was told of, not when it started. Parents before children is best. */
void lineage_seen(struct lineage *l, uint32_t pid, const struct lineage_look *look);
/* Events may be missing: who is not seen between the two is gone. Nothing that was told before the first is to be given to
 * lineage_fork() and lineage_exit() behind it; what is told between the two is. @now_ticks: of the first. */
void lineage_scan_begin(struct lineage *l, uint64_t now_ticks);
void lineage_scan_end(struct lineage *l);
/* A record of accounting, in the file's order. @begun_ticks: its second, at its beginning; it may be one off either way. */
void lineage_record(struct lineage *l, uint32_t pid, uint32_t ppid, int64_t begun_ticks, uint64_t lasted_ticks);
/* Records are missing from here on, or the clock they go by was set. */
void lineage_record_gap(struct lineage *l);

/* ---- what follows ---- */

/*
 * The ancestors of a living process, nearest first, as far as they are known; at most @max.
 * @pid with @self as /proc shows it.
 */
size_t lineage_trace(const struct lineage *l, uint32_t pid, const struct lineage_look *self, lineage_look_fn *look,
                     void *ctx, struct lineage_step *ret, size_t max);
