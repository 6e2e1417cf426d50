/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A look at one device becomes figures of its holders: leases, the display, strangers. */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

void reading_step(struct world *world, const struct reading *reading, struct actions *out);
void reading_process(struct world *world, const struct process *facts);
void reading_process_ended(struct world *world, struct identity identity, struct actions *out);
/* Ends may have been missed (the eyes or the daemon were away): what is known is unconfirmed until it is seen again. */
void reading_unconfirm(struct world *world);
/* Something changed on the device: looks taken before now grant nothing, and a new one is ordered. */
void reading_outdated(struct world *world, uint32_t device, struct actions *out);
/* The same of all devices of @lease. */
void reading_outdated_of(struct world *world, const struct lease *lease, struct actions *out);
/* Forget what was seen on a device (it is lost, or the machine was rebooted). @out NULL: and tell nobody. */
void reading_forget(struct world *world, uint32_t device, struct actions *out);
