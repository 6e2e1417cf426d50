/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * card - the simulated card: one shared-memory file that every process maps
 *
 * Two kinds of fields live in it. What a process holds (struct card_proc) is written by that process alone, one
 * aligned store per change: a kill can tear nothing, because what dies half-written dies with its owner. Everything
 * else is written under `lock`, a robust mutex; sums such as "used" are never stored, they are made from the parts at
 * each look. So EOWNERDEAD needs no repair beyond making the mutex usable again.
 *
 * The file may be hostile: card_open checks everything that is later used as a size or an index.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARD_MAGIC "simgpu.1"
#define CARD_VERSION 1
#define CARD_DEVICES_MAX 16
#define CARD_PROCS_MAX 1024  /* as many CUDA processes as one driver call could ever list */
#define CARD_VIEWERS_MAX 256 /* processes with NVML initialised; they keep the "driver" loaded */
#define CARD_FAULTS_MAX 32
#define CARD_HIDDEN_MAX 32
#define CARD_EVENTS_MAX 256
#define CARD_TRACE_MAX 32768 /* 2.5 MiB: some thousand hand-overs before the ring wraps */
#define CARD_SYMBOL_MAX 64

enum card_abi { CARD_ABI_NEW, CARD_ABI_R535, CARD_ABI_OLD, CARD_ABI_N };

/* Settings that a real driver forgets when its last client leaves and persistence is off. */
struct card_settings {
        uint32_t power_limit_mw;                     /* 0 = the default */
        uint32_t gpu_lock_min_mhz, gpu_lock_max_mhz; /* 0 = not locked */
        uint32_t mem_lock_min_mhz, mem_lock_max_mhz;
        int32_t gpu_offset_mhz, mem_offset_mhz;
        uint32_t accounting;
        uint32_t compute_mode;
};

struct card_device {
        char uuid[48]; /* GPU-8-4-4-4-12 */
        char name[96];
        uint64_t total_bytes;
        uint64_t driver_reserve_bytes; /* used on an idle card */
        uint64_t context_bytes;        /* what a context costs each process */
        uint32_t pci_domain, pci_bus, pci_device;
        uint32_t minor;
        uint32_t cc_major, cc_minor;
        uint32_t persistence;
        struct card_settings settings;
};

/* What one process has on one device. Written by its owner only. */
struct card_use {
        _Atomic uint64_t bytes;         /* listed by NVML */
        _Atomic uint64_t managed_bytes; /* used, but never listed */
        _Atomic uint64_t parked_bytes;  /* moved to host memory by a checkpoint */
        _Atomic uint32_t contexts;
        _Atomic uint32_t shown;         /* a driver call has listed it here; written by who looks */
        _Atomic uint64_t worked_us;     /* when it last did something there, since 1970; 0 = never */
        _Atomic uint32_t worked_sm;     /* percent of that: kernels … */
        _Atomic uint32_t worked_memory; /* … and copies */
};

enum card_state { CARD_RUNNING, CARD_LOCKED, CARD_CHECKPOINTED, CARD_FAILED };

/*
 * A CUDA process. It lives as long as its helper thread does: the thread ends with the process, with exec, and with
 * SIGKILL, and a zombie has none left, so one look at /proc/PID/task/TID answers all of that.
 */
struct card_proc {
        _Atomic uint32_t pid; /* 0 = free; stored last when taken */
        uint32_t helper_tid;
        uint64_t start_ticks; /* of the process, for people and for identity */
        uint64_t helper_start_ticks;
        uint32_t uid;
        _Atomic uint32_t state; /* enum card_state */
        uint32_t graphics;
        uint64_t
                pid_namespace; /* whose numbers pid and helper_tid are; only lookers in there can tell life from death */
        uint32_t restored;     /* ever restored: drivers are known to hang when such a one is killed */
        _Atomic uint32_t work_percent; /* `simgpu work`: it computes all the time */
        struct card_use use[CARD_DEVICES_MAX];
};

struct card_viewer {
        _Atomic uint32_t pid;
        uint32_t reserved;
        uint64_t start_ticks;
        uint64_t pid_namespace;
};

struct card_fault {
        uint32_t kind;         /* enum fault_kind; 0 = free */
        int32_t device;        /* NVML index, -1 = any */
        uint32_t pid;          /* 0 = any */
        uint32_t after, times; /* matches still to let pass; bites left, 0 = for ever */
        uint32_t serial;
        int64_t a, b;                 /* arguments, see fault.h */
        char symbol[CARD_SYMBOL_MAX]; /* fnmatch pattern, empty = any */
};

struct card_event {
        uint64_t type, data;
        int32_t device;
        uint32_t reserved;
};

struct card_trace {
        uint64_t seq;   /* 1, 2, 3 …; stored last */
        uint64_t at_ns; /* CLOCK_MONOTONIC */
        uint32_t kind;  /* enum trace_kind */
        uint32_t pid;
        int32_t device; /* NVML index, -1 = none */
        int32_t rc;
        uint64_t bytes;
        uint64_t used_before, used_after; /* of that device */
        uint64_t listed_before;           /* what NVML said of this pid before */
};

struct card_file {
        char magic[8];
        uint32_t version;
        uint32_t size_check; /* sizeof(struct card_file): a different build says so instead of guessing */
        uint64_t id;         /* names the helper sockets; differs per file */
        uint32_t n_devices;
        uint32_t abi; /* enum card_abi */
        uint32_t reverse_cuda_order;
        uint32_t n_hidden;
        char hidden[CARD_HIDDEN_MAX][CARD_SYMBOL_MAX];
        struct card_device device[CARD_DEVICES_MAX];

        pthread_mutex_t lock;
        _Atomic uint32_t n_faults; /* lets a call without faults skip the lock */
        uint32_t fault_serial;
        struct card_fault fault[CARD_FAULTS_MAX];
        _Atomic uint64_t event_seq; /* events written so far */
        struct card_event event[CARD_EVENTS_MAX];
        _Atomic uint32_t procs_high; /* slots ever taken: the loops end here */
        struct card_proc proc[CARD_PROCS_MAX];
        struct card_viewer viewer[CARD_VIEWERS_MAX];
        _Atomic uint64_t trace_seq;
        struct card_trace trace[CARD_TRACE_MAX];
};

struct card {
        struct card_file *file; /* NULL = not open */
        uint32_t n_devices;     /* checked copy: the file may be overwritten under us */
};

/*
 * card_open - map an existing card
 * @path        NULL = $SIMGPU
 * @reterr      one line of words on failure, at least 200 bytes
 * Returns 0, or -ENOENT (no such card, or SIMGPU unset), -EINVAL (not a card: wrong magic, version, size or content), -errno.
 */
int card_open(struct card *card, const char *path, char *reterr, size_t reterr_size);
void card_close(struct card *card);

/* card_create - make a new file (for all users, or for this one) from a filled template; the parts under the lock are initialised here. -EEXIST if it is there. */
int card_create(const char *path, const struct card_file *template_file, bool for_all, char *reterr,
                size_t reterr_size);

/* card_lock - 0, or -ETIMEDOUT after 10 s (a stopped or hostile holder), -EINVAL on a mutex that is not one of ours. */
int card_lock(struct card *card);
void card_unlock(struct card *card);

uint64_t card_now_ns(void);
