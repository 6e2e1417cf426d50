/* SPDX-License-Identifier: Apache-2.0 */
/* The books are exact, whatever dies in the middle of what. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card/proc.h"
#include "tests/harness.h"

#define ROUNDS 200
#define PARALLEL 64

struct driver {
        CUresult (*init)(unsigned), (*get)(int *, int), (*create)(CUcontext *, unsigned, int);
        CUresult (*alloc)(CUdeviceptr *, size_t), (*free)(CUdeviceptr), (*info)(size_t *, size_t *);
        CUresult (*to_device)(CUdeviceptr, const void *, size_t), (*to_host)(void *, CUdeviceptr, size_t);
};

static struct driver driver_load(void)
{
        struct driver d;
        LOAD(cuda_entry, d.init, "cuInit", 2000);
        LOAD(cuda_entry, d.get, "cuDeviceGet", 2000);
        LOAD(cuda_entry, d.create, "cuCtxCreate", 3020);
        LOAD(cuda_entry, d.alloc, "cuMemAlloc", 3020);
        LOAD(cuda_entry, d.free, "cuMemFree", 3020);
        LOAD(cuda_entry, d.info, "cuMemGetInfo", 3020);
        LOAD(cuda_entry, d.to_device, "cuMemcpyHtoD", 3020);
        LOAD(cuda_entry, d.to_host, "cuMemcpyDtoH", 3020);
        return d;
}

static CUresult driver_begin(const struct driver *d)
{
        CUcontext context;
        int dev;
        CUresult rc = d->init(0);
        if (rc == CUDA_OK)
                rc = d->get(&dev, 0);
        return rc == CUDA_OK ? d->create(&context, 0, dev) : rc;
}

/* Allocates and frees as fast as it can until it is killed. */
static _Noreturn void churn(void)
{
        struct driver d = driver_load();
        CUdeviceptr held[8] = { 0 };
        if (driver_begin(&d) != CUDA_OK)
                _exit(1);
        for (unsigned i = 0;; i = (i + 1) % 8) {
                if (held[i])
                        (void) d.free(held[i]);
                held[i] = 0;
                (void) d.alloc(&held[i], (i + 1) * MIB);
        }
}

static void killed_process_frees_at_once(void)
{
        struct hog hog = hog_start("--alloc", "1500M", NULL);
        is(used_bytes(0), 1500 * MIB, "a hog of 1500M is used exactly");
        (void) kill(hog.pid, SIGKILL);
        siginfo_t info;
        (void) waitid(P_PID, (id_t) hog.pid, &info, WEXITED | WNOWAIT);
        is(used_bytes(0), 0, "killed and not yet reaped: a zombie holds nothing");
        hog_kill(&hog);
}

static void kill_in_a_loop_of_allocations_leaves_exact_books(void)
{
        struct hog hog = hog_start("--alloc", "100M", NULL);
        bool exact = true, started = true;
        for (int round = 0; round < ROUNDS; round++) {
                pid_t pid = fork();
                if (pid == 0)
                        churn();
                started &= WAIT_FOR(bytes_of(pid, 0) > 0);
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
                exact &= used_bytes(0) == 100 * MIB;
        }
        ok(started, "%d churning processes started", ROUNDS);
        ok(exact, "after each of %d kills the books say exactly what is left", ROUNDS);
        hog_kill(&hog);
}

static void dead_lock_owner_is_survived(void)
{
        pid_t pid = fork();
        if (pid == 0) {
                (void) card_lock(&card);
                (void) raise(SIGKILL);
        }
        (void) waitpid(pid, NULL, 0);
        struct hog hog = hog_start("--alloc", "10M", NULL);
        is(used_bytes(0), 10 * MIB, "the lock of a killed process is taken over");
        hog_kill(&hog);
}

static void many_processes_at_once(void)
{
        static struct hog hogs[PARALLEL];
        for (int i = 0; i < PARALLEL; i++)
                hogs[i] = hog_start("--alloc", "10M", NULL);
        is(used_bytes(0), PARALLEL * 10 * MIB, "64 processes of 10M");
        size_t listed = 0;
        for (int i = 0; i < PARALLEL; i++)
                listed += bytes_of(hogs[i].pid, 0) == 10 * MIB;
        is(listed, PARALLEL, "each is listed with its own");
        for (int i = 0; i < PARALLEL; i++)
                hog_kill(&hogs[i]);
        is(used_bytes(0), 0, "and all of it comes back");
}

