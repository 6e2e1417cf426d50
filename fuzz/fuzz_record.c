/* SPDX-License-Identifier: Apache-2.0 */
/* Records of parked processes: any bytes are safe, and what is accepted is written again byte by byte. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct record record;
        char again[RECORD_MAX];
        struct error err = { 0 };
        size_t n_again = 0;

        if (record_parse(data, size, &record, &err) < 0) {
                assert(err.code > 0 && err.msg[0] && record.pid == 0 && record.step == RECORD_NO_STEP);
                return 0;
        }
        assert(record_format(&record, again, sizeof(again), &n_again, NULL) == 0);
        assert(n_again == size && memcmp(again, data, size) == 0);
        return 0;
}
