/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-checkpoint/look.h"
#include <assert.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include "wire/record.h"

/* As senses/nvml.h has them, with what is needed here and no more. */
typedef void *device;

struct memory_v1 {
        uint64_t total, free, used;
};

struct memory_v2 {
        uint32_t version, padding;
        uint64_t total, reserved, free, used;
};
static_assert(sizeof(struct memory_v1) == 24 && sizeof(struct memory_v2) == 40, "nvmlMemory_t");

#define MEMORY_V2_VERSION ((uint32_t) (sizeof(struct memory_v2) | (2U << 24)))

struct nvml {
        int (*init)(void);
        int (*by_uuid)(const char *, device *);
        int (*memory_v1)(device, struct memory_v1 *);
        int (*memory_v2)(device, struct memory_v2 *); /* NULL before R510 */
};

static bool load(struct nvml *n)
{
        static const struct {
                size_t at;
                const char *name;
        } symbols[] = {
                { offsetof(struct nvml, init), "nvmlInit_v2" },
                { offsetof(struct nvml, by_uuid), "nvmlDeviceGetHandleByUUID" },
                { offsetof(struct nvml, memory_v1), "nvmlDeviceGetMemoryInfo" },
                { offsetof(struct nvml, memory_v2), "nvmlDeviceGetMemoryInfo_v2" },
        };
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

        for (size_t i = 0; library && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
                void *address = dlsym(library, symbols[i].name);
                memcpy((char *) n + symbols[i].at, &address, sizeof(address));
        }
        return library && n->init && n->by_uuid && n->memory_v1;
}

bool look_used_bytes(const uint8_t uuid[WARDEN_UUID_SIZE], uint64_t *ret)
{
        struct memory_v2 v2 = { .version = MEMORY_V2_VERSION };
        struct memory_v1 v1 = { 0 };
        char text[RECORD_UUID_TEXT_SIZE];
        struct nvml n = { 0 };
        device d = NULL;

        record_uuid_text(uuid, text);
        if (!load(&n) || n.init() != 0 || n.by_uuid(text, &d) != 0)
                return false;
        if (!n.memory_v2 ||
            n.memory_v2(d, &v2) != 0) { /* a newer library over an older kernel module has only its name */
                if (n.memory_v1(d, &v1) != 0)
                        return false;
                v2.total = v1.total;
                v2.free = v1.free;
        }
        if (v2.total == 0 || v2.free > v2.total)
                return false;
        *ret = v2.total - v2.free;
        return true;
}
