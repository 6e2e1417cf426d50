/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* context - contexts, the stack of current ones per thread, and the primary context of each device */

#include "cuda/state.h"

#define CONTEXT_ALIVE 0x63747831u

struct cuda_context {
        uint32_t alive;  /* CONTEXT_ALIVE; anything else is a stale handle */
        uint32_t device; /* NVML index */
        int ordinal;
        unsigned flags;
        unsigned refs; /* primary contexts */
        bool is_primary;
        struct cuda_context *next; /* all contexts, so that a handle can be checked without following it */
};

/* context_current - of this thread; NULL = none */
struct cuda_context *context_current(void);

/* context_remap - after a restore onto other devices */
void context_remap(const uint32_t map[CARD_DEVICES_MAX]);
