/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/stat as the hands read it: a stranger chose the name in it (F57), and what it says decides whom a signal reaches. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "hands/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char tail[] = ") S 17 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        static struct target t;
        char *text = malloc(size + sizeof(tail) + 8);

        assert(text);
        memcpy(text, data, size);
        text[size] = '\0'; /* as read_whole() leaves it */
        (void) target_parse_stat(text, size, &t);

        /* Whatever the name is: what follows its last ')' is the kernel's, and is read right. */
        memcpy(text, "1 (", 3);
        memcpy(text + 3, data, size);
        memcpy(text + 3 + size, tail, sizeof(tail));
        if (!memchr(data, '\0', size)) {
                assert(target_parse_stat(text, 3 + size + sizeof(tail) - 1, &t));
                assert(t.ppid == 17 && t.start_ticks == 4711 && t.state == 'S' && !t.kernel_thread);
        }
        free(text);
        return 0;
}
