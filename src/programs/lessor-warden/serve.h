/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The warden's one loop: at most one peer, whose messages are carried out in the order they come (wire/warden.h). */
#include <sys/types.h>
#include "hands/carry.h"

struct serve {
        struct carry carry; /* its peer and listener are ours */
        uid_t brain_uid;    /* whose connections are taken */
        const char *program;
        bool greeted;            /* the peer has said hello */
        uint64_t alone_until_ms; /* without a peer: when those that are held are let go; 0 = done */
        int last_error; /* why the last connection ended: 0, -EPROTONOSUPPORT (another version), -EBADMSG … */
};

/* Looks at whom the kernel says the peer is, and says hello. Negative errno, and the connection is closed: not the brain. */
int serve_take_peer(struct serve *s, int fd);
/* Without a listener until the peer has gone, which is 0, or a negative errno; with one for ever. */
int serve_run(struct serve *s);
