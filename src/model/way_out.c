/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "model/way_out.h"

static const char *const names[WAY_OUT_N] = {
        [WAY_OUT_COOPERATE] = "cooperate", [WAY_OUT_CHECKPOINT] = "checkpoint",
        [WAY_OUT_RELEASE] = "release",     [WAY_OUT_RESTART] = "restart",
        [WAY_OUT_KILL] = "kill",
};

const char *way_out_name(enum way_out_kind kind)
{
        return kind < WAY_OUT_N ? names[kind] : "?";
}

enum { DECLARED_BITS = 3, DECLARED_MASK = (1 << DECLARED_BITS) - 1 };

void ways_out_declare(struct ways_out *w, enum way_out_kind kind)
{
        unsigned at = 0;

        if (kind >= WAY_OUT_N || (w->named & WAY_OUT_BIT(kind)))
                return;
        w->named |= WAY_OUT_BIT(kind);
        while (at < WAY_OUT_N && (w->declared >> at * DECLARED_BITS & DECLARED_MASK) != 0)
                at++;
        w->declared |= (uint32_t) (kind + 1) << at * DECLARED_BITS;
}

bool way_out_breaks_work(enum way_out_kind kind)
{
        return kind == WAY_OUT_RESTART || kind == WAY_OUT_KILL;
}

static void take(uint8_t kind, bool breaking, uint8_t *mask, uint8_t ret[WAY_OUT_N], unsigned *n)
{
        if (!(*mask & WAY_OUT_BIT(kind)) || way_out_breaks_work((enum way_out_kind) kind) != breaking)
                return;
        *mask &= (uint8_t) ~WAY_OUT_BIT(kind);
        ret[(*n)++] = kind;
}

unsigned ways_out_in_order(const struct ways_out *w, uint8_t mask, uint8_t ret[WAY_OUT_N])
{
        unsigned n = 0;

        if ((mask & (mask - 1)) == 0) { /* one or none: nothing to order */
                ret[0] = mask != 0 ? (uint8_t) __builtin_ctz(mask) : 0;
                return mask != 0;
        }
        for (int breaking = 0; breaking <= 1; breaking++) {
                for (unsigned at = 0; at < WAY_OUT_N; at++) {
                        uint32_t kind = w->declared >> at * DECLARED_BITS & DECLARED_MASK;
                        if (kind != 0 && kind <= WAY_OUT_N)
                                take((uint8_t) (kind - 1), breaking, &mask, ret, &n);
                }
                for (uint8_t kind = 0; kind < WAY_OUT_N; kind++)
                        take(kind, breaking, &mask, ret, &n);
        }
        return n;
}

bool ways_out_parse_declared(const char *text, struct ways_out *ways, uint32_t *ret_bad_at)
{
        size_t at = 0;

        for (;;) {
                size_t n = 0;
                while (text[at + n] != '\0' && text[at + n] != ',')
                        n++;

                unsigned kind = 0;
                while (kind < WAY_OUT_N && (strlen(names[kind]) != n || memcmp(names[kind], text + at, n) != 0))
                        kind++;
                if (kind == WAY_OUT_N) {
                        *ret_bad_at = (uint32_t) at;
                        return false;
                }
                ways_out_declare(ways, (enum way_out_kind) kind);

                at += n;
                if (text[at] == '\0')
                        return true;
                at++;
        }
}

bool ways_out_parse(const char *text, uint8_t *ret_mask, uint32_t *ret_bad_at)
{
        struct ways_out ways = { 0 };

        if (!ways_out_parse_declared(text, &ways, ret_bad_at))
                return false;
        *ret_mask = ways.named;
        return true;
}
