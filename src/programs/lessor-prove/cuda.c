/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-prove/cuda.h"
#include <dlfcn.h>
#include <string.h>

static const struct {
        size_t at;
        const char *name, *older; /* NULL = there is none */
} symbols[] = {
        { offsetof(struct cuda, init), "cuInit", NULL },
        { offsetof(struct cuda, count), "cuDeviceGetCount", NULL },
        { offsetof(struct cuda, device), "cuDeviceGet", NULL },
        { offsetof(struct cuda, uuid), "cuDeviceGetUuid_v2", "cuDeviceGetUuid" },
        { offsetof(struct cuda, retain), "cuDevicePrimaryCtxRetain", NULL },
        { offsetof(struct cuda, release), "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease" },
        { offsetof(struct cuda, set_current), "cuCtxSetCurrent", NULL },
        { offsetof(struct cuda, alloc), "cuMemAlloc_v2", NULL },
        { offsetof(struct cuda, free), "cuMemFree_v2", NULL },
        { offsetof(struct cuda, write), "cuMemcpyHtoD_v2", NULL },
        { offsetof(struct cuda, read), "cuMemcpyDtoH_v2", NULL },
        { offsetof(struct cuda, synchronize), "cuCtxSynchronize", NULL },
};

const char *cuda_open(struct cuda *cuda)
{
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

        if (!library)
                return "libcuda.so.1";
        for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
                void *address = dlsym(library, symbols[i].name);
                if (!address && symbols[i].older)
                        address = dlsym(library, symbols[i].older);
                if (!address)
                        return symbols[i].name;
                memcpy((char *) cuda + symbols[i].at, &address, sizeof(address));
        }
        return NULL;
}
