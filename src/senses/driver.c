/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/driver.h"

#include <stddef.h>

#define VERSION(a, b, c) ((uint64_t) (a) << 32 | (uint64_t) (b) << 16 | (c))

enum { PARTS = 3, PART_MOST = 65535 };

/* The first row that fits counts: what is broken stands first. */
static const struct driver_known known[] = {
        { VERSION(610, 57, 0), VERSION(610, 58, 0), true, "its lock crashes programs with more than one thread",
          "NVIDIA/cuda-checkpoint#58" },
        { VERSION(570, 0, 0), VERSION(575, 57, 8), false,
          "checkpoints of many PyTorch programs fail with it; 575.57.08 and newer are better",
          "NVIDIA/cuda-checkpoint#24, #34" },
        { VERSION(595, 71, 0), VERSION(595, 72, 0), false,
          "the host was seen to hang when a restored program was killed; lessor checkpoints it before it does",
          "NVIDIA/cuda-checkpoint#53" },
};

uint64_t driver_number(const char *version)
{
        uint64_t part[PARTS] = { 0 };
        const char *at = version;
        int n = 0;

        for (;; at++) {
                const char *begin = at;
                for (; *at >= '0' && *at <= '9'; at++) {
                        part[n] = part[n] * 10 + (uint64_t) (*at - '0');
                        if (part[n] > PART_MOST)
                                return 0;
                }
                if (at == begin || (*at != '.' && *at != '\0'))
                        return 0;
                if (++n == PARTS && *at == '.')
                        return 0;
                if (*at == '\0')
                        break;
        }
        return n >= 2 ? VERSION(part[0], part[1], part[2]) : 0;
}

enum driver_verdict driver_judge(const char *version, const struct driver_known **ret_note)
{
        uint64_t number = driver_number(version);

        *ret_note = NULL;
        if (number == 0)
                return DRIVER_UNKNOWN;
        if (number < VERSION(570, 0, 0))
                return DRIVER_OLD;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                if (number < known[i].from || number >= known[i].below)
                        continue;
                *ret_note = &known[i];
                return known[i].broken ? DRIVER_BROKEN : DRIVER_FINE;
        }
        return DRIVER_FINE;
}
