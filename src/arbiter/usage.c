/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/usage.h"

#define ONE_Q32 (UINT64_C(1) << 32)
#define LN2_Q32 UINT64_C(2977044471) /* ln 2 in 32 bits after the point */

/* 2^-(2^-k) for k = 1, 2, …: the factors of any 2^-f with f in [0, 1), bit by bit. */
static const uint64_t halvings_q32[] = {
        3037000499, 3611622602, 3938502375, 4112874773, 4202935003, 4248701964, 4271771996, 4283353945,
        4289156690, 4292061009, 4293513906, 4294240539, 4294603902, 4294785595, 4294876444, 4294921870,
        4294944583, 4294955939, 4294961617, 4294964456, 4294965876, 4294966586, 4294966941, 4294967118,
};
enum { HALVINGS_N = sizeof(halvings_q32) / sizeof(halvings_q32[0]) };

/* 2^-(span / half_life), in 32 bits after the point; 0 once nothing is left of it. */
static uint64_t decay_q32(uint64_t span_ms, uint64_t half_life_ms)
{
        uint64_t halves = span_ms < half_life_ms ? 0 : span_ms / half_life_ms; /* mostly less: no division then */
        if (halves >= 32)
                return 0;

        uint64_t factor_q32 = ONE_Q32 >> halves, rest_ms = span_ms - halves * half_life_ms;
        uint64_t bits = rest_ms <= UINT64_MAX >> HALVINGS_N
                                ? (rest_ms << HALVINGS_N) / half_life_ms
                                : (uint64_t) (((unsigned __int128) rest_ms << HALVINGS_N) / half_life_ms);
        while (bits != 0) { /* from the highest: of short spans there are few */
                unsigned highest = 63 - (unsigned) __builtin_clzll(bits);
                factor_q32 = (factor_q32 * halvings_q32[HALVINGS_N - 1 - highest]) >> 32;
                bits &= ~(UINT64_C(1) << highest);
        }
        return factor_q32;
}

/* Only whole seconds pass for it: changes within one second take effect at its start, and many short ones average out. */
static uint64_t whole_seconds_ms(const struct user *user, uint64_t now_ms)
{
        return now_ms > user->usage_at_ms ? (now_ms - user->usage_at_ms) / 1000 * 1000 : 0;
}

uint64_t usage_mib_s(const struct config *config, const struct user *user, uint64_t now_ms)
{
        uint64_t span_ms = whole_seconds_ms(user, now_ms);
        if (span_ms == 0)
                return user->usage_mib_s;

        uint64_t left_q32 = decay_q32(span_ms, config->usage_half_life_ms);
        unsigned __int128 old = ((unsigned __int128) user->usage_mib_s * left_q32) >> 32;

        /* ∫ rate · 2^(-t/T) dt = rate · T / ln 2 · (1 − 2^(-span/T)) */
        unsigned __int128 grown = (unsigned __int128) (user->held_bytes >> 20) * (config->usage_half_life_ms / 1000);
        grown *= ONE_Q32 - left_q32;
        grown = grown <= UINT64_MAX ? (uint64_t) grown / LN2_Q32 : grown / LN2_Q32; /* the former is much quicker */
        return (uint64_t) (old + grown);
}

uint64_t usage_now(struct world *w, uint32_t index)
{
        const struct user *user = &w->users[index];
        struct usage_memo *memo = &w->usage_memos[index];
        uint64_t span_ms = whole_seconds_ms(user, w->now_ms);

        if (span_ms == 0)
                return user->usage_mib_s;
        if (memo->span_ms != span_ms || memo->usage_mib_s != user->usage_mib_s ||
            memo->held_bytes != user->held_bytes || memo->half_life_ms != w->config.usage_half_life_ms)
                *memo = (struct usage_memo){ .usage_mib_s = user->usage_mib_s,
                                             .held_bytes = user->held_bytes,
                                             .span_ms = span_ms,
                                             .half_life_ms = w->config.usage_half_life_ms,
                                             .now_mib_s = usage_mib_s(&w->config, user, w->now_ms) };
        return memo->now_mib_s;
}

void usage_set_held(const struct config *config, struct user *user, uint64_t held_bytes, uint64_t now_ms)
{
        uint64_t span_ms = whole_seconds_ms(user, now_ms);

        user->usage_mib_s = usage_mib_s(config, user, now_ms);
        user->usage_at_ms += span_ms;
        user->held_bytes = held_bytes;
}
