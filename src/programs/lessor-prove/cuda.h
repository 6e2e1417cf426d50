/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* As much of libcuda.so.1 as a small program needs that holds some device memory. By dlopen; every code is CUresult. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cuda {
        int (*init)(unsigned flags);
        int (*count)(int *n);
        int (*device)(int *device, int at);
        int (*uuid)(uint8_t uuid[16], int device);
        int (*retain)(void **context, int device); /* the primary context, as most programs have it */
        int (*release)(int device);
        int (*set_current)(void *context);
        int (*alloc)(uint64_t *address, size_t n);
        int (*free)(uint64_t address);
        int (*write)(uint64_t address, const void *from, size_t n);
        int (*read)(void *to, uint64_t address, size_t n);
        int (*synchronize)(void);
};

/* NULL, or what is missing: "libcuda.so.1", or the name of a call. */
const char *cuda_open(struct cuda *cuda);
