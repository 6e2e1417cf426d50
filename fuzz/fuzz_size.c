/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of memory as a person or a program types them: what is taken is inside its bounds and can be printed. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/size.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1);
        if (!text)
                return 0;
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';

        struct size amount = { 0 };
        struct error err = { 0 };
        if (size_parse("--vram", text, &amount, &err) == 0) {
                char both[SIZE_TEXT_MAX], binary[SIZE_TEXT_MAX];
                if (amount.kind == SIZE_BYTES) {
                        assert(amount.bytes >= 1 && amount.bytes <= SIZE_BYTES_MAX);
                        assert(strlen(size_text(amount.bytes, both)) > 0);
                        assert(strlen(size_text_short(amount.bytes, binary)) > 0);
                } else {
                        assert(amount.percent_milli >= 1 && amount.percent_milli <= 100000);
                }
        } else {
                assert(err.code > 0 && strncmp(err.msg, "--vram", 6) == 0);
        }
        free(text);
        return 0;
}
