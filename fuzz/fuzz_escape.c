/* SPDX-License-Identifier: Apache-2.0 */
/* Text of strangers: what comes out is plain, ends inside its buffer, and plain text without a backslash comes out as it was. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include "base/escape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char buf[4096];
        if (size < 2)
                return 0;
        size_t buf_size = 1 + (data[0] | (size_t) data[1] << 8) % sizeof(buf);
        const char *in = (const char *) data + 2;
        size_t n_in = size - 2;

        (void) text_escape(in, n_in, buf, buf_size);
        size_t n_out = strnlen(buf, buf_size);
        assert(n_out < buf_size);
        assert(text_is_plain(buf, n_out));
        if (n_in < buf_size && text_is_plain(in, n_in) && !memchr(in, '\\', n_in))
                assert(n_out == n_in && memcmp(in, buf, n_in) == 0);
        return 0;
}
