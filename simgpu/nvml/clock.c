/* SPDX-License-Identifier: Apache-2.0 */
/* clock - clocks, power, temperature, modes: settings that are kept, figures that are made up but steady */

#include "nvml/state.h"

#define GRAPHICS_MAX_MHZ 1980u
#define MEMORY_MAX_MHZ 2619u
#define IDLE_MHZ 345u
#define POWER_MIN_MW 200000u
#define POWER_MAX_MW 700000u
#define LIMIT_TDP 0xffffff01u
#define LIMIT_UNLIMITED 0xffffff02u

static const unsigned memory_clocks[] = { 2619, 1593 };
static const unsigned graphics_clocks[] = { 1980, 1755, 1500, 1200, 900, 600, 345 };

enum clock_type { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEM, CLOCK_VIDEO, CLOCK_TYPE_N };

static nvmlReturn_t clock_max(unsigned type, unsigned *mhz)
{
        if (!mhz || type >= CLOCK_TYPE_N)
                return NVML_INVALID_ARGUMENT;
        *mhz = type == CLOCK_MEM ? MEMORY_MAX_MHZ : GRAPHICS_MAX_MHZ;
        return NVML_OK;
}

/* There is no getter for a lock; the clock itself shows it: an idle card runs at the lock's lower end. */
static nvmlReturn_t clock_now(const struct card_device *dev, unsigned type, unsigned *mhz)
{
        if (!mhz || type >= CLOCK_TYPE_N)
                return NVML_INVALID_ARGUMENT;
        const struct card_settings *s = &dev->settings;
        if (type == CLOCK_MEM)
                *mhz = s->mem_lock_max_mhz ? s->mem_lock_max_mhz : MEMORY_MAX_MHZ;
        else
                *mhz = s->gpu_lock_min_mhz ? s->gpu_lock_min_mhz : IDLE_MHZ;
        return NVML_OK;
}

NVML(nvmlDeviceGetClockInfo, (nvmlDevice_t handle, unsigned type, unsigned *mhz))
{
        DEVICE_BEGIN(handle);
        return clock_now(dev, type, mhz);
}

NVML(nvmlDeviceGetClock, (nvmlDevice_t handle, unsigned type, unsigned id, unsigned *mhz))
{
        DEVICE_BEGIN(handle);
        return id == 0 ? clock_now(dev, type, mhz) : id == 3 ? clock_max(type, mhz) : NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t handle, unsigned type, unsigned *mhz))
{
        DEVICE_BEGIN(handle);
        return clock_max(type, mhz);
}

static nvmlReturn_t clocks_out(const unsigned *from, unsigned have, unsigned *n, unsigned *to)
{
        if (!n)
                return NVML_INVALID_ARGUMENT;
        unsigned room = *n;
        *n = have;
        if (room < have || !to)
                return NVML_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < have; i++)
                to[i] = from[i];
        return NVML_OK;
}

NVML(nvmlDeviceGetSupportedMemoryClocks, (nvmlDevice_t handle, unsigned *n, unsigned *mhz))
{
        DEVICE_BEGIN(handle);
        return clocks_out(memory_clocks, sizeof memory_clocks / sizeof *memory_clocks, n, mhz);
}

NVML(nvmlDeviceGetSupportedGraphicsClocks, (nvmlDevice_t handle, unsigned memory_mhz, unsigned *n, unsigned *mhz))
{
        DEVICE_BEGIN(handle);
        if (memory_mhz != memory_clocks[0] && memory_mhz != memory_clocks[1])
                return NVML_NOT_FOUND;
        return clocks_out(graphics_clocks, sizeof graphics_clocks / sizeof *graphics_clocks, n, mhz);
}

NVML(nvmlDeviceSetGpuLockedClocks, (nvmlDevice_t handle, unsigned min_mhz, unsigned max_mhz))
{
        DEVICE_BEGIN(handle);
        bool symbolic = min_mhz >= LIMIT_TDP, both = symbolic && max_mhz >= LIMIT_TDP;
        if (symbolic != (max_mhz >= LIMIT_TDP) || min_mhz > LIMIT_UNLIMITED || max_mhz > LIMIT_UNLIMITED)
                return NVML_INVALID_ARGUMENT;
        if (!symbolic && (min_mhz > max_mhz || max_mhz == 0 || max_mhz > GRAPHICS_MAX_MHZ))
                return NVML_INVALID_ARGUMENT;
        dev->settings.gpu_lock_min_mhz = both ? IDLE_MHZ : min_mhz;
        dev->settings.gpu_lock_max_mhz = both ? GRAPHICS_MAX_MHZ : max_mhz;
        return NVML_OK;
}

NVML(nvmlDeviceResetGpuLockedClocks, (nvmlDevice_t handle))
{
        DEVICE_BEGIN(handle);
        dev->settings.gpu_lock_min_mhz = dev->settings.gpu_lock_max_mhz = 0;
        return NVML_OK;
}

