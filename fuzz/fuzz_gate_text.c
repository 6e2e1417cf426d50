/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper of the gate reads of others: /proc/devices, logind's files, folders that users make and name. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "gate/always.h"
#include "gate/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint32_t majors[4];
        struct gate_conf conf;
        bool deeper;
        char *text = malloc(size + 1);

        if (!text)
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        gate_conf_defaults(&conf);
        size_t n = gate_conf_majors(&conf, (const char *) data, size, majors, 4);
        assert(n >= 1 && n <= 4 && majors[0] == 195);
        int seat = always_session_has_seat(text);
        assert(seat >= -1 && seat <= 1);
        bool matches = gate_pattern_matches(conf.always[0], text, &deeper);
        assert(!matches || !deeper);
        char *newline = strchr(text, '\n');
        if (newline) { /* "key\nvalue" */
                struct error err = { 0 };
                *newline = '\0';
                int r = gate_conf_line(&conf, text, newline + 1, &err);
                assert((r == 0) == (err.code == 0));
                for (uint32_t i = 0; i < conf.n_cgroups; i++)
                        assert(r < 0 || (conf.cgroups[i][0] != '\0' && conf.cgroups[i][0] != '/'));
        }
        free(text);
        return 0;
}