static void parallel_allocations_never_exceed_the_card(void)
{
        pid_t pids[16];
        for (int i = 0; i < 16; i++)
                if ((pids[i] = fork()) == 0) {
                        struct driver d = driver_load();
                        CUdeviceptr p;
                        int got = 0;
                        if (driver_begin(&d) != CUDA_OK)
                                _exit(100);
                        while (d.alloc(&p, 32 * MIB) == CUDA_OK)
                                got++;
                        (void) pause();
                        _exit(got);
                }
        ok(WAIT_FOR(used_bytes(0) == 3072 * MIB), "16 processes fill the card to the last byte");
        for (int i = 0; i < 16; i++) {
                (void) kill(pids[i], SIGKILL);
                (void) waitpid(pids[i], NULL, 0);
        }
        is(used_bytes(0), 0, "and give all of it back");
}

static void forked_child_has_no_card(void)
{
        pid_t pid = fork();
        if (pid == 0) {
                struct driver d = driver_load();
                CUdeviceptr p;
                if (driver_begin(&d) != CUDA_OK || d.alloc(&p, 64 * MIB) != CUDA_OK)
                        _exit(1);
                pid_t child = fork();
                if (child == 0) {
                        CUdeviceptr q;
                        bool refused = d.alloc(&q, MIB) == CUDA_NOT_INITIALIZED && d.free(p) == CUDA_NOT_INITIALIZED;
                        _exit(refused && d.init(0) == CUDA_NOT_INITIALIZED ? 0 : 2);
                }
                int status;
                (void) waitpid(child, &status, 0);
                CUdeviceptr q;
                bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0 && d.alloc(&q, MIB) == CUDA_OK;
                _exit(fine && bytes_of(getpid(), 0) == 65 * MIB ? 0 : 3);
        }
        int status;
        (void) waitpid(pid, &status, 0);
        is((uint64_t) status, 0, "a forked child is answered 3, and its parent's books stay right");
        is(used_bytes(0), 0, "nothing is left of them");
}

static void exec_frees_what_was_held(void)
{
        int go[2];
        if (pipe(go) < 0)
                return;
        pid_t pid = fork();
        if (pid == 0) {
                struct driver d = driver_load();
                CUdeviceptr p;
                char byte;
                if (driver_begin(&d) == CUDA_OK && d.alloc(&p, 64 * MIB) == CUDA_OK && read(go[0], &byte, 1) == 1)
                        (void) execlp("sleep", "sleep", "600", (char *) NULL);
                _exit(1);
        }
        ok(WAIT_FOR(bytes_of(pid, 0) == 64 * MIB), "a process holds 64M");
        ok(write(go[1], "x", 1) == 1 && WAIT_FOR(used_bytes(0) == 0), "after exec the same pid holds nothing");
        ok(kill(pid, 0) == 0 && waitpid(pid, NULL, WNOHANG) == 0, "and is alive");
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(go[0]);
        (void) close(go[1]);
}

static void the_last_byte_counts(void)
{
        struct hog hog = hog_start("--alloc", "3071M", NULL);
        const char *too_much[] = { simgpu_program(), "hog", "--alloc", "1048577", NULL };
        const char *exactly[] = { simgpu_program(), "hog", "--alloc", "1048576", "--for", "1ms", NULL };
        is((uint64_t) run(NULL, 0, too_much), 3, "one byte more than is left is refused");
        is((uint64_t) run(NULL, 0, exactly), 0, "exactly what is left is given");
        hog_kill(&hog);
}

