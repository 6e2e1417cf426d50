/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A disk that fails when it is told to: an SQLite VFS around the ordinary one that counts everything that changes the disk
 * (writes, truncations, syncs, deletions, files that are made, growth of the shared index) and does something else at the
 * k-th. One per process; files are real, syncs are only remembered.
 */
#include <stdbool.h>
#include <stdint.h>

enum fault {
        FAULT_NONE,       /* only counts */
        FAULT_FULL,       /* no space from then on, until fault_end() */
        FAULT_EIO,        /* this one fails, those after it do not */
        FAULT_SHORT,      /* half of this one is written, then it fails */
        FAULT_KILL,       /* the process dies before it: nothing reaches the disk any more */
        FAULT_KILL_TORN,  /* it dies in the middle of it */
        FAULT_POWER,      /* and the machine with it: what was not synced is gone */
        FAULT_POWER_TORN, /* of what was not synced some sectors are there, in no order */
        FAULT_N,
};

const char *fault_name(enum fault fault);
void fault_vfs_install(void); /* once; the default from then on */
/* While no connection is open. Counting starts; @at: 1 = the first. @seed: which sectors a torn power cut leaves. */
void fault_begin(enum fault fault, unsigned at, uint32_t seed);
unsigned fault_count(void);
bool fault_has_hit(void);
bool fault_is_dead(void); /* killed or without power: every call fails and changes nothing */
/* The disk is good again. Close every connection first when it was dead: what a power cut takes is taken here. */
void fault_end(void);
