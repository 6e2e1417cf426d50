/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An order that neither lessord nor the hands know any more: one of them ended in the middle. What came of it says the record of
 * the process, which is written before each step and after it (wire/record.h).
 */
#include "model/hand.h"
#include "model/input.h"
#include "wire/record.h"

/* The step a record is at, as the core calls it. RUNNING: a note only, or no record. */
enum member_step lost_order_member(enum record_step at);
/* Which order a process was given that stands at this step in the world; HAND_NONE: none of those that park. */
enum hand_verb lost_order_verb(enum member_step step);
/* @record: NULL = there is none. Sets outcome, why and host_bytes. */
void lost_order_judge(enum hand_verb verb, const struct record *record, struct hand_outcome *ret);
