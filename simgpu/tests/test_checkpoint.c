/* SPDX-License-Identifier: Apache-2.0 */
/* The six calls: states, codes, what they do to the target's memory, and the ways in which they go wrong. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card/fault.h"
#include "card/proc.h"
#include "tests/harness.h"

enum { RUNNING, LOCKED, CHECKPOINTED, FAILED };

static struct {
        CUresult (*thread)(int, int *), (*state)(int, int *);
        CUresult (*lock)(int, const CUcheckpointLockArgs *), (*checkpoint)(int, const void *);
        CUresult (*restore)(int, const CUcheckpointRestoreArgs *), (*unlock)(int, const void *);
} cp;

static void load(void)
{
        LOAD(cuda_entry, cp.thread, "cuCheckpointProcessGetRestoreThreadId", 12080);
        LOAD(cuda_entry, cp.state, "cuCheckpointProcessGetState", 12080);
        LOAD(cuda_entry, cp.lock, "cuCheckpointProcessLock", 12080);
        LOAD(cuda_entry, cp.checkpoint, "cuCheckpointProcessCheckpoint", 12080);
        LOAD(cuda_entry, cp.restore, "cuCheckpointProcessRestore", 12080);
        LOAD(cuda_entry, cp.unlock, "cuCheckpointProcessUnlock", 12080);
}

static int state_of(pid_t pid)
{
        int state = -1;
        return cp.state((int) pid, &state) == CUDA_OK ? state : -1;
}

static CUresult lock_ms(pid_t pid, unsigned ms)
{
        return cp.lock((int) pid, &(CUcheckpointLockArgs){ .timeoutMs = ms });
}

static void fault(enum fault_kind kind, int64_t a, const char *symbol)
{
        struct card_fault f = { .kind = kind, .device = -1, .a = a };
        (void) snprintf(f.symbol, sizeof f.symbol, "%s", symbol);
        (void) fault_add(&card, &f);
}

static void whole_cycle(void)
{
        struct hog hog = hog_start("--alloc", "600M", "--count", NULL);
        pid_t pid = hog.pid;
        unsigned long n = 0, m = 0;
        int tid = 0;
        ok(next_count(&hog, &n), "the target counts in device memory");
        is((uint64_t) cp.thread((int) pid, &tid), CUDA_OK, "GetRestoreThreadId");
        is(proc_tgid((uint32_t) tid), (uint64_t) pid, "names a thread of the target");
        is((uint64_t) state_of(pid), RUNNING, "running");
        is((uint64_t) cp.checkpoint((int) pid, NULL), CUDA_ILLEGAL_STATE, "Checkpoint before Lock: 401");
        is((uint64_t) cp.unlock((int) pid, NULL), CUDA_ILLEGAL_STATE, "Unlock before Lock: 401");
        is((uint64_t) lock_ms(pid, 5000), CUDA_OK, "Lock");
        is((uint64_t) state_of(pid), LOCKED, "locked");
        is((uint64_t) lock_ms(pid, 5000), CUDA_ILLEGAL_STATE, "Lock twice: 401");
        is((uint64_t) cp.unlock((int) pid, NULL), CUDA_OK, "Unlock is a cancel");
        is((uint64_t) state_of(pid), RUNNING, "running again");
        is((uint64_t) lock_ms(tid, 5000), CUDA_OK, "Lock by a thread id");
        long before = status_kib(pid, "RssAnon");
        is((uint64_t) cp.checkpoint((int) pid, NULL), CUDA_OK, "Checkpoint");
        long grown = status_kib(pid, "RssAnon") - before;
        ok(grown >= 600 * 1024 && grown < 604 * 1024, "the target's RssAnon grew by the parked bytes (%ld KiB)", grown);
        is((uint64_t) state_of(pid), CHECKPOINTED, "checkpointed");
        is(used_bytes(0), 0, "the card is empty");
        is(bytes_of(pid, 0), 0, "and the target holds nothing");
        is((uint64_t) cp.unlock((int) pid, NULL), CUDA_ILLEGAL_STATE, "Unlock while checkpointed: 401");
        is((uint64_t) cp.restore((int) pid, NULL), CUDA_OK, "Restore");
        is((uint64_t) state_of(pid), LOCKED, "locked, not running");
        ok(status_kib(pid, "RssAnon") - before < 4 * 1024, "RssAnon fell back");
        is(bytes_of(pid, 0), 600 * MIB, "its bytes are back");
        is((uint64_t) cp.unlock((int) pid, NULL), CUDA_OK, "Unlock");
        bool whole = true;
        for (unsigned long last = n + 10; n < last && next_count(&hog, &m); n = m)
                whole &= m == n + 1;
        ok(whole, "the counter goes on where it was: no number lost, none twice");
        hog_kill(&hog);
}

static void blocked_calls_wait_for_unlock(void)
{
        struct hog hog = hog_start("--alloc", "10M", "--grow", "10M/10ms", "--max", "200M", NULL);
        is((uint64_t) lock_ms(hog.pid, 5000), CUDA_OK, "a growing target is locked");
        uint64_t held = bytes_of(hog.pid, 0);
        for (int i = 0; i < 50; i++)
                nap();
        is(bytes_of(hog.pid, 0), held, "its allocations wait");
        is((uint64_t) cp.unlock((int) hog.pid, NULL), CUDA_OK, "unlocked");
        ok(WAIT_FOR(bytes_of(hog.pid, 0) == 200 * MIB), "and go on");
        hog_kill(&hog);
}

struct probe {
        pid_t pid;
        _Atomic bool finished;
        int state;
};

static void *probe_main(void *arg)
{
        struct probe *p = arg;
        p->state = state_of(p->pid);
        p->finished = true;
        return NULL;
}

/* Whether a call returns can only be seen by waiting for it a while; that it did not is then a fact about that while. */
static void call_hangs_until(const char *what, struct probe *probe, void (*release)(pid_t), int want)
{
        pthread_t thread;
        (void) pthread_create(&thread, NULL, probe_main, probe);
        for (int i = 0; i < 100; i++)
                nap();
        ok(!probe->finished, "%s: GetState hangs", what);
        release(probe->pid);
        (void) pthread_join(thread, NULL);
        is((uint64_t) probe->state, (uint64_t) want, "and answers afterwards");
}

