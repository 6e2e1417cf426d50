/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a device can ever give (design 4.2, "never fits"): T − kept free − what the driver keeps with no process listed −
 * display − protected − endless pins − tenants without a way out − for each other tenant the smallest floor of its ways
 * out, at most what it holds. Strangers and leases may end: they do not lower it.
 */
#include "model/reason.h"
#include "model/world.h"

/* @why may be NULL; else its total, ceiling and blockers are filled, biggest first. */
uint64_t device_ceiling_bytes(const struct world *world, uint32_t device, struct reason *why);
/* The same from what the world keeps. */
uint64_t device_ceiling_now(struct world *world, uint32_t device);
/* What an exclusive lease has there once everybody has left: who is pinned is waited for, a display is not. */
uint64_t device_whole_bytes(const struct world *world, uint32_t device);
/* Somebody on it never has to leave: nobody is ever alone there. */
bool device_is_kept_for_ever(const struct world *world, uint32_t device);
/* Keep @why->blockers the biggest ones, in order; counts all. */
void reason_add_blocker(struct reason *why, const struct blocker *blocker);
/* Who occupies a device right now, with what each takes away; what @except has claimed is not in its own way. @why has no
 * blockers yet. */
void reason_add_holders(struct reason *why, struct world *world, uint32_t device, struct ref except);
