/* SPDX-License-Identifier: Apache-2.0 */
#include "card/trace.h"

const char *const trace_words[TRACE_N] = { [TRACE_NONE] = "?",
#define X(id, word) [TRACE_##id] = word,
                                           TRACE_KINDS(X)
#undef X
};

void trace_add_locked(struct card *card, struct card_trace entry)
{
        uint64_t seq = atomic_load(&card->file->trace_seq) + 1;
        struct card_trace *slot = &card->file->trace[seq % CARD_TRACE_MAX];
        entry.at_ns = card_now_ns();
        entry.seq = 0; /* invalid while it is being written: a kill leaves a hole, not a lie */
        __atomic_store_n(&slot->seq, 0, __ATOMIC_RELEASE);
        *slot = entry;
        __atomic_store_n(&slot->seq, seq, __ATOMIC_RELEASE);
        atomic_store(&card->file->trace_seq, seq);
}

void trace_add(struct card *card, enum trace_kind kind, uint32_t pid, int32_t device, int32_t rc, uint64_t bytes)
{
        if (card_lock(card) < 0)
                return;
        trace_add_locked(card,
                         (struct card_trace){ .kind = kind, .pid = pid, .device = device, .rc = rc, .bytes = bytes });
        card_unlock(card);
}

bool trace_get(const struct card *card, uint64_t seq, struct card_trace *ret)
{
        const struct card_trace *slot = &card->file->trace[seq % CARD_TRACE_MAX];
        if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != seq)
                return false;
        *ret = *slot;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != seq)
                return false;
        if (ret->kind >= TRACE_N)
                ret->kind = TRACE_NONE;
        return true;
}

uint64_t trace_last(const struct card *card)
{
        return atomic_load(&card->file->trace_seq);
}
