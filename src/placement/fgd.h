/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The coarse score of fragmentation gradient descent. */
#include <stdint.h>

/* floor(100 / (1 + exp(-D / 1000))) with D = @gain / @total milli-GPU (fragment.h); at most 8,000 GPUs' worth. */
int32_t fgd_score(int64_t gain, int64_t total);
