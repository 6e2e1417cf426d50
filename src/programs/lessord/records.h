/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The records of what is parked (wire/parked.h), as the core is told of them: when the cards are known, and when the hands come
 * back. They outlive both and the journal: what they say is how things stand.
 */
#include <stdbool.h>
#include "model/hand.h"
#include "model/input.h"

struct daemon;

/* An INPUT_RECORD for each process with a record that lives, and for each that the world takes for parked and has none. What
 * the hands are at work on is left out: its outcome says more. */
void records_tell(struct daemon *d);
/* The second half alone, for looking now and then: what is held is let go by the hands when they were alone for some time. */
void records_find_running(struct daemon *d);
/* What came of an order to @who that nobody knows any more. */
void records_judge(const struct daemon *d, enum hand_verb verb, struct identity who, struct hand_outcome *ret);
