/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is a journal whole, and as it was written? What `lessord --check-journal` and `lessor journal verify` do and say. */
#include <stdio.h>
#include "store/journal.h"

/* 0: it could be read, and ret->ok says; damage is a finding (ret->words). Else it is no journal, or cannot be read. */
int journal_check(const char *path, struct journal_verified *ret, struct error *err);
void journal_check_print(FILE *out, const char *path, const struct journal_verified *verified);
