/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the driver's numbers and an answer of the hands mean, for a person who stands in front of it. */
#include <stddef.h>
#include <stdint.h>
#include "wire/warden.h"

enum { RESCUE_WORDS_MAX = 320 };

/* "out of memory" of a CUresult; "an error of its own" for one that is not known here. Never NULL. */
const char *rescue_code_words(uint32_t code);
/* Why it did not come about, with the driver's code where one was given. Returns @buf. */
const char *rescue_answer_words(const struct warden_answer *answer, char buf[RESCUE_WORDS_MAX]);