NVML(nvmlDeviceSetMemoryLockedClocks, (nvmlDevice_t handle, unsigned min_mhz, unsigned max_mhz))
{
        DEVICE_BEGIN(handle);
        if (min_mhz > max_mhz || max_mhz == 0 || max_mhz > MEMORY_MAX_MHZ)
                return NVML_INVALID_ARGUMENT;
        dev->settings.mem_lock_min_mhz = min_mhz;
        dev->settings.mem_lock_max_mhz = max_mhz;
        return NVML_OK;
}

NVML(nvmlDeviceResetMemoryLockedClocks, (nvmlDevice_t handle))
{
        DEVICE_BEGIN(handle);
        dev->settings.mem_lock_min_mhz = dev->settings.mem_lock_max_mhz = 0;
        return NVML_OK;
}

static int32_t *offset_of(struct card_device *dev, const nvmlClockOffset_t *offset)
{
        return offset->type == CLOCK_GRAPHICS ? &dev->settings.gpu_offset_mhz
               : offset->type == CLOCK_MEM    ? &dev->settings.mem_offset_mhz
                                              : NULL;
}

static nvmlReturn_t offset_check(struct card_device *dev, const nvmlClockOffset_t *offset)
{
        if (!offset)
                return NVML_INVALID_ARGUMENT;
        if (offset->version != VERSION_WORD(nvmlClockOffset_t, 1))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        return offset_of(dev, offset) && offset->pstate <= 15 ? NVML_OK : NVML_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetClockOffsets, (nvmlDevice_t handle, nvmlClockOffset_t *offset))
{
        DEVICE_BEGIN(handle);
        nvmlReturn_t rc = offset_check(dev, offset);
        if (rc == NVML_OK) {
                offset->offset_mhz = *offset_of(dev, offset);
                offset->min_mhz = -1000;
                offset->max_mhz = 1000;
        }
        return rc;
}

NVML(nvmlDeviceSetClockOffsets, (nvmlDevice_t handle, nvmlClockOffset_t *offset))
{
        DEVICE_BEGIN(handle);
        nvmlReturn_t rc = offset_check(dev, offset);
        if (rc == NVML_OK && (offset->offset_mhz < -1000 || offset->offset_mhz > 1000))
                rc = NVML_INVALID_ARGUMENT;
        if (rc == NVML_OK)
                *offset_of(dev, offset) = offset->offset_mhz;
        return rc;
}

static nvmlReturn_t reasons(uint64_t *ret, uint64_t value)
{
        if (!ret)
                return NVML_INVALID_ARGUMENT;
        *ret = value;
        return NVML_OK;
}

#define REASONS(symbol, value)                                                                                         \
        NVML(symbol, (nvmlDevice_t handle, uint64_t * ret))                                                            \
        {                                                                                                              \
                DEVICE_BEGIN(handle);                                                                                  \
                return reasons(ret, value);                                                                            \
        }
/* clang-format off */
REASONS(nvmlDeviceGetCurrentClocksEventReasons, 1)              /* idle */
REASONS(nvmlDeviceGetCurrentClocksThrottleReasons, 1)
REASONS(nvmlDeviceGetSupportedClocksEventReasons, 0x1ff)
REASONS(nvmlDeviceGetSupportedClocksThrottleReasons, 0x1ff)
REASONS(nvmlDeviceGetTotalEnergyConsumption, (card_now_ns() / 1000000) * 75)
/* clang-format on */

static uint32_t limit_of(const struct card_device *dev)
{
        return dev->settings.power_limit_mw ? dev->settings.power_limit_mw : POWER_MAX_MW;
}

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
NUMBER(nvmlDeviceGetPowerUsage, 75000)
NUMBER(nvmlDeviceGetPowerManagementLimit, limit_of(dev))
NUMBER(nvmlDeviceGetEnforcedPowerLimit, limit_of(dev))
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, POWER_MAX_MW)
NUMBER(nvmlDeviceGetPowerManagementMode, 1)
NUMBER(nvmlDeviceGetPerformanceState, 0)
NUMBER(nvmlDeviceGetPowerState, 0)
NUMBER(nvmlDeviceGetPersistenceMode, dev->persistence)
NUMBER(nvmlDeviceGetComputeMode, dev->settings.compute_mode)
/* clang-format on */

NVML(nvmlDeviceGetPowerManagementLimitConstraints, (nvmlDevice_t handle, unsigned *min_mw, unsigned *max_mw))
{
        DEVICE_BEGIN(handle);
        if (!min_mw || !max_mw)
                return NVML_INVALID_ARGUMENT;
        *min_mw = POWER_MIN_MW;
        *max_mw = POWER_MAX_MW;
        return NVML_OK;
}

static nvmlReturn_t limit_set(struct card_device *dev, unsigned mw)
{
        if (mw < POWER_MIN_MW || mw > POWER_MAX_MW)
                return NVML_INVALID_ARGUMENT;
        dev->settings.power_limit_mw = mw == POWER_MAX_MW ? 0 : mw;
        return NVML_OK;
}

