/* SPDX-License-Identifier: Apache-2.0 */
/* process - who is on a device: three lists in three layouts, utilisation, accounting */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "card/abi.h"
#include "card/fault.h"
#include "card/memory.h"
#include "card/proc.h"
#include "card/trace.h"
#include "card/work.h"
#include "nvml/state.h"

#define ROWS_MAX (CARD_PROCS_MAX + CARD_FAULTS_MAX)
#define NO_INSTANCE 0xffffffffu

enum list { LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS };

/* The rows of one list; the caller frees. NULL with *ret_n == 0 and NVML_OK is an empty list. */
static nvmlReturn_t rows_get(uint32_t index, enum list which, struct listing **ret, unsigned *ret_n)
{
        struct listing *rows = calloc(ROWS_MAX, sizeof *rows);
        if (!rows)
                return NVML_UNKNOWN;
        int n = memory_list(&nvml.card, index, rows, ROWS_MAX);
        if (n < 0) {
                free(rows);
                return NVML_UNKNOWN;
        }
        unsigned kept = 0;
        for (int i = 0; i < n; i++)
                if ((which == LIST_COMPUTE && rows[i].compute) || (which == LIST_GRAPHICS && rows[i].graphics))
                        rows[kept++] = rows[i];
        *ret = rows;
        *ret_n = kept;
        return NVML_OK;
}

static uint64_t shown_bytes(const struct listing *row)
{
        return row->known ? row->bytes : UINT64_MAX;
}

/* The first call that shows a process leaves that moment in the trace. */
static void note_shown(uint32_t index, const struct listing *rows, unsigned n)
{
        uint32_t high = atomic_load(&nvml.card.file->procs_high);
        for (uint32_t i = 0; i < high && i < CARD_PROCS_MAX; i++) {
                struct card_proc *p = &nvml.card.file->proc[i];
                uint32_t pid = atomic_load(&p->pid);
                if (pid == 0 || atomic_load(&p->use[index].shown))
                        continue;
                for (unsigned r = 0; r < n; r++)
                        if (rows[r].pid == pid && atomic_exchange(&p->use[index].shown, 1) == 0)
                                trace_add(&nvml.card, TRACE_LISTED, pid, (int32_t) index, 0, rows[r].bytes);
        }
}

/* @stride 16, 24 or 32 bytes a row */
static nvmlReturn_t list(uint32_t index, enum list which, unsigned *count, void *infos, size_t stride)
{
        struct listing *rows;
        struct card_fault growth = { 0 };
        unsigned n;
        if (!count || (*count > 0 && !infos))
                return NVML_INVALID_ARGUMENT;
        nvmlReturn_t rc = rows_get(index, which, &rows, &n);
        if (rc != NVML_OK)
                return rc;
        /* Grown since the sizing call: a buffer of just that size does not do any more. */
        unsigned needed = n;
        if (n > 0 && *count >= n && fault_hit(&nvml.card, FAULT_GROWING_LIST, (int32_t) index, 0, NULL, &growth))
                needed = n + (growth.a > 0 ? (unsigned) growth.a : 1);
        if (*count < needed) {
                free(rows);
                *count = needed;
                return NVML_INSUFFICIENT_SIZE;
        }
        for (unsigned i = 0; i < n; i++) {
                char *to = (char *) infos + i * stride;
                nvmlProcessDetail_v1_t row = {
                        .pid = rows[i].pid, .used = shown_bytes(&rows[i]), .gi = NO_INSTANCE, .ci = NO_INSTANCE
                };
                memcpy(to, &row, stride);
        }
        note_shown(index, rows, n);
        free(rows);
        *count = n;
        return NVML_OK;
}

static size_t stride_v3(uint32_t index)
{
        bool wide = nvml.card.file->abi == CARD_ABI_R535 ||
                    fault_hit(&nvml.card, FAULT_STRIDE32, (int32_t) index, 0, NULL, NULL);
        return wide ? sizeof(nvmlProcessDetail_v1_t) : sizeof(nvmlProcessInfo_v2_t);
}

#define LIST(symbol, which, stride)                                                                                    \
        NVML(symbol, (nvmlDevice_t handle, unsigned *count, void *infos))                                              \
        {                                                                                                              \
                DEVICE_BEGIN(handle);                                                                                  \
                return list(index, which, count, infos, stride);                                                       \
        }

