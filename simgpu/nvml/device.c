/* SPDX-License-Identifier: Apache-2.0 */
/* device - who a device is: names, addresses, and the plain facts that monitors print */

#include <stdio.h>
#include <string.h>

#include "nvml/state.h"

#define BRAND_NVIDIA 14
#define PCI_DEVICE_ID 0x233010deu /* an H100: nothing here tells parts apart, but tools look it up */

NVML(nvmlDeviceGetName, (nvmlDevice_t handle, char *name, unsigned size))
{
        DEVICE_BEGIN(handle);
        return nvml_text(name, size, dev->name);
}

NVML(nvmlDeviceGetUUID, (nvmlDevice_t handle, char *uuid, unsigned size))
{
        DEVICE_BEGIN(handle);
        return nvml_text(uuid, size, dev->uuid);
}

NVML(nvmlDeviceGetSerial, (nvmlDevice_t handle, char *serial, unsigned size))
{
        DEVICE_BEGIN(handle);
        char text[32];
        snprintf(text, sizeof text, "%013u", 1560000000u + index);
        return nvml_text(serial, size, text);
}

NVML(nvmlDeviceGetVbiosVersion, (nvmlDevice_t handle, char *version, unsigned size))
{
        DEVICE_BEGIN(handle);
        return nvml_text(version, size, "96.00.74.00.01");
}

NVML(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t handle, int *major, int *minor))
{
        DEVICE_BEGIN(handle);
        if (!major || !minor)
                return NVML_INVALID_ARGUMENT;
        *major = (int) dev->cc_major;
        *minor = (int) dev->cc_minor;
        return NVML_OK;
}

static nvmlReturn_t pci_info(const struct card_device *dev, nvmlPciInfo_t *pci)
{
        if (!pci)
                return NVML_INVALID_ARGUMENT;
        *pci = (nvmlPciInfo_t){ .domain = dev->pci_domain,
                                .bus = dev->pci_bus,
                                .device = dev->pci_device,
                                .pci_device_id = PCI_DEVICE_ID,
                                .pci_subsystem_id = 0x16c110de };
        snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0", dev->pci_domain & 0xffff,
                 dev->pci_bus & 0xff, dev->pci_device & 0x1f);
        snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", dev->pci_domain, dev->pci_bus & 0xff,
                 dev->pci_device & 0x1f);
        return NVML_OK;
}

NVML(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t handle, nvmlPciInfo_t *pci))
{
        DEVICE_BEGIN(handle);
        return pci_info(dev, pci);
}

/* The old ones end before busId: 16 + 4 * 4 bytes, and _v2 adds the subsystem. */
static nvmlReturn_t pci_info_old(const struct card_device *dev, void *pci, size_t size)
{
        nvmlPciInfo_t whole;
        nvmlReturn_t rc = pci_info(dev, &whole);
        if (!pci)
                return NVML_INVALID_ARGUMENT;
        memcpy(pci, &whole, size);
        return rc;
}

NVML(nvmlDeviceGetPciInfo, (nvmlDevice_t handle, void *pci))
{
        DEVICE_BEGIN(handle);
        return pci_info_old(dev, pci, offsetof(nvmlPciInfo_t, pci_subsystem_id));
}

NVML(nvmlDeviceGetPciInfo_v2, (nvmlDevice_t handle, void *pci))
{
        DEVICE_BEGIN(handle);
        return pci_info_old(dev, pci, offsetof(nvmlPciInfo_t, bus_id));
}

NVML(nvmlDeviceGetPciInfoExt, (nvmlDevice_t handle, nvmlPciInfoExt_t *pci))
{
        DEVICE_BEGIN(handle);
        if (!pci)
                return NVML_INVALID_ARGUMENT;
        if (pci->version != VERSION_WORD(nvmlPciInfoExt_t, 1))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        nvmlPciInfo_t whole;
        (void) pci_info(dev, &whole);
        pci->domain = whole.domain;
        pci->bus = whole.bus;
        pci->device = whole.device;
        pci->pci_device_id = whole.pci_device_id;
        pci->pci_subsystem_id = whole.pci_subsystem_id;
        pci->base_class = 3;
        pci->sub_class = 2;
        memcpy(pci->bus_id, whole.bus_id, sizeof pci->bus_id);
        return NVML_OK;
}

