/* SPDX-License-Identifier: Apache-2.0 */
#include "card/memory.h"

#include <errno.h>
#include <string.h>

#include "card/fault.h"
#include "card/proc.h"
#include "card/trace.h"

#define FOREIGN_OFFSET 4194304 /* pid_max on 64 bit: no local process can have such a number */

static uint32_t procs_high(const struct card *card)
{
        uint32_t n = atomic_load(&card->file->procs_high);
        return n < CARD_PROCS_MAX ? n : CARD_PROCS_MAX;
}

uint64_t memory_listed(const struct card *card, const struct card_proc *proc, uint32_t device)
{
        const struct card_use *use = &proc->use[device];
        uint64_t context = atomic_load(&use->contexts) > 0 ? card->file->device[device].context_bytes : 0;
        return atomic_load(&use->bytes) + context;
}

uint64_t memory_of(const struct card *card, const struct card_proc *proc, uint32_t device)
{
        return memory_listed(card, proc, device) + atomic_load(&proc->use[device].managed_bytes);
}

/* Bytes that no process holds and that are used all the same. Read without counting --times: a figure is not a call. */
static uint64_t phantom_bytes(const struct card *card, uint32_t device)
{
        if (atomic_load(&card->file->n_faults) == 0)
                return 0;
        uint64_t sum = 0;
        for (int i = 0; i < CARD_FAULTS_MAX; i++) {
                const struct card_fault *f = &card->file->fault[i];
                int32_t where = f->device < 0 ? 0 : f->device; /* without --device they lie on the first */
                if (where != (int32_t) device)
                        continue;
                if (f->kind == FAULT_RESIDUE)
                        sum += (uint64_t) f->a;
                if (f->kind == FAULT_GHOST)
                        sum += (uint64_t) f->b;
        }
        return sum;
}

uint64_t memory_used_locked(const struct card *card, uint32_t device)
{
        const struct card_device *dev = &card->file->device[device];
        uint64_t used = dev->driver_reserve_bytes + phantom_bytes(card, device);
        for (uint32_t i = 0; i < procs_high(card); i++) {
                const struct card_proc *p = &card->file->proc[i];
                if (atomic_load(&p->pid) != 0)
                        used += memory_of(card, p, device);
        }
        return used < dev->total_bytes ? used : dev->total_bytes;
}

static uint64_t room_locked(const struct card *card, uint32_t device)
{
        return card->file->device[device].total_bytes - memory_used_locked(card, device);
}

/* One change of one process on one device, between two trace figures. Under the lock. */
static void change(struct card *card, struct card_proc *proc, uint32_t device, enum trace_kind trace, uint64_t bytes,
                   uint64_t listed, uint64_t managed, uint32_t contexts, uint64_t parked)
{
        struct card_use *use = &proc->use[device];
        struct card_trace entry = {
                .kind = trace,
                .pid = atomic_load(&proc->pid),
                .device = (int32_t) device,
                .bytes = bytes,
                .used_before = memory_used_locked(card, device),
                .listed_before = memory_listed(card, proc, device),
        };
        atomic_store(&use->bytes, listed);
        atomic_store(&use->managed_bytes, managed);
        atomic_store(&use->contexts, contexts);
        atomic_store(&use->parked_bytes, parked);
        entry.used_after = memory_used_locked(card, device);
        trace_add_locked(card, entry);
}

int memory_take(struct card *card, struct card_proc *proc, uint32_t device, enum memory_kind kind, uint64_t bytes)
{
        proc_reap(card);
        if (card_lock(card) < 0)
                return -EIO;
        const struct card_use *use = &proc->use[device];
        uint64_t listed = atomic_load(&use->bytes), managed = atomic_load(&use->managed_bytes);
        uint32_t contexts = atomic_load(&use->contexts);
        uint64_t need = kind == MEMORY_CONTEXT ? (contexts == 0 ? card->file->device[device].context_bytes : 0) : bytes;
        int r = 0;
        if (need > room_locked(card, device)) {
                uint64_t used = memory_used_locked(card, device);
                trace_add_locked(card, (struct card_trace){ .kind = TRACE_OOM,
                                                            .pid = atomic_load(&proc->pid),
                                                            .device = (int32_t) device,
                                                            .rc = 2,
                                                            .bytes = need,
                                                            .used_before = used,
                                                            .used_after = used,
                                                            .listed_before = memory_listed(card, proc, device) });
                r = -ENOMEM;
        } else if (kind == MEMORY_LISTED) {
                change(card, proc, device, TRACE_ALLOC, bytes, listed + bytes, managed, contexts, 0);
        } else if (kind == MEMORY_MANAGED) {
                change(card, proc, device, TRACE_ALLOC, bytes, listed, managed + bytes, contexts, 0);
        } else {
                change(card, proc, device, TRACE_CONTEXT, need, listed, managed, contexts + 1, 0);
        }
        card_unlock(card);
        return r;
}

