/* SPDX-License-Identifier: Apache-2.0 */
#include "card/fault.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <time.h>

#include "card/trace.h"

#define WAIT_STEP_NS 2000000 /* a cleared fault lets go within 2 ms */

const struct fault_about fault_table[FAULT_N] = { [FAULT_NONE] = { "none", "", "" },
#define X(id, word, args, help) [FAULT_##id] = { word, args, help },
                                                  FAULT_KINDS(X)
#undef X
};

enum fault_kind fault_parse(const char *word)
{
        for (enum fault_kind k = FAULT_NONE + 1; k < FAULT_N; k++)
                if (strcmp(word, fault_table[k].word) == 0)
                        return k;
        return FAULT_NONE;
}

static bool matches(const struct card_fault *f, enum fault_kind kind, int32_t device, uint32_t pid, const char *symbol)
{
        if (f->kind != (uint32_t) kind)
                return false;
        if (f->device >= 0 && f->device != device)
                return false;
        if (f->pid != 0 && f->pid != pid)
                return false;
        if (f->symbol[0] == 0)
                return true;
        char pattern[CARD_SYMBOL_MAX]; /* a copy with an end: the file may be hostile */
        memcpy(pattern, f->symbol, sizeof pattern);
        pattern[sizeof pattern - 1] = 0;
        return symbol && fnmatch(pattern, symbol, 0) == 0;
}

bool fault_hit(struct card *card, enum fault_kind kind, int32_t device, uint32_t pid, const char *symbol,
               struct card_fault *ret)
{
        struct card_file *file = card->file;
        if (atomic_load(&file->n_faults) == 0)
                return false;
        if (card_lock(card) < 0)
                return false;
        bool hit = false;
        for (int i = 0; i < CARD_FAULTS_MAX && !hit; i++) {
                struct card_fault *f = &file->fault[i];
                if (!matches(f, kind, device, pid, symbol))
                        continue;
                if (f->after > 0) {
                        f->after--;
                        continue;
                }
                hit = true;
                if (ret)
                        *ret = *f;
                if (f->times > 0 && --f->times == 0) {
                        f->kind = FAULT_NONE;
                        atomic_fetch_sub(&file->n_faults, 1);
                }
        }
        card_unlock(card);
        return hit;
}

static bool is_there(const struct card *card, uint32_t serial)
{
        for (int i = 0; i < CARD_FAULTS_MAX; i++) {
                const struct card_fault *f = &card->file->fault[i];
                if (__atomic_load_n(&f->kind, __ATOMIC_ACQUIRE) != FAULT_NONE && f->serial == serial)
                        return true;
        }
        return false;
}

void fault_wait(struct card *card, uint32_t serial, uint64_t ms)
{
        uint64_t since_ns = card_now_ns();
        while (is_there(card, serial)) {
                if (ms > 0 && card_now_ns() - since_ns >= ms * 1000000)
                        return;
                struct timespec step = { .tv_nsec = WAIT_STEP_NS };
                (void) nanosleep(&step, NULL);
        }
}

int fault_add(struct card *card, const struct card_fault *fault)
{
        int r = card_lock(card);
        if (r < 0)
                return r;
        r = -ENOSPC;
        for (int i = 0; i < CARD_FAULTS_MAX; i++) {
                struct card_fault *f = &card->file->fault[i];
                if (f->kind != FAULT_NONE)
                        continue;
                uint32_t kind = fault->kind;
                *f = *fault;
                f->kind = FAULT_NONE;
                f->serial = ++card->file->fault_serial;
                __atomic_store_n(&f->kind, kind, __ATOMIC_RELEASE);
                atomic_fetch_add(&card->file->n_faults, 1);
                trace_add_locked(card, (struct card_trace){ .kind = TRACE_FAULT,
                                                            .device = fault->device,
                                                            .pid = fault->pid,
                                                            .rc = (int32_t) kind });
                r = 0;
                break;
        }
        card_unlock(card);
        return r;
}

int fault_clear(struct card *card, enum fault_kind kind)
{
        int r = card_lock(card);
        if (r < 0)
                return r;
        int n = 0;
        uint32_t left = 0;
        for (int i = 0; i < CARD_FAULTS_MAX; i++) {
                struct card_fault *f = &card->file->fault[i];
                if (f->kind == FAULT_NONE)
                        continue;
                if (kind != FAULT_NONE && f->kind != (uint32_t) kind) {
                        left++;
                        continue;
                }
                trace_add_locked(card, (struct card_trace){ .kind = TRACE_FAULT_CLEAR,
                                                            .device = f->device,
                                                            .pid = f->pid,
                                                            .rc = (int32_t) f->kind });
                __atomic_store_n(&f->kind, FAULT_NONE, __ATOMIC_RELEASE);
                n++;
        }
        atomic_store(&card->file->n_faults, left); /* counted anew: a killed writer may have left it off by one */
        card_unlock(card);
        return n;
}

void fault_post_event(struct card *card, int32_t device, uint64_t type, uint64_t data)
{
        if (card_lock(card) < 0)
                return;
        uint64_t seq = atomic_load(&card->file->event_seq) + 1;
        card->file->event[seq % CARD_EVENTS_MAX] = (struct card_event){ .type = type, .data = data, .device = device };
        atomic_store(&card->file->event_seq, seq);
        trace_add_locked(card, (struct card_trace){ .kind = TRACE_EVENT, .device = device, .bytes = data });
        card_unlock(card);
}