NVML(nvmlDeviceSetPowerManagementLimit, (nvmlDevice_t handle, unsigned mw))
{
        DEVICE_BEGIN(handle);
        return limit_set(dev, mw);
}

NVML(nvmlDeviceSetPowerManagementLimit_v2, (nvmlDevice_t handle, nvmlPowerValue_t *value))
{
        DEVICE_BEGIN(handle);
        if (!value)
                return NVML_INVALID_ARGUMENT;
        if (value->version != VERSION_WORD(nvmlPowerValue_t, 2))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        return value->scope == 0 ? limit_set(dev, value->mw) : NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceSetPersistenceMode, (nvmlDevice_t handle, unsigned mode))
{
        DEVICE_BEGIN(handle);
        if (mode > 1)
                return NVML_INVALID_ARGUMENT;
        dev->persistence = mode;
        return NVML_OK;
}

NVML(nvmlDeviceSetComputeMode, (nvmlDevice_t handle, unsigned mode))
{
        DEVICE_BEGIN(handle);
        if (mode > 3)
                return NVML_INVALID_ARGUMENT;
        if (mode == 1)
                return NVML_NOT_SUPPORTED; /* exclusive thread: gone since long */
        dev->settings.compute_mode = mode;
        return NVML_OK;
}

NVML(nvmlDeviceGetTemperature, (nvmlDevice_t handle, unsigned sensor, unsigned *celsius))
{
        DEVICE_BEGIN(handle);
        if (!celsius || sensor != 0)
                return NVML_INVALID_ARGUMENT;
        *celsius = 40;
        return NVML_OK;
}

NVML(nvmlDeviceGetTemperatureV, (nvmlDevice_t handle, nvmlTemperature_t *temperature))
{
        DEVICE_BEGIN(handle);
        if (!temperature)
                return NVML_INVALID_ARGUMENT;
        if (temperature->version != VERSION_WORD(nvmlTemperature_t, 1))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        if (temperature->sensor != 0)
                return NVML_INVALID_ARGUMENT;
        temperature->celsius = 40;
        return NVML_OK;
}

NVML(nvmlDeviceGetMarginTemperature, (nvmlDevice_t handle, nvmlMarginTemperature_t *margin))
{
        DEVICE_BEGIN(handle);
        if (!margin)
                return NVML_INVALID_ARGUMENT;
        if (margin->version != VERSION_WORD(nvmlMarginTemperature_t, 1))
                return NVML_ARGUMENT_VERSION_MISMATCH;
        margin->celsius = 47;
        return NVML_OK;
}

NVML(nvmlDeviceGetTemperatureThreshold, (nvmlDevice_t handle, unsigned which, unsigned *celsius))
{
        DEVICE_BEGIN(handle);
        static const unsigned at[] = { 92, 87, 95, 87 }; /* shutdown, slowdown, memory, GPU */
        if (!celsius || which > 7)
                return NVML_INVALID_ARGUMENT;
        if (which > 3)
                return NVML_NOT_SUPPORTED;
        *celsius = at[which];
        return NVML_OK;
}

/* A passive board. */
#define UNUSED __attribute__((unused))
#define LACKS(symbol, args)                                                                                            \
        NVML(symbol, args)                                                                                             \
        {                                                                                                              \
                DEVICE_BEGIN(handle);                                                                                  \
                return NVML_NOT_SUPPORTED;                                                                             \
        }
/* clang-format off */
LACKS(nvmlDeviceGetFanSpeed, (nvmlDevice_t handle, unsigned *percent UNUSED))
LACKS(nvmlDeviceGetFanSpeed_v2, (nvmlDevice_t handle, unsigned fan UNUSED, unsigned *percent UNUSED))
LACKS(nvmlDeviceSetFanSpeed_v2, (nvmlDevice_t handle, unsigned fan UNUSED, unsigned percent UNUSED))
LACKS(nvmlDeviceSetDefaultFanSpeed_v2, (nvmlDevice_t handle, unsigned fan UNUSED))
LACKS(nvmlDeviceSetFanControlPolicy, (nvmlDevice_t handle, unsigned fan UNUSED, unsigned policy UNUSED))
LACKS(nvmlDeviceGetFanControlPolicy_v2, (nvmlDevice_t handle, unsigned fan UNUSED, unsigned *policy UNUSED))
LACKS(nvmlDeviceGetMinMaxFanSpeed, (nvmlDevice_t handle, unsigned *min UNUSED, unsigned *max UNUSED))
NUMBER(nvmlDeviceGetNumFans, 0)
LACKS(nvmlDeviceGetApplicationsClock, (nvmlDevice_t handle, unsigned type UNUSED, unsigned *mhz UNUSED))
LACKS(nvmlDeviceGetDefaultApplicationsClock, (nvmlDevice_t handle, unsigned type UNUSED, unsigned *mhz UNUSED))
LACKS(nvmlDeviceSetApplicationsClocks, (nvmlDevice_t handle, unsigned memory UNUSED, unsigned graphics UNUSED))
LACKS(nvmlDeviceResetApplicationsClocks, (nvmlDevice_t handle))
/* clang-format on */
