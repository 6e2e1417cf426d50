/* SPDX-License-Identifier: Apache-2.0 */
/* vmm - addresses and memory apart: the memory is real (and counted) at cuMemCreate, mapping costs nothing */

#include <string.h>

#include "cuda/alloc.h"

#define GRANULE (2u << 20)

CUDA_EXPORT CUresult cuMemGetAllocationGranularity(size_t *ret, const CUmemAllocationProp *prop, int option);
CUresult cuMemGetAllocationGranularity(size_t *ret, const CUmemAllocationProp *prop, int option)
{
        CALL_BEGIN;
        (void) option;
        if (!ret || !prop)
                return CUDA_INVALID_VALUE;
        *ret = GRANULE;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t bytes, size_t align, CUdeviceptr hint,
                                         unsigned long long flags);
CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t bytes, size_t align, CUdeviceptr hint, unsigned long long flags)
{
        CALL_BEGIN;
        (void) hint;
        if (!ret || bytes == 0 || bytes % GRANULE != 0 || flags != 0 || (align & (align - 1)) != 0)
                return CUDA_INVALID_VALUE;
        (void) pthread_mutex_lock(&cuda.lock);
        const struct alloc *a = alloc_add(ALLOC_RESERVED, bytes, align < GRANULE ? GRANULE : align, 0);
        if (a)
                *ret = alloc_ptr(a);
        (void) pthread_mutex_unlock(&cuda.lock);
        return a ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

CUDA_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
        CALL_BEGIN;
        if (!alloc_is_device(ptr))
                return CUDA_INVALID_VALUE;
        (void) pthread_mutex_lock(&cuda.lock);
        struct alloc *a = alloc_at(ptr - (uintptr_t) allocs.base);
        bool ok = a && a->kind == ALLOC_RESERVED && a->bytes == bytes;
        if (ok)
                alloc_remove(a);
        (void) pthread_mutex_unlock(&cuda.lock);
        return ok ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *prop,
                                 unsigned long long flags);
CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
        CALL_BEGIN;
        if (!ret || !prop || flags != 0 || bytes == 0 || bytes % GRANULE != 0)
                return CUDA_INVALID_VALUE;
        if (prop->location.type != 1)
                return CUDA_NOT_SUPPORTED;
        if (prop->location.id < 0 || prop->location.id >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        (void) pthread_mutex_lock(&cuda.lock);
        CUdeviceptr ptr; /* the device of prop, not of the current context: a trap for accountants */
        CUresult rc = alloc_new(ALLOC_HANDLE, bytes, NULL, cuda.device[prop->location.id], &ptr);
        if (rc == CUDA_OK)
                *ret = ptr - (uintptr_t) allocs.base;
        (void) pthread_mutex_unlock(&cuda.lock);
        return rc;
}

/* Under the lock. */
static void handle_drop(struct alloc *handle)
{
        if (--handle->refs == 0)
                alloc_delete(handle);
}

CUDA_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
        CALL_BEGIN;
        (void) pthread_mutex_lock(&cuda.lock);
        struct alloc *a = alloc_handle_at(handle);
        if (a)
                handle_drop(a);
        (void) pthread_mutex_unlock(&cuda.lock);
        return a ? CUDA_OK : CUDA_INVALID_VALUE;
}

/*
 * A mapping splits its reservation: what lies before and behind stays reserved. Each piece is an entry of its own, so a
 * program may map many handles side by side, as expandable segments do.
 */
static bool split(struct alloc **range, uint64_t offset, uint64_t bytes)
{
        struct alloc a = **range;
        struct alloc pieces[3];
        size_t n = 0;
        if (offset > a.offset)
                pieces[n++] = (struct alloc){ .offset = a.offset, .bytes = offset - a.offset, .kind = ALLOC_RESERVED };
        size_t middle = n;
        pieces[n++] = (struct alloc){ .offset = offset, .bytes = bytes, .kind = ALLOC_RESERVED };
        if (offset + bytes < a.offset + a.bytes)
                pieces[n++] = (struct alloc){ .offset = offset + bytes,
                                              .bytes = a.offset + a.bytes - offset - bytes,
                                              .kind = ALLOC_RESERVED };
        if (!alloc_grow(n - 1))
                return false;
        size_t at = 0;
        while (allocs.all[at].offset != a.offset)
                at++;
        memmove(&allocs.all[at + n], &allocs.all[at + 1], (allocs.n - at - 1) * sizeof a);
        allocs.n += n - 1;
        for (size_t i = 0; i < n; i++) {
                pieces[i].span = pieces[i].bytes;
                pieces[i].refs = 1;
                pieces[i].backing = pieces[i].offset;
                pieces[i].reservation = a.reservation;
                allocs.all[at + i] = pieces[i];
        }
        *range = &allocs.all[at + middle];
        return true;
}