static void cont(pid_t pid)
{
        (void) kill(pid, SIGCONT);
}

static void unfault(pid_t pid)
{
        (void) pid;
        (void) fault_clear(&card, FAULT_NONE);
}

static void stopped_target_blocks_its_caller(void)
{
        struct hog hog = hog_start("--alloc", "10M", NULL);
        (void) kill(hog.pid, SIGSTOP);
        (void) waitpid(hog.pid, NULL, WUNTRACED);
        call_hangs_until("a stopped target", &(struct probe){ .pid = hog.pid }, cont, RUNNING);
        fault(FAULT_CHECKPOINT_HANG, 0, "state");
        call_hangs_until("checkpoint-hang state", &(struct probe){ .pid = hog.pid }, unfault, RUNNING);
        struct hog peer = hog_start("--alloc", "10M", NULL);
        is((uint64_t) lock_ms(peer.pid, 5000), CUDA_OK, "a peer is locked");
        fault(FAULT_GROUP_HANG, 0, "");
        call_hangs_until("group-hang", &(struct probe){ .pid = hog.pid }, unfault, RUNNING);
        hog_kill(&peer);
        hog_kill(&hog);
}

static void restore_without_room_is_final(void)
{
        struct hog hog = hog_start("--alloc", "600M", NULL);
        is((uint64_t) lock_ms(hog.pid, 5000), CUDA_OK, "600M locked");
        is((uint64_t) cp.checkpoint((int) hog.pid, NULL), CUDA_OK, "and checkpointed");
        struct hog other = hog_start("--alloc", "600M", NULL);
        is((uint64_t) cp.restore((int) hog.pid, NULL), CUDA_OUT_OF_MEMORY, "Restore without room: 2");
        hog_kill(&other);
        is(used_bytes(0), 0, "there is room now");
        is((uint64_t) cp.restore((int) hog.pid, NULL), CUDA_OPERATING_SYSTEM, "all the same: 304");
        is((uint64_t) cp.restore((int) hog.pid, NULL), CUDA_OPERATING_SYSTEM, "for ever");
        is((uint64_t) cp.unlock((int) hog.pid, NULL), CUDA_ILLEGAL_STATE, "Unlock: 401");
        hog_kill(&hog);
}

