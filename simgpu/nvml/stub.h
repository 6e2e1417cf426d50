/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* stub - names that simgpu knows and does not simulate; see card/stubs.py */

#include "nvml/abi.h"

nvmlReturn_t stub_answer(const char *name);

#define STUB(symbol)                                                                                                   \
        NVML_EXPORT __attribute__((weak)) int symbol(void);                                                            \
        int symbol(void)                                                                                               \
        {                                                                                                              \
                return stub_answer(#symbol);                                                                           \
        }