void memory_give(struct card *card, struct card_proc *proc, uint32_t device, enum memory_kind kind, uint64_t bytes)
{
        if (card_lock(card) < 0)
                return;
        const struct card_use *use = &proc->use[device];
        uint64_t listed = atomic_load(&use->bytes), managed = atomic_load(&use->managed_bytes);
        uint32_t contexts = atomic_load(&use->contexts);
        if (kind == MEMORY_LISTED)
                change(card, proc, device, TRACE_FREE, bytes, listed - (bytes < listed ? bytes : listed), managed,
                       contexts, 0);
        else if (kind == MEMORY_MANAGED)
                change(card, proc, device, TRACE_FREE, bytes, listed, managed - (bytes < managed ? bytes : managed),
                       contexts, 0);
        else
                change(card, proc, device, TRACE_FREE, contexts == 1 ? card->file->device[device].context_bytes : 0,
                       listed, managed, contexts > 0 ? contexts - 1 : 0, 0);
        card_unlock(card);
}

/*
 * While parked, the bytes keep their split (listed, managed, contexts) in a private copy of the owner; the card keeps
 * only the sum, for people. The copy lives in the process: only it can restore, and if it dies there is nothing to restore.
 */
static struct parked {
        uint64_t bytes, managed;
        uint32_t contexts;
} parked[CARD_DEVICES_MAX];

int memory_park(struct card *card, struct card_proc *proc)
{
        if (card_lock(card) < 0)
                return -EIO;
        for (uint32_t d = 0; d < card->n_devices; d++) {
                const struct card_use *use = &proc->use[d];
                parked[d] = (struct parked){ atomic_load(&use->bytes), atomic_load(&use->managed_bytes),
                                             atomic_load(&use->contexts) };
                uint64_t sum = memory_of(card, proc, d);
                if (sum > 0 || parked[d].contexts > 0)
                        change(card, proc, d, TRACE_PARK, sum, 0, 0, 0, parked[d].bytes + parked[d].managed);
        }
        atomic_store(&proc->state, CARD_CHECKPOINTED);
        card_unlock(card);
        return 0;
}

int memory_unpark(struct card *card, struct card_proc *proc, const uint32_t map[CARD_DEVICES_MAX])
{
        proc_reap(card);
        if (card_lock(card) < 0)
                return -EIO;
        struct parked to[CARD_DEVICES_MAX] = { 0 };
        uint64_t need[CARD_DEVICES_MAX] = { 0 };
        for (uint32_t d = 0; d < card->n_devices; d++) {
                struct parked *t = &to[map[d]];
                t->bytes += parked[d].bytes;
                t->managed += parked[d].managed;
                t->contexts += parked[d].contexts;
        }
        int r = 0;
        for (uint32_t d = 0; d < card->n_devices; d++) {
                need[d] = to[d].bytes + to[d].managed + (to[d].contexts > 0 ? card->file->device[d].context_bytes : 0);
                if (need[d] <= room_locked(card, d))
                        continue;
                uint64_t used = memory_used_locked(card, d);
                trace_add_locked(card, (struct card_trace){ .kind = TRACE_OOM,
                                                            .pid = atomic_load(&proc->pid),
                                                            .device = (int32_t) d,
                                                            .rc = 2,
                                                            .bytes = need[d],
                                                            .used_before = used,
                                                            .used_after = used });
                r = -ENOMEM;
        }
        for (uint32_t d = 0; r == 0 && d < card->n_devices; d++) {
                atomic_store(&proc->use[d].parked_bytes, 0);
                if (to[d].bytes > 0 || to[d].managed > 0 || to[d].contexts > 0)
                        change(card, proc, d, TRACE_UNPARK, need[d], to[d].bytes, to[d].managed, to[d].contexts, 0);
        }
        if (r == 0)
                atomic_store(&proc->state, CARD_LOCKED);
        card_unlock(card);
        return r;
}

static bool changes_memory(const struct card_trace *t, uint32_t device)
{
        if (t->device != (int32_t) device)
                return false;
        return t->kind == TRACE_CONTEXT || t->kind == TRACE_ALLOC || t->kind == TRACE_FREE || t->kind == TRACE_DEATH ||
               t->kind == TRACE_PARK || t->kind == TRACE_UNPARK;
}

