/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The checkpoint calls of libcuda.so.1 (fact sheet, part B): by dlopen, only in a helper, without ever making a context. The work
 * is done by a thread inside the target, so each of these can take as long as the target likes: who calls has to be somebody
 * whom nobody waits for. The target must run: of who is stopped or frozen not even the state is told.
 */
#include <stdbool.h>
#include <stdint.h>
#include "wire/warden.h"

enum driver_code { /* CUresult, as far as it means something here */
                   DRIVER_OK = 0,
                   DRIVER_INVALID_VALUE = 1,
                   DRIVER_NOT_INITIALIZED = 3,
                   DRIVER_NOT_READY = 600,
                   DRIVER_NOT_PERMITTED = 800,
                   DRIVER_NOT_SUPPORTED = 801,
};

/* Whatever else a driver says, of today or tomorrow, is none of the first three. */
enum driver_state { DRIVER_RUNNING, DRIVER_LOCKED, DRIVER_CHECKPOINTED, DRIVER_FAILED };

enum driver_call { DRIVER_LOCK, DRIVER_CHECKPOINT, DRIVER_RESTORE, DRIVER_UNLOCK, DRIVER_CALL_N };

struct driver {
        void *library; /* NULL = not open */
        bool init_tried;
        int (*init)(unsigned flags);
        int (*thread)(int pid, int *tid);
        int (*state)(int pid, int *state);
        int (*call[DRIVER_CALL_N])(int pid, void *args);
};

/* WARDEN_WHY_NONE, or why nothing can be called here. Twice is once. */
enum warden_why driver_open(struct driver *d);
/* "Could not be tried" (1, 3, 800, 801), in words; NONE for every other code. */
enum warden_why driver_cannot(uint32_t code);

/* Codes of the driver. Where one says 3, cuInit is called once and it is asked again. */
uint32_t driver_thread(struct driver *d, uint32_t pid, uint32_t *ret_tid);
uint32_t driver_state(struct driver *d, uint32_t pid, enum driver_state *ret);
uint32_t driver_do(struct driver *d, enum driver_call call, uint32_t pid, uint32_t deadline_ms);
