/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The record of one process that is parked, held, or on its way there: bytes of a small text file, one `key=value` a line, in
 * one order, so that there is one way to write a record. It is what outlives every daemon (design 4.4): the hands write it
 * before and after each step; lessord, `lessor rescue` and a person with less(1) read it. wire/parked.h is the folder.
 *
 *   lessor_record=1 … boot_id, pid, start_ticks, pidfd_inode, uid, device, bytes, host_bytes, step, lease_id, flags, hold, ending,
 *   restored, oom_kept, oom_score_adj, time_s
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/own_folder.h"
#include "wire/warden.h"

enum {
        RECORD_VERSION = 1,
        RECORD_MAX = 1024, /* bytes of a file, generously */
        RECORD_BOOT_ID_SIZE = BOOT_ID_SIZE,
        RECORD_NAME_SIZE = 32, /* "4711-123456" */
};

/* Where it stands. Those that end in -ing are written before the driver is called: how it ended the driver's state tells. */
enum record_step {
        RECORD_NO_STEP,
        RECORD_LOCKING,
        RECORD_LOCKED, /* its CUDA calls wait */
        RECORD_HELD,   /* locked, to stay so; let go by whoever finds that no daemon is there */
        RECORD_CHECKPOINTING,
        RECORD_CHECKPOINTED, /* its device memory is in its host memory */
        RECORD_STOPPED,      /* that, and SIGSTOP: never ask the driver about it, the answer does not come */
        RECORD_RESTORING,
        RECORD_UNLOCKING,
        RECORD_FAILED,   /* the driver failed: no call is made any more, only its end helps */
        RECORD_RESTORED, /* a note: it runs, and was restored once (it has to be checkpointed before it is killed) */
        RECORD_STEP_N,
};

struct record {
        char boot_id[RECORD_BOOT_ID_SIZE]; /* a record of another boot says nothing */
        uint32_t pid;
        uint64_t start_ticks;
        uint64_t pidfd_inode; /* 0 = not known */
        uint32_t uid;
        uint8_t device_uuid[WARDEN_UUID_SIZE];
        uint64_t bytes;      /* of the device, as the order said */
        uint64_t host_bytes; /* by how much its host memory grew; 0 until checkpointed */
        enum record_step step;
        uint64_t lease_id;
        uint32_t flags;        /* WARDEN_FLAG_… */
        bool hold;             /* the lock is that of a HOLD */
        bool ending;           /* checkpointed only to be killed */
        bool restored;         /* was restored once */
        bool oom_kept;         /* oom_score_adj below is to be put back */
        int32_t oom_score_adj; /* as it was: -1000 … 1000; 0 unless kept */
        uint64_t time_s;       /* CLOCK_REALTIME when this was written, for people */
};

/* True while its memory is in host RAM, or may be: not to be signalled, not dead because NVML does not list it. */
static inline bool record_step_is_parked(enum record_step step)
{
        return step >= RECORD_CHECKPOINTING && step <= RECORD_RESTORING;
}

/* True for the -ing steps. */
static inline bool record_step_is_on_its_way(enum record_step step)
{
        return step == RECORD_LOCKING || step == RECORD_CHECKPOINTING || step == RECORD_RESTORING ||
               step == RECORD_UNLOCKING;
}

/* -EINVAL: a field outside its range. @size of RECORD_MAX is always enough. The text has no NUL. */
int record_format(const struct record *record, char *buf, size_t size, size_t *ret_n, struct error *err);
/*
 * Any bytes are safe; what is accepted is formatted again to the same bytes. -EPROTONOSUPPORT: of another version.
 * -EBADMSG: damaged; @ret is all zero then.
 */
int record_parse(const void *data, size_t n_data, struct record *ret, struct error *err);

/* "PID-START", the file's name. */
void record_name(uint32_t pid, uint64_t start_ticks, char ret[RECORD_NAME_SIZE]);
/* The other way round; false: no name of a record. */
bool record_name_parse(const char *name, uint32_t *ret_pid, uint64_t *ret_start_ticks);

const char *record_step_name(enum record_step step); /* "checkpointed"; never NULL */
/* "GPU-12345678-1234-…", 40 bytes and a NUL. */
enum { RECORD_UUID_TEXT_SIZE = 41 };
void record_uuid_text(const uint8_t uuid[WARDEN_UUID_SIZE], char ret[RECORD_UUID_TEXT_SIZE]);
/* False: not that form ("MIG-…"), or not in small letters; @ret is left alone. */
bool record_uuid_parse(const char *text, uint8_t ret[WARDEN_UUID_SIZE]);