static void device_memory_is_not_the_process_s_own(void)
{
        struct driver d = driver_load();
        CUdeviceptr p = 0;
        static char page[65536];
        is((uint64_t) driver_begin(&d), CUDA_OK, "this process has a context");
        long before = status_kib(getpid(), "RssAnon");
        is((uint64_t) d.alloc(&p, 256 * MIB), CUDA_OK, "256M are allocated");
        memset(page, 7, sizeof page);
        for (size_t at = 0; at < 64 * MIB; at += sizeof page)
                if (d.to_device(p + at, page, sizeof page) != CUDA_OK)
                        break;
        memset(page, 0, sizeof page);
        is((uint64_t) d.to_host(page, p + 64 * MIB - sizeof page, sizeof page), CUDA_OK, "read back");
        ok(page[0] == 7 && page[sizeof page - 1] == 7, "what was written is there");
        is((uint64_t) d.to_host(page, p + 256 * MIB - 8, 16), CUDA_INVALID_VALUE, "reading past the end is refused");
        ok(status_kib(getpid(), "RssAnon") - before < 32 * 1024, "and is not in RssAnon");
        size_t free_bytes, total;
        is((uint64_t) d.info(&free_bytes, &total), CUDA_OK, "cuMemGetInfo");
        is(free_bytes, total - 256 * MIB, "says what is free");
        is((uint64_t) d.free(p), CUDA_OK, "freed");
        is((uint64_t) d.free(p), CUDA_INVALID_VALUE, "twice is refused");
}

static void hostile_files_are_errors(void)
{
        char path[4200], err[256];
        struct card bad;
        (void) snprintf(path, sizeof path, "%s.bad", card_path);
        static struct card_file copy;
        for (int kind = 0; kind < 6; kind++) {
                memcpy((void *) &copy, (const void *) card.file, sizeof copy);
                size_t size = sizeof copy;
                if (kind == 0)
                        size = 100;
                else if (kind == 1)
                        copy.magic[0] ^= 1;
                else if (kind == 2)
                        copy.n_devices = 1000000;
                else if (kind == 3)
                        memset(copy.device[0].uuid, 'x', sizeof copy.device[0].uuid);
                else if (kind == 4)
                        memset((void *) &copy.lock, 0xff, sizeof copy.lock);
                else
                        copy.version++;
                int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                bool written = fd >= 0 && write(fd, (const void *) &copy, size) == (ssize_t) size;
                (void) close(fd);
                ok(written && card_open(&bad, path, err, sizeof err) == -EINVAL, "hostile file %d is refused: %s", kind,
                   err);
        }
        /* Everything else garbage, but a plausible head: readers must stay inside. */
        memcpy((void *) &copy, (const void *) card.file, sizeof copy);
        for (uint8_t *p = (uint8_t *) copy.fault; p < (uint8_t *) &copy + sizeof copy; p++)
                *p = (uint8_t) ((uintptr_t) p * 31 >> 2);
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        bool written = fd >= 0 && write(fd, (const void *) &copy, sizeof copy) == (ssize_t) sizeof copy;
        (void) close(fd);
        const char *show[] = { simgpu_program(), "show", "--json", "--file", path, NULL };
        const char *trace[] = { simgpu_program(), "trace", "--file", path, NULL };
        ok(written && run(NULL, 0, show) <= 1, "show survives a file of garbage");
        ok(run(NULL, 0, trace) <= 1, "trace survives it");
        (void) unlink(path);
}

/* Numbers of another pid namespace say nothing: who looks from there must not bury the living. */
static void look_from_another_namespace_buries_nobody(void)
{
        struct hog hog = hog_start("--alloc", "40M", NULL);
        const char *look[] = { "unshare", "-rpf", "--mount-proc", simgpu_program(), "show", NULL };
        char out[4096];
        if (run(out, sizeof out, look) == 0)
                ok(strstr(out, "used 41943040 ") && used_bytes(0) == 40 * MIB,
                   "a look from another pid namespace buries nobody");
        else
                ok(true, "a look from another pid namespace # SKIP namespaces may not be made here");
        hog_kill(&hog);
}

int main(void)
{
        card_begin("--memory", "3G", NULL);
        killed_process_frees_at_once();
        kill_in_a_loop_of_allocations_leaves_exact_books();
        dead_lock_owner_is_survived();
        many_processes_at_once();
        parallel_allocations_never_exceed_the_card();
        forked_child_has_no_card();
        exec_frees_what_was_held();
        the_last_byte_counts();
        look_from_another_namespace_buries_nobody();
        hostile_files_are_errors();
        device_memory_is_not_the_process_s_own();
        return done();
}
