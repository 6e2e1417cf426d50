/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/activity.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "senses/proc.h"

/* Less than this share of one CPU is what a program takes that waits: timers, a heartbeat, a poll now and then. */
enum { BUSY_PERCENT = 1 };

/* ---- CPU ---- */

static bool read_cpu(const struct process_source *source, const struct process_entry *e, uint64_t *ret_ticks)
{
        struct proc_stat st;
        auto_close int fd = -1;

        if (proc_open_pid(source->proc_root, e->pid, &fd) < 0 || proc_read_stat(fd, &st) < 0 ||
            st.start_ticks != e->start_ticks)
                return false;
        *ret_ticks = st.cpu_ticks;
        return true;
}

void activity_of_processes(struct process_table *table, const struct process_source *source, uint64_t now_ms)
{
        for (size_t i = 0; i < table->n; i++) {
                struct process_entry *e = &table->entries[i];
                uint64_t ticks = 0, before_ms = e->cpu_read_ms;
                bool known = read_cpu(source, e, &ticks);

                e->did = ACTIVITY_UNKNOWN;
                if (known && before_ms != 0 && now_ms > before_ms && ticks >= e->cpu_ticks) {
                        uint64_t busy_ms = (ticks - e->cpu_ticks) * (1000 / PROC_TICKS_PER_S);
                        e->did =
                                busy_ms * 100 < (now_ms - before_ms) * BUSY_PERCENT ? ACTIVITY_RESTED : ACTIVITY_WORKED;
                }
                e->cpu_ticks = ticks;
                e->cpu_read_ms = known ? now_ms : 0;
        }
}

/* ---- the device ---- */

static int by_number(const void *a, const void *b)
{
        const uint32_t *x = a, *y = b;
        return (*x > *y) - (*x < *y);
}

void activity_of_device(struct device_activity *of, const struct gpu_ops *ops, void *gpu, const char *uuid,
                        bool reachable)
{
        static struct gpu_work work; /* 4 KiB: not on the stack */

        memset(&work, 0, offsetof(struct gpu_work, pids));
        work.since_us = of->since_us;
        of->n_worked = 0;
        if (!reachable || !ops->read_work || ops->read_work(gpu, uuid, &work).error != EYES_ERROR_NONE ||
            work.n > EYES_ROWS_MAX) {
                of->asked = of->is_known = false;
                return;
        }
        of->has_shown |= work.any;
        of->is_known = of->asked && of->has_shown;
        of->since_us = work.since_us;
        if (of->is_known) {
                of->n_worked = work.n;
                memcpy(of->worked, work.pids, work.n * sizeof(work.pids[0]));
                qsort(of->worked, of->n_worked, sizeof(of->worked[0]), by_number);
        }
        of->asked = true;
}

/* ---- rows ---- */

void activity_mark(const struct device_activity *of, const struct process_entry *held, struct eyes_row *row)
{
        row->flags &= ~(uint32_t) (EYES_ROW_WORKED | EYES_ROW_RESTED);
        /* What MPS clients do may be sampled as the server's, or the other way round. */
        if (!held || (row->flags & (EYES_ROW_GHOST | EYES_ROW_FOREIGN | EYES_ROW_UNIDENTIFIED | EYES_ROW_MPS)))
                return;
        bool worked = held->did == ACTIVITY_WORKED ||
                      bsearch(&row->pid, of->worked, of->n_worked, sizeof(of->worked[0]), by_number) != NULL;
        if (worked)
                row->flags |= EYES_ROW_WORKED;
        else if (of->is_known && held->did == ACTIVITY_RESTED)
                row->flags |= EYES_ROW_RESTED;
}
