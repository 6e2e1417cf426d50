/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* wire - what a checkpoint caller and the helper thread inside the target say to each other */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cuda/abi.h"
#include "card/card.h"

enum wire_op { WIRE_THREAD, WIRE_STATE, WIRE_LOCK, WIRE_CHECKPOINT, WIRE_RESTORE, WIRE_UNLOCK, WIRE_OP_N };

struct wire_request {
        uint32_t op;
        uint32_t timeout_ms;
        uint32_t n_pairs; /* at most CARD_DEVICES_MAX */
        uint32_t reserved;
        CUcheckpointGpuPair pair[CARD_DEVICES_MAX];
};

struct wire_reply {
        int32_t rc;
        uint32_t value;
};

/*
 * An abstract socket: it goes with its owner, whatever kills it. The helper's tid is part of the name, so that a
 * recycled pid never answers for the dead. Abstract names end at the network namespace: so do checkpoints here.
 */
static inline socklen_t wire_address(struct sockaddr_un *address, uint64_t card_id, uint32_t pid, uint32_t tid)
{
        *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "simgpu-%016llx-%u-%u",
                         (unsigned long long) card_id, pid, tid);
        return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
}
