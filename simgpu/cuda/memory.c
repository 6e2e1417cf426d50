/* SPDX-License-Identifier: Apache-2.0 */
/* memory - cuMemAlloc and everything that is like it: pitched, managed, host, stream-ordered, pools */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "card/proc.h"
#include "cuda/alloc.h"
#include "cuda/context.h"

#define PITCH 512

struct cuda_pool {
        int ordinal;
};
static struct cuda_pool default_pool[CARD_DEVICES_MAX];

static CUresult take(enum alloc_kind kind, CUdeviceptr *ret, size_t bytes)
{
        struct cuda_context *ctx = context_current();
        if (!ctx)
                return CUDA_INVALID_CONTEXT;
        (void) pthread_mutex_lock(&cuda.lock);
        CUresult rc = alloc_new(kind, bytes, ctx, ctx->device, ret);
        (void) pthread_mutex_unlock(&cuda.lock);
        return rc;
}

static CUresult give(CUdeviceptr ptr)
{
        if (ptr == 0)
                return CUDA_OK;
        if (!alloc_is_device(ptr))
                return CUDA_INVALID_VALUE;
        (void) pthread_mutex_lock(&cuda.lock);
        struct alloc *a = alloc_at(ptr - (uintptr_t) allocs.base);
        CUresult rc = a && (a->kind == ALLOC_PLAIN || a->kind == ALLOC_MANAGED) ? CUDA_OK : CUDA_INVALID_VALUE;
        if (rc == CUDA_OK)
                alloc_delete(a);
        (void) pthread_mutex_unlock(&cuda.lock);
        return rc;
}

CUDA_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
        CALL_BEGIN;
        return take(ALLOC_PLAIN, ret, bytes);
}

CUDA_EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemFree_v2(CUdeviceptr ptr)
{
        CALL_BEGIN;
        return give(ptr);
}

CUDA_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t width, size_t height, unsigned element)
{
        CALL_BEGIN;
        size_t row, bytes;
        if (!pitch || (element != 4 && element != 8 && element != 16) || __builtin_add_overflow(width, PITCH - 1, &row))
                return CUDA_INVALID_VALUE;
        row &= ~(size_t) (PITCH - 1);
        if (__builtin_mul_overflow(row, height, &bytes))
                return CUDA_INVALID_VALUE;
        CUresult rc = take(ALLOC_PLAIN, ret, bytes);
        if (rc == CUDA_OK)
                *pitch = row;
        return rc;
}

CUDA_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags);
CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags)
{
        CALL_BEGIN;
        if (flags != 1 && flags != 2) /* global, host */
                return CUDA_INVALID_VALUE;
        return take(ALLOC_MANAGED, ret, bytes);
}

CUDA_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream)
{
        CALL_BEGIN;
        (void) stream;
        return take(ALLOC_PLAIN, ret, bytes);
}

CUDA_EXPORT CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
        CALL_BEGIN;
        (void) stream; /* a real pool keeps the bytes until it is trimmed or synchronised; ours gives them back */
        return give(ptr);
}

CUDA_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream stream)
{
        CALL_BEGIN;
        (void) stream;
        struct cuda_context *ctx = context_current();
        if (!ctx)
                return CUDA_INVALID_CONTEXT;
        if (!pool || pool->ordinal < 0 || pool->ordinal >= cuda.n_devices)
                return CUDA_INVALID_VALUE;
        (void) pthread_mutex_lock(&cuda.lock);
        CUresult rc = alloc_new(ALLOC_PLAIN, bytes, ctx, cuda.device[pool->ordinal], ret);
        (void) pthread_mutex_unlock(&cuda.lock);
        return rc;
}

static CUresult pool_of(CUmemoryPool *ret, CUdevice dev)
{
        if (!ret)
                return CUDA_INVALID_VALUE;
        if (dev < 0 || dev >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        default_pool[dev].ordinal = dev;
        *ret = &default_pool[dev];
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice dev);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice dev)
{
        CALL_BEGIN;
        return pool_of(ret, dev);
}

CUDA_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice dev);
CUresult cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice dev)
{
        CALL_BEGIN;
        return pool_of(ret, dev);
}

CUDA_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *ret, const void *props);
CUresult cuMemPoolCreate(CUmemoryPool *ret, const void *props)
{
        CALL_BEGIN;
        CUmemLocation where;
        if (!ret || !props)
                return CUDA_INVALID_VALUE;
        memcpy(&where, (const char *) props + 8, sizeof where);
        if (where.type != 1 || where.id < 0 || where.id >= cuda.n_devices)
                return CUDA_INVALID_VALUE;
        struct cuda_pool *pool = malloc(sizeof *pool);
        if (!pool)
                return CUDA_OUT_OF_MEMORY;
        pool->ordinal = where.id;
        *ret = pool;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
        CALL_BEGIN;
        if (!pool || (pool >= default_pool && pool < default_pool + CARD_DEVICES_MAX))
                return CUDA_INVALID_VALUE;
        free(pool);
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
        CALL_BEGIN;
        (void) keep;
        return pool ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
        CALL_BEGIN;
        (void) attribute;
        return pool && value ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
        CALL_BEGIN;
        struct cuda_context *ctx = context_current();
        if (!ctx)
                return CUDA_INVALID_CONTEXT;
        if (!free_bytes || !total_bytes)
                return CUDA_INVALID_VALUE;
        uint64_t used;
        if (memory_reading(&cuda.card, ctx->device, &used) < 0)
                return CUDA_UNKNOWN;
        *total_bytes = cuda.card.file->device[ctx->device].total_bytes;
        *free_bytes = *total_bytes - used;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
        CALL_BEGIN;
        (void) pthread_mutex_lock(&cuda.lock);
        const struct alloc *a = alloc_around(ptr);
        if (a && base)
                *base = alloc_ptr(a);
        if (a && bytes)
                *bytes = a->bytes;
        (void) pthread_mutex_unlock(&cuda.lock);
        return a ? CUDA_OK : CUDA_NOT_FOUND;
}

static CUresult host_take(void **ret, size_t bytes)
{
        if (!ret || bytes == 0 || bytes > SIZE_MAX - 4095)
                return CUDA_INVALID_VALUE;
        *ret = aligned_alloc(4096, (bytes + 4095) & ~(size_t) 4095);
        return *ret ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

CUDA_EXPORT CUresult cuMemAllocHost_v2(void **ret, size_t bytes);
CUresult cuMemAllocHost_v2(void **ret, size_t bytes)
{
        CALL_BEGIN;
        return context_current() ? host_take(ret, bytes) : CUDA_INVALID_CONTEXT;
}

CUDA_EXPORT CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags);
CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
        CALL_BEGIN;
        (void) flags;
        return context_current() ? host_take(ret, bytes) : CUDA_INVALID_CONTEXT;
}

CUDA_EXPORT CUresult cuMemFreeHost(void *p);
CUresult cuMemFreeHost(void *p)
{
        CALL_BEGIN;
        free(p);
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *p, unsigned flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *p, unsigned flags)
{
        CALL_BEGIN;
        (void) flags;
        if (!ret || !p)
                return CUDA_INVALID_VALUE;
        *ret = (CUdeviceptr) (uintptr_t) p;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags);
CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
        CALL_BEGIN;
        (void) flags;
        return p && bytes > 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_EXPORT CUresult cuMemHostUnregister(void *p);
CUresult cuMemHostUnregister(void *p)
{
        CALL_BEGIN;
        return p ? CUDA_OK : CUDA_INVALID_VALUE;
}
