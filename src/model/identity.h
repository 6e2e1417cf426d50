/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who a process is: its pid and its start time, in ticks since boot (field 22 of /proc/PID/stat). With the boot id, which
 * the world holds once, a pid that was reused is somebody else. A zeroed identity is "nobody".
 */
#include <stdbool.h>
#include <stdint.h>

struct identity {
        uint32_t pid;
        uint64_t start_ticks;
};

static inline bool identity_is_none(struct identity id)
{
        return id.pid == 0;
}

static inline bool identity_equal(struct identity a, struct identity b)
{
        return a.pid == b.pid && a.start_ticks == b.start_ticks;
}

/* The order of every table that is sorted by identity: pid, then start. */
static inline int identity_compare(struct identity a, struct identity b)
{
        if (a.pid != b.pid)
                return a.pid < b.pid ? -1 : 1;
        if (a.start_ticks != b.start_ticks)
                return a.start_ticks < b.start_ticks ? -1 : 1;
        return 0;
}