static void faults_bite(void)
{
        struct hog hog = hog_start("--alloc", "50M", NULL);
        fault(FAULT_LOCK_TIMEOUT, 0, "");
        is((uint64_t) lock_ms(hog.pid, 20), CUDA_NOT_READY, "lock-timeout: 600");
        is((uint64_t) state_of(hog.pid), RUNNING, "and the target runs");
        unfault(0);
        fault(FAULT_FAILED_STATE, 0, "");
        is((uint64_t) state_of(hog.pid), FAILED, "failed-state: 3");
        unfault(0);
        fault(FAULT_UNKNOWN_STATE, 5, "");
        is((uint64_t) state_of(hog.pid), 5, "unknown-state 5");
        unfault(0);
        fault(FAULT_NO_EFFECT, 0, "checkpoint");
        is((uint64_t) lock_ms(hog.pid, 5000), CUDA_OK, "no-effect checkpoint leaves Lock alone");
        is((uint64_t) cp.checkpoint((int) hog.pid, NULL), CUDA_OK, "Checkpoint says success");
        is(bytes_of(hog.pid, 0), 50 * MIB, "and did nothing");
        unfault(0);
        fault(FAULT_CHECKPOINT_SLOW, 30, "restore");
        uint64_t since_ns = card_now_ns();
        is((uint64_t) cp.checkpoint((int) hog.pid, NULL), CUDA_OK, "Checkpoint");
        is((uint64_t) cp.restore((int) hog.pid, NULL), CUDA_OK, "and Restore");
        ok(card_now_ns() - since_ns >= 30000000, "checkpoint-slow: at least that long");
        unfault(0);
        fault(FAULT_CUDA_ERROR, 800, "cuCheckpointProcessCheckpoint");
        is((uint64_t) cp.checkpoint((int) hog.pid, NULL), CUDA_NOT_PERMITTED, "cuda-error 800");
        unfault(0);
        is((uint64_t) cp.checkpoint((int) hog.pid, NULL), CUDA_OK, "Checkpoint");
        fault(FAULT_RESTORE_FAIL, 0, "");
        is((uint64_t) cp.restore((int) hog.pid, NULL), CUDA_OUT_OF_MEMORY, "restore-fail: 2");
        unfault(0);
        is((uint64_t) cp.restore((int) hog.pid, NULL), CUDA_OPERATING_SYSTEM, "then 304");
        hog_kill(&hog);

        hog = hog_start("--alloc", "50M", NULL);
        fault(FAULT_CHECKPOINT_FAIL, 0, "");
        is((uint64_t) lock_ms(hog.pid, 5000), CUDA_OK, "locked");
        is((uint64_t) cp.checkpoint((int) hog.pid, NULL), CUDA_OPERATING_SYSTEM, "checkpoint-fail: 304");
        is((uint64_t) state_of(hog.pid), FAILED, "and FAILED for good");
        is(bytes_of(hog.pid, 0), 50 * MIB, "its memory is still there");
        unfault(0);
        hog_kill(&hog);

        hog = hog_start("--alloc", "50M", NULL);
        fault(FAULT_CHECKPOINT_DIE, 0, "");
        is((uint64_t) lock_ms(hog.pid, 5000), CUDA_OK, "locked");
        is((uint64_t) cp.checkpoint((int) hog.pid, NULL), CUDA_OPERATING_SYSTEM, "checkpoint-die: the caller sees 304");
        siginfo_t info = { 0 };
        (void) waitid(P_PID, (id_t) hog.pid, &info, WEXITED | WNOWAIT);
        ok(info.si_code == CLD_KILLED && info.si_status == SIGKILL, "the target is dead");
        is(used_bytes(0), 0, "and its memory free");
        unfault(0);
        hog_kill(&hog);
}

