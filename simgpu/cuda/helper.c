/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - the thread inside a CUDA process that does the work of a checkpoint
 *
 * It is a thread of the target, so a stopped or frozen target blocks its caller, the copy is the target's own memory,
 * and the death of the target takes everything along. One request at a time, as the driver does it.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "card/fault.h"
#include "card/memory.h"
#include "card/proc.h"
#include "card/trace.h"
#include "cuda/alloc.h"
#include "cuda/context.h"
#include "cuda/state.h"
#include "cuda/wire.h"

static const char *const op_words[WIRE_OP_N] = { "thread", "state", "lock", "checkpoint", "restore", "unlock" };

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool started;
        CUresult rc;
} start = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int listen_fd = -1;
static void *copy; /* device memory while checkpointed */
static size_t copy_bytes;
static bool is_doomed; /* a restore found no room: nothing works any more, as the driver has it */

static uint32_t self(void)
{
        return (uint32_t) getpid();
}

static bool hit(enum fault_kind kind, enum wire_op op, struct card_fault *ret)
{
        return fault_hit(&cuda.card, kind, -1, self(), op_words[op], ret);
}

static uint64_t held_bytes(void)
{
        uint64_t sum = 0;
        for (uint32_t d = 0; d < cuda.card.n_devices; d++)
                sum += memory_of(&cuda.card, cuda.proc, d);
        return sum;
}

static void sleep_ms(uint64_t ms)
{
        struct timespec ts = { .tv_sec = (time_t) (ms / 1000), .tv_nsec = (long) (ms % 1000) * 1000000 };
        while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
                ;
}

static CUresult lock_target(uint32_t timeout_ms)
{
        struct card_fault fault;
        if (atomic_load(&cuda.proc->state) != CARD_RUNNING)
                return CUDA_ILLEGAL_STATE;
        if (hit(FAULT_LOCK_TIMEOUT, WIRE_LOCK, &fault)) {
                fault_wait(&cuda.card, fault.serial, timeout_ms);
                if (timeout_ms > 0)
                        return CUDA_NOT_READY;
        }
        if (!gate_close(timeout_ms))
                return CUDA_NOT_READY;
        atomic_store(&cuda.proc->state, CARD_LOCKED);
        return CUDA_OK;
}

static CUresult checkpoint_target(void)
{
        struct card_fault fault;
        if (atomic_load(&cuda.proc->state) != CARD_LOCKED)
                return CUDA_ILLEGAL_STATE;
        if (hit(FAULT_CHECKPOINT_FAIL, WIRE_CHECKPOINT, &fault)) {
                atomic_store(&cuda.proc->state, CARD_FAILED); /* no way back is known: only a kill helps */
                return fault.a ? (CUresult) fault.a : CUDA_OPERATING_SYSTEM;
        }
        if (hit(FAULT_CHECKPOINT_SLOW, WIRE_CHECKPOINT, &fault))
                sleep_ms((uint64_t) fault.a);
        if (alloc_save(&copy, &copy_bytes) < 0) {
                atomic_store(&cuda.proc->state, CARD_FAILED);
                return CUDA_OPERATING_SYSTEM;
        }
        if (hit(FAULT_CHECKPOINT_DIE, WIRE_CHECKPOINT, NULL))
                (void) raise(SIGKILL);
        alloc_release_data();
        return memory_park(&cuda.card, cuda.proc) == 0 ? CUDA_OK : CUDA_UNKNOWN;
}

static bool same_uuid(const CUuuid *uuid, const struct card_device *device)
{
        size_t n = 0;
        for (const char *p = device->uuid + 4; *p && n < 32; p++) {
                if (*p == '-')
                        continue;
                int digit = *p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10;
                if (((uuid->bytes[n / 2] >> (n % 2 ? 0 : 4)) & 15) != digit)
                        return false;
                n++;
        }
        return n == 32;
}

