/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a container stands, from what its engine says of it (GET /containers/ID/json), read as any stranger's words. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_state {
        bool running;
        bool restarting;
        bool removed_at_end; /* --rm: stopped, it is gone for good */
        uint32_t pid;        /* of its first process; 0 = none */
};

bool engine_state_parse(const char *data, size_t n, struct engine_state *ret);
