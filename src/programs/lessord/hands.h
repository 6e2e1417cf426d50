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
};

struct hands {
        struct hands_link *link; /* NULL: none on this machine */
        int launcher;            /* -1 = none */
        bool told, was_up;
        char words[400]; /* why there are none */
        struct hands_order orders[HANDS_ORDERS_MAX];
};

/* Before rights are given up: what starts the hands of a person's own session is left behind with them. */
void hands_prepare(struct daemon *d);
int hands_start(struct daemon *d, struct error *err);
/* ACTION_HAND, committed. */
void hands_act(struct daemon *d, const struct action *action);
/* The outcomes among these inputs are in the journal. */
void hands_settle(struct daemon *d, const struct inputs *stored);
bool hands_are_up(const struct daemon *d);
const char *hands_words(const struct daemon *d);
void hands_stop(struct daemon *d); /* run the loop once more, then hands_free() */
void hands_free(struct daemon *d);