int memory_reading(struct card *card, uint32_t device, uint64_t *ret_used_bytes)
{
        struct card_fault lag = { 0 }, skew = { 0 };
        bool has_lag = fault_hit(card, FAULT_LAG_MEMORY, (int32_t) device, 0, NULL, &lag);
        bool has_skew = fault_hit(card, FAULT_LIST_SKEW, (int32_t) device, 0, NULL, &skew) && skew.a < 0;
        proc_reap(card);
        int r = card_lock(card);
        if (r < 0)
                return r;
        uint64_t used = memory_used_locked(card, device);
        uint64_t now_ns = card_now_ns();
        if (has_lag || has_skew) {
                uint64_t age_ns = (uint64_t) (has_skew ? -skew.a : lag.a) * 1000000;
                uint64_t last = trace_last(card);
                struct card_trace t;
                for (uint64_t seq = last; seq > 0 && last - seq < CARD_TRACE_MAX && trace_get(card, seq, &t); seq--) {
                        if (t.at_ns + age_ns < now_ns)
                                break;
                        if (!changes_memory(&t, device))
                                continue;
                        if (has_skew || t.used_before > used)
                                used = t.used_before;
                }
        }
        card_unlock(card);
        *ret_used_bytes = used;
        return 0;
}

/* The list as it was: undo what the trace says, newest first. A process that died since is back in it. */
static size_t list_rewind(const struct card *card, uint32_t device, uint64_t age_ns, struct listing *rows, size_t n,
                          size_t n_rows)
{
        uint64_t now_ns = card_now_ns(), last = trace_last(card);
        struct card_trace t;
        for (uint64_t seq = last; seq > 0 && last - seq < CARD_TRACE_MAX && trace_get(card, seq, &t); seq--) {
                if (t.at_ns + age_ns < now_ns)
                        break;
                if (!changes_memory(&t, device))
                        continue;
                size_t i = 0;
                while (i < n && rows[i].pid != t.pid)
                        i++;
                if (i == n && n < n_rows)
                        rows[n++] = (struct listing){ .pid = t.pid, .known = true, .compute = true };
                if (i < n)
                        rows[i].bytes = t.listed_before;
                if (i < n && t.listed_before == 0 && t.kind != TRACE_FREE)
                        rows[i] = rows[--n]; /* it had nothing before this: it was not there */
        }
        return n;
}

int memory_list(struct card *card, uint32_t device, struct listing *rows, size_t n_rows)
{
        struct card_fault skew = { 0 }, foreign = { 0 };
        bool is_old = fault_hit(card, FAULT_LIST_SKEW, (int32_t) device, 0, NULL, &skew) && skew.a > 0;
        bool is_foreign = fault_hit(card, FAULT_FOREIGN_PID, (int32_t) device, 0, NULL, &foreign);
        bool is_both = fault_hit(card, FAULT_TWO_LISTS, (int32_t) device, 0, NULL, NULL);
        bool is_unknown = fault_hit(card, FAULT_UNKNOWN_MEMORY, (int32_t) device, 0, NULL, NULL);
        proc_reap(card);
        int r = card_lock(card);
        if (r < 0)
                return r;
        size_t n = 0;
        for (uint32_t i = 0; i < procs_high(card) && n < n_rows; i++) {
                const struct card_proc *p = &card->file->proc[i];
                uint32_t pid = atomic_load(&p->pid);
                uint64_t bytes = memory_listed(card, p, device);
                if (pid == 0 || (bytes == 0 && atomic_load(&p->use[device].contexts) == 0))
                        continue;
                rows[n++] = (struct listing){
                        .pid = pid, .bytes = bytes, .known = true, .compute = !p->graphics, .graphics = p->graphics
                };
        }
        if (is_old)
                n = list_rewind(card, device, (uint64_t) skew.a * 1000000, rows, n, n_rows);
        for (size_t i = 0; is_foreign && i < n; i++) {
                if (foreign.a == 0)
                        rows[i].pid += FOREIGN_OFFSET;
                else if (i == 0)
                        rows[i].pid = (uint32_t) foreign.a;
        }
        for (int i = 0; atomic_load(&card->file->n_faults) > 0 && i < CARD_FAULTS_MAX && n < n_rows; i++) {
                const struct card_fault *f = &card->file->fault[i];
                if (f->kind == FAULT_GHOST && (f->device < 0 ? 0 : f->device) == (int32_t) device)
                        rows[n++] = (struct listing){
                                .pid = (uint32_t) f->a, .bytes = (uint64_t) f->b, .known = true, .compute = true
                        };
        }
        card_unlock(card);
        for (size_t i = 0; i < n; i++) {
                if (is_both)
                        rows[i].compute = rows[i].graphics = true;
                if (is_unknown)
                        rows[i].known = false;
        }
        return (int) n;
}
