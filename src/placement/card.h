/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who may be on one GPU together. A share is no isolation: MIG isolates, MPS shares a fault domain, time slices isolate nothing.
 * So a card never mixes ways of sharing, nor tenants, unless it is divided by MIG; and besides its parts (1000 in all) the memory
 * that is promised must be there.
 */
#include <stdint.h>

enum isolation { ISOLATION_NONE, ISOLATION_EXCLUSIVE, ISOLATION_MIG, ISOLATION_MPS, ISOLATION_TIMESLICE };

struct card { /* and what is on it */
        uint32_t vram_mib;
        uint32_t used_mib;
        uint32_t used_milli;
        uint32_t n; /* shares; 0: nobody is on it, and it may be anything */
        enum isolation isolation;
        uint32_t tenant; /* whose, unless it is divided by MIG */
};

struct share {
        enum isolation isolation;
        uint32_t tenant;
        uint32_t milli;
        uint32_t vram_mib;
};

enum card_verdict {
        CARD_FITS,
        CARD_OTHER_KIND,   /* is shared in another way */
        CARD_OTHER_TENANT, /* is somebody else's, and does not isolate */
        CARD_NO_PART,      /* more than 1000 in all; or wanted alone and not empty */
        CARD_NO_MEMORY,
};

enum card_verdict card_judge(const struct card *card, const struct share *share);
/* In words, with a verb: "is shared in another way". */
const char *card_verdict_words(enum card_verdict verdict);

/* Of a share that card_judge said fits; and the opposite. */
void card_take(struct card *card, const struct share *share);
void card_give(struct card *card, const struct share *share);
