/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often a user may do something: a bucket a uid holds @burst tokens and gains @per_s of them a second. Pure: time is an
 * argument. A full bucket is the same as none, so the row that was longest untouched makes room for a new uid.
 */
#include <stdint.h>

enum { BUCKETS_MAX = 256 };

struct bucket {
        uint32_t uid;
        uint64_t level_milli; /* thousandths of a token */
        uint64_t at_ms;       /* when that was so */
};

struct buckets {
        uint32_t per_s; /* 0 = no limit: everything is let through */
        uint32_t burst;
        uint32_t n;
        struct bucket rows[BUCKETS_MAX];
};

/* 0: @cost tokens were there and are taken. Else nothing is taken, and it is how many ms it takes until they are there. */
uint64_t buckets_take(struct buckets *b, uint32_t uid, uint32_t cost, uint64_t now_ms);
/* The same question without taking; and taking without a question, down to empty. */
uint64_t buckets_wait_ms(struct buckets *b, uint32_t uid, uint32_t cost, uint64_t now_ms);
void buckets_charge(struct buckets *b, uint32_t uid, uint32_t cost, uint64_t now_ms);
