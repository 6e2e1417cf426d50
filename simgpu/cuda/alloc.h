/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * alloc - device addresses and what lies behind them
 *
 * A device pointer is an address in one large PROT_NONE reservation, so that touching it from the host faults as it
 * should. The bytes live in a memfd at the same offset and are moved with pread and pwrite: they never count as the
 * process's own memory, which is what makes its growth at a checkpoint visible. Managed ranges alone are mapped.
 * Everything here wants cuda.lock held, unless it says otherwise.
 */

#include "cuda/state.h"
#include "card/memory.h"

enum alloc_kind {
        ALLOC_PLAIN, /* cuMemAlloc and its relatives */
        ALLOC_MANAGED,
        ALLOC_RESERVED, /* an address range without memory (VMM) */
        ALLOC_MAPPED,   /* a range with a handle's memory behind it */
        ALLOC_HANDLE,   /* physical memory of cuMemCreate; its address is only a place in the memfd */
};

struct alloc {
        uint64_t offset; /* from the base of the reservation */
        uint64_t bytes;  /* as asked for: the books are exact */
        uint64_t span;   /* address space taken: bytes rounded up */
        enum alloc_kind kind;
        uint32_t device;      /* NVML index */
        uint32_t refs;        /* handles: create + retain + mappings */
        uint64_t backing;     /* where its bytes are in the memfd */
        uint64_t reservation; /* pieces of one cuMemAddressReserve share it */
        struct cuda_context *context;
};

struct allocs {
        struct alloc *all; /* sorted by offset */
        size_t n, capacity;
        uint8_t *base;
        uint64_t span;
        int data_fd; /* -1 = not set up */
};
extern struct allocs allocs;

/* alloc_setup - reserve the address space; 0 or a CUDA code */
CUresult alloc_setup(void);

/*
 * alloc_add - find room for @bytes of address space and enter it in the table; no books are touched
 * @align  power of two. Returns NULL without memory or address space.
 */
struct alloc *alloc_add(enum alloc_kind kind, uint64_t bytes, uint64_t align, uint32_t device);
bool alloc_grow(size_t more); /* make sure that many entries fit; may move the table */
void alloc_remove(struct alloc *a);
struct alloc *alloc_at(uint64_t offset); /* starts exactly there, and is no handle */
struct alloc *alloc_handle_at(uint64_t offset);
struct alloc *alloc_around(CUdeviceptr ptr); /* the range with memory that holds ptr; NULL = none */

/* alloc_new / alloc_delete - with the books of the card */
CUresult alloc_new(enum alloc_kind kind, uint64_t bytes, struct cuda_context *context, uint32_t device,
                   CUdeviceptr *ret);
void alloc_delete(struct alloc *a);

/* alloc_drop_context - free all that a context still holds */
void alloc_drop_context(struct cuda_context *context);

static inline CUdeviceptr alloc_ptr(const struct alloc *a)
{
        return (CUdeviceptr) (uintptr_t) allocs.base + a->offset;
}
bool alloc_is_device(CUdeviceptr ptr); /* does the address lie in our reservation? */

/*
 * The copy to host memory that a checkpoint makes, and back. Called by the helper with the gate closed.
 * alloc_save  allocates and touches anonymous memory of all bytes held; -ENOMEM leaves everything as it was
 */
int alloc_save(void **ret_copy, size_t *ret_bytes);
void alloc_release_data(void);            /* after the save: the "device" gives its memory back */
int alloc_load(void *copy, size_t bytes); /* fills the device again and frees the copy */
void alloc_remap(const uint32_t map[CARD_DEVICES_MAX]);
