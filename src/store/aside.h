/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A database file nobody can trust is evidence (F75): it is moved as a whole, its -wal, -shm and -journal with it, so that
 * SQLite can still open it under its new name; nothing of it is ever removed or written over.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/*
 * PATH becomes PATH.aside-YYYYMMDDThhmmssZ, with ".2", ".3" … where that is taken. The main file goes first: if this process
 * dies in the middle, the next start finds companions without a main file (aside_is_orphaned) and moves those too, before a
 * fresh database could swallow a stale write-ahead log. @ret_name gets the new name of the main file.
 */
int aside_move(const char *path, uint64_t wall_ms, char *ret_name, size_t name_size, struct error *err);
/* A -wal with something in it beside a main file that is missing or empty. (A -journal there is a creation that did not end.) */
bool aside_is_orphaned(const char *path);
/* A -journal with something in it: what is torn in the main file may be as SQLite left it, and SQLite will put it right. */
bool aside_can_roll_back(const char *path);
/* What was renamed in the folder of @path stays renamed after a power cut. */
void aside_directory_sync(const char *path);
