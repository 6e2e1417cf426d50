/* SPDX-License-Identifier: Apache-2.0 */
/* What the journal keeps: any bytes are safe, and what is accepted is written again byte by byte (as ours, where it is
 * an older version's). The first byte says what the rest is read as: 0 an input, 1 the actions of a step, 2 a snapshot. */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "store/codec_action.h"
#include "store/codec_input.h"
#include "store/codec_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_same(const uint8_t *again, size_t n, const uint8_t *data, size_t size)
{
        bool is_older = memcmp(again, data, sizeof(uint16_t)) != 0; /* its version */

        assert(is_older || (n == size && memcmp(again, data, n) == 0));
}

static void input_there_and_back(const uint8_t *data, size_t size)
{
        static struct occupancy rows[ROWS_MAX];
        static uint8_t again[CODEC_INPUT_MAX];
        struct error err = { 0 };
        struct input input;
        size_t n = 0;

        if (codec_input_decode(data, size, &input, rows, &err) < 0) {
                assert(err.code > 0 && err.msg[0]);
                return;
        }
        assert(codec_input_encode(&input, again, sizeof(again), &n, NULL) == 0);
        assert_same(again, n, data, size);
}

static void actions_there_and_back(const uint8_t *data, size_t size)
{
        static struct actions actions;
        static uint8_t again[CODEC_ACTIONS_MAX];
        struct error err = { 0 };
        size_t n = 0;

        if (codec_actions_decode(data, size, &actions, &err) < 0) {
                assert(err.code > 0 && err.msg[0]);
                return;
        }
        assert(codec_actions_encode(&actions, again, sizeof(again), &n, NULL) == 0);
        assert_same(again, n, data, size);
}

static void world_there_and_back(const uint8_t *data, size_t size)
{
        static struct world *world;
        struct error err = { 0 };
        size_t n = 0;

        if (!world) {
                world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             -1, 0);
                assert(world != MAP_FAILED);
        }
        if (codec_world_decode(data, size, world, &err) < 0) {
                assert(err.code > 0 && err.msg[0]);
        } else {
                size_t size_max = codec_world_size_max(world);
                uint8_t *again = malloc(size_max);
                assert(again && size <= size_max);
                assert(codec_world_encode(world, again, size_max, &n, NULL) == 0);
                assert_same(again, n, data, size);
                (void) world_check(world); /* says no to almost all of them, and must survive saying so */
                free(again);
        }
        assert(madvise(world, sizeof(*world), MADV_DONTNEED) == 0); /* zeroes it for the next */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size < 1)
                return 0;
        if (data[0] == 0)
                input_there_and_back(data + 1, size - 1);
        else if (data[0] == 1)
                actions_there_and_back(data + 1, size - 1);
        else if (data[0] == 2)
                world_there_and_back(data + 1, size - 1);
        return 0;
}
