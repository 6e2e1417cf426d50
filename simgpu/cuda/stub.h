/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* stub - names that simgpu knows and does not simulate, and the table behind cuGetProcAddress; see card/stubs.py */

#include "cuda/abi.h"

CUresult stub_answer(const char *name);

#define STUB(symbol)                                                                                                   \
        CUDA_EXPORT __attribute__((weak)) int symbol(void);                                                            \
        int symbol(void)                                                                                               \
        {                                                                                                              \
                return stub_answer(#symbol);                                                                           \
        }

struct cuda_name {
        const char *base, *symbol;
        int version;
        int flags; /* 2 = the per-thread-stream variant */
        void (*function)(void);
};
extern const struct cuda_name cuda_names[]; /* sorted by base name, then version */
extern const size_t n_cuda_names;
