/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Steps that no brain ordered one by one. */
#include <stdint.h>
#include "programs/lessor-checkpoint/step.h"

/*
 * Before a SIGKILL or KILL_TREE: whoever of that order's processes was restored once is locked and checkpointed. Where one of them
 * cannot be, those that are locked are unlocked again. DONE: they may be killed now.
 */
struct warden_answer own_order_prepare_end(const struct step_place *place, const struct warden_order *order);

/* Unlocks a process that is held, or just about to be. */
void own_order_let_go(const struct step_place *place, uint32_t pid, uint64_t start_ticks);