/* One number of a device per line: name and the number. */
#define NUMBER(symbol, number)                                                                                         \
        NVML(symbol, (nvmlDevice_t handle, unsigned *ret))                                                             \
        {                                                                                                              \
                DEVICE_BEGIN(handle);                                                                                  \
                if (!ret)                                                                                              \
                        return NVML_INVALID_ARGUMENT;                                                                  \
                *ret = (unsigned) (number);                                                                            \
                return NVML_OK;                                                                                        \
        }

/* clang-format off */
NUMBER(nvmlDeviceGetIndex, index)
NUMBER(nvmlDeviceGetMinorNumber, dev->minor)
NUMBER(nvmlDeviceGetBrand, BRAND_NVIDIA)
NUMBER(nvmlDeviceGetArchitecture, dev->cc_major >= 10 ? 10 : dev->cc_major == 9 ? 9 : dev->cc_major == 8 && dev->cc_minor == 9 ? 8 : dev->cc_major == 8 ? 7 : 0)
NUMBER(nvmlDeviceGetBoardId, dev->pci_bus << 8)
NUMBER(nvmlDeviceGetMultiGpuBoard, 0)
NUMBER(nvmlDeviceGetDisplayMode, 0)
NUMBER(nvmlDeviceGetDisplayActive, 0)
NUMBER(nvmlDeviceGetNumGpuCores, 16896)
NUMBER(nvmlDeviceGetMemoryBusWidth, 5120)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, 0)
NUMBER(nvmlDeviceGetVirtualizationMode, 0)
/* clang-format on */

NVML(nvmlDeviceGetPcieThroughput, (nvmlDevice_t handle, int counter, unsigned *kb_per_s))
{
        DEVICE_BEGIN(handle);
        if (!kb_per_s || counter < 0 || counter > 1)
                return NVML_INVALID_ARGUMENT;
        *kb_per_s = 0;
        return NVML_OK;
}

/* No instances, no ECC, no fabric, no NUMA node of its own: the same answers as a part that lacks them. */
#define LACKS(symbol, args)                                                                                            \
        NVML(symbol, args)                                                                                             \
        {                                                                                                              \
                DEVICE_BEGIN(handle);                                                                                  \
                return NVML_NOT_SUPPORTED;                                                                             \
        }
#define UNUSED __attribute__((unused))

/* clang-format off */
LACKS(nvmlDeviceGetMigMode, (nvmlDevice_t handle, unsigned *current UNUSED, unsigned *pending UNUSED))
LACKS(nvmlDeviceSetMigMode, (nvmlDevice_t handle, unsigned mode UNUSED, nvmlReturn_t *activation UNUSED))
LACKS(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t handle, unsigned i UNUSED, nvmlDevice_t *ret UNUSED))
LACKS(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (nvmlDevice_t handle, nvmlDevice_t *ret UNUSED))
LACKS(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t handle, unsigned *id UNUSED))
LACKS(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t handle, unsigned *id UNUSED))
LACKS(nvmlDeviceGetAttributes_v2, (nvmlDevice_t handle, void *attributes UNUSED))
LACKS(nvmlDeviceGetEccMode, (nvmlDevice_t handle, unsigned *current UNUSED, unsigned *pending UNUSED))
LACKS(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t handle, int type UNUSED, int counter UNUSED, uint64_t *n UNUSED))
LACKS(nvmlDeviceGetMemoryErrorCounter, (nvmlDevice_t handle, int type UNUSED, int counter UNUSED, int where UNUSED, uint64_t *n UNUSED))
LACKS(nvmlDeviceGetDriverModel, (nvmlDevice_t handle, int *current UNUSED, int *pending UNUSED))
LACKS(nvmlDeviceGetDriverModel_v2, (nvmlDevice_t handle, int *current UNUSED, int *pending UNUSED))
LACKS(nvmlDeviceGetNumaNodeId, (nvmlDevice_t handle, unsigned *node UNUSED))
LACKS(nvmlDeviceGetRemappedRows, (nvmlDevice_t handle, unsigned *a UNUSED, unsigned *b UNUSED, unsigned *c UNUSED, unsigned *d UNUSED))
/* clang-format on */
