/* SPDX-License-Identifier: Apache-2.0 */
/* system - versions, names of errors and processes, and the ways to a handle */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "card/abi.h"
#include "nvml/state.h"

static const char *const error_texts[] = {
        [0] = "Success",
        [1] = "Uninitialized",
        [2] = "Invalid Argument",
        [3] = "Not Supported",
        [4] = "Insufficient Permissions",
        [5] = "Already Initialized",
        [6] = "Not Found",
        [7] = "Insufficient Size",
        [8] = "Insufficient External Power",
        [9] = "Driver Not Loaded",
        [10] = "Timeout",
        [11] = "Interrupt Request Issue",
        [12] = "NVML Shared Library Not Found",
        [13] = "Function Not Found",
        [14] = "Corrupted infoROM",
        [15] = "GPU is lost",
        [16] = "GPU requires restart",
        [17] = "The operating system has blocked the request.",
        [18] = "RM has detected an NVML/RM version mismatch.",
        [19] = "In use by another client",
        [20] = "Insufficient Memory",
        [21] = "No data",
        [22] = "ECC mode is enabled",
        [23] = "Insufficient Resources",
        [24] = "Frequency Not Supported",
        [25] = "Argument Version Mismatch",
        [26] = "Deprecated",
        [27] = "Not Ready",
        [28] = "GPU Not Found",
        [29] = "Invalid State",
        [30] = "Reset Type Not Supported",
};

NVML_EXPORT const char *nvmlErrorString(nvmlReturn_t rc);
const char *nvmlErrorString(nvmlReturn_t rc)
{
        if (rc >= 0 && (size_t) rc < sizeof error_texts / sizeof *error_texts && error_texts[rc])
                return error_texts[rc];
        return "Unknown Error";
}

#define SYSTEM_BEGIN                                                                                                   \
        nvmlReturn_t enter_rc_ = nvml_enter(__func__, -1);                                                             \
        if (enter_rc_ != NVML_OK)                                                                                      \
        return enter_rc_

NVML(nvmlSystemGetDriverVersion, (char *version, unsigned size))
{
        SYSTEM_BEGIN;
        return nvml_text(version, size, abi_of(nvml.card.file)->driver);
}

NVML(nvmlSystemGetNVMLVersion, (char *version, unsigned size))
{
        SYSTEM_BEGIN;
        char text[64];
        snprintf(text, sizeof text, "%d.%s", abi_of(nvml.card.file)->cuda_version / 1000,
                 abi_of(nvml.card.file)->driver);
        return nvml_text(version, size, text);
}

static nvmlReturn_t cuda_version(int *version)
{
        if (!version)
                return NVML_INVALID_ARGUMENT;
        *version = abi_of(nvml.card.file)->cuda_version;
        return NVML_OK;
}

NVML(nvmlSystemGetCudaDriverVersion, (int *version))
{
        SYSTEM_BEGIN;
        return cuda_version(version);
}

NVML(nvmlSystemGetCudaDriverVersion_v2, (int *version))
{
        SYSTEM_BEGIN;
        return cuda_version(version);
}

NVML(nvmlSystemGetProcessName, (unsigned pid, char *name, unsigned size))
{
        SYSTEM_BEGIN;
        char path[64], text[1024] = "";
        if (!name || size == 0)
                return NVML_INVALID_ARGUMENT;
        snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
        FILE *f = fopen(path, "re");
        if (!f)
                return NVML_NOT_FOUND;
        size_t n = fread(text, 1, sizeof text - 1, f);
        (void) fclose(f);
        text[n] = 0;                      /* the first argument ends at its NUL: the program as it was called */
        snprintf(name, size, "%s", text); /* cut short, like the real one, which refuses nothing here */
        return NVML_OK;
}

static nvmlReturn_t count(unsigned *n)
{
        if (!n)
                return NVML_INVALID_ARGUMENT;
        *n = nvml.card.n_devices;
        return NVML_OK;
}

NVML(nvmlDeviceGetCount, (unsigned *n))
{
        SYSTEM_BEGIN;
        return count(n);
}

NVML(nvmlDeviceGetCount_v2, (unsigned *n))
{
        SYSTEM_BEGIN;
        return count(n);
}

NVML(nvmlUnitGetCount, (unsigned *n))
{
        SYSTEM_BEGIN;
        if (!n)
                return NVML_INVALID_ARGUMENT;
        *n = 0; /* S-class units */
        return NVML_OK;
}

static nvmlReturn_t by_index(const char *symbol, unsigned index, nvmlDevice_t *ret)
{
        nvmlReturn_t rc = nvml_enter(symbol, index < CARD_DEVICES_MAX ? (int32_t) index : -1);
        if (rc != NVML_OK)
                return rc;
        if (!ret || index >= nvml.card.n_devices)
                return NVML_INVALID_ARGUMENT;
        *ret = &nvml.handle[index];
        return NVML_OK;
}

NVML(nvmlDeviceGetHandleByIndex, (unsigned index, nvmlDevice_t *ret))
{
        return by_index(__func__, index, ret);
}

NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned index, nvmlDevice_t *ret))
{
        return by_index(__func__, index, ret);
}

NVML(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *ret))
{
        if (uuid && ret)
                for (uint32_t i = 0; nvml.card.file && i < nvml.card.n_devices; i++)
                        if (strcasecmp(uuid, nvml.card.file->device[i].uuid) == 0)
                                return by_index(__func__, i, ret);
        SYSTEM_BEGIN;
        return uuid && ret ? NVML_NOT_FOUND : NVML_INVALID_ARGUMENT;
}

static nvmlReturn_t by_bus_id(const char *symbol, const char *id, nvmlDevice_t *ret)
{
        unsigned domain = 0, bus = 0, slot = 0;
        bool ok = id && ret && nvml.card.file;
        if (ok && sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
                domain = 0;
                ok = sscanf(id, "%x:%x", &bus, &slot) == 2;
        }
        for (uint32_t i = 0; ok && i < nvml.card.n_devices; i++) {
                const struct card_device *d = &nvml.card.file->device[i];
                if (d->pci_domain == domain && d->pci_bus == bus && d->pci_device == slot)
                        return by_index(symbol, i, ret);
        }
        nvmlReturn_t rc = nvml_enter(symbol, -1);
        return rc != NVML_OK ? rc : ok ? NVML_NOT_FOUND : NVML_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetHandleByPciBusId, (const char *id, nvmlDevice_t *ret))
{
        return by_bus_id(__func__, id, ret);
}

NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, nvmlDevice_t *ret))
{
        return by_bus_id(__func__, id, ret);
}
