/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a journal tells, as JSON: by lessord, and by `lessor` where it reads a journal itself. The same from both.
 * All return a new reference, or NULL without memory.
 */
#include <jansson.h>
#include "store/account.h"
#include "store/audited.h"
#include "store/story.h"

/* The name of a user; NULL or "" = unknown. */
typedef const char *told_name_fn(void *ctx, uint32_t uid);

json_t *told_story(const struct story_subject *subject, const struct story *story);
/* @by_consumer: with the field "consumer" */
json_t *told_account(const struct account *account, bool by_consumer, told_name_fn *name, void *ctx);
json_t *told_verified(const char *path, const struct journal_verified *verified);

json_t *told_time(uint64_t wall_ms); /* RFC 3339, UTC; 0 = null */

/* "2026-11-30T14:05:09Z", whole text; the moment in ms since 1970. -EINVAL with words. */
int told_time_parse(const char *what, const char *text, uint64_t *ret_wall_ms, struct error *err);