LIST(nvmlDeviceGetComputeRunningProcesses, LIST_COMPUTE, sizeof(nvmlProcessInfo_v1_t))
LIST(nvmlDeviceGetComputeRunningProcesses_v2, LIST_COMPUTE, sizeof(nvmlProcessInfo_v2_t))
LIST(nvmlDeviceGetComputeRunningProcesses_v3, LIST_COMPUTE, stride_v3(index))
LIST(nvmlDeviceGetGraphicsRunningProcesses, LIST_GRAPHICS, sizeof(nvmlProcessInfo_v1_t))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, LIST_GRAPHICS, sizeof(nvmlProcessInfo_v2_t))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, LIST_GRAPHICS, stride_v3(index))
LIST(nvmlDeviceGetMPSComputeRunningProcesses, LIST_MPS, sizeof(nvmlProcessInfo_v1_t))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, LIST_MPS, sizeof(nvmlProcessInfo_v2_t))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, LIST_MPS, stride_v3(index))

NVML(nvmlDeviceGetRunningProcessDetailList, (nvmlDevice_t handle, nvmlProcessDetailList_t *details))
{
        DEVICE_BEGIN(handle);
        if (!details)
                return NVML_INVALID_ARGUMENT;
        if (details->version != VERSION_WORD(nvmlProcessDetailList_t, 1))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        if (details->mode > 2)
                return NVML_INVALID_ARGUMENT;
        if (!details->procs)
                details->n = 0;
        return list(index, (enum list) details->mode, &details->n, details->procs, sizeof(nvmlProcessDetail_v1_t));
}

NVML(nvmlDeviceGetUtilizationRates, (nvmlDevice_t handle, nvmlUtilization_t *rates))
{
        DEVICE_BEGIN(handle);
        if (!rates)
                return NVML_INVALID_ARGUMENT;
        *rates = (nvmlUtilization_t){ 0 }; /* nothing is computed */
        return NVML_OK;
}

static nvmlReturn_t coder(unsigned *percent, unsigned *period_us)
{
        if (!percent || !period_us)
                return NVML_INVALID_ARGUMENT;
        *percent = 0;
        *period_us = 167000;
        return NVML_OK;
}

NVML(nvmlDeviceGetEncoderUtilization, (nvmlDevice_t handle, unsigned *percent, unsigned *period_us))
{
        DEVICE_BEGIN(handle);
        return coder(percent, period_us);
}

NVML(nvmlDeviceGetDecoderUtilization, (nvmlDevice_t handle, unsigned *percent, unsigned *period_us))
{
        DEVICE_BEGIN(handle);
        return coder(percent, period_us);
}

/* Samples into the caller's array; @give writes one. 6 where there is none: nobody has done anything since. */
static nvmlReturn_t samples_give(uint32_t index, uint64_t since_us, unsigned *n, void *to, size_t stride,
                                 void (*give)(void *to, const struct work_sample *s))
{
        struct work_sample *samples = calloc(CARD_PROCS_MAX, sizeof *samples);
        if (!samples)
                return NVML_UNKNOWN;
        proc_reap(&nvml.card);
        unsigned have = work_samples(&nvml.card, index, since_us, samples);
        nvmlReturn_t rc = have == 0 ? NVML_NOT_FOUND : !to || *n < have ? NVML_INSUFFICIENT_SIZE : NVML_OK;
        for (unsigned i = 0; rc == NVML_OK && i < have; i++)
                give((char *) to + i * stride, &samples[i]);
        free(samples);
        *n = have;
        return rc;
}

static void give_v1(void *to, const struct work_sample *s)
{
        *(nvmlProcessUtilization_t *) to =
                (nvmlProcessUtilization_t){ .pid = s->pid, .at_us = s->at_us, .sm = s->sm, .memory = s->memory };
}

static void give_info(void *to, const struct work_sample *s)
{
        *(nvmlProcessUtilizationInfo_t *) to =
                (nvmlProcessUtilizationInfo_t){ .at_us = s->at_us, .pid = s->pid, .sm = s->sm, .memory = s->memory };
}

