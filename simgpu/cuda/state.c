/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "card/abi.h"
#include "card/fault.h"
#include "card/proc.h"
#include "cuda/visible.h"

struct cuda_state cuda = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned inside;
        bool closed;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned depth; /* a call that uses another exported call passes the gate once */
static volatile bool is_forked;

/* A child has neither the helper thread nor the memory. Any lock may be held for ever in it, so nothing is touched but this. */
static void after_fork(void)
{
        is_forked = true;
}

struct card *state_card(void)
{
        (void) pthread_mutex_lock(&open_lock);
        if (!cuda.card.file) {
                char err[256];
                if (card_open(&cuda.card, NULL, err, sizeof err) < 0 && getenv("SIMGPU"))
                        fprintf(stderr, "simgpu: %s\n", err);
        }
        (void) pthread_mutex_unlock(&open_lock);
        return cuda.card.file ? &cuda.card : NULL;
}

CUresult state_init(void)
{
        static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
        static bool has_atfork;

        if (is_forked)
                return CUDA_NOT_INITIALIZED;
        (void) pthread_mutex_lock(&init_lock);
        CUresult rc = CUDA_OK;
        if (!cuda.ready) {
                struct card *card = state_card();
                struct card_fault fault;
                if (!card)
                        rc = getenv("SIMGPU") ? CUDA_UNKNOWN : CUDA_NO_DEVICE;
                else if (fault_hit(card, FAULT_CUDA_ERROR, -1, (uint32_t) getpid(), "cuInit", &fault))
                        rc = (CUresult) fault.a;
                if (rc == CUDA_OK) {
                        driver_settle(card);
                        cuda.n_devices = visible_devices(card, cuda.device);
                        rc = cuda.n_devices > 0 ? helper_start() : CUDA_NO_DEVICE;
                }
                if (rc == CUDA_OK && !has_atfork)
                        has_atfork = pthread_atfork(NULL, NULL, after_fork) == 0;
                cuda.ready = rc == CUDA_OK;
        }
        (void) pthread_mutex_unlock(&init_lock);
        return rc;
}

CUresult call_enter(const char *name)
{
        if (is_forked || !cuda.ready)
                return CUDA_NOT_INITIALIZED;
        if (depth++ > 0)
                return CUDA_OK;
        struct card_fault fault;
        CUresult rc = CUDA_OK;
        if (fault_hit(&cuda.card, FAULT_MISSING_SYMBOL, -1, (uint32_t) getpid(), name, NULL))
                rc = CUDA_NOT_FOUND;
        else if (fault_hit(&cuda.card, FAULT_CUDA_ERROR, -1, (uint32_t) getpid(), name, &fault))
                rc = (CUresult) fault.a;
        if (rc != CUDA_OK) {
                depth--;
                return rc;
        }
        (void) pthread_mutex_lock(&gate.lock);
        while (gate.closed)
                (void) pthread_cond_wait(&gate.changed, &gate.lock);
        gate.inside++;
        (void) pthread_mutex_unlock(&gate.lock);
        return CUDA_OK;
}

void call_leave(CUresult *rc)
{
        if (*rc != CUDA_OK || --depth > 0)
                return;
        (void) pthread_mutex_lock(&gate.lock);
        if (--gate.inside == 0)
                (void) pthread_cond_broadcast(&gate.changed);
        (void) pthread_mutex_unlock(&gate.lock);
}

bool gate_close(uint32_t timeout_ms)
{
        struct timespec until;
        (void) clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += timeout_ms / 1000;
        until.tv_nsec += (long) (timeout_ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
                until.tv_sec++;
                until.tv_nsec -= 1000000000;
        }
        (void) pthread_mutex_lock(&gate.lock);
        gate.closed = true;
        int r = 0;
        while (gate.inside > 0 && r != ETIMEDOUT) {
                if (timeout_ms == 0)
                        r = pthread_cond_wait(&gate.changed, &gate.lock);
                else
                        r = pthread_cond_clockwait(&gate.changed, &gate.lock, CLOCK_MONOTONIC, &until);
        }
        bool drained = gate.inside == 0;
        if (!drained) {
                gate.closed = false;
                (void) pthread_cond_broadcast(&gate.changed);
        }
        (void) pthread_mutex_unlock(&gate.lock);
        return drained;
}

void gate_open(void)
{
        (void) pthread_mutex_lock(&gate.lock);
        gate.closed = false;
        (void) pthread_cond_broadcast(&gate.changed);
        (void) pthread_mutex_unlock(&gate.lock);
}
