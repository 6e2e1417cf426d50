/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bringing back what is parked, without a daemon: a last look at the device, SIGCONT, restore, unlock (design 4.4). */
#include "programs/lessor/rescue_find.h"

/*
 * Everything that is wanted, lease by lease: all processes of one are restored, then all of them unlocked. What does not fit as a
 * whole is not begun. @said is told of each process once its end is known. -EPERM, -ENOENT …: nothing can be done in its
 * folder, which is said in @err.
 */
int rescue_bring_back(struct rescue *rescue, void (*said)(const struct rescue_item *item), struct error *err);
