/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/fault.h"
#include "card/proc.h"

struct nvml_state nvml;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned init_count; /* under lock */
static atomic_bool is_ready;
static dev_t card_dev;
static ino_t card_ino;

/*
 * The mapping outlives nvmlShutdown: a call that hangs in another thread must not lose the ground under it. A new
 * mapping is made only when SIMGPU names another file by now.
 */
static nvmlReturn_t open_card(void)
{
        const char *path = getenv("SIMGPU");
        struct stat st = { 0 };
        bool is_same = path && stat(path, &st) == 0 && nvml.card.file && st.st_dev == card_dev && st.st_ino == card_ino;
        if (is_same)
                return NVML_OK;
        struct card fresh;
        char err[256];
        int r = card_open(&fresh, NULL, err, sizeof err);
        if (r < 0) {
                if (path)
                        fprintf(stderr, "simgpu: %s\n", err);
                return path && *path && access(path, F_OK) == 0 ? NVML_UNKNOWN : NVML_DRIVER_NOT_LOADED;
        }
        nvml.card = fresh;
        card_dev = st.st_dev;
        card_ino = st.st_ino;
        for (uint32_t i = 0; i < CARD_DEVICES_MAX; i++)
                nvml.handle[i].index = i;
        return NVML_OK;
}

/* The faults that any call may meet. */
static nvmlReturn_t meet_faults(const char *symbol, int32_t device)
{
        struct card *card = &nvml.card;
        struct card_fault fault;
        uint32_t pid = (uint32_t) getpid();
        if (atomic_load(&card->file->n_faults) == 0)
                return NVML_OK;
        if (fault_hit(card, FAULT_MISSING_SYMBOL, -1, pid, symbol, NULL))
                return NVML_FUNCTION_NOT_FOUND;
        if (fault_hit(card, FAULT_NVML_HANG, device, pid, symbol, &fault))
                fault_wait(card, fault.serial, (uint64_t) fault.a);
        if (fault_hit(card, FAULT_NVML_CRASH, device, pid, symbol, NULL))
                abort();
        if (fault_hit(card, FAULT_NVML_ERROR, device, pid, symbol, &fault))
                return (nvmlReturn_t) fault.a;
        if (device >= 0 && fault_hit(card, FAULT_LOST, device, pid, NULL, NULL))
                return NVML_GPU_IS_LOST;
        return NVML_OK;
}

static nvmlReturn_t initialise(const char *symbol)
{
        (void) pthread_mutex_lock(&lock);
        nvmlReturn_t rc = open_card();
        (void) pthread_mutex_unlock(&lock);
        if (rc == NVML_OK)
                rc = meet_faults(symbol, -1); /* outside the lock: it may hang */
        if (rc != NVML_OK)
                return rc;
        (void) pthread_mutex_lock(&lock);
        if (init_count++ == 0)
                viewer_enter(&nvml.card);
        atomic_store(&is_ready, true);
        (void) pthread_mutex_unlock(&lock);
        return NVML_OK;
}

NVML(nvmlInit, (void) )
{
        return initialise(__func__);
}

NVML(nvmlInit_v2, (void) )
{
        return initialise(__func__);
}

NVML(nvmlInitWithFlags, (unsigned flags))
{
        (void) flags; /* no GPUs, no attach: nothing here takes long enough to be left out */
        return initialise(__func__);
}

NVML(nvmlShutdown, (void) )
{
        (void) pthread_mutex_lock(&lock);
        nvmlReturn_t rc = nvml.card.file ? NVML_OK : NVML_UNINITIALIZED;
        if (init_count > 0 && --init_count == 0) {
                atomic_store(&is_ready, false);
                viewer_leave(&nvml.card);
        }
        (void) pthread_mutex_unlock(&lock);
        return rc;
}

nvmlReturn_t nvml_enter(const char *symbol, int32_t device)
{
        return atomic_load(&is_ready) ? meet_faults(symbol, device) : NVML_UNINITIALIZED;
}

nvmlReturn_t nvml_enter_device(const char *symbol, nvmlDevice_t handle, uint32_t *ret_index,
                               struct card_device **ret_dev)
{
        if (!atomic_load(&is_ready))
                return NVML_UNINITIALIZED;
        if (handle < nvml.handle || handle >= nvml.handle + nvml.card.n_devices)
                return NVML_INVALID_ARGUMENT;
        nvmlReturn_t rc = meet_faults(symbol, (int32_t) handle->index);
        *ret_index = handle->index;
        *ret_dev = &nvml.card.file->device[handle->index];
        return rc;
}

nvmlReturn_t nvml_text(char *to, unsigned size, const char *text)
{
        if (!to || size == 0)
                return NVML_INVALID_ARGUMENT;
        if (strlen(text) >= size)
                return NVML_INSUFFICIENT_SIZE;
        memcpy(to, text, strlen(text) + 1);
        return NVML_OK;
}
