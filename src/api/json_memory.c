/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include "api/json_memory.h"

static bool has_failed;

static void *watched_malloc(size_t n)
{
        void *p = malloc(n);

        if (!p)
                has_failed = true;
        return p;
}

void json_memory_watch(void)
{
        json_set_alloc_funcs(watched_malloc, free);
}

bool json_memory_take_failed(void)
{
        bool failed = has_failed;

        has_failed = false;
        return failed;
}
