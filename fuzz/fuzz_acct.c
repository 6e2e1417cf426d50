/* SPDX-License-Identifier: Apache-2.0 */
/* A file of process accounting, torn anywhere: what counts as a record is one, and the search for the next one ends. */
#include <assert.h>
#include <string.h>
#include "wire/acct.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct acct_record record;

        for (size_t at = acct_find(data, size, 0), n = 0; at < size;
             at = acct_find(data, size, at + ACCT_RECORD_SIZE), n++) {
                assert(at + ACCT_RECORD_SIZE <= size && n < size);
                assert(acct_parse(data + at, ACCT_RECORD_SIZE, &record) == 0);
                assert(record.pid > 0 && record.pid <= INT32_MAX && record.ppid <= INT32_MAX);
                assert(strlen(record.comm) < ACCT_COMM_SIZE && record.lasted_ms < UINT64_C(1) << 44);
        }
        return 0;
}
