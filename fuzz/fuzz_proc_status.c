/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/status and its neighbours, which share the line reader: cgroup, mountinfo, meminfo, boot_id and environ.
 * Any bytes are safe; a path that is accepted is terminated inside its buffer.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/proc_text.h"
#include "senses/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct proc_status st;
        char path[64], root[64], boot_id[PROC_BOOT_ID_SIZE];
        uint64_t bytes;

        if (proc_parse_status(data, size, &st) == 0) {
                assert(st.n_ns_pids <= PROC_NS_PIDS_MAX);
                assert(st.vm_rss.known || st.vm_rss.bytes == 0);
        }
        if (proc_text_cgroup(data, size, path, sizeof(path)) == 0)
                assert(path[0] == '/' && memchr(path, '\0', sizeof(path)));
        if (proc_parse_cgroup_mount(data, size, path, root, sizeof(path)) == 0)
                assert(memchr(path, '\0', sizeof(path)) && memchr(root, '\0', sizeof(root)));
        if (proc_parse_mem_available(data, size, &bytes) == 0)
                assert(bytes % 1024 == 0);
        if (proc_parse_boot_id(data, size, boot_id) == 0)
                assert(strlen(boot_id) == 36);
        if (proc_find_environ(data, size, "LESSOR_TOKEN", path, sizeof(path)) == 0)
                assert(memchr(path, '\0', sizeof(path)));
        return 0;
}
