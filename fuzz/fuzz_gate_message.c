/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the gate: any bytes are safe, and what is accepted is written again byte by byte. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "wire/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct gate_message msg;
        uint8_t again[GATE_MESSAGE_MAX];
        struct error err = { 0 };
        size_t n_again = 0;

        if (gate_decode(data, size, &msg, &err) < 0) {
                assert(err.code > 0 && err.msg[0] && msg.kind == GATE_NOTHING);
                return 0;
        }
        assert(gate_encode(&msg, again, sizeof(again), &n_again, NULL) == 0);
        assert(n_again == size && memcmp(again, data, size) == 0);
        return 0;
}
