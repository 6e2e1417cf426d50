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

bool ways_out_parse(const char *text, uint8_t *ret_mask, uint32_t *ret_bad_at)
{
        uint8_t mask = 0;
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
                mask |= WAY_OUT_BIT(kind);

                at += n;
                if (text[at] == '\0')
                        break;
                at++;
        }
        *ret_mask = mask;
        return true;
}
