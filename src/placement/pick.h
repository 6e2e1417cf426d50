/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which of several devices a single lease goes to: best fit, so that large gaps stay large; ties to the lowest index. */
#include <stddef.h>
#include <stdint.h>

struct pick {
        uint32_t device;
        uint64_t free_bytes; /* what it may use there; at least the demand */
};

/* @n ≥ 1 candidates, each large enough. Returns the position in @picks. */
size_t pick_best_fit(const struct pick *picks, size_t n);
