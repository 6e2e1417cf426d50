/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a user has used lately: GPU-byte-seconds that halve every day (design 4.2), so that one user's fifty requests do not
 * starve another's one. Whole seconds and MiB; no floating point, so that every machine gets the same order.
 */
#include "model/config.h"
#include "model/user.h"
#include "model/world.h"

/* As of @now_ms; changes nothing. */
uint64_t usage_mib_s(const struct config *config, const struct user *user, uint64_t now_ms);
/* The same of a user's row, as it was worked out last where nothing of it is another now. */
uint64_t usage_now(struct world *world, uint32_t user);
/* From @now_ms on the user holds @held_bytes. */
void usage_set_held(const struct config *config, struct user *user, uint64_t held_bytes, uint64_t now_ms);
