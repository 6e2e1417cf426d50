/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the other programs of this installation are. */
#include <stdbool.h>
#include <stddef.h>

/* Beside this program (a build, or one folder of programs), else in PATH. False: nowhere. */
bool lessord_find(char *ret, size_t size);
/* "lessor-eyes", "lessor-warden": where lessord looks for them. False: nowhere. */
bool lessord_find_helper(const char *name, char *ret, size_t size);
