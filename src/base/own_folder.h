/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A folder in which a program keeps what it must be able to believe later. */
#include <stddef.h>
#include <sys/types.h>
#include "base/error.h"

/*
 * Makes it (0700) where it is missing, and opens it. -EPERM: a link or no folder, somebody else's, or with one of the mode bits
 * @never (S_IRWXG …). -ENOENT: it cannot be there.
 */
int own_folder_open(const char *path, mode_t never, int *ret_fd, struct error *err);

/* Where the running program lies, without a slash at the end. */
int own_folder_of_program(char *ret, size_t size, struct error *err);

enum { BOOT_ID_SIZE = 37 }; /* with a NUL */
/* What tells this boot from every other: what another one wrote is not to be believed. */
int own_folder_boot_id(char ret[BOOT_ID_SIZE], struct error *err);
