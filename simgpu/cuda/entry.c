/* SPDX-License-Identifier: Apache-2.0 */
/* entry - the ways in: cuInit, versions, error names, cuGetProcAddress */

#include <string.h>
#include <unistd.h>

#include "card/abi.h"
#include "card/fault.h"
#include "cuda/state.h"
#include "cuda/stub.h"

/* clang-format off */
#define ERROR_NAMES(X) \
        X(0, "CUDA_SUCCESS", "no error") \
        X(1, "CUDA_ERROR_INVALID_VALUE", "invalid argument") \
        X(2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory") \
        X(3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error") \
        X(4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down") \
        X(34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library") \
        X(46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable") \
        X(100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected") \
        X(101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal") \
        X(201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context") \
        X(304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS") \
        X(400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle") \
        X(401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state") \
        X(500, "CUDA_ERROR_NOT_FOUND", "named symbol not found") \
        X(600, "CUDA_ERROR_NOT_READY", "device not ready") \
        X(708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process") \
        X(719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure") \
        X(800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted") \
        X(801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported") \
        X(802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized") \
        X(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination") \
        X(999, "CUDA_ERROR_UNKNOWN", "unknown error")
/* clang-format on */

static const struct {
        CUresult rc;
        const char *name, *text;
} errors[] = {
#define X(rc, name, text) { rc, name, text },
        ERROR_NAMES(X)
#undef X
};

static CUresult error_find(CUresult rc, const char **ret, bool name)
{
        if (!ret)
                return CUDA_INVALID_VALUE;
        *ret = NULL;
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
                if (errors[i].rc == rc)
                        *ret = name ? errors[i].name : errors[i].text;
        return *ret ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_EXPORT CUresult cuGetErrorName(CUresult rc, const char **ret);
CUresult cuGetErrorName(CUresult rc, const char **ret)
{
        return error_find(rc, ret, true);
}

CUDA_EXPORT CUresult cuGetErrorString(CUresult rc, const char **ret);
CUresult cuGetErrorString(CUresult rc, const char **ret)
{
        return error_find(rc, ret, false);
}

CUDA_EXPORT CUresult cuInit(unsigned flags);
CUresult cuInit(unsigned flags)
{
        return flags == 0 ? state_init() : CUDA_INVALID_VALUE;
}

static int driver_version(void)
{
        struct card *card = state_card();
        return card ? abi_of(card->file)->cuda_version : abi_table[CARD_ABI_NEW].cuda_version;
}

CUDA_EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version)
{
        if (!version)
                return CUDA_INVALID_VALUE;
        *version = driver_version();
        return CUDA_OK;
}

static bool is_missing(const char *name)
{
        struct card *card = state_card();
        return card && fault_hit(card, FAULT_MISSING_SYMBOL, -1, (uint32_t) getpid(), name, NULL);
}

static bool is_hidden(const char *symbol)
{
        struct card *card = state_card();
        return card && (abi_hides(card->file, symbol) || is_missing(symbol));
}

/* First row of a base name; the table is sorted. */
static size_t first_row(const char *base)
{
        size_t low = 0, high = n_cuda_names;
        while (low < high) {
                size_t mid = low + (high - low) / 2;
                if (strcmp(cuda_names[mid].base, base) < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

/* The newest variant that the asked version knew; flag 2 prefers the per-thread-stream one. */
static CUresult look_up(const char *base, void **pfn, int version, uint64_t flags, int *status)
{
        if (!base || !pfn || flags > 2)
                return CUDA_INVALID_VALUE;
        *pfn = NULL;
        if (version > driver_version())
                return CUDA_INVALID_VALUE;
        const struct cuda_name *best = NULL;
        bool is_known = false;
        size_t first = is_missing(base) ? n_cuda_names : first_row(base);
        for (size_t i = first; i < n_cuda_names && strcmp(cuda_names[i].base, base) == 0; i++) {
                const struct cuda_name *row = &cuda_names[i];
                if (is_hidden(row->symbol) || row->version > driver_version())
                        continue;
                is_known = true;
                if (row->version > version || (row->flags != 0 && flags != 2))
                        continue;
                if (!best || row->version > best->version ||
                    (row->version == best->version && row->flags > best->flags))
                        best = row;
        }
        if (best)
                memcpy(pfn, &best->function, sizeof *pfn);
        if (status)
                *status = best       ? CU_GET_PROC_ADDRESS_FOUND
                          : is_known ? CU_GET_PROC_ADDRESS_TOO_OLD
                                     : CU_GET_PROC_ADDRESS_NOT_FOUND;
        return CUDA_OK;
}

CUDA_EXPORT CUresult cuGetProcAddress_v2(const char *base, void **pfn, int version, uint64_t flags, int *status);
CUresult cuGetProcAddress_v2(const char *base, void **pfn, int version, uint64_t flags, int *status)
{
        return look_up(base, pfn, version, flags, status);
}

/* 11.3 to 11.8 had no status; a name that is not there is an error. */
CUDA_EXPORT CUresult cuGetProcAddress(const char *base, void **pfn, int version, uint64_t flags);
CUresult cuGetProcAddress(const char *base, void **pfn, int version, uint64_t flags)
{
        CUresult rc = look_up(base, pfn, version, flags, NULL);
        return rc == CUDA_OK && !*pfn ? CUDA_NOT_FOUND : rc;
}
