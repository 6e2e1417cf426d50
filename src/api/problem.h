/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A refusal in words (RFC 9457): what is wrong with which field, what was given, what is allowed, and the cure.
 * Lives on the caller's stack or inside a connection; nothing to free. Text of strangers is escaped when it is put in.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct problem {
        int status;       /* HTTP; 0 = no problem */
        char type[40];    /* "bad-field": urn:lessor:problem:bad-field */
        char title[64];   /* the same in words, for people */
        char detail[640]; /* a sentence with the cure */
        char field[64];   /* "" where no field is meant */
        char given[96];   /* as it was written, cut */
        char allowed[160];
        char cure[192];
};

/* All of these return -1, so that a parser reads `return problem_field(…)`. */
printf_like(4, 5) int problem_set(struct problem *p, int status, const char *type, const char *detail, ...);
/* 400 bad-field. @given: bytes as they came, escaped and cut here. */
int problem_field(struct problem *p, const char *field, const char *given, size_t n_given, const char *allowed,
                  const char *cure);
/* "bad-field" → "a field of the request is not right": the title for a type; the type itself where there is none. */
const char *problem_title(const char *type);
