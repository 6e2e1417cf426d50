/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "card/fault.h"
#include "cuda/alloc.h"

#define STACK_MAX 64
#define COMPUTE_PROHIBITED 2
#define COMPUTE_EXCLUSIVE_PROCESS 3

static _Thread_local struct cuda_context *stack[STACK_MAX];
static _Thread_local size_t stack_n;
static struct cuda_context *all;                      /* under cuda.lock */
static struct cuda_context primary[CARD_DEVICES_MAX]; /* by ordinal */

struct cuda_context *context_current(void)
{
        return stack_n > 0 && stack[stack_n - 1] && stack[stack_n - 1]->alive == CONTEXT_ALIVE ? stack[stack_n - 1]
                                                                                               : NULL;
}

void context_remap(const uint32_t map[CARD_DEVICES_MAX])
{
        for (struct cuda_context *c = all; c; c = c->next)
                c->device = map[c->device];
}

static bool is_alive(const struct cuda_context *ctx)
{
        for (const struct cuda_context *c = all; c; c = c->next)
                if (c == ctx)
                        return true;
        return false;
}

/* Under cuda.lock. */
static CUresult bring_up(struct cuda_context *ctx, int ordinal, unsigned flags)
{
        struct card_file *f = cuda.card.file;
        uint32_t device = cuda.device[ordinal];
        if (f->device[device].settings.compute_mode == COMPUTE_PROHIBITED)
                return CUDA_DEVICE_UNAVAILABLE;
        for (uint32_t i = 0; f->device[device].settings.compute_mode == COMPUTE_EXCLUSIVE_PROCESS && i < CARD_PROCS_MAX;
             i++)
                if (&f->proc[i] != cuda.proc && atomic_load(&f->proc[i].pid) != 0 &&
                    atomic_load(&f->proc[i].use[device].contexts) > 0)
                        return CUDA_DEVICE_UNAVAILABLE;
        if (fault_hit(&cuda.card, FAULT_LOST, (int32_t) device, 0, NULL, NULL))
                return CUDA_UNKNOWN;
        int r = memory_take(&cuda.card, cuda.proc, device, MEMORY_CONTEXT, 0);
        if (r < 0)
                return r == -ENOMEM ? CUDA_OUT_OF_MEMORY : CUDA_UNKNOWN;
        *ctx = (struct cuda_context){
                .alive = CONTEXT_ALIVE, .device = device, .ordinal = ordinal, .flags = flags, .next = all
        };
        all = ctx;
        return CUDA_OK;
}

static void take_down(struct cuda_context *ctx)
{
        alloc_drop_context(ctx);
        memory_give(&cuda.card, cuda.proc, ctx->device, MEMORY_CONTEXT, 0);
        ctx->alive = 0;
        for (struct cuda_context **p = &all; *p; p = &(*p)->next)
                if (*p == ctx) {
                        *p = ctx->next;
                        break;
                }
}

static CUresult create(CUcontext *ret, unsigned flags, CUdevice dev)
{
        if (!ret)
                return CUDA_INVALID_VALUE;
        if (dev < 0 || dev >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        if (stack_n == STACK_MAX)
                return CUDA_OUT_OF_MEMORY;
        struct cuda_context *ctx = calloc(1, sizeof *ctx);
        if (!ctx)
                return CUDA_OUT_OF_MEMORY;
        (void) pthread_mutex_lock(&cuda.lock);
        CUresult rc = bring_up(ctx, dev, flags);
        (void) pthread_mutex_unlock(&cuda.lock);
        if (rc != CUDA_OK) {
                free(ctx);
                return rc;
        }
        stack[stack_n++] = ctx;
        *ret = ctx;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice dev);
CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice dev)
{
        CALL_BEGIN;
        return create(ret, flags, dev);
}

CUDA_EXPORT CUresult cuCtxCreate_v3(CUcontext *ret, void *params, int n, unsigned flags, CUdevice dev);
CUresult cuCtxCreate_v3(CUcontext *ret, void *params, int n, unsigned flags, CUdevice dev)
{
        CALL_BEGIN;
        if (n != 0)
                return CUDA_NOT_SUPPORTED;
        (void) params;
        return create(ret, flags, dev);
}

CUDA_EXPORT CUresult cuCtxCreate_v4(CUcontext *ret, void *params, unsigned flags, CUdevice dev);
CUresult cuCtxCreate_v4(CUcontext *ret, void *params, unsigned flags, CUdevice dev)
{
        CALL_BEGIN;
        (void) params; /* execution affinity and graphics sharing have no meaning here */
        return create(ret, flags, dev);
}

