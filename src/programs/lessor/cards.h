/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* CUDA_VISIBLE_DEVICES: what the person allows by it is what is asked for, and what was granted is what the command sees. */
#include "programs/lessor/ask.h"
#include "programs/lessor/obtain.h"

/* The one device that is allowed becomes the one that is asked for. OBTAINED, OBTAIN_WITHOUT or an exit code. */
int cards_apply_constraint(struct obtain *o, struct ask *ask);
/* As --visible says, for the granted devices, in our own environment. The same. */
int cards_set_visible(struct obtain *o);
