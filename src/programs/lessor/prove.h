/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `lessor doctor --prove`: a throw-away process of our own (lessor-prove) is locked, checkpointed, stopped, restored and unlocked by the
 * program that does it for everybody, lessor-checkpoint, with this user's rights; and its memory is looked at afterwards. One check
 * for each step. Where lessord answers, it happens under a lease: memory that is promised to others is not used.
 */
#include "programs/lessor/doctor.h"

/* Sets @d's proof and proof_words. Nothing of the user's is touched. */
void doctor_prove(struct doctor *d);
