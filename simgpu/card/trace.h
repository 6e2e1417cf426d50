/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* trace - what happened on the card, in a ring that benches and checks join with other people's claims */

#include "card/card.h"

/* clang-format off */
#define TRACE_KINDS(X) \
        X(CONTEXT, "context") X(ALLOC, "alloc") X(FREE, "free") X(OOM, "oom") X(START, "start") X(DEATH, "death") \
        X(LOCK_BEGIN, "lock-begin") X(LOCK_END, "lock-end") X(CHECKPOINT_BEGIN, "checkpoint-begin") \
        X(CHECKPOINT_END, "checkpoint-end") X(RESTORE_BEGIN, "restore-begin") X(RESTORE_END, "restore-end") \
        X(UNLOCK_BEGIN, "unlock-begin") X(UNLOCK_END, "unlock-end") X(PARK, "park") X(UNPARK, "unpark") \
        X(FAULT, "fault") X(FAULT_CLEAR, "fault-clear") X(EVENT, "event") X(UNLOAD, "unload") \
        X(LISTED, "listed")
/* clang-format on */

enum trace_kind {
        TRACE_NONE,
#define X(id, word) TRACE_##id,
        TRACE_KINDS(X)
#undef X
                TRACE_N
};
extern const char *const trace_words[TRACE_N];

/* trace_add_locked - append; seq and at_ns are filled here. The caller holds the lock. */
void trace_add_locked(struct card *card, struct card_trace entry);
/* trace_add - the same for an entry without memory figures */
void trace_add(struct card *card, enum trace_kind kind, uint32_t pid, int32_t device, int32_t rc, uint64_t bytes);

/* trace_get - entry number @seq; false when it was overwritten, is not there yet, or is being written */
bool trace_get(const struct card *card, uint64_t seq, struct card_trace *ret);
uint64_t trace_last(const struct card *card);
