/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What happens in a world, and when: made from a seed, or read from the text of a scenario. Everything else (how long a look
 * takes, whether a lock times out) follows from the seed and from who it happens to.
 *
 *      lessor-trial-scenario 1
 *      seed 17 hours 24
 *      card total=25769803776 driver=314572800
 *      off reading-late
 *      at 3600000 ask n=4 uid=1001 priority=3 bytes=12884901888 run=600000
 *      at 3700000 release n=4
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/error.h"
#include "trial/fault.h"

enum { CARDS_MAX = 4, EVENTS_MAX = 4096, EVENT_ARGS = 20 };

enum event_kind {
        EVENT_ASK,
        EVENT_ADOPT,   /* client n adopts the stranger that runs */
        EVENT_RELEASE, /* client n changes its mind */
        EVENT_CHANGE,
        EVENT_INTRUDE, /* somebody calls for what is not his */
        EVENT_PARK_CALL,
        EVENT_STRANGER,
        EVENT_ENFORCE, /* an administrator says what becomes of strangers */
        EVENT_HIDDEN,  /* memory on a card that is listed for nobody */
        EVENT_LOSE_CARD,
        EVENT_SILENCE,
        EVENT_HANDS_AWAY,
        EVENT_HANDS_KILLED,
        EVENT_CRASH, /* of lessord, at its next write */
        EVENT_POWER, /* of the machine, at its next write */
        EVENT_SUSPEND,
        EVENT_CLOCK_AHEAD,
        EVENT_CLOCK_SET, /* people's clock, not the world's */
        EVENT_HOST,
        EVENT_CONFIG,
        EVENT_DIE, /* a process of client n dies */
        EVENT_KIND_N,
};

/* Arguments of EVENT_ASK; the other kinds have few, by their place (script.c). */
enum ask_arg {
        ASK_N, /* who: the same number in every event about it */
        ASK_UID,
        ASK_PRIORITY,
        ASK_BYTES, /* 0: a share, in ASK_PERCENT */
        ASK_PERCENT,
        ASK_SLOT_MS,
        ASK_WAIT_MS,
        ASK_CARD,     /* 0 = any, else its number + 1 */
        ASK_WAYS,     /* bit mask of ways out */
        ASK_FLAGS,    /* enum ask_flag */
        ASK_TTL_MS,   /* 0: bound to a process */
        ASK_CONSUMER, /* 0 = no name */
        ASK_RUN_MS,
        ASK_USE_MILLI, /* of its reservation that it will use */
        ASK_PROCESSES,
        ASK_IDLE_MS,  /* 0: it never says that it is idle; else it is, so long after it began */
        ASK_START_MS, /* a booking, for so much later; 0 = now */
        ASK_EVERY_MS, /* and again: how long a day is; 0 = once */
};

enum enforce_event { /* args of EVENT_ENFORCE: what, mode, for, admin, pick */
                     ENFORCE_EVENT_MODE,
                     ENFORCE_EVENT_APPROVE,
                     ENFORCE_EVENT_APPROVE_HERE,
                     ENFORCE_EVENT_UNAPPROVE,
                     ENFORCE_EVENT_CEILING, /* by configuration */
                     ENFORCE_EVENT_N,
};

enum ask_flag {
        ASK_ADMIN = 1 << 0,
        ASK_NO_WAIT = 1 << 1,
        ASK_COLLECTED = 1 << 2,
        ASK_MANAGED = 1 << 3,
        ASK_KILL_AT_END = 1 << 4,
        ASK_KILL_LEFT = 1 << 5,
        ASK_EXCLUSIVE = 1 << 6,
        ASK_FILLER = 1 << 7,
        ASK_NO_STOP = 1 << 8,
        ASK_LEARNED = 1 << 9,
        ASK_PROVEN = 1 << 10,
        ASK_GANG_2 = 1 << 12, /* on two devices; with the next: on three */
        ASK_GANG_3 = 1 << 13,
        ASK_NO_COMMAND = 1 << 11, /* room for what lessor does not start (lessor clear) */
};

struct event {
        uint64_t at_ms; /* since the beginning */
        uint8_t kind;   /* enum event_kind */
        uint64_t arg[EVENT_ARGS];
};

struct card_plan {
        uint64_t total_bytes, driver_bytes;
};

struct script {
        uint64_t seed;
        uint64_t hours;
        bool hurried; /* aging and blocking in seconds: the slow rules have their turn */
        uint32_t n_cards;
        struct card_plan cards[CARDS_MAX];
        bool off[FAULT_N];
        uint32_t n_events;
        struct event events[EVENTS_MAX]; /* by time */
};

void script_make(struct script *script, uint64_t seed, uint64_t hours);
void script_print(const struct script *script, FILE *to);
int script_read(struct script *script, FILE *from, struct error *err); /* -EBADMSG with the line in words */
const char *event_kind_name(enum event_kind kind);
