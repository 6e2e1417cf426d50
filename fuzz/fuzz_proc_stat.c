/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/stat. The input is used twice: as the whole text (any bytes are safe), and as the *name* inside a text the
 * kernel would write, where whatever the name says must not move the fields behind it (failures F57).
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "senses/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct proc_stat st;
        char text[512];
        size_t n_name = size < PROC_COMM_SIZE - 1 ? size : PROC_COMM_SIZE - 1;

        if (proc_parse_stat(data, size, &st) == 0)
                assert(st.pid > 0 && memchr(st.comm, '\0', sizeof(st.comm)));

        if (n_name > 0 && memchr(data, '\0', n_name))
                return 0; /* no name has one */
        int n = snprintf(text, sizeof(text), "4711 (");
        memcpy(text + n, data, n_name);
        n += (int) n_name;
        n += snprintf(text + n, sizeof(text) - (size_t) n,
                      ") S 77 4711 4710 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 123456 9 9 18446744073709551615\n");
        assert(proc_parse_stat(text, (size_t) n, &st) == 0);
        assert(st.pid == 4711 && st.state == 'S' && st.ppid == 77 && st.session == 4710 && st.n_threads == 3);
        assert(st.start_ticks == 123456 && strlen(st.comm) == n_name && memcmp(st.comm, data, n_name) == 0);
        return 0;
}
