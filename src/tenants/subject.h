/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the eyes tell of a process, as matching takes it. */
#include "tenants/match.h"
#include "wire/eyes.h"

enum { SUBJECT_ARGUMENTS_MAX = 128 };

/* Where the texts of a match_program lie. */
struct subject_words {
        char program[EYES_PATH_SIZE];
        char cmdline[EYES_CMDLINE_MAX + 1];
        const char *arguments[SUBJECT_ARGUMENTS_MAX];
};

/* *ret points into @keep. */
void subject_program(const struct eyes_process *p, struct subject_words *keep, struct match_program *ret);
