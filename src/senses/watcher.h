/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The work of lessor-eyes without its socket: looks at the devices when due or asked, finds out who the rows are, holds
 * every process by its pidfd, and says what changed (wire/eyes.h tells in which order). One thread; every wait is the
 * caller's. Any struct gpu_ops will do.
 *
 *         watcher_init(); watcher_hello();
 *         for (;;) {  poll(socket, w->table.epoll_fd, watcher_timeout_ms());  watcher_clock();
 *                     watcher_message() each;  watcher_turn();  }
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "senses/activity.h"
#include "senses/descent.h"
#include "senses/gpu.h"
#include "senses/process.h"
#include "senses/process_table.h"
#include "wire/eyes.h"

enum {
        WATCHER_REQUESTS_MAX = 64,      /* READs answered from one look; the caller reads no more messages while full */
        WATCHER_ALARM_EVERY_MS = 60000, /* at most one alarm of a kind about a device in this time */
        WATCHER_RETRY_FIRST_MS = 5000,  /* driver not OK: after 5, 10 … 120 s; 9 tries in 10 minutes (F24: <= 10) */
        WATCHER_RETRY_MOST_MS = 120000,
        WATCHER_REVIVE_FIRST_MS = 10000, /* a lost device: initialise again after 10, 20 … s, then every 10 minutes */
        WATCHER_REVIVE_MOST_MS = 600000,
        WATCHER_SLEPT_MS = 2000, /* the machine slept: beyond what reading two clocks one after the other can differ */
};

/*
 * Hands one message to the brain. @fd (-1: none) travels with it and stays the watcher's own.
 * Negative errno: the brain is gone; the watcher stops talking and watcher_turn() returns the error.
 */
typedef int (*watcher_send_fn)(void *ctx, const struct eyes_message *msg, int fd);

struct watcher_alarm {
        uint64_t sent_ms; /* 0 = never */
        uint32_t n_dropped;
};

struct watched_device {
        struct eyes_device facts;
        struct eyes_device told;  /* the DEVICE that was sent last; uuid "" = none yet */
        bool named;               /* the last start of the driver listed it: it can be asked about */
        bool sent_valid;          /* @sent was sent */
        bool has_good_rows;       /* @good holds a list that passed */
        struct eyes_reading sent; /* the last one the brain got */
        struct eyes_reading good; /* the last one with a good list */
        struct device_activity activity;
        struct watcher_alarm alarms[EYES_ALARM_KIND_N];
};

struct watcher {
        const struct gpu_ops *ops;
        void *gpu;
        struct process_source source;
        struct process_table table;
        struct descent
                *descent; /* who descends from whom, where parents are gone; NULL: /proc alone says. The caller's */
        watcher_send_fn send;
        void *send_ctx;
        int send_error; /* negative errno once the brain is gone */

        struct gpu_driver driver;
        struct eyes_hello told; /* the HELLO that was sent last; version 0 = none yet */
        uint32_t n_hidden;
        uint32_t n_devices;
        struct watched_device devices[EYES_DEVICES_MAX];
        struct watcher_alarm alarms[EYES_ALARM_KIND_N]; /* those about no device */

        uint32_t interval_ms;
        uint64_t next_look_ms;
        uint32_t activity_ms;
        uint64_t next_activity_ms; /* at the first look from then on */
        uint64_t next_start_ms;    /* 0 = no need to initialise the driver again */
        uint64_t start_wait_ms;    /* what the next failure will wait */
        bool asleep_known;
        uint64_t asleep_ms; /* as last told */
        uint32_t n_requests;
        struct eyes_read requests[WATCHER_REQUESTS_MAX];

        struct eyes_reading look; /* being put together */
        struct eyes_message out;
};

/* @w is about 8 MiB, most of it never touched: static, or from the heap. @max_processes as for process_table_init(). */
int watcher_init(struct watcher *w, const struct gpu_ops *ops, void *gpu, const char *proc_root, size_t max_processes,
                 watcher_send_fn send, void *send_ctx, struct error *err);
void watcher_fini(struct watcher *w);
/* Before watcher_hello(); begins with who lives now. */
void watcher_descent(struct watcher *w, struct descent *descent, uint64_t now_ms);

/* Initialise the driver and say HELLO and DEVICEs; call once, when the brain has said hello. */
int watcher_hello(struct watcher *w, uint64_t now_ms);
/*
 * @asleep_ms as of clock_asleep_ms(). When it grew, the machine was suspended in between: the driver may be there and not
 * work any more (F26), and what was read before is of another day. The next turn initialises it anew, once, and tells all.
 */
void watcher_clock(struct watcher *w, uint64_t asleep_ms, uint64_t now_ms);
/* INTERVAL and READ. -EPROTO: not a message for the eyes. -EBUSY: WATCHER_REQUESTS_MAX are waiting, call watcher_turn(). */
int watcher_message(struct watcher *w, const struct eyes_message *msg, uint64_t now_ms);
/* Everything that is due: exits, looks, answers, another try with the driver. Negative errno: the brain is gone. */
int watcher_turn(struct watcher *w, uint64_t now_ms);
/* How long the caller may sleep when nothing arrives. */
int watcher_timeout_ms(const struct watcher *w, uint64_t now_ms);
