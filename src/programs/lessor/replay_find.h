/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which journal, and from where on, as a person says it. */
#include <stddef.h>
#include "base/error.h"
#include "store/walk.h"

/*
 * @word: a journal, a folder that has one, or NULL: that of the lessord which `lessor` would ask. Negative errno with words;
 * what is neither file nor folder (a pipe would keep us waiting) is refused here.
 */
int replay_find_journal(const char *word, char *ret, size_t size, struct error *err);
/* "2h" (ago), "2026-11-30 14:05", "14:05" (today; with a Z behind either: UTC), or "4711": an event. */
int replay_parse_since(const char *text, uint64_t now_wall_ms, struct walk_since *ret, struct error *err);
