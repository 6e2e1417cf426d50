/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to eyes_link.c (a child's life: start, deadline, end, back-off) and eyes_talk.c (what is said with it). Life knows
 * whom we listen to and how long it may be silent; talk knows what a message means and what the core was told of it.
 */
#include <stdbool.h>
#include <uv.h>
#include "programs/lessord/eyes_child.h"
#include "programs/lessord/eyes_link.h"
#include "programs/lessord/guards.h"
#include "wire/eyes.h"

struct eyes_slot {
        struct eyes_link *link;
        struct eyes_child child; /* pid 0 = free */
        uv_poll_t exit_poll;
        bool polled; /* exit_poll is open */
        uint64_t killed_ms;
};

struct eyes_read_sent {
        uint64_t id; /* 0 = free */
        uint64_t sent_ms;
        bool ordered; /* by the core: its readings count even where nothing changed */
};

struct eyes_seen_device {
        char uuid[EYES_UUID_SIZE];
        uint64_t looked_ms;        /* CLOCK_MONOTONIC; 0 = never */
        bool named;                /* by the process that is alive */
        struct eyes_reading *last; /* what the core was told last */
};

struct eyes_link {
        uv_loop_t *loop;
        struct eyes_host host;
        char program[4096];
        char accounting[4096];
        uint64_t deadline_ms;
        uint64_t interval_ms, activity_ms;
        struct eyes_slot slots[EYES_ALIVE_MAX];
        struct eyes_slot *now; /* whom we listen to; NULL between two */
        uv_poll_t *sock_poll;  /* one for each process; freed when the loop has let go of it */
        bool paused, stopping, first_look_told;
        uv_timer_t deadline, restart, ping;
        uint64_t backoff_ms;

        bool has_hello;
        bool told, told_answering; /* the core, by us */
        bool answered;             /* this process has shown that the driver answers */
        bool looked;               /* and has looked at everything once */
        uint64_t started_ms;
        uint64_t answered_ms; /* CLOCK_MONOTONIC of the last answer of any process; 0 = never */
        struct eyes_hello hello;
        struct guards guards;
        uint64_t next_read_id;
        struct eyes_read_sent reads[EYES_READS_MAX];
        uint32_t n_devices;
        struct eyes_seen_device devices[EYES_DEVICES_MAX];
        struct eyes_message msg, out;
        uint8_t buf[EYES_MESSAGE_MAX];
        struct occupancy rows[ROWS_MAX];
};

/* ---- eyes_link.c ---- */
/* It hangs, died or talks nonsense: end it, say so once, plan the next. */
void eyes_fail(struct eyes_link *e, const char *why);
/* After every question and every answer: the oldest question decides. */
void eyes_arm_deadline(struct eyes_link *e);

/* ---- eyes_talk.c ---- */
/* e->now is a new process: nothing that the one before said or was asked counts. */
void eyes_talk_begin(struct eyes_link *e);
void eyes_talk_on_sock(uv_poll_t *poll, int status, int events);
/* The core hears that the driver answers, or does not; once each. */
void eyes_talk_answering(struct eyes_link *e, bool answering);
void eyes_talk_first_look(struct eyes_link *e);
