/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers that look random and are not: splitmix64, so that a seed means the same on every machine. Each use has a stream of its
 * own, made from the seed and a word for the use: what one draws changes nothing for the others.
 */
#include <stdint.h>

struct draw {
        uint64_t state;
};

static inline uint64_t draw_mix(uint64_t z)
{
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static inline struct draw draw_of(uint64_t seed, uint64_t use)
{
        return (struct draw){ draw_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * (use + 1)) };
}

static inline uint64_t draw_next(struct draw *d)
{
        return draw_mix(d->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 … n-1, each equally likely: the high half of a product, and again where that would favour some (Lemire). @n is not 0. */
static inline uint64_t draw_below(struct draw *d, uint64_t n)
{
        unsigned __int128 product = (unsigned __int128) draw_next(d) * n;

        if ((uint64_t) product < n) {
                uint64_t unfair = (0 - n) % n;
                while ((uint64_t) product < unfair)
                        product = (unsigned __int128) draw_next(d) * n;
        }
        return (uint64_t) (product >> 64);
}

static inline uint64_t draw_between(struct draw *d, uint64_t from, uint64_t to)
{
        return from + draw_below(d, to - from + 1);
}
