/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/fault.h"

#define SPAN_WANTED (1ull << 42) /* 4 TiB of addresses; halved where the process may not have that much */
#define SPAN_LEAST (1ull << 36)
#define GRAIN 512 /* what the driver aligns small allocations to */
#define COPY_CHUNK (64u << 10)

struct allocs allocs = { .data_fd = -1 };

CUresult alloc_setup(void)
{
        if (allocs.data_fd >= 0)
                return CUDA_OK;
        void *base = MAP_FAILED;
        uint64_t span;
        for (span = SPAN_WANTED; span >= SPAN_LEAST; span /= 2) {
                base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                if (base != MAP_FAILED)
                        break;
        }
        if (base == MAP_FAILED)
                return CUDA_OPERATING_SYSTEM;
        int fd = memfd_create("simgpu-device-memory", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t) span) < 0) {
                if (fd >= 0)
                        (void) close(fd);
                (void) munmap(base, span);
                return CUDA_OPERATING_SYSTEM;
        }
        /* A core dump or a fork of a client must not carry terabytes of nothing along. */
        (void) madvise(base, span, MADV_DONTDUMP);
        allocs = (struct allocs){ .base = base, .span = span, .data_fd = fd };
        return CUDA_OK;
}

bool alloc_is_device(CUdeviceptr ptr)
{
        return allocs.base && ptr >= (uintptr_t) allocs.base && ptr - (uintptr_t) allocs.base < allocs.span;
}

static size_t position(uint64_t offset)
{
        size_t low = 0, high = allocs.n;
        while (low < high) {
                size_t mid = low + (high - low) / 2;
                if (allocs.all[mid].offset < offset)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
        return (n + to - 1) & ~(to - 1);
}

/* First the end of the table, so that addresses are not reused at once; then the first hole. */
static bool find_room(uint64_t span, uint64_t align, uint64_t *ret)
{
        uint64_t end = allocs.n > 0 ? allocs.all[allocs.n - 1].offset + allocs.all[allocs.n - 1].span : align;
        end = round_up(end, align);
        if (end < allocs.span && span <= allocs.span - end) {
                *ret = end;
                return true;
        }
        uint64_t at = align;
        for (size_t i = 0; i < allocs.n; i++) {
                if (at < allocs.all[i].offset && span <= allocs.all[i].offset - at) {
                        *ret = at;
                        return true;
                }
                at = round_up(allocs.all[i].offset + allocs.all[i].span, align);
        }
        return false;
}

bool alloc_grow(size_t more)
{
        if (allocs.n + more <= allocs.capacity)
                return true;
        size_t capacity = (allocs.n + more) * 2;
        struct alloc *all = realloc(allocs.all, capacity * sizeof *all);
        if (!all)
                return false;
        allocs.all = all;
        allocs.capacity = capacity;
        return true;
}

struct alloc *alloc_add(enum alloc_kind kind, uint64_t bytes, uint64_t align, uint32_t device)
{
        uint64_t offset, span;
        if (align < GRAIN)
                align = GRAIN;
        if (bytes > allocs.span)
                return NULL;
        span = round_up(bytes, align);
        if (!find_room(span, align, &offset))
                return NULL;
        if (!alloc_grow(1))
                return NULL;
        size_t i = position(offset);
        memmove(&allocs.all[i + 1], &allocs.all[i], (allocs.n - i) * sizeof *allocs.all);
        allocs.n++;
        allocs.all[i] = (struct alloc){ .offset = offset,
                                        .bytes = bytes,
                                        .span = span,
                                        .kind = kind,
                                        .device = device,
                                        .refs = 1,
                                        .backing = offset,
                                        .reservation = offset };
        return &allocs.all[i];
}

static void drop_data(const struct alloc *a)
{
        (void) fallocate(allocs.data_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) a->offset,
                         (off_t) round_up(a->span, 4096));
}

void alloc_remove(struct alloc *a)
{
        size_t i = (size_t) (a - allocs.all);
        memmove(a, a + 1, (allocs.n - i - 1) * sizeof *a);
        allocs.n--;
}

static struct alloc *exact(uint64_t offset, bool handles)
{
        size_t i = position(offset);
        if (i < allocs.n && allocs.all[i].offset == offset && (allocs.all[i].kind == ALLOC_HANDLE) == handles)
                return &allocs.all[i];
        return NULL;
}

struct alloc *alloc_at(uint64_t offset)
{
        return exact(offset, false);
}

struct alloc *alloc_handle_at(uint64_t offset)
{
        return exact(offset, true);
}

struct alloc *alloc_around(CUdeviceptr ptr)
{
        if (!alloc_is_device(ptr))
                return NULL;
        uint64_t offset = ptr - (uintptr_t) allocs.base;
        size_t i = position(offset + 1);
        if (i == 0)
                return NULL;
        struct alloc *a = &allocs.all[i - 1];
        bool has_memory = a->kind == ALLOC_PLAIN || a->kind == ALLOC_MANAGED || a->kind == ALLOC_MAPPED;
        return has_memory && offset - a->offset < a->bytes ? a : NULL;
}

