/* SPDX-License-Identifier: Apache-2.0 */
/* meminfo, pressure, cgroup limits and the v1 lines of cgroup and mountinfo: any bytes are safe, a path is terminated. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "senses/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct host_memory memory;
        char path[64], root[64];
        uint64_t v;

        if (host_parse_meminfo(data, size, &memory) == 0)
                assert(memory.total_bytes > 0 && memory.available_bytes <= memory.total_bytes);
        if (host_parse_pressure(data, size, &v) == 0)
                assert(v <= 100990);
        (void) host_parse_limit(data, size, &v);
        if (host_parse_cgroup_v1(data, size, path, sizeof(path)) == 0)
                assert(path[0] == '/' && memchr(path, '\0', sizeof(path)));
        if (host_parse_mount_v1(data, size, path, root, sizeof(path)) == 0)
                assert(path[0] == '/' && root[0] == '/' && memchr(path, '\0', sizeof(path)));
        return 0;
}
