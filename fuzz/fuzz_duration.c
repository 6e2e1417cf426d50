/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of time as a person or a program types them: what is taken is inside its bound and can be printed. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1);
        if (!text)
                return 0;
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';

        uint64_t ms = 0;
        struct error err = { 0 };
        if (duration_parse("--for", text, &ms, &err) == 0) {
                char buf[DURATION_TEXT_MAX];
                assert(ms <= DURATION_MAX_MS);
                assert(strlen(duration_text(ms, buf)) > 0);
        } else {
                assert(err.code > 0 && strncmp(err.msg, "--for", 5) == 0);
        }
        free(text);
        return 0;
}
