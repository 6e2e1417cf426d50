/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A life written down as lessord writes it, in a real journal: for whoever reads one afterwards (`lessor replay` of a core with a
 * fault in it). What was decided is in it whether or not the daemon of the trial died of it.
 */
#include <stdbool.h>
#include "base/error.h"
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

struct written;

struct written *written_new(const char *path, struct error *err); /* a new file; NULL with words */
void written_segment(struct written *written, const struct world *world);
void written_record(struct written *written, const struct input *input, const struct actions *actions);
/* False with words: something of it could not be written. NULL is fine. */
bool written_end(struct written *written, struct error *err);
