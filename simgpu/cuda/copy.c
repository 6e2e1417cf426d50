/* SPDX-License-Identifier: Apache-2.0 */
/* copy - memcpy and memset in all directions; streams change nothing, everything is done when the call returns */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "card/work.h"
#include "cuda/alloc.h"
#include "cuda/context.h"

#define CHUNK (256u << 10)

/* Where ptr's bytes are in the memfd, if @n of them belong to one range. Takes the lock. */
static bool place(CUdeviceptr ptr, size_t n, off_t *ret)
{
        (void) pthread_mutex_lock(&cuda.lock);
        const struct alloc *a = alloc_around(ptr);
        bool ok = a && n <= a->bytes - (ptr - alloc_ptr(a));
        if (ok)
                *ret = (off_t) (a->backing + (ptr - alloc_ptr(a)));
        (void) pthread_mutex_unlock(&cuda.lock);
        return ok;
}

static CUresult put(CUdeviceptr to, const void *from, size_t n)
{
        off_t at;
        if (n == 0)
                return CUDA_OK;
        if (!context_current())
                return CUDA_INVALID_CONTEXT;
        work_note(cuda.proc, context_current()->device, WORK_COPY);
        if (!from || !place(to, n, &at))
                return CUDA_INVALID_VALUE;
        for (size_t done = 0; done < n;) {
                ssize_t w = pwrite(allocs.data_fd, (const char *) from + done, n - done, at + (off_t) done);
                if (w <= 0)
                        return CUDA_UNKNOWN;
                done += (size_t) w;
        }
        return CUDA_OK;
}

static CUresult get(void *to, CUdeviceptr from, size_t n)
{
        off_t at;
        if (n == 0)
                return CUDA_OK;
        if (!context_current())
                return CUDA_INVALID_CONTEXT;
        work_note(cuda.proc, context_current()->device, WORK_COPY);
        if (!to || !place(from, n, &at))
                return CUDA_INVALID_VALUE;
        for (size_t done = 0; done < n;) {
                ssize_t r = pread(allocs.data_fd, (char *) to + done, n - done, at + (off_t) done);
                if (r <= 0)
                        return CUDA_UNKNOWN;
                done += (size_t) r;
        }
        return CUDA_OK;
}

static CUresult across(CUdeviceptr to, CUdeviceptr from, size_t n)
{
        char *buf = malloc(CHUNK);
        CUresult rc = buf ? CUDA_OK : CUDA_OUT_OF_MEMORY;
        for (size_t done = 0; rc == CUDA_OK && done < n; done += CHUNK) {
                size_t part = n - done < CHUNK ? n - done : CHUNK;
                rc = get(buf, from + done, part);
                if (rc == CUDA_OK)
                        rc = put(to + done, buf, part);
        }
        free(buf);
        return rc;
}

static CUresult any(CUdeviceptr to, CUdeviceptr from, size_t n)
{
        bool to_device = alloc_is_device(to), from_device = alloc_is_device(from);
        if (to_device && from_device)
                return across(to, from, n);
        if (to_device)
                return put(to, (const void *) (uintptr_t) from, n);
        if (from_device)
                return get((void *) (uintptr_t) to, from, n);
        memcpy((void *) (uintptr_t) to, (const void *) (uintptr_t) from, n);
        return CUDA_OK;
}

/* @width bytes of @pattern, @count times; rows @pitch apart when @rows > 1 */
static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t pattern, size_t width, size_t count, size_t rows)
{
        size_t n;
        if (__builtin_mul_overflow(width, count, &n))
                return CUDA_INVALID_VALUE;
        char *buf = malloc(CHUNK);
        if (!buf)
                return CUDA_OUT_OF_MEMORY;
        for (size_t i = 0; i < CHUNK; i += width)
                memcpy(buf + i, &pattern, width);
        CUresult rc = CUDA_OK;
        for (size_t row = 0; rc == CUDA_OK && row < rows; row++)
                for (size_t done = 0; rc == CUDA_OK && done < n; done += CHUNK)
                        rc = put(to + row * pitch + done, buf, n - done < CHUNK ? n - done : CHUNK);
        free(buf);
        return rc;
}

#define COPY(name, args, work)                                                                                         \
        CUDA_EXPORT CUresult name args;                                                                                \
        CUresult name args                                                                                             \
        {                                                                                                              \
                CALL_BEGIN;                                                                                            \
                return work;                                                                                           \
        }

/* clang-format off */
COPY(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t n), put(to, from, n))
COPY(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t n), get(to, from, n))
COPY(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t n), across(to, from, n))
COPY(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t n), any(to, from, n))
COPY(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t n, CUstream s), ((void) s, put(to, from, n)))
COPY(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t n, CUstream s), ((void) s, get(to, from, n)))
COPY(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), ((void) s, across(to, from, n)))
COPY(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), ((void) s, any(to, from, n)))
COPY(cuMemcpyPeer, (CUdeviceptr to, CUcontext c1, CUdeviceptr from, CUcontext c2, size_t n), ((void) c1, (void) c2, across(to, from, n)))
COPY(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext c1, CUdeviceptr from, CUcontext c2, size_t n, CUstream s),
     ((void) c1, (void) c2, (void) s, across(to, from, n)))
COPY(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t n), fill(to, 0, value, 1, n, 1))
COPY(cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, size_t n), fill(to, 0, value, 2, n, 1))
COPY(cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t n), fill(to, 0, value, 4, n, 1))
COPY(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t n, CUstream s), ((void) s, fill(to, 0, value, 1, n, 1)))
COPY(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t n, CUstream s), ((void) s, fill(to, 0, value, 2, n, 1)))
COPY(cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t n, CUstream s), ((void) s, fill(to, 0, value, 4, n, 1)))
COPY(cuMemsetD2D8_v2, (CUdeviceptr to, size_t pitch, unsigned char value, size_t w, size_t h), fill(to, pitch, value, 1, w, h))
COPY(cuMemsetD2D16_v2, (CUdeviceptr to, size_t pitch, unsigned short value, size_t w, size_t h), fill(to, pitch, value, 2, w, h))
COPY(cuMemsetD2D32_v2, (CUdeviceptr to, size_t pitch, unsigned value, size_t w, size_t h), fill(to, pitch, value, 4, w, h))
/* clang-format on */