/* Identity without pairs; with pairs, each device that was checkpointed must be named, once, and exist. */
static bool pairs_to_map(const struct wire_request *request, uint32_t map[CARD_DEVICES_MAX])
{
        const struct card_file *f = cuda.card.file;
        for (uint32_t d = 0; d < CARD_DEVICES_MAX; d++)
                map[d] = d;
        bool named[CARD_DEVICES_MAX] = { 0 };
        for (uint32_t i = 0; i < request->n_pairs; i++) {
                uint32_t from = CARD_DEVICES_MAX, to = CARD_DEVICES_MAX;
                for (uint32_t d = 0; d < cuda.card.n_devices; d++) {
                        if (same_uuid(&request->pair[i].oldUuid, &f->device[d]))
                                from = d;
                        if (same_uuid(&request->pair[i].newUuid, &f->device[d]))
                                to = d;
                }
                if (from == CARD_DEVICES_MAX || to == CARD_DEVICES_MAX || named[from])
                        return false;
                if (f->device[from].cc_major != f->device[to].cc_major ||
                    f->device[from].cc_minor != f->device[to].cc_minor)
                        return false;
                named[from] = true;
                map[from] = to;
        }
        for (uint32_t d = 0; request->n_pairs > 0 && d < cuda.card.n_devices; d++)
                if (atomic_load(&cuda.proc->use[d].parked_bytes) > 0 && !named[d])
                        return false;
        return true;
}

static CUresult restore_target(const struct wire_request *request)
{
        uint32_t map[CARD_DEVICES_MAX];
        struct card_fault fault;
        if (atomic_load(&cuda.proc->state) != CARD_CHECKPOINTED)
                return CUDA_ILLEGAL_STATE;
        if (is_doomed)
                return CUDA_OPERATING_SYSTEM;
        if (!pairs_to_map(request, map))
                return CUDA_INVALID_VALUE;
        if (hit(FAULT_RESTORE_FAIL, WIRE_RESTORE, NULL)) {
                is_doomed = true;
                return CUDA_OUT_OF_MEMORY;
        }
        if (hit(FAULT_CHECKPOINT_SLOW, WIRE_RESTORE, &fault))
                sleep_ms((uint64_t) fault.a);
        int r = memory_unpark(&cuda.card, cuda.proc, map);
        if (r < 0) {
                is_doomed = r == -ENOMEM;
                return r == -ENOMEM ? CUDA_OUT_OF_MEMORY : CUDA_UNKNOWN;
        }
        r = alloc_load(copy, copy_bytes);
        copy = NULL;
        copy_bytes = 0;
        cuda.proc->restored = 1;
        if (request->n_pairs > 0) {
                alloc_remap(map);
                context_remap(map);
                for (int i = 0; i < cuda.n_devices; i++)
                        cuda.device[i] = map[cuda.device[i]];
        }
        return r == 0 ? CUDA_OK : CUDA_UNKNOWN;
}

static CUresult unlock_target(void)
{
        if (atomic_load(&cuda.proc->state) != CARD_LOCKED)
                return CUDA_ILLEGAL_STATE;
        atomic_store(&cuda.proc->state, CARD_RUNNING);
        gate_open();
        return CUDA_OK;
}

static uint32_t state_shown(void)
{
        struct card_fault fault;
        if (hit(FAULT_FAILED_STATE, WIRE_STATE, NULL))
                return CARD_FAILED;
        if (hit(FAULT_UNKNOWN_STATE, WIRE_STATE, &fault))
                return fault.a ? (uint32_t) fault.a : 4;
        return atomic_load(&cuda.proc->state);
}

static bool peer_is_locked(void)
{
        for (uint32_t i = 0; i < CARD_PROCS_MAX; i++) {
                const struct card_proc *p = &cuda.card.file->proc[i];
                if (p != cuda.proc && atomic_load(&p->pid) != 0 && atomic_load(&p->state) != CARD_RUNNING)
                        return true;
        }
        return false;
}

static void hold_back(enum wire_op op)
{
        struct card_fault fault;
        if (hit(FAULT_CHECKPOINT_HANG, op, &fault))
                fault_wait(&cuda.card, fault.serial, 0);
        while (peer_is_locked() && hit(FAULT_GROUP_HANG, op, NULL))
                sleep_ms(2);
}

