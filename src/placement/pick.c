/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/pick.h"

size_t pick_best_fit(const struct pick *picks, size_t n)
{
        size_t best = 0;

        for (size_t i = 1; i < n; i++) {
                const struct pick *a = &picks[i], *b = &picks[best];
                if (a->free_bytes < b->free_bytes || (a->free_bytes == b->free_bytes && a->device < b->device))
                        best = i;
        }
        return best;
}
