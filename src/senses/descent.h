/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where lineage.h gets its facts from: the kernel's process events, /proc, and a file of process accounting. Each is optional;
 * what is not there is less evidence, never an error. One thread; nothing here waits.
 *
 *         descent_listen()   before rights are given up: it opens the socket of the process events
 *         descent_begin()    everybody who lives now
 *         descent_account_at() where the kernel's accounting lies, if it is on (lessor-accounting)
 *         descent_turn()     often: takes what was told, and goes through /proc once when something was lost
 *         descent_trace()    the ancestors of a process that was just identified
 */
#include <stdbool.h>
#include <stdint.h>
#include "senses/lineage.h"
#include "senses/process.h"
#include "wire/eyes.h"

enum {
        DESCENT_PAUSE_MS = 50, /* the socket keeps events meanwhile: one waking for many */
        DESCENT_SCAN_EVERY_MS = 1000,
        DESCENT_ACCOUNT_EVERY_MS = 1000,
        DESCENT_SETTLE_MAX = 256, /* new processes of one turn that are looked at */
};

struct descent {
        const struct process_source *source;
        int events_fd; /* -1: there are none */
        enum eyes_events events;
        int events_errno;
        int accounting_fd; /* -1: there is none */
        uint64_t accounting_at;
        const char *accounting_folder; /* NULL: none is looked for */
        uint64_t accounting_looked_ms; /* 0 = never */
        bool lost;                     /* events were: nothing of before the next scan is taken in */
        uint64_t offset_ns;            /* CLOCK_BOOTTIME - CLOCK_MONOTONIC, by which events are dated */
        int64_t wall_ticks;            /* CLOCK_REALTIME - CLOCK_BOOTTIME, by which records are */
        uint64_t taken_ms;             /* when events came last; 0 = they did not */
        uint64_t scanned_ms;           /* 0 = never */
        uint32_t n_fresh;
        uint32_t fresh[DESCENT_SETTLE_MAX]; /* who was forked since the last look */
        struct lineage lineage;
};

/* @d must be zeroed memory: about 1.3 MiB, of which what is used is touched. Static, or from the heap. */
void descent_listen(struct descent *d);
/* @source: the caller's, for as long as this lives. */
void descent_begin(struct descent *d, const struct process_source *source, uint64_t now_ms);
void descent_fini(struct descent *d);

/* What to poll for reading, -1: nothing now; and how long the caller may sleep for its sake, -1: for ever. */
int descent_poll_fd(const struct descent *d, uint64_t now_ms);
int descent_timeout_ms(const struct descent *d, uint64_t now_ms);
void descent_turn(struct descent *d, uint64_t now_ms);

/* Looks there now and then for the file that is written now; @folder is the caller's, for as long as this lives. Who else than
 * root could write there is not believed. */
void descent_account_at(struct descent *d, const char *folder);
/* The file that the kernel writes to from now on, read from its beginning; taken over. @follows: it is what the last one went
 * over into, and nothing lies between. -1: there is none any more. */
void descent_account(struct descent *d, int fd, bool follows);

/* In place of what /proc alone says: facts->ancestors. */
void descent_trace(struct descent *d, struct eyes_process *facts, uint64_t now_ms);
