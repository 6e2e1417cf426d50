/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The folder of records (wire/record.h): /run/lessor/parked, $XDG_RUNTIME_DIR/lessor/parked or DIR/parked, one file a process. The
 * hands write; whoever else reads trusts a record as far as its owner is the folder's. A record is written under another name
 * and renamed, so that a reader sees the old one or the new one.
 *
 *   4711-123456          a record
 *   4711-123456.aside    one of another boot, moved aside
 *   lock                 a byte for each pid: who works on a process holds it
 */
#include <stdbool.h>
#include <sys/types.h>
#include "wire/record.h"

/*
 * For who writes: makes it where it is missing. With a @reader group (else -1) the folder is 2750 and records are 0640 and that
 * group's; else 0700 and 0600. -EPERM: it is a link or no folder, somebody else's, or others can write in it.
 */
int parked_open(const char *path, gid_t reader, int *ret_folder, struct error *err);
/* For who only reads: -ENOENT where nothing was ever parked. */
int parked_open_to_read(const char *path, int *ret_folder, struct error *err);

/*
 * -ENOENT: none. -EBADMSG: damaged, or its name is another process's. -EPERM: a link, no file, or not of the folder's owner.
 * -ESTALE: of another boot. -EPROTONOSUPPORT: of another version.
 */
int parked_read(int folder, uint32_t pid, uint64_t start_ticks, struct record *ret, struct error *err);
/* Sets boot id and time. When this returns 0 the record outlives the caller, and every other process; a machine that fell it need not
 * outlive, since its processes do not either: nothing waits for a disk. */
int parked_write(int folder, struct record *record, struct error *err);
/* One that is not there is no error. */
int parked_remove(int folder, uint32_t pid, uint64_t start_ticks);
/* A record of another boot. */
int parked_set_aside(int folder, uint32_t pid, uint64_t start_ticks);

/* @error is what parked_read() said. False: no more. */
typedef bool (*parked_fn)(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error);

/* Calls @each for every name of a record. */
int parked_each(int folder, parked_fn each, void *ctx);

/*
 * Who calls the driver about a process, or changes its record, holds its lock; it goes with the process that took it. Without
 * @wait -EBUSY: another one works on it. The descriptor is the caller's, and closing it is letting go.
 */
int parked_lock(int folder, uint32_t pid, bool wait, int *ret_lock, struct error *err);