static void strangers_are_told_apart(void)
{
        int tid;
        is((uint64_t) state_of(1), RUNNING, "a process without CUDA is called running, as the driver does");
        is((uint64_t) cp.thread(1, &tid), CUDA_INVALID_VALUE, "but has no restore thread");
        is((uint64_t) lock_ms(1, 10), CUDA_INVALID_VALUE, "and cannot be locked");
        is((uint64_t) cp.thread(2147483646, &tid), CUDA_INVALID_VALUE, "no such pid: 1");
        is((uint64_t) lock_ms(-1, 10), CUDA_INVALID_VALUE, "no pid at all: 1");
}

static void uuid_of(uint32_t device, CUuuid *uuid)
{
        size_t n = 0;
        memset(uuid, 0, sizeof *uuid);
        for (const char *p = card.file->device[device].uuid + 4; *p; p++)
                if (*p != '-') {
                        int digit = *p <= '9' ? *p - '0' : *p - 'a' + 10;
                        uuid->bytes[n / 2] = (unsigned char) (uuid->bytes[n / 2] << 4 | digit);
                        n++;
                }
}

static void restore_onto_another_device(void)
{
        card_begin("--gpus", "2", "--persistence", "off", NULL);
        load();
        struct hog hog = hog_start("--alloc", "100M", "--count", NULL);
        unsigned long n = 0, m = 0;
        CUcheckpointGpuPair pair;
        (void) next_count(&hog, &n);
        CUresult rc = lock_ms(hog.pid, 5000);
        if (rc == CUDA_OK)
                rc = cp.checkpoint((int) hog.pid, NULL);
        is((uint64_t) rc, CUDA_OK, "parked on a card without persistence");
        uuid_of(0, &pair.oldUuid);
        uuid_of(1, &pair.newUuid);
        CUcheckpointRestoreArgs args = { .gpuPairs = &pair, .gpuPairsCount = 1 };
        is((uint64_t) cp.restore((int) hog.pid, &args), CUDA_NOT_INITIALIZED,
           "its Restore wants cuInit in the caller: 3");
        CUresult (*init)(unsigned);
        LOAD(cuda_entry, init, "cuInit", 2000);
        is((uint64_t) init(0), CUDA_OK, "cuInit");
        is((uint64_t) cp.restore((int) hog.pid, &args), CUDA_OK, "restored onto the other device");
        is(bytes_of(hog.pid, 0), 0, "nothing on the old one");
        is(bytes_of(hog.pid, 1), 100 * MIB, "all on the new one");
        is((uint64_t) cp.unlock((int) hog.pid, NULL), CUDA_OK, "unlocked");
        ok(next_count(&hog, &m) && m > n, "the counter goes on");
        hog_kill(&hog);
}

int main(int argc, char **argv)
{
        (void) argc;
        if (getenv("SIMGPU_TEST_PART")) {
                restore_onto_another_device();
                return done();
        }
        card_begin("--memory", "1G", NULL);
        load();
        whole_cycle();
        blocked_calls_wait_for_unlock();
        stopped_target_blocks_its_caller();
        restore_without_room_is_final();
        faults_bite();
        strangers_are_told_apart();
        /* libcuda keeps the card it first saw: another card needs another process. */
        (void) setenv("SIMGPU_TEST_PART", "remap", 1);
        const char *again[] = { argv[0], NULL };
        char out[8192];
        ok(run(out, sizeof out, again) == 0, "restore onto another device, without persistence");
        for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"))
                printf("# %s\n", line);
        return done();
}
