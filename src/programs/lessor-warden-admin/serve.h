/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The one loop: at most one peer, whose messages are carried out in the order they come (wire/gate.h). */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "programs/lessor-warden-admin/keeper.h"

struct serve {
        struct keeper keeper;
        int listener, peer; /* peer: -1 = none */
        uid_t brain_uid;    /* whose connections are taken */
        const char *program;
        bool greeted;            /* the peer has said hello */
        uint64_t heard_ms;       /* when the brain was last heard */
        uint64_t always_next_ms; /* 0 = nothing is in doubt */
};

/* Returns only what poll(2) failed with. */
int serve_run(struct serve *s);
