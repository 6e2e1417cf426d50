/* SPDX-License-Identifier: Apache-2.0 */
/* stream - streams and events: handles that are always finished, since every call is done when it returns */

#include <stdlib.h>

#include "cuda/context.h"

struct cuda_stream {
        unsigned flags;
        int priority;
};
struct cuda_event {
        uint64_t at_ns;
        unsigned flags;
};

/* The legacy and the per-thread default stream are the numbers 1 and 2, not pointers. */
static bool is_default(CUstream s)
{
        return (uintptr_t) s <= 2;
}

static CUresult stream_new(CUstream *ret, unsigned flags, int priority)
{
        if (!ret)
                return CUDA_INVALID_VALUE;
        if (!context_current())
                return CUDA_INVALID_CONTEXT;
        struct cuda_stream *s = malloc(sizeof *s);
        if (!s)
                return CUDA_OUT_OF_MEMORY;
        *s = (struct cuda_stream){ .flags = flags, .priority = priority };
        *ret = s;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuStreamCreate(CUstream *ret, unsigned flags);
CUresult cuStreamCreate(CUstream *ret, unsigned flags)
{
        CALL_BEGIN;
        return stream_new(ret, flags, 0);
}

CUDA_EXPORT CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority);
CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority)
{
        CALL_BEGIN;
        return stream_new(ret, flags, priority);
}

CUDA_EXPORT CUresult cuStreamDestroy_v2(CUstream s);
CUresult cuStreamDestroy_v2(CUstream s)
{
        CALL_BEGIN;
        if (is_default(s))
                return CUDA_INVALID_HANDLE;
        free(s);
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuStreamSynchronize(CUstream s);
CUresult cuStreamSynchronize(CUstream s)
{
        CALL_BEGIN;
        (void) s;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuStreamQuery(CUstream s);
CUresult cuStreamQuery(CUstream s)
{
        CALL_BEGIN;
        (void) s;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags);
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
        CALL_BEGIN;
        (void) s, (void) flags;
        return e ? CUDA_OK : CUDA_INVALID_HANDLE;
}

CUDA_EXPORT CUresult cuStreamIsCapturing(CUstream s, int *status);
CUresult cuStreamIsCapturing(CUstream s, int *status)
{
        CALL_BEGIN;
        (void) s;
        if (!status)
                return CUDA_INVALID_VALUE;
        *status = 0;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuStreamGetFlags(CUstream s, unsigned *flags);
CUresult cuStreamGetFlags(CUstream s, unsigned *flags)
{
        CALL_BEGIN;
        if (!flags)
                return CUDA_INVALID_VALUE;
        *flags = is_default(s) ? 0 : s->flags;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuStreamGetPriority(CUstream s, int *priority);
CUresult cuStreamGetPriority(CUstream s, int *priority)
{
        CALL_BEGIN;
        if (!priority)
                return CUDA_INVALID_VALUE;
        *priority = is_default(s) ? 0 : s->priority;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
        CALL_BEGIN;
        if (least)
                *least = 0;
        if (greatest)
                *greatest = -5;
        return CUDA_OK;
}

/* Host functions run at once, in the caller's thread: nothing can be ahead of them. */
CUDA_EXPORT CUresult cuLaunchHostFunc(CUstream s, void (*fn)(void *), void *arg);
CUresult cuLaunchHostFunc(CUstream s, void (*fn)(void *), void *arg)
{
        CALL_BEGIN;
        (void) s;
        if (!fn)
                return CUDA_INVALID_VALUE;
        fn(arg);
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuEventCreate(CUevent *ret, unsigned flags);
CUresult cuEventCreate(CUevent *ret, unsigned flags)
{
        CALL_BEGIN;
        if (!ret)
                return CUDA_INVALID_VALUE;
        if (!context_current())
                return CUDA_INVALID_CONTEXT;
        struct cuda_event *e = calloc(1, sizeof *e);
        if (!e)
                return CUDA_OUT_OF_MEMORY;
        e->flags = flags;
        *ret = e;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuEventDestroy_v2(CUevent e);
CUresult cuEventDestroy_v2(CUevent e)
{
        CALL_BEGIN;
        if (!e)
                return CUDA_INVALID_HANDLE;
        free(e);
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuEventRecord(CUevent e, CUstream s);
CUresult cuEventRecord(CUevent e, CUstream s)
{
        CALL_BEGIN;
        (void) s;
        if (!e)
                return CUDA_INVALID_HANDLE;
        e->at_ns = card_now_ns();
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags);
CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags)
{
        CALL_BEGIN;
        (void) s, (void) flags;
        if (!e)
                return CUDA_INVALID_HANDLE;
        e->at_ns = card_now_ns();
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuEventQuery(CUevent e);
CUresult cuEventQuery(CUevent e)
{
        CALL_BEGIN;
        return e ? CUDA_OK : CUDA_INVALID_HANDLE;
}

CUDA_EXPORT CUresult cuEventSynchronize(CUevent e);
CUresult cuEventSynchronize(CUevent e)
{
        CALL_BEGIN;
        return e ? CUDA_OK : CUDA_INVALID_HANDLE;
}

static CUresult elapsed(float *ms, CUevent from, CUevent to)
{
        if (!ms || !from || !to || from->at_ns == 0 || to->at_ns == 0)
                return CUDA_INVALID_HANDLE;
        *ms = (float) ((double) (int64_t) (to->at_ns - from->at_ns) / 1e6);
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to);
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
        CALL_BEGIN;
        return elapsed(ms, from, to);
}

CUDA_EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to);
CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
        CALL_BEGIN;
        return elapsed(ms, from, to);
}