static struct alloc *reserved_around(uint64_t offset, uint64_t bytes)
{
        for (size_t i = 0; i < allocs.n; i++) {
                struct alloc *a = &allocs.all[i];
                if (a->kind == ALLOC_RESERVED && offset >= a->offset && offset - a->offset < a->bytes &&
                    bytes <= a->bytes - (offset - a->offset))
                        return a;
        }
        return NULL;
}

CUDA_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                              unsigned long long flags);
CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
        CALL_BEGIN;
        if (!alloc_is_device(ptr) || bytes == 0 || bytes % GRANULE != 0 || offset != 0 || flags != 0)
                return CUDA_INVALID_VALUE;
        uint64_t at = ptr - (uintptr_t) allocs.base;
        (void) pthread_mutex_lock(&cuda.lock);
        CUresult rc = CUDA_INVALID_VALUE;
        struct alloc *range = reserved_around(at, bytes), *h = alloc_handle_at(handle);
        if (range && h && bytes <= h->bytes)
                rc = split(&range, at, bytes) ? CUDA_OK : CUDA_OUT_OF_MEMORY;
        if (rc == CUDA_OK) {
                h = alloc_handle_at(handle); /* the table may have moved */
                range->kind = ALLOC_MAPPED;
                range->backing = h->backing;
                range->device = h->device;
                h->refs++;
        }
        (void) pthread_mutex_unlock(&cuda.lock);
        return rc;
}

/* Neighbouring reserved pieces become one again, so that cuMemAddressFree finds the whole it was given. */
static void join_reserved(void)
{
        for (size_t i = 0; i + 1 < allocs.n;) {
                struct alloc *a = &allocs.all[i], *b = a + 1;
                if (a->kind == ALLOC_RESERVED && b->kind == ALLOC_RESERVED && a->reservation == b->reservation) {
                        a->bytes += b->bytes;
                        a->span += b->span;
                        alloc_remove(b);
                } else {
                        i++;
                }
        }
}

CUDA_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
        CALL_BEGIN;
        if (!alloc_is_device(ptr) || bytes == 0)
                return CUDA_INVALID_VALUE;
        uint64_t from = ptr - (uintptr_t) allocs.base;
        (void) pthread_mutex_lock(&cuda.lock);
        size_t n = 0;
        for (size_t i = 0; i < allocs.n; i++) {
                struct alloc *a = &allocs.all[i];
                if (a->kind != ALLOC_MAPPED || a->offset < from || a->offset + a->bytes > from + bytes)
                        continue;
                uint64_t backing = a->backing;
                a->kind = ALLOC_RESERVED;
                a->backing = a->offset;
                n++;
                struct alloc *h = alloc_handle_at(backing);
                if (h) {
                        handle_drop(h); /* may move the table */
                        i = (size_t) -1;
                }
        }
        join_reserved();
        (void) pthread_mutex_unlock(&cuda.lock);
        return n > 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const void *desc, size_t n);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const void *desc, size_t n)
{
        CALL_BEGIN;
        return alloc_is_device(ptr) && bytes > 0 && desc && n > 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *addr);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *addr)
{
        CALL_BEGIN;
        (void) pthread_mutex_lock(&cuda.lock);
        const struct alloc *a = alloc_around((CUdeviceptr) (uintptr_t) addr);
        struct alloc *h = a && a->kind == ALLOC_MAPPED ? alloc_handle_at(a->backing) : NULL;
        if (h && ret) {
                h->refs++;
                *ret = h->offset;
        }
        (void) pthread_mutex_unlock(&cuda.lock);
        return h && ret ? CUDA_OK : CUDA_INVALID_VALUE;
}
