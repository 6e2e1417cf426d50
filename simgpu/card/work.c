/* SPDX-License-Identifier: Apache-2.0 */
#include "card/work.h"

#include <time.h>

#include "card/memory.h"

#define KERNEL_PERCENT 50
#define COPY_PERCENT 20

static uint64_t now_us(void)
{
        struct timespec ts;
        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

void work_note(struct card_proc *proc, uint32_t device, enum work_kind kind)
{
        struct card_use *use = &proc->use[device];
        atomic_store(&use->worked_sm, kind == WORK_KERNEL ? KERNEL_PERCENT : 0);
        atomic_store(&use->worked_memory, COPY_PERCENT);
        atomic_store(&use->worked_us, now_us());
}

/* Who does nothing has no sample, as the driver has it: only those with something else than zero are told. */
unsigned work_samples(const struct card *card, uint32_t device, uint64_t since_us, struct work_sample *ret)
{
        unsigned n = 0;
        uint32_t high = atomic_load(&card->file->procs_high);
        for (uint32_t i = 0; i < high && i < CARD_PROCS_MAX; i++) {
                const struct card_proc *p = &card->file->proc[i];
                const struct card_use *use = &p->use[device];
                uint32_t pid = atomic_load(&p->pid), percent = atomic_load(&p->work_percent);
                if (pid == 0 || memory_of(card, p, device) == 0)
                        continue;
                struct work_sample s = { pid, atomic_load(&use->worked_us), atomic_load(&use->worked_sm),
                                         atomic_load(&use->worked_memory) };
                if (percent > 0)
                        s = (struct work_sample){ pid, now_us(), percent, percent / 2 };
                if (s.at_us > since_us)
                        ret[n++] = s;
        }
        return n;
}
