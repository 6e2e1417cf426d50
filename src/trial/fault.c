/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>
#include "trial/fault.h"

static const struct {
        const char *name;
        uint32_t one_in, bound;
} table[FAULT_N] = {
#define F(name, one_in, bound) [FAULT_##name] = { #name, one_in, bound },
        FAULTS(F)
#undef F
};

bool fault_strikes(struct faults *f, enum fault fault, struct random *r)
{
        bool strikes = random_one_in(r, table[fault].one_in);

        if (!strikes || f->quiet || f->off[fault])
                return false;
        f->count[fault]++;
        return true;
}

/* In the words of the command line: small letters, hyphens. */
const char *fault_name(enum fault fault)
{
        static char names[FAULT_N][32];
        char *name = names[fault];

        if (name[0] == '\0')
                for (size_t i = 0; table[fault].name[i] != '\0' && i + 1 < sizeof(names[0]); i++)
                        name[i] = table[fault].name[i] == '_' ? '-' : (char) tolower(table[fault].name[i]);
        return name;
}

bool fault_parse(const char *name, enum fault *ret)
{
        for (unsigned i = 0; i < FAULT_N; i++)
                if (strcmp(name, fault_name((enum fault) i)) == 0) {
                        *ret = (enum fault) i;
                        return true;
                }
        return false;
}

uint64_t fault_bound(enum fault fault)
{
        return table[fault].bound;
}