NVML(nvmlDeviceGetProcessUtilization,
     (nvmlDevice_t handle, nvmlProcessUtilization_t *samples, unsigned *n, uint64_t since_us))
{
        DEVICE_BEGIN(handle);
        if (!n)
                return NVML_INVALID_ARGUMENT;
        return samples_give(index, since_us, n, samples, sizeof(nvmlProcessUtilization_t), give_v1);
}

NVML(nvmlDeviceGetProcessesUtilizationInfo, (nvmlDevice_t handle, nvmlProcessesUtilization_t *info))
{
        DEVICE_BEGIN(handle);
        if (!info)
                return NVML_INVALID_ARGUMENT;
        if (info->version != VERSION_WORD(nvmlProcessesUtilization_t, 1))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        return samples_give(index, info->last_seen_us, &info->n, info->procs, sizeof(nvmlProcessUtilizationInfo_t),
                            give_info);
}

NVML(nvmlDeviceGetAccountingMode, (nvmlDevice_t handle, unsigned *mode))
{
        DEVICE_BEGIN(handle);
        if (!mode)
                return NVML_INVALID_ARGUMENT;
        *mode = dev->settings.accounting;
        return NVML_OK;
}

NVML(nvmlDeviceSetAccountingMode, (nvmlDevice_t handle, unsigned mode))
{
        DEVICE_BEGIN(handle);
        if (mode > 1)
                return NVML_INVALID_ARGUMENT;
        dev->settings.accounting = mode;
        return NVML_OK;
}

NVML(nvmlDeviceGetAccountingBufferSize, (nvmlDevice_t handle, unsigned *n))
{
        DEVICE_BEGIN(handle);
        if (!n)
                return NVML_INVALID_ARGUMENT;
        *n = CARD_PROCS_MAX;
        return NVML_OK;
}

NVML(nvmlDeviceClearAccountingPids, (nvmlDevice_t handle))
{
        DEVICE_BEGIN(handle);
        return NVML_OK;
}

/* Accounting knows the living ones only: there is no memory of those that ended. */
NVML(nvmlDeviceGetAccountingPids, (nvmlDevice_t handle, unsigned *n, unsigned *pids))
{
        DEVICE_BEGIN(handle);
        struct listing *rows;
        unsigned have;
        if (!n)
                return NVML_INVALID_ARGUMENT;
        if (!dev->settings.accounting) {
                *n = 0;
                return NVML_OK;
        }
        nvmlReturn_t rc = rows_get(index, LIST_COMPUTE, &rows, &have);
        if (rc != NVML_OK)
                return rc;
        if (have > *n || (have > 0 && !pids))
                rc = NVML_INSUFFICIENT_SIZE;
        for (unsigned i = 0; rc == NVML_OK && i < have; i++)
                pids[i] = rows[i].pid;
        free(rows);
        *n = have;
        return rc;
}

static uint64_t start_us(uint32_t pid)
{
        struct timespec wall, boot;
        (void) clock_gettime(CLOCK_REALTIME, &wall);
        (void) clock_gettime(CLOCK_BOOTTIME, &boot);
        uint64_t booted_us = (uint64_t) (wall.tv_sec - boot.tv_sec) * 1000000;
        return booted_us + proc_start_ticks(pid, 0) * 1000000 / (uint64_t) sysconf(_SC_CLK_TCK);
}

NVML(nvmlDeviceGetAccountingStats, (nvmlDevice_t handle, unsigned pid, nvmlAccountingStats_t *stats))
{
        DEVICE_BEGIN(handle);
        struct listing *rows;
        unsigned n;
        if (!stats)
                return NVML_INVALID_ARGUMENT;
        if (!dev->settings.accounting)
                return NVML_NOT_SUPPORTED;
        nvmlReturn_t rc = rows_get(index, LIST_COMPUTE, &rows, &n);
        if (rc != NVML_OK)
                return rc;
        rc = NVML_NOT_FOUND;
        for (unsigned i = 0; i < n; i++)
                if (rows[i].pid == pid) {
                        *stats = (nvmlAccountingStats_t){ .max_memory = shown_bytes(&rows[i]),
                                                          .start_us = start_us(pid),
                                                          .is_running = 1 };
                        rc = NVML_OK;
                }
        free(rows);
        return rc;
}
