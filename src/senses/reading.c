/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/reading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static int compare_listed(const void *a, const void *b)
{
        const struct gpu_listed *x = a, *y = b;

        if (x->pid != y->pid)
                return x->pid < y->pid ? -1 : 1;
        return (x->list > y->list) - (x->list < y->list);
}

static int refuse_entry(const struct gpu_listed *e, uint64_t total_bytes, char why[EYES_ALARM_SIZE])
{
        if (e->pid == 0 || e->pid > EYES_PID_MAX) {
                (void) snprintf(why, EYES_ALARM_SIZE, "the process list has the pid %" PRIu32, e->pid);
                return -EBADMSG;
        }
        if (e->used_known && (e->used_bytes > EYES_BYTES_MAX || (total_bytes && e->used_bytes > total_bytes))) {
                (void) snprintf(why, EYES_ALARM_SIZE,
                                "the process list has pid %" PRIu32 " with %" PRIu64 " bytes of %" PRIu64, e->pid,
                                e->used_bytes, total_bytes);
                return -EBADMSG;
        }
        return 0;
}

static void join(struct eyes_row *row, const struct gpu_listed *e)
{
        row->flags |= e->list;
        if (!e->used_known)
                return; /* unknown in one list does not unsay the other */
        row->flags |= EYES_ROW_USED_KNOWN;
        if (e->used_bytes > row->used_bytes)
                row->used_bytes = e->used_bytes;
}

int reading_merge(struct gpu_listed *listed, size_t n_listed, uint64_t total_bytes, struct eyes_reading *ret,
                  char why[EYES_ALARM_SIZE])
{
        uint32_t n = 0;

        if (n_listed > 0)
                qsort(listed, n_listed, sizeof(*listed), compare_listed);
        for (size_t i = 0; i < n_listed; i++) {
                const struct gpu_listed *e = &listed[i];

                if (refuse_entry(e, total_bytes, why) < 0)
                        return -EBADMSG;
                if (i > 0 && e->pid == e[-1].pid && e->list == e[-1].list) {
                        (void) snprintf(why, EYES_ALARM_SIZE, "the process list has pid %" PRIu32 " twice", e->pid);
                        return -EBADMSG;
                }
                if (n == 0 || ret->rows[n - 1].pid != e->pid) {
                        if (n == EYES_ROWS_MAX) {
                                (void) snprintf(why, EYES_ALARM_SIZE, "the process list has more than %d pids",
                                                EYES_ROWS_MAX);
                                return -EBADMSG;
                        }
                        ret->rows[n++] = (struct eyes_row){ .pid = e->pid };
                }
                join(&ret->rows[n - 1], e);
        }
        ret->n_rows = n;
        return 0;
}

/* A figure nobody can believe is no figure. */
static struct gpu_status read_memory(const struct gpu_ops *ops, void *gpu, const char *uuid, struct gpu_memory *ret,
                                     char why[EYES_ALARM_SIZE])
{
        struct gpu_memory mem = { 0 };

        struct gpu_status st = ops->read_memory(gpu, uuid, &mem);
        if (st.error != EYES_ERROR_NONE)
                return st;
        if (mem.total_bytes == 0 || mem.total_bytes > EYES_BYTES_MAX || mem.free_bytes > mem.total_bytes) {
                (void) snprintf(why, EYES_ALARM_SIZE, "the driver says %" PRIu64 " bytes free of %" PRIu64,
                                mem.free_bytes, mem.total_bytes);
                return (struct gpu_status){ .error = EYES_ERROR_REJECTED, .rc = st.rc };
        }
        *ret = mem;
        return st;
}

static void set_memory(struct eyes_reading *ret, struct gpu_status st, const struct gpu_memory *mem)
{
        ret->memory_valid = st.error == EYES_ERROR_NONE;
        ret->memory_error = st.error;
        ret->memory_rc = st.rc;
        ret->total_bytes = ret->memory_valid ? mem->total_bytes : 0;
        ret->used_bytes = ret->memory_valid ? mem->total_bytes - mem->free_bytes : 0;
}

static void read_list(const struct gpu_ops *ops, void *gpu, const char *uuid, uint64_t total_bytes,
                      struct eyes_reading *ret, char why[EYES_ALARM_SIZE])
{
        static struct gpu_listed listed[GPU_LISTED_MAX]; /* 72 KiB; the eyes have one thread */
        size_t n = 0;

        struct gpu_status st = ops->read_list(gpu, uuid, listed, GPU_LISTED_MAX, &n);
        ret->rows_taken_ms = clock_now_ms();
        ret->list_rc = st.rc;
        if (st.error == EYES_ERROR_REJECTED)
                (void) snprintf(why, EYES_ALARM_SIZE, "the process list has not the layout its symbol stands for");
        if (st.error == EYES_ERROR_NONE && reading_merge(listed, n, total_bytes, ret, why) < 0)
                st.error = EYES_ERROR_REJECTED;
        ret->list_error = st.error;
        ret->per_process_valid = st.error == EYES_ERROR_NONE;
        if (!ret->per_process_valid) {
                ret->n_rows = 0;
                ret->rows_taken_ms = 0;
        }
}

void reading_take(const struct gpu_ops *ops, void *gpu, const char *uuid, struct eyes_reading *ret,
                  char why[EYES_ALARM_SIZE])
{
        struct gpu_memory before = { 0 }, after = { 0 };

        memset(ret, 0, offsetof(struct eyes_reading, rows));
        why[0] = '\0';
        (void) snprintf(ret->uuid, sizeof(ret->uuid), "%s", uuid);

        struct gpu_status st = read_memory(ops, gpu, uuid, &before, why);
        for (int look = 0; look <= READING_RETRIES; look++) {
                bool known_before = st.error == EYES_ERROR_NONE;

                read_list(ops, gpu, uuid, known_before ? before.total_bytes : 0, ret, why);
                st = read_memory(ops, gpu, uuid, &after, why);
                ret->taken_ms = clock_now_ms();
                set_memory(ret, st, &after);
                if (!ret->memory_valid || (!ret->per_process_valid && !eyes_list_is_absent(ret->list_error)))
                        return; /* asking again would not make it agree, and a lost card answers slowly */
                ret->settled = known_before && before.total_bytes == after.total_bytes &&
                               before.free_bytes == after.free_bytes;
                if (ret->settled)
                        return;
                before = after;
        }
}
