/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/acct.h"
#include <errno.h>
#include <string.h>
#include "wire/bytes.h"

enum {
        VERSION = 3, /* with 0x80: written by a big-endian machine */
        PID_MAX = INT32_MAX,
        TICKS_PER_S = 100, /* of the time it lasted */
};
#define LASTED_MOST_TICKS (UINT64_C(1) << 40) /* 348 years; a float can say more than anybody lives */

/* An IEEE float of hundredths of a second, without any float arithmetic; false: no number, below 0, or without end. */
static bool ticks_of(uint32_t bits, uint64_t *ret)
{
        uint32_t exponent = bits >> 23 & 0xff;
        uint64_t mantissa = (bits & 0x7fffff) | 0x800000;

        if (bits >> 31 || exponent == 0xff)
                return false;
        if (exponent < 127) { /* below 1 */
                *ret = 0;
                return true;
        }
        if (exponent - 127 > 40)
                return false;
        *ret = exponent >= 150 ? mantissa << (exponent - 150) : mantissa >> (150 - exponent);
        return *ret <= LASTED_MOST_TICKS;
}

int acct_parse(const void *data, size_t n, struct acct_record *ret)
{
        struct acct_record record = { 0 };
        struct bytes_reader r;
        uint64_t ticks = 0;

        bytes_reader_init(&r, data, n);
        record.flags = bytes_get_u8(&r);
        uint8_t version = bytes_get_u8(&r);
        (void) bytes_get_u16(&r); /* the terminal */
        record.exit_code = bytes_get_u32(&r);
        record.uid = bytes_get_u32(&r);
        (void) bytes_get_u32(&r); /* gid */
        record.pid = bytes_get_u32(&r);
        record.ppid = bytes_get_u32(&r);
        record.begun_s = bytes_get_u32(&r);
        bool fine = ticks_of(bytes_get_u32(&r), &ticks);
        (void) bytes_get_view(&r, 16); /* CPU, memory, faults, swaps */
        (void) bytes_get_data(&r, record.comm, ACCT_COMM_SIZE - 1);
        if (!bytes_reader_at_end(&r) || version != VERSION || !fine)
                return -EBADMSG;
        if (record.pid == 0 || record.pid > PID_MAX || record.ppid > PID_MAX)
                return -EBADMSG;
        record.lasted_ms = ticks * (1000 / TICKS_PER_S);
        *ret = record;
        return 0;
}

size_t acct_find(const void *data, size_t n, size_t from)
{
        const uint8_t *p = data;
        struct acct_record record;

        for (size_t at = from; n >= ACCT_RECORD_SIZE && at <= n - ACCT_RECORD_SIZE; at++) {
                size_t next = at + ACCT_RECORD_SIZE;
                if (acct_parse(p + at, ACCT_RECORD_SIZE, &record) < 0)
                        continue;
                if (next == n || acct_parse(p + next, n - next < ACCT_RECORD_SIZE ? 0 : ACCT_RECORD_SIZE, &record) == 0)
                        return at;
        }
        return n;
}
