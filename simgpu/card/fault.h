/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* fault - the ways in which the card can be made to lie; one table for code, help and tests */

#include "card/card.h"

/* id, word, arguments, help. An OP or NAME argument lives in the symbol field, numbers in a and b. */
/* clang-format off */
#define FAULT_KINDS(X) \
        X(NVML_HANG,        "nvml-hang",        "[MS]",       "an NVML call blocks for MS ms, without MS until the fault is cleared") \
        X(NVML_CRASH,       "nvml-crash",       "",           "abort() inside an NVML call") \
        X(NVML_ERROR,       "nvml-error",       "CODE",       "an NVML call answers CODE (4 no permission, 13 at call time, 15, 17, 18 at init, …)") \
        X(MISSING_SYMBOL,   "missing-symbol",   "NAME",       "NVML name: 13 at call time; CUDA name: cuGetProcAddress no longer finds it. Truly absent: create --hide") \
        X(STRIDE32,         "stride32",         "",           "_v3 process lists write entries of 32 bytes, as R535.43-535.86 did") \
        X(UNKNOWN_MEMORY,   "unknown-memory",   "",           "per-process memory is all ones (not available)") \
        X(NO_MEMORY_INFO,   "no-memory-info",   "",           "the memory query answers 3, as on unified-memory parts") \
        X(LIST_SKEW,        "list-skew",        "MS",         "the process list is MS ms old while the memory figure is new; negative: the figure is old, the list new") \
        X(LAG_MEMORY,       "lag-memory",       "MS",         "a fall of the memory figure shows MS ms late, a rise at once") \
        X(GROWING_LIST,     "growing-list",     "[N]",        "a buffer of the size just asked for is N (1) entries too small: 7") \
        X(GHOST,            "ghost",            "PID BYTES",  "a pid that does not exist is listed with BYTES, which are used") \
        X(RESIDUE,          "residue",          "BYTES",      "BYTES are used and nobody is listed with them") \
        X(FOREIGN_PID,      "foreign-pid",      "[PID]",      "pids of another namespace: each is shown 4194304 higher, or the first one as PID") \
        X(TWO_LISTS,        "two-lists",        "",           "each process is in the compute list and in the graphics list") \
        X(LOST,             "lost",             "",           "the device fell off the bus: NVML 15, CUDA 999") \
        X(CUDA_ERROR,       "cuda-error",       "CODE",       "a CUDA driver call answers CODE") \
        X(LOCK_TIMEOUT,     "lock-timeout",     "",           "a kernel never drains: Lock waits its timeout and answers 600") \
        X(CHECKPOINT_FAIL,  "checkpoint-fail",  "[CODE]",     "Checkpoint answers CODE (304); the process is FAILED for good") \
        X(RESTORE_FAIL,     "restore-fail",     "",           "Restore answers 2, then 304 for ever, Unlock 401, as without room") \
        X(NO_EFFECT,        "no-effect",        "[OP]",       "OP (lock, checkpoint, restore, unlock; any) answers success and does nothing") \
        X(FAILED_STATE,     "failed-state",     "",           "GetState answers 3 FAILED") \
        X(UNKNOWN_STATE,    "unknown-state",    "[N]",        "GetState answers N (4), a state newer than the caller") \
        X(CHECKPOINT_HANG,  "checkpoint-hang",  "[OP]",       "OP (state, thread, lock, checkpoint, restore, unlock; any) blocks until the fault is cleared") \
        X(CHECKPOINT_SLOW,  "checkpoint-slow",  "MS",         "Checkpoint and Restore take MS ms longer") \
        X(CHECKPOINT_DIE,   "checkpoint-die",   "",           "the target is killed in the middle of Checkpoint") \
        X(GROUP_HANG,       "group-hang",       "",           "while any process is locked, calls on the others hang, as with NCCL peers")
/* clang-format on */

enum fault_kind {
        FAULT_NONE,
#define X(id, word, args, help) FAULT_##id,
        FAULT_KINDS(X)
#undef X
                FAULT_N
};

struct fault_about {
        const char *word, *args, *help;
};
extern const struct fault_about fault_table[FAULT_N];

enum fault_kind fault_parse(const char *word); /* FAULT_NONE = no such kind */

/*
 * fault_hit - is there such a fault for this device, pid and symbol? Counts --after and --times.
 * @device  NVML index, or -1 where the call names none (then only faults without --device bite)
 * @symbol  may be NULL: then only faults without a symbol bite
 * @ret     a copy; may be NULL
 */
bool fault_hit(struct card *card, enum fault_kind kind, int32_t device, uint32_t pid, const char *symbol,
               struct card_fault *ret);

/* fault_wait - block while that fault (by serial) exists, at most @ms (0 = no limit) */
void fault_wait(struct card *card, uint32_t serial, uint64_t ms);

int fault_add(struct card *card, const struct card_fault *fault); /* -ENOSPC when all CARD_FAULTS_MAX are taken */
int fault_clear(struct card *card, enum fault_kind kind);         /* FAULT_NONE = all; returns how many went */
void fault_post_event(struct card *card, int32_t device, uint64_t type, uint64_t data);
