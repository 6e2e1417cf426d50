/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the kernel says of processes as they come and go (the process connector, NETLINK_CONNECTOR group 1): datagrams of one or
 * more netlink messages. The socket's owner looks at who sent them; the bytes are taken as a stranger's even so.
 * Forks and ends are told of threads too: those have pid != tgid.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        PROC_EVENT_GROUP = 1,    /* of NETLINK_CONNECTOR, to be bound to */
        PROC_EVENT_ASK_MAX = 64, /* bytes of a question */
};

enum proc_event_kind {
        PROC_EVENT_OTHER, /* nothing that is wanted here */
        PROC_EVENT_ACK,   /* what was asked for is granted, or @error says why not */
        PROC_EVENT_FORK,
        PROC_EVENT_SID, /* it leads a session of its own from now on */
        PROC_EVENT_EXIT,
};

struct proc_event {
        enum proc_event_kind kind;
        uint32_t error;                   /* ACK: an errno, 0 = granted */
        uint64_t at_ns;                   /* CLOCK_MONOTONIC */
        uint32_t pid, tgid;               /* whom it is about; FORK: who was made */
        uint32_t parent_pid, parent_tgid; /* FORK: its parent in the kernel's books. Else 0 */
};

/*
 * The message at *@at, which moves behind it. 1 = one, 0 = no more, -EBADMSG: what follows is no message, the rest of the
 * datagram is lost. What is longer than known is taken by its known part.
 */
int proc_event_next(const void *data, size_t n, size_t *at, struct proc_event *ret);

/*
 * A question for the kernel into @buf (PROC_EVENT_ASK_MAX): tell from now on. @few: only forks, sessions and ends (since
 * Linux 6.6; older kernels pass over this form in silence, and it is never acknowledged). Returns its length.
 */
size_t proc_event_listen(void *buf, bool few);