CUresult alloc_new(enum alloc_kind kind, uint64_t bytes, struct cuda_context *context, uint32_t device,
                   CUdeviceptr *ret)
{
        if (bytes == 0 || !ret)
                return CUDA_INVALID_VALUE;
        if (fault_hit(&cuda.card, FAULT_LOST, (int32_t) device, (uint32_t) getpid(), NULL, NULL))
                return CUDA_UNKNOWN;
        /* Whole pages of the memfd where the size allows it, so that freeing one cannot touch its neighbour. */
        uint64_t align = bytes >= (2u << 20) ? 2u << 20 : 4096;
        struct alloc *a = alloc_add(kind, bytes, align, device);
        if (!a)
                return CUDA_OUT_OF_MEMORY;
        a->context = context;
        int r = memory_take(&cuda.card, cuda.proc, device, kind == ALLOC_MANAGED ? MEMORY_MANAGED : MEMORY_LISTED,
                            bytes);
        if (r == 0 && kind == ALLOC_MANAGED &&
            mmap(allocs.base + a->offset, a->span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, allocs.data_fd,
                 (off_t) a->offset) == MAP_FAILED) {
                memory_give(&cuda.card, cuda.proc, device, MEMORY_MANAGED, bytes);
                r = -errno;
        }
        if (r < 0) {
                alloc_remove(a);
                return r == -ENOMEM ? CUDA_OUT_OF_MEMORY : CUDA_UNKNOWN;
        }
        *ret = alloc_ptr(a);
        return CUDA_OK;
}

void alloc_delete(struct alloc *a)
{
        if (a->kind == ALLOC_MANAGED)
                (void) mmap(allocs.base + a->offset, a->span, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        drop_data(a);
        memory_give(&cuda.card, cuda.proc, a->device, a->kind == ALLOC_MANAGED ? MEMORY_MANAGED : MEMORY_LISTED,
                    a->bytes);
        alloc_remove(a);
}

void alloc_drop_context(struct cuda_context *context)
{
        for (size_t i = allocs.n; i-- > 0;)
                if (allocs.all[i].context == context &&
                    (allocs.all[i].kind == ALLOC_PLAIN || allocs.all[i].kind == ALLOC_MANAGED))
                        alloc_delete(&allocs.all[i]);
}

static bool is_physical(const struct alloc *a)
{
        return a->kind == ALLOC_PLAIN || a->kind == ALLOC_MANAGED || a->kind == ALLOC_HANDLE;
}

static int read_extents(const struct alloc *a, uint8_t *to)
{
        off_t at = (off_t) a->backing, end = at + (off_t) a->bytes;
        while (at < end) {
                off_t data = lseek(allocs.data_fd, at, SEEK_DATA);
                if (data < 0 || data >= end)
                        break; /* nothing but holes: the rest stays zero */
                off_t hole = lseek(allocs.data_fd, data, SEEK_HOLE);
                if (hole < 0 || hole > end)
                        hole = end;
                for (at = data; at < hole;) {
                        ssize_t n = pread(allocs.data_fd, to + (at - (off_t) a->backing), (size_t) (hole - at), at);
                        if (n <= 0)
                                return -EIO;
                        at += n;
                }
        }
        return 0;
}

int alloc_save(void **ret_copy, size_t *ret_bytes)
{
        size_t total = 0;
        for (size_t i = 0; i < allocs.n; i++)
                if (is_physical(&allocs.all[i]))
                        total += allocs.all[i].bytes;
        *ret_copy = NULL;
        *ret_bytes = total;
        if (total == 0)
                return 0;
        uint8_t *copy = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (copy == MAP_FAILED)
                return -ENOMEM;
        (void) madvise(copy, total, MADV_HUGEPAGE);
        memset(copy, 0, total); /* touched, also where the device was never written: this is what parking costs */
        size_t at = 0;
        int r = 0;
        for (size_t i = 0; r == 0 && i < allocs.n; i++)
                if (is_physical(&allocs.all[i])) {
                        r = read_extents(&allocs.all[i], copy + at);
                        at += allocs.all[i].bytes;
                }
        if (r < 0)
                (void) munmap(copy, total);
        else
                *ret_copy = copy;
        return r;
}

void alloc_release_data(void)
{
        for (size_t i = 0; i < allocs.n; i++)
                if (is_physical(&allocs.all[i]))
                        drop_data(&allocs.all[i]);
}

static bool is_zero(const uint8_t *p, size_t n)
{
        return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

int alloc_load(void *copy, size_t bytes)
{
        const uint8_t *from = copy;
        int r = 0;
        for (size_t i = 0; i < allocs.n; i++) {
                const struct alloc *a = &allocs.all[i];
                if (!is_physical(a))
                        continue;
                for (uint64_t at = 0; at < a->bytes; at += COPY_CHUNK) {
                        size_t n = a->bytes - at < COPY_CHUNK ? (size_t) (a->bytes - at) : COPY_CHUNK;
                        if (!is_zero(from + at, n) &&
                            pwrite(allocs.data_fd, from + at, n, (off_t) (a->backing + at)) != (ssize_t) n)
                                r = -EIO;
                }
                from += a->bytes;
        }
        if (copy)
                (void) munmap(copy, bytes);
        return r;
}

void alloc_remap(const uint32_t map[CARD_DEVICES_MAX])
{
        for (size_t i = 0; i < allocs.n; i++)
                allocs.all[i].device = map[allocs.all[i].device];
}