static struct wire_reply carry_out(const struct wire_request *request)
{
        enum wire_op op = request->op;
        struct wire_reply reply = { 0 };
        hold_back(op);
        if (op == WIRE_THREAD) {
                reply.value = (uint32_t) gettid();
                return reply;
        }
        if (op == WIRE_STATE) {
                reply.value = state_shown();
                return reply;
        }
        static const enum trace_kind begin[WIRE_OP_N] = { [WIRE_LOCK] = TRACE_LOCK_BEGIN,
                                                          [WIRE_CHECKPOINT] = TRACE_CHECKPOINT_BEGIN,
                                                          [WIRE_RESTORE] = TRACE_RESTORE_BEGIN,
                                                          [WIRE_UNLOCK] = TRACE_UNLOCK_BEGIN };
        trace_add(&cuda.card, begin[op], self(), -1, 0, held_bytes());
        if (hit(FAULT_NO_EFFECT, op, NULL))
                reply.rc = CUDA_OK;
        else if (op == WIRE_LOCK)
                reply.rc = lock_target(request->timeout_ms);
        else if (op == WIRE_CHECKPOINT)
                reply.rc = checkpoint_target();
        else if (op == WIRE_RESTORE)
                reply.rc = restore_target(request);
        else
                reply.rc = unlock_target();
        trace_add(&cuda.card, begin[op] + 1, self(), -1, reply.rc, op == WIRE_CHECKPOINT ? copy_bytes : held_bytes());
        return reply;
}

static void answer(int fd)
{
        struct wire_request request;
        struct wire_reply reply = { .rc = CUDA_NOT_PERMITTED };
        struct ucred peer;
        socklen_t n = sizeof peer;
        /* A caller that says nothing must not keep the only helper. */
        struct timeval patience = { .tv_sec = 5 };
        (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (recv(fd, &request, sizeof request, MSG_WAITALL) != (ssize_t) sizeof request)
                return;
        bool allowed =
                getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && (peer.uid == 0 || peer.uid == geteuid());
        if (allowed) {
                bool sane = request.op < WIRE_OP_N && request.n_pairs <= CARD_DEVICES_MAX;
                reply = sane ? carry_out(&request) : (struct wire_reply){ .rc = CUDA_INVALID_VALUE };
        }
        (void) send(fd, &reply, sizeof reply, MSG_NOSIGNAL);
}

static CUresult set_up(void)
{
        cuda.proc = proc_register(&cuda.card, getenv("SIMGPU_GRAPHICS") != NULL);
        if (!cuda.proc)
                return CUDA_UNKNOWN;
        struct sockaddr_un address;
        socklen_t n = wire_address(&address, cuda.card.file->id, self(), (uint32_t) gettid());
        listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *) &address, n) < 0 || listen(listen_fd, 64) < 0)
                return CUDA_OPERATING_SYSTEM;
        return alloc_setup();
}

static void *helper_main(void *arg)
{
        (void) arg;
        (void) prctl(PR_SET_NAME, "simgpu-helper");
        (void) pthread_mutex_lock(&start.lock);
        start.rc = set_up();
        start.started = true;
        (void) pthread_cond_broadcast(&start.changed);
        (void) pthread_mutex_unlock(&start.lock);
        /* After a failure the thread stays as well: leaving would look like the death of the process. */
        for (;;) {
                int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
                if (fd < 0) {
                        sleep_ms(10);
                        continue;
                }
                answer(fd);
                (void) close(fd);
        }
        return NULL;
}

CUresult helper_start(void)
{
        static bool is_running;
        if (is_running)
                return start.rc;
        pthread_t thread;
        pthread_attr_t attr;
        sigset_t all, old;
        /* The program's signals are the program's: none is ever delivered to our thread. */
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &old);
        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        int r = pthread_create(&thread, &attr, helper_main, NULL);
        (void) pthread_attr_destroy(&attr);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r != 0)
                return CUDA_OPERATING_SYSTEM;
        is_running = true;
        (void) pthread_mutex_lock(&start.lock);
        while (!start.started)
                (void) pthread_cond_wait(&start.changed, &start.lock);
        (void) pthread_mutex_unlock(&start.lock);
        return start.rc;
}
