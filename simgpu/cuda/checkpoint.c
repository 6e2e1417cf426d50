/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint - the six calls as seen by their caller: find the target's helper thread, ask, wait for its answer */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "card/fault.h"
#include "card/proc.h"
#include "cuda/state.h"
#include "cuda/wire.h"

/* 0 = connected. The target may be stopped: connecting works all the same, the answer does not come. */
static CUresult reach(struct card *card, const struct card_proc *target, uint32_t pid, int *ret_fd)
{
        struct sockaddr_un address;
        socklen_t n = wire_address(&address, card->file->id, pid, target->helper_tid);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return CUDA_OPERATING_SYSTEM;
        int r;
        do
                r = connect(fd, (struct sockaddr *) &address, n);
        while (r < 0 && errno == EINTR);
        if (r < 0) {
                (void) close(fd);
                return errno == EACCES || errno == EPERM ? CUDA_NOT_PERMITTED : CUDA_OPERATING_SYSTEM;
        }
        *ret_fd = fd;
        return CUDA_OK;
}

static CUresult converse(int fd, const struct wire_request *request, struct wire_reply *ret)
{
        if (send(fd, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t) sizeof *request)
                return CUDA_OPERATING_SYSTEM;
        size_t got = 0;
        while (got < sizeof *ret) {
                ssize_t n = recv(fd, (char *) ret + got, sizeof *ret - got, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return CUDA_OPERATING_SYSTEM; /* the target died on the way */
                got += (size_t) n;
        }
        return ret->rc;
}

static CUresult ask(const char *symbol, int pid, struct wire_request *request, uint32_t *ret_value)
{
        struct card *card = state_card();
        struct card_fault fault;
        if (!card)
                return CUDA_NOT_INITIALIZED;
        if (fault_hit(card, FAULT_MISSING_SYMBOL, -1, (uint32_t) getpid(), symbol, NULL))
                return CUDA_NOT_FOUND;
        if (fault_hit(card, FAULT_CUDA_ERROR, -1, (uint32_t) getpid(), symbol, &fault))
                return (CUresult) fault.a;
        if (pid <= 0)
                return CUDA_INVALID_VALUE;
        if (request->op == WIRE_RESTORE && !cuda.ready)
                for (uint32_t d = 0; d < card->n_devices; d++)
                        if (!card->file->device[d].persistence)
                                return CUDA_NOT_INITIALIZED;

        uint32_t tgid = proc_tgid((uint32_t) pid); /* thread ids pass for processes, as they do with the driver */
        const struct card_proc *target = tgid ? proc_find(card, tgid) : NULL;
        if (!target) {
                /* The driver is known to call a process without CUDA "running"; it has no restore thread, though. */
                if (tgid && request->op == WIRE_STATE) {
                        *ret_value = CARD_RUNNING;
                        return CUDA_OK;
                }
                return CUDA_INVALID_VALUE;
        }
        if (geteuid() != 0 && target->uid != geteuid())
                return CUDA_NOT_PERMITTED;
        int fd;
        CUresult rc = reach(card, target, tgid, &fd);
        if (rc != CUDA_OK)
                return rc;
        struct wire_reply reply = { 0 };
        rc = converse(fd, request, &reply);
        (void) close(fd);
        if (ret_value)
                *ret_value = reply.value;
        return rc;
}

CUDA_EXPORT CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid);
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
        uint32_t value = 0;
        if (!tid)
                return CUDA_INVALID_VALUE;
        CUresult rc = ask(__func__, pid, &(struct wire_request){ .op = WIRE_THREAD }, &value);
        if (rc == CUDA_OK)
                *tid = (int) value;
        return rc;
}

CUDA_EXPORT CUresult cuCheckpointProcessGetState(int pid, int *state);
CUresult cuCheckpointProcessGetState(int pid, int *state)
{
        uint32_t value = 0;
        if (!state)
                return CUDA_INVALID_VALUE;
        CUresult rc = ask(__func__, pid, &(struct wire_request){ .op = WIRE_STATE }, &value);
        if (rc == CUDA_OK)
                *state = (int) value;
        return rc;
}

CUDA_EXPORT CUresult cuCheckpointProcessLock(int pid, const CUcheckpointLockArgs *args);
CUresult cuCheckpointProcessLock(int pid, const CUcheckpointLockArgs *args)
{
        return ask(__func__, pid, &(struct wire_request){ .op = WIRE_LOCK, .timeout_ms = args ? args->timeoutMs : 0 },
                   NULL);
}

CUDA_EXPORT CUresult cuCheckpointProcessCheckpoint(int pid, const CUcheckpointCheckpointArgs *args);
CUresult cuCheckpointProcessCheckpoint(int pid, const CUcheckpointCheckpointArgs *args)
{
        (void) args;
        return ask(__func__, pid, &(struct wire_request){ .op = WIRE_CHECKPOINT }, NULL);
}

CUDA_EXPORT CUresult cuCheckpointProcessRestore(int pid, const CUcheckpointRestoreArgs *args);
CUresult cuCheckpointProcessRestore(int pid, const CUcheckpointRestoreArgs *args)
{
        struct wire_request request = { .op = WIRE_RESTORE };
        if (args && args->gpuPairsCount > 0) {
                if (!args->gpuPairs || args->gpuPairsCount > CARD_DEVICES_MAX)
                        return CUDA_INVALID_VALUE;
                request.n_pairs = args->gpuPairsCount;
                memcpy(request.pair, args->gpuPairs, args->gpuPairsCount * sizeof *args->gpuPairs);
        }
        return ask(__func__, pid, &request, NULL);
}

CUDA_EXPORT CUresult cuCheckpointProcessUnlock(int pid, const CUcheckpointUnlockArgs *args);
CUresult cuCheckpointProcessUnlock(int pid, const CUcheckpointUnlockArgs *args)
{
        (void) args;
        return ask(__func__, pid, &(struct wire_request){ .op = WIRE_UNLOCK }, NULL);
}
