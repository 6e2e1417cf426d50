/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * harness - what the tests of the simulated card share: TAP, a card in a temporary folder, hogs, both libraries loaded
 *
 * Nothing sleeps to be right: WAIT_FOR polls for a fact and gives up after a deadline that only a broken card reaches.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "card/card.h"
#include "cuda/abi.h"
#include "nvml/abi.h"

#define MIB (1024ull * 1024)
#define DEADLINE_S 60

/* ok - one line of TAP; done - the plan and the exit status */
#define printf_like(f, a) __attribute__((__format__(__printf__, f, a)))
bool ok(bool good, const char *fmt, ...) printf_like(2, 3);
int done(void);
/* is - the same for two numbers, which are shown when they differ */
bool is(uint64_t got, uint64_t want, const char *what);

static inline void nap(void)
{
        struct timespec ts = { .tv_nsec = 1000000 };
        (void) nanosleep(&ts, NULL);
}
#define WAIT_FOR(fact)                                                                                                 \
        ({                                                                                                             \
                uint64_t until_ns_ = card_now_ns() + DEADLINE_S * 1000000000ull;                                       \
                bool fact_;                                                                                            \
                while (!(fact_ = (fact)) && card_now_ns() < until_ns_)                                                 \
                        nap();                                                                                         \
                fact_;                                                                                                 \
        })

/*
 * card_begin - `simgpu create` with these options (NULL at the end), $SIMGPU set, the card open as `card`
 * Removes the card of before. The folder goes at exit.
 */
extern struct card card;
extern char card_path[];
void card_begin(const char *option, ...);

/* run - a command; its exit status, its stdout (at most size - 1 bytes) in @out */
int run(char *out, size_t size, const char *const *argv);
const char *simgpu_program(void);

struct hog {
        pid_t pid;
        FILE *out;
};
/* hog_start - `simgpu hog` with these options; returns when it says that it holds its memory */
struct hog hog_start(const char *option, ...);
void hog_kill(struct hog *hog);                       /* SIGKILL and reap */
long status_kib(pid_t pid, const char *field);        /* RssAnon and the like, from /proc/PID/status; -1 = not there */
bool next_count(struct hog *hog, unsigned long *ret); /* the next "count N" line */

/* Truths straight from the file. */
uint64_t used_bytes(uint32_t device);
uint64_t bytes_of(pid_t pid, uint32_t device); /* as NVML would list */

/* Symbols of the libraries of this card; NULL = not there. */
void *nvml_symbol(const char *name);
void *cuda_symbol(const char *name);             /* dlsym */
void *cuda_entry(const char *base, int version); /* through cuGetProcAddress_v2, as the CUDA runtime does */

/* call(NVML, nvmlReturn_t, (args…)) is written out where it is used: LOAD(nvml_symbol, fn, "name") gives fn its type. */
#define LOAD(from, function, ...)                                                                                      \
        do {                                                                                                           \
                void *symbol_ = from(__VA_ARGS__);                                                                     \
                __builtin_memcpy(&(function), &symbol_, sizeof symbol_);                                               \
        } while (0)
