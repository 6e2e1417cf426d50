/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From the core's orders to the hands, and from what came of them to the core's inputs. An outcome is kept by the hands until
 * it is in the journal: then, and only then, they may forget it.
 */
#include <stdbool.h>
#include "base/error.h"
#include "model/action.h"
#include "programs/lessord/hands_link.h"
#include "programs/lessord/inputs.h"

struct daemon;

struct hands_order {
        uint64_t id; /* 0 = an empty row */
        uint64_t lease_id;
        struct identity process;
        enum hand_verb verb;
};

struct hands {
        struct hands_link *link; /* NULL: none on this machine */
        int launcher;            /* -1 = none */
        bool told, was_up;
        bool resolve; /* they came up: orders that nobody knows any more are to be found, when the world is what the disk has */
        char words[400]; /* why there are none */
        struct hands_order orders[HANDS_ORDERS_MAX];
};

/* Before rights are given up: what starts the hands of a person's own session is left behind with them. */
void hands_prepare(struct daemon *d);
int hands_start(struct daemon *d, struct error *err);
/* ACTION_HAND, committed. */
void hands_act(struct daemon *d, const struct action *action);
/* A question that is no action (unseen.h): its outcome is the asker's. */
void hands_look_at(struct daemon *d, const struct warden_order *order, const char *path);
/* The outcomes among these inputs are in the journal. */
void hands_settle(struct daemon *d, const struct inputs *stored);
/* After a turn: what became of orders that were lost. */
void hands_resolve(struct daemon *d);
/* An order to @who is under way, or its outcome is not stepped yet. */
bool hands_work_on(const struct daemon *d, struct identity who);
/* They have the program for it, on a machine for it. */
bool hands_can_checkpoint(const struct daemon *d);
bool hands_are_up(const struct daemon *d);
const char *hands_words(const struct daemon *d);
void hands_stop(struct daemon *d); /* run the loop once more, then hands_free() */
void hands_free(struct daemon *d);
