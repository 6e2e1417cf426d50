/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ending what a person named beforehand as to be ended: `--kill-at-end` when its slot is over, `--kill-left` when its
 * command is gone and others of it live. SIGTERM, the grace, SIGKILL; to processes of the lease only, each at most once
 * each (I3), the SIGKILL once more after a restart. While anything is in doubt (driver silent, books damaged) nothing is ordered (S25); what the hands could not
 * try is no strike against anybody (I4). The end itself is what the device shows, not what a signal returned.
 */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

void ending_tick(struct world *world, struct lease *lease, struct actions *out);
/* Another command of its own: it was not asked to end yet. */
void ending_new_root(struct lease *lease);
/* The daemon came back: a kill that was decided may never have left it. */
void ending_was_away(struct world *world);
/* Was a SIGKILL ordered for it? */
bool ending_has_killed(struct world *world, const struct lease *lease);
/* What was named does not apply any more. A SIGTERM that was sent is not taken back. */
void ending_stop(struct world *world, struct lease *lease);
/* It is no orphan any more: what was named for that case stops. */
void ending_owner_is_back(struct world *world, struct lease *lease);
void ending_outcome(struct world *world, const struct hand_outcome *outcome, struct actions *out);
