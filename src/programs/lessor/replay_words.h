/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was decided, in words and as JSON. Texts of strangers are in none of them but names, which are escaped. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "model/action.h"

enum { REPLAY_WORDS_MAX = REASON_TEXT_MAX + 256, REPLAY_TIME_MAX = 32 };

/* "event 12, L3 granted: needs 2 GiB, …"; NULL: "nothing". @now_ms: the world's time of the decision. Returns @buf. */
const char *replay_action_words(const struct action *action, uint64_t now_ms, char buf[REPLAY_WORDS_MAX]);
/* The fields in which two actions differ, with both values: for those that read the same. Returns @buf. */
const char *replay_action_fields(const struct action *was, const struct action *is, char *buf, size_t size);
json_t *replay_action_json(const struct action *action, uint64_t now_ms);
/* "2026-11-30 14:05:09", local time. Returns @buf. */
const char *replay_time(uint64_t wall_ms, char buf[REPLAY_TIME_MAX]);
