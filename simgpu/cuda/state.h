/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * state - what libcuda knows of the process it is in: the card, the visible devices, its slot, and the gate
 *
 * Every exported call of work passes the gate: CALL_BEGIN at its head. A checkpoint lock closes it; calls inside
 * drain, new ones wait. The helper thread never passes it.
 */

#include <pthread.h>

#include "card/card.h"
#include "cuda/abi.h"

struct cuda_state {
        struct card card;
        struct card_proc *proc; /* NULL until cuInit */
        bool ready;             /* cuInit succeeded */
        int n_devices;
        uint32_t device[CARD_DEVICES_MAX]; /* CUDA ordinal -> NVML index */
        pthread_mutex_t lock;              /* allocations, contexts, streams */
};
extern struct cuda_state cuda;

/* state_card - the card, opened at first need (checkpoint calls work without cuInit). NULL = there is none. */
struct card *state_card(void);

/* state_init - the work of cuInit */
CUresult state_init(void);

/* call_enter - 0, or the code to answer with: 3 before cuInit and in a forked child, or what a fault says. Waits at a closed gate. */
CUresult call_enter(const char *name);
void call_leave(CUresult *rc);
#define CALL_BEGIN                                                                                                     \
        CUresult call_rc_ __attribute__((__cleanup__(call_leave))) = call_enter(__func__);                             \
        if (call_rc_ != CUDA_OK)                                                                                       \
        return call_rc_

/* gate_close - no new call passes; waits until those inside have left. @timeout_ms 0 = for ever. False: timed out, open again. */
bool gate_close(uint32_t timeout_ms);
void gate_open(void);

/* helper_start - the thread that owns our slot and carries out checkpoint requests; fills cuda.proc. 0 or a CUDA code. */
CUresult helper_start(void);
