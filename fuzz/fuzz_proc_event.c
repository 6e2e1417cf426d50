/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of the process connector: any bytes end, and whom they name is a process's number. */
#include <assert.h>
#include <errno.h>
#include "wire/proc_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct proc_event e;
        size_t at = 0, before = 0;
        int r;

        while ((r = proc_event_next(data, size, &at, &e)) != 0) {
                assert(at > before && at <= size);
                before = at;
                if (r < 0) {
                        assert(r == -EBADMSG);
                        continue;
                }
                if (e.kind == PROC_EVENT_FORK || e.kind == PROC_EVENT_SID || e.kind == PROC_EVENT_EXIT)
                        assert(e.pid > 0 && e.tgid > 0 && e.pid <= INT32_MAX && e.tgid <= INT32_MAX);
                assert(e.parent_pid <= INT32_MAX && e.parent_tgid <= INT32_MAX);
        }
        return 0;
}
