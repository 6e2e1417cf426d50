/* SPDX-License-Identifier: Apache-2.0 */
/* device - the questions about devices that need no context */

#include <stdio.h>
#include <string.h>

#include "card/fault.h"
#include "cuda/state.h"

static struct card_device *device_of(CUdevice dev)
{
        if (dev < 0 || dev >= cuda.n_devices)
                return NULL;
        return &cuda.card.file->device[cuda.device[dev]];
}

CUDA_EXPORT CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetCount(int *count)
{
        CALL_BEGIN;
        if (!count)
                return CUDA_INVALID_VALUE;
        *count = cuda.n_devices;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
        CALL_BEGIN;
        if (!device)
                return CUDA_INVALID_VALUE;
        if (ordinal < 0 || ordinal >= cuda.n_devices)
                return CUDA_INVALID_DEVICE;
        *device = ordinal;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev);
CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
        CALL_BEGIN;
        const struct card_device *d = device_of(dev);
        if (!d)
                return CUDA_INVALID_DEVICE;
        if (!name || len <= 0)
                return CUDA_INVALID_VALUE;
        snprintf(name, (size_t) len, "%s", d->name);
        return CUDA_OK;
}

static int hex(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

static CUresult uuid_get(CUuuid *uuid, CUdevice dev)
{
        const struct card_device *d = device_of(dev);
        if (!d)
                return CUDA_INVALID_DEVICE;
        if (!uuid)
                return CUDA_INVALID_VALUE;
        size_t n = 0;
        memset(uuid, 0, sizeof *uuid);
        for (const char *p = d->uuid + 4; *p && n < 32; p++)
                if (hex(*p) >= 0) {
                        uuid->bytes[n / 2] = (unsigned char) (uuid->bytes[n / 2] << 4 | hex(*p));
                        n++;
                }
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
        CALL_BEGIN;
        return uuid_get(uuid, dev);
}

CUDA_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
        CALL_BEGIN;
        return uuid_get(uuid, dev);
}

CUDA_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
        CALL_BEGIN;
        const struct card_device *d = device_of(dev);
        if (!d)
                return CUDA_INVALID_DEVICE;
        if (!bytes)
                return CUDA_INVALID_VALUE;
        *bytes = d->total_bytes;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
        CALL_BEGIN;
        const struct card_device *d = device_of(dev);
        if (!d)
                return CUDA_INVALID_DEVICE;
        if (!major || !minor)
                return CUDA_INVALID_VALUE;
        *major = (int) d->cc_major;
        *minor = (int) d->cc_minor;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev);
CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
        CALL_BEGIN;
        const struct card_device *d = device_of(dev);
        if (!d)
                return CUDA_INVALID_DEVICE;
        if (!id || len < 13)
                return CUDA_INVALID_VALUE;
        snprintf(id, (size_t) len, "%04X:%02X:%02X.0", d->pci_domain & 0xffff, d->pci_bus & 0xff, d->pci_device & 0x1f);
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id);
CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
        CALL_BEGIN;
        unsigned domain = 0, bus, slot;
        if (!dev || !id)
                return CUDA_INVALID_VALUE;
        if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
                domain = 0;
                if (sscanf(id, "%x:%x", &bus, &slot) != 2)
                        return CUDA_INVALID_VALUE;
        }
        for (int i = 0; i < cuda.n_devices; i++) {
                const struct card_device *d = device_of(i);
                if (d->pci_domain == domain && d->pci_bus == bus && d->pci_device == slot) {
                        *dev = i;
                        return CUDA_OK;
                }
        }
        return CUDA_INVALID_DEVICE;
}

/* Numbers a program sizes itself by. What is not here is 0: "no such ability". */
CUDA_EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice dev);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice dev)
{
        CALL_BEGIN;
        const struct card_device *d = device_of(dev);
        if (!d)
                return CUDA_INVALID_DEVICE;
        if (!value || attribute <= 0 || attribute > 256)
                return CUDA_INVALID_VALUE;
        /* clang-format off */
        switch (attribute) {
        case 1: *value = 1024; break;                           /* threads per block */
        case 2: case 3: *value = 1024; break;
        case 4: *value = 64; break;
        case 5: *value = 2147483647; break;
        case 6: case 7: *value = 65535; break;
        case 8: *value = 49152; break;                          /* shared memory per block */
        case 9: *value = 65536; break;
        case 10: *value = 32; break;                            /* warp */
        case 11: *value = 2147483647; break;
        case 12: case 82: *value = 65536; break;                /* registers */
        case 13: *value = 1980000; break;                       /* clock, kHz */
        case 14: *value = 512; break;
        case 16: *value = 132; break;                           /* multiprocessors */
        case 20: *value = (int) d->settings.compute_mode; break;
        case 33: *value = (int) d->pci_bus; break;
        case 34: *value = (int) d->pci_device; break;
        case 36: *value = 2619000; break;
        case 37: *value = 5120; break;
        case 38: *value = 50 * 1024 * 1024; break;
        case 39: *value = 2048; break;
        case 50: *value = (int) d->pci_domain; break;
        case 75: *value = (int) d->cc_major; break;
        case 76: *value = (int) d->cc_minor; break;
        case 81: *value = 233472; break;
        case 97: *value = 232448; break;
        case 15: case 19: case 31: case 41: case 78: case 83: case 90: case 102: case 115: *value = 1; break;
        default: *value = 0;
        }
        /* clang-format on */
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
        CALL_BEGIN;
        if (!can)
                return CUDA_INVALID_VALUE;
        if (!device_of(dev) || !device_of(peer))
                return CUDA_INVALID_DEVICE;
        *can = dev != peer;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice dev);
CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice dev)
{
        (void) luid, (void) mask, (void) dev; /* Windows only; the real one says the same */
        CALL_BEGIN;
        return CUDA_NOT_SUPPORTED;
}
