/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small texts of the kernel (/proc): read whole, and walked field by field. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file @name in the folder @dir, with a NUL after it. False: not there, or longer than @size - 1 bytes. */
bool proc_text_read(int dir, const char *name, char *buf, size_t size, size_t *ret_n);
/* Of /proc/PID/cgroup the v2 line "0::/path", also where v1 hierarchies are mounted beside it: -ENOENT, -EBADMSG, or -ENAMETOOLONG. */
int proc_text_cgroup(const void *text, size_t n, char *ret_path, size_t path_size);
/* A decimal number at *at; *at is behind it and one blank then. False: there is none, or it is too large. */
bool proc_text_number(const char **at, uint64_t *ret);
/* Behind @n fields and their blanks, or at the end. */
const char *proc_text_skip(const char *text, unsigned n);
