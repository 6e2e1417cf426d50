/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Somebody asks for a lease: refused with the reason, or a place in the queue, or granted at once. */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

enum { PERCENT_ALL = 100000 }; /* `all`, in thousandths of a percent */

void request_step(struct world *world, const struct request *request, struct actions *out);

/* ---- what asking for what runs already (adopt.c) and changing (change.c) share with it ---- */

void request_refuse(struct world *world, struct actions *out, const struct request *request, const struct reason *why);
/* Bit mask of the devices it may be on; false: it names one that is not here. */
bool request_find_devices(struct world *world, const struct request *request, uint64_t *ret_mask);
/* May somebody with these words ask at all: priority, slot. False with *why. */
bool request_is_allowed(const struct world *world, const struct request *request, struct reason *why);
uint32_t request_ceiling(const struct world *world, uint32_t quota, bool is_admin);
bool request_slot_is_allowed(const struct world *world, uint32_t quota, bool is_admin, uint64_t slot_ms,
                             struct reason *why);
/* In the tables, and within what this user may have. False with *why. */
bool request_has_room(struct world *world, const struct request *request, uint64_t bytes, uint32_t *ret_user,
                      struct reason *why);
/* A queued lease without a place in the queue yet. Room was checked. */
struct lease *request_make_lease(struct world *world, const struct request *request, uint32_t user, uint64_t bytes,
                                 uint64_t devices);
