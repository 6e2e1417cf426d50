/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A scenario that fails, made as small as it can be: events and faults are left out while it still fails in the same way (the
 * invariant it names; the words behind it may be others).
 */
#include "trial/trial.h"

/* Plays at most @plays times. @script is what is left; @t has what happened in it. */
void shrink(struct trial *t, struct script *script, unsigned plays);
