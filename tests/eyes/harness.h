/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A brain for tests: starts the real lessor-eyes on a simulated card, believes what they say, and keeps it.
 * Facts are polled for with a generous deadline (UNTIL); nothing here sleeps to be right, nothing measures time.
 * Environment: LESSOR_EYES (the program), LESSOR_SIMGPU (the simulated card's program).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/eyes.h"

enum { DEADLINE_MS = 60000, HARNESS_PROCESSES_MAX = 64 };

/* A card in a file of its own, gone with the test. */
struct card {
        char dir[64];
        char file[128];
        pid_t hogs[8];
        size_t n_hogs;
};

void card_create(struct card *card, const char *options);    /* "--gpus 2 --memory 64M" */
void card_destroy(struct card *card);                        /* kills the hogs, removes the file */
void card_fault(const struct card *card, const char *words); /* "ghost 3999999 10M" */
void card_clear(const struct card *card);
/* A process that holds memory; returns its pid once it does. @options after --alloc, may be "". */
pid_t card_hog(struct card *card, const char *size, const char *options);
void card_end_hog(struct card *card, pid_t pid);

struct device_seen {
        struct eyes_device device;
        struct eyes_reading reading;
        bool has_reading;
};

struct process_seen {
        struct eyes_process process;
        int pidfd;
        bool exited;
};

struct brain {
        pid_t pid;
        int sock;
        uint64_t last_request;
        bool has_hello;
        struct eyes_hello hello;
        unsigned n_hellos;
        uint32_t n_devices;
        struct device_seen devices[8];
        size_t n_processes;
        struct process_seen processes[HARNESS_PROCESSES_MAX];
        unsigned n_alarms[EYES_ALARM_KIND_N];
        bool closed; /* the eyes are gone */
};

/* @card NULL: without a simulated card. The brain's hello is sent; nothing is awaited. */
void brain_start(struct brain *b, const struct card *card);
/* Ends the eyes (SIGKILL when they do not leave) and gives their wait status. */
int brain_stop(struct brain *b);
void brain_send(struct brain *b, const struct eyes_message *msg);
/* One message, or false after @ms. Checks the promises of wire/eyes.h on the way. */
bool brain_hear(struct brain *b, int ms);
/* READ all; true when DONE came within @ms (0: at least try), false on silence or when the eyes are gone. */
bool brain_ask(struct brain *b, int ms);
const struct eyes_row *find_row(const struct eyes_reading *reading, pid_t pid);
struct process_seen *find_process(struct brain *b, pid_t pid);
uint64_t now_ms(void);

/* Ask until it is so. */
#define UNTIL(b, condition)                                                                                            \
        do {                                                                                                           \
                uint64_t until_ = now_ms() + DEADLINE_MS;                                                              \
                while (brain_ask((b), DEADLINE_MS) && !(condition))                                                    \
                        if (now_ms() > until_)                                                                         \
                                fail_msg("never so: %s", #condition);                                                  \
                        else                                                                                           \
                                (void) brain_hear((b), 5); /* somebody else may need the processor */                  \
                if (!(condition))                                                                                      \
                        fail_msg("the eyes are gone before: %s", #condition);                                          \
        } while (0)
