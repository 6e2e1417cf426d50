/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `run` and `lease acquire` ask for: their common options, read and checked, and the request made of them. */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/size.h"
#include "client/lessor.h"
#include "model/lease.h"
#include "model/limits.h"
#include "programs/lessor/hook.h"
#include "programs/lessor/verb.h"

enum if_down { IF_DOWN_WAIT, IF_DOWN_RUN, IF_DOWN_FAIL };
enum visible_way { VISIBLE_AUTO, VISIBLE_UUID, VISIBLE_INDEX, VISIBLE_NONE };

struct ask {
        bool has_size;
        struct size size;
        uint8_t priority; /* 0 = not said */
        uint64_t for_ms;  /* 0 = no limit */
        uint64_t wait_ms; /* UINT64_MAX = for ever, 0 = not at all */
        uint64_t ttl_ms;  /* acquire; 0 = bound to a process */
        uint64_t pid;     /* whose life it is bound to */
        bool managed;
        bool kill_at_end;
        bool kill_left;
        bool exclusive;
        bool filler;
        bool no_stop;
        bool size_from_use; /* `adopt`: without a size, what it uses now */
        bool quiet;
        bool collects_itself; /* `run`: once it is known what runs under it */
        uint8_t if_down;      /* enum if_down */
        uint8_t visible;      /* enum visible_way */
        uint8_t gpus;         /* 0 = one */
        const char *name;     /* NULL = none */
        const char *yield_by;
        int yield_signal, back_signal; /* `run`: how its command is told; 0 = not by a signal */
        bool has_hook;
        struct hook_target hook;
        char booking[LEASE_ID_TEXT_MAX]; /* `run`: in what was booked; "" = asked for anew */
        char device[UUID_TEXT_MAX];      /* "" = any */
        char consumer[NAME_MAX_BYTES];   /* "" = by the program */
};

/* Their rows, for the verb table. */
extern const struct option ask_options[];
/* Defaults, and what the environment says (LESSOR_IF_DOWN). */
int ask_init(struct ask *ask, struct error *err);
/* What only makes sense together. 0, or -EINVAL with words. */
int ask_check(const struct ask *ask, struct error *err);
/* One option by name. 0, or -EINVAL with words; -ENOENT: not one of the common ones. */
int ask_option(struct ask *ask, const char *name, const char *value, struct error *err);
/* The same as liblessor asks it. @wait_ms UINT64_MAX = for ever. 0 and *ret is the caller's, or a negative errno. */
int ask_request(const struct ask *ask, uint64_t wait_ms, struct lessor_request **ret);
/* "1500 MiB (1.57 GB)", "90 %", "the whole device". Returns @buf. */
const char *ask_size_text(const struct ask *ask, char buf[SIZE_TEXT_MAX]);
