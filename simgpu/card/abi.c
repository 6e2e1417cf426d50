/* SPDX-License-Identifier: Apache-2.0 */
#include "card/abi.h"

#include <fnmatch.h>

/* cuGetProcAddress stays even where the real driver lacked it: without it no client of today could start at all. */
static const char *const hidden_r535[] = {
        "cuCheckpoint*",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetHandleByUUIDV",
        "nvmlDeviceGetNumaNodeId",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetClockOffsets",
        "nvmlDeviceSetClockOffsets",
        "nvmlSystemEventSet*",
        "*_v4",
        NULL,
};
static const char *const hidden_old[] = {
        "cuCheckpoint*",
        "nvmlDeviceGet*RunningProcesses_v2",
        "nvmlDeviceGet*RunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetRunningProcessDetailList",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetHandleByUUIDV",
        "nvmlDeviceGetNumaNodeId",
        "nvmlDeviceGetAttributes_v2",
        "nvmlDeviceGetClockOffsets",
        "nvmlDeviceSetClockOffsets",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceSetPowerManagementLimit_v2",
        "nvmlDevice*MemoryLockedClocks",
        "nvmlDeviceGetNumFans",
        "nvmlDeviceGetMinMaxFanSpeed",
        "nvmlDeviceSetFanControlPolicy",
        "nvmlDeviceGetMarginTemperature",
        "nvmlSystemEventSet*",
        NULL,
};
static const char *const hidden_new[] = { NULL };

const struct abi abi_table[CARD_ABI_N] = {
        [CARD_ABI_NEW] = { "new", "580.95.05", 13000, hidden_new, "R580: all three process lists, checkpoint API" },
        [CARD_ABI_R535] = { "r535", "535.54.03", 12020, hidden_r535,
                            "R535.54: _v3 lists with 32-byte entries, no checkpoint API" },
        [CARD_ABI_OLD] = { "old", "450.80.02", 11000, hidden_old,
                           "R450: unsuffixed process lists only, no v2 memory, no checkpoint API" },
};

const struct abi *abi_of(const struct card_file *file)
{
        return &abi_table[file->abi < CARD_ABI_N ? file->abi : CARD_ABI_NEW];
}

bool abi_hides(const struct card_file *file, const char *symbol)
{
        for (const char *const *p = abi_of(file)->hidden; *p; p++)
                if (fnmatch(*p, symbol, 0) == 0)
                        return true;
        for (uint32_t i = 0; i < file->n_hidden && i < CARD_HIDDEN_MAX; i++)
                if (fnmatch(file->hidden[i], symbol, 0) == 0)
                        return true;
        return false;
}
