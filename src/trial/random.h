/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers that look random and are not: splitmix64, so that a seed means the same on every machine. Everybody in the world has
 * a stream of his own, made from the seed and who he is: taking one of them out of a scenario changes nothing for the others.
 */
#include <stdbool.h>
#include <stdint.h>

struct random {
        uint64_t state;
};

static inline uint64_t random_mix(uint64_t z)
{
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static inline struct random random_of(uint64_t seed, uint64_t kind, uint64_t number)
{
        return (struct random){ random_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * (kind + 1)) ^ random_mix(~number) };
}

static inline uint64_t random_below(struct random *r, uint64_t n)
{
        return n == 0 ? 0 : random_mix(r->state += UINT64_C(0x9e3779b97f4a7c15)) % n;
}

static inline uint64_t random_between(struct random *r, uint64_t from, uint64_t to)
{
        return from + random_below(r, to - from + 1);
}

static inline bool random_one_in(struct random *r, uint64_t n)
{
        return random_below(r, n) == 0;
}