CUDA_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxDestroy_v2(CUcontext ctx)
{
        CALL_BEGIN;
        (void) pthread_mutex_lock(&cuda.lock);
        CUresult rc = is_alive(ctx) && !ctx->is_primary ? CUDA_OK : CUDA_INVALID_CONTEXT;
        if (rc == CUDA_OK)
                take_down(ctx);
        (void) pthread_mutex_unlock(&cuda.lock);
        if (rc == CUDA_OK && stack_n > 0 && stack[stack_n - 1] == ctx)
                stack_n--;
        /* Other threads may still have it on their stack; the little struct stays and says that it is dead. */
        return rc;
}

CUDA_EXPORT CUresult cuCtxGetCurrent(CUcontext *ret);
CUresult cuCtxGetCurrent(CUcontext *ret)
{
        CALL_BEGIN;
        if (!ret)
                return CUDA_INVALID_VALUE;
        *ret = context_current();
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxSetCurrent(CUcontext ctx)
{
        CALL_BEGIN;
        (void) pthread_mutex_lock(&cuda.lock);
        bool ok = !ctx || is_alive(ctx);
        (void) pthread_mutex_unlock(&cuda.lock);
        if (!ok)
                return CUDA_INVALID_CONTEXT;
        if (!ctx)
                stack_n = stack_n > 0 ? stack_n - 1 : 0;
        else if (stack_n > 0)
                stack[stack_n - 1] = ctx;
        else
                stack[stack_n++] = ctx;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx);
CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
        CALL_BEGIN;
        (void) pthread_mutex_lock(&cuda.lock);
        bool ok = is_alive(ctx);
        (void) pthread_mutex_unlock(&cuda.lock);
        if (!ok || stack_n == STACK_MAX)
                return CUDA_INVALID_CONTEXT;
        stack[stack_n++] = ctx;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *ret);
CUresult cuCtxPopCurrent_v2(CUcontext *ret)
{
        CALL_BEGIN;
        if (stack_n == 0)
                return CUDA_INVALID_CONTEXT;
        stack_n--;
        if (ret)
                *ret = stack[stack_n];
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxGetDevice(CUdevice *ret);
CUresult cuCtxGetDevice(CUdevice *ret)
{
        CALL_BEGIN;
        struct cuda_context *ctx = context_current();
        if (!ctx)
                return CUDA_INVALID_CONTEXT;
        if (!ret)
                return CUDA_INVALID_VALUE;
        *ret = ctx->ordinal;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxGetFlags(unsigned *flags);
CUresult cuCtxGetFlags(unsigned *flags)
{
        CALL_BEGIN;
        struct cuda_context *ctx = context_current();
        if (!ctx)
                return CUDA_INVALID_CONTEXT;
        if (!flags)
                return CUDA_INVALID_VALUE;
        *flags = ctx->flags;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *version);
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
        CALL_BEGIN;
        (void) ctx;
        if (!version)
                return CUDA_INVALID_VALUE;
        *version = 3020;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize(void)
{
        CALL_BEGIN;
        return context_current() ? CUDA_OK : CUDA_INVALID_CONTEXT;
}

CUDA_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice dev);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice dev)
{
        CALL_BEGIN;
        if (!ret)
                return CUDA_INVALID_VALUE;
        if (dev < 0 || dev >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        (void) pthread_mutex_lock(&cuda.lock);
        struct cuda_context *p = &primary[dev];
        CUresult rc = CUDA_OK;
        if (p->refs == 0) {
                rc = bring_up(p, dev, p->flags);
                p->is_primary = true;
        }
        if (rc == CUDA_OK)
                p->refs++;
        (void) pthread_mutex_unlock(&cuda.lock);
        if (rc == CUDA_OK)
                *ret = p;
        return rc;
}

static CUresult primary_drop(CUdevice dev, bool entirely)
{
        if (dev < 0 || dev >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        (void) pthread_mutex_lock(&cuda.lock);
        struct cuda_context *p = &primary[dev];
        CUresult rc = p->refs > 0 || entirely ? CUDA_OK : CUDA_INVALID_CONTEXT;
        if (rc == CUDA_OK && p->refs > 0) {
                p->refs = entirely ? 0 : p->refs - 1;
                if (p->refs == 0)
                        take_down(p);
        }
        (void) pthread_mutex_unlock(&cuda.lock);
        return rc;
}

CUDA_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
        CALL_BEGIN;
        return primary_drop(dev, false);
}

CUDA_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
        CALL_BEGIN;
        return primary_drop(dev, true);
}

CUDA_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags)
{
        CALL_BEGIN;
        if (dev < 0 || dev >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        primary[dev].flags = flags;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active);
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active)
{
        CALL_BEGIN;
        if (dev < 0 || dev >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        if (!flags || !active)
                return CUDA_INVALID_VALUE;
        *flags = primary[dev].flags;
        *active = primary[dev].refs > 0;
        return CUDA_OK;
}
