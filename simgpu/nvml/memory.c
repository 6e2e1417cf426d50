/* SPDX-License-Identifier: Apache-2.0 */
/* memory - the device's figures */

#include "card/fault.h"
#include "card/memory.h"
#include "nvml/state.h"

static nvmlReturn_t used_bytes(uint32_t index, uint64_t *ret)
{
        if (fault_hit(&nvml.card, FAULT_NO_MEMORY_INFO, (int32_t) index, 0, NULL, NULL))
                return NVML_NOT_SUPPORTED;
        return memory_reading(&nvml.card, index, ret) < 0 ? NVML_UNKNOWN : NVML_OK;
}

NVML(nvmlDeviceGetMemoryInfo, (nvmlDevice_t handle, nvmlMemory_t *memory))
{
        DEVICE_BEGIN(handle);
        uint64_t used;
        if (!memory)
                return NVML_INVALID_ARGUMENT;
        nvmlReturn_t rc = used_bytes(index, &used);
        if (rc == NVML_OK)
                *memory = (nvmlMemory_t){ .total = dev->total_bytes, .free = dev->total_bytes - used, .used = used };
        return rc;
}

NVML(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t handle, nvmlMemory_v2_t *memory))
{
        DEVICE_BEGIN(handle);
        uint64_t used;
        if (!memory)
                return NVML_INVALID_ARGUMENT;
        if (memory->version != VERSION_WORD(nvmlMemory_v2_t, 2))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        nvmlReturn_t rc = used_bytes(index, &used);
        if (rc == NVML_OK) {
                uint64_t reserved = dev->driver_reserve_bytes < used ? dev->driver_reserve_bytes : used;
                memory->total = dev->total_bytes;
                memory->reserved = reserved;
                memory->free = dev->total_bytes - used;
                memory->used = used - reserved; /* total = reserved + used + free, as nvidia-smi shows it */
        }
        return rc;
}

NVML(nvmlDeviceGetBAR1MemoryInfo, (nvmlDevice_t handle, nvmlBAR1Memory_t *memory))
{
        DEVICE_BEGIN(handle);
        if (!memory)
                return NVML_INVALID_ARGUMENT;
        *memory = (nvmlBAR1Memory_t){ .total = 256u << 20, .free = 255u << 20, .used = 1u << 20 };
        return NVML_OK;
}
