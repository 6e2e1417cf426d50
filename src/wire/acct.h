/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Records of the kernel's process accounting (acct(2), version 3): 64 bytes for each process that ended, in the order in which
 * they ended. What a person can do to such a file he can do to its bytes, so they are a stranger's: any are safe.
 *
 * pid and parent are numbers as the pid namespace has them whose file it is. The parent is the one at the end: of who was
 * orphaned it is the next ancestor that takes orphans, or init.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        ACCT_RECORD_SIZE = 64,
        ACCT_COMM_SIZE = 17, /* 16 bytes, which may lack their NUL, and ours */
};

/* Of acct.flags; others pass. */
enum {
        ACCT_FORKED = 0x01, /* never called exec */
        ACCT_SIGNALLED = 0x10,
};

struct acct_record {
        uint8_t flags;
        uint32_t exit_code;
        uint32_t uid; /* the real one */
        uint32_t pid; /* not 0 */
        uint32_t ppid;
        uint32_t begun_s;   /* wall clock, whole seconds: it began within this one, as the clock stood at its end */
        uint64_t lasted_ms; /* rounded down */
        char comm[ACCT_COMM_SIZE]; /* any bytes but NUL */
};

/* -EBADMSG: no record of version 3, little-endian. @n of exactly ACCT_RECORD_SIZE. */
int acct_parse(const void *data, size_t n, struct acct_record *ret);
/*
 * Where in @data the next record begins, at or behind @from: where one is, and behind it another or the end. A full disk
 * may leave a part of one, and what is written behind it lies askew, with a first one that is half of each: a record counts
 * when this finds it where it should be. @n: there is none.
 */
size_t acct_find(const void *data, size_t n, size_t from);
