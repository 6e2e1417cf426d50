/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor-prove - a throw-away program with 64 MiB of device memory, for `lessor doctor --prove` to park and bring back. It fills them
 * with a pattern, says so, waits for a line on its stdin, and looks whether the pattern is still there and the device still works.
 *
 *   ready GPU-… BYTES            then it waits. The end of its stdin ends it, within a minute while it is locked: then a call of the
 *                                driver may still be at work in it
 *   cannot CALL CODE             exit 3. CODE is CUresult; 0: the driver has no such call
 *   same                         exit 0
 *   different OFFSET             exit 1
 *   failed CALL CODE             exit 1
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "programs/lessor-prove/cuda.h"
#include "wire/record.h"

enum { EXIT_DIFFERENT = 1, EXIT_USAGE = 2, EXIT_CANNOT = 3, EXIT_UNASKED = 4 };
enum { BYTES = 64 << 20, PIECE = 1 << 20, WORDS = PIECE / sizeof(uint64_t), LET_GO_S = 60 };

static const char words[] = "lessor doctor --prove starts this program; see lessor-doctor(1).";

static struct cuda cuda;
static uint64_t address;
static uint64_t piece[WORDS], found[WORDS];

static int say_code(const char *what, const char *call, int code, int exit_code)
{
        (void) printf("%s %s %d\n", what, call, code);
        return exit_code;
}

/* Each word of the memory is another number, so that a page that comes back elsewhere is seen as well as one that is lost. */
static uint64_t pattern(uint64_t at)
{
        uint64_t x = (at + 1) * UINT64_C(0x9e3779b97f4a7c15);

        x ^= x >> 32;
        return x * UINT64_C(0xd6e8feb86659fd93);
}

static void make_piece(uint64_t first, uint64_t flip)
{
        for (uint64_t i = 0; i < WORDS; i++)
                piece[i] = pattern(first + i) ^ flip;
}

/* ---- before ---- */

/* The memory on that device. CUresult, and which call gave it. */
static int take(int device, const char **ret_call)
{
        void *context = NULL;

        *ret_call = "cuDevicePrimaryCtxRetain";
        int code = cuda.retain(&context, device);
        if (code != 0)
                return code;
        *ret_call = "cuCtxSetCurrent";
        code = cuda.set_current(context);
        if (code == 0) {
                *ret_call = "cuMemAlloc";
                code = cuda.alloc(&address, BYTES);
        }
        if (code != 0)
                (void) cuda.release(device);
        return code;
}

/* The first device that has room. */
static int take_any(uint8_t uuid[16], const char **ret_call)
{
        int n = 0, device = 0;

        *ret_call = "cuInit";
        int code = cuda.init(0);
        if (code != 0)
                return code;
        *ret_call = "cuDeviceGetCount";
        code = cuda.count(&n);
        for (int i = 0; i < n; i++) {
                *ret_call = "cuDeviceGet";
                code = cuda.device(&device, i);
                if (code == 0)
                        code = take(device, ret_call);
                if (code == 0)
                        break;
        }
        if (code == 0 && n > 0) {
                *ret_call = "cuDeviceGetUuid";
                code = cuda.uuid(uuid, device);
        }
        return code == 0 && n == 0 ? 100 : code; /* CUDA_ERROR_NO_DEVICE */
}

static int fill(void)
{
        for (uint64_t at = 0; at < BYTES; at += PIECE) {
                make_piece(at / sizeof(uint64_t), 0);
                int code = cuda.write(address + at, piece, PIECE);
                if (code != 0)
                        return code;
        }
        return cuda.synchronize();
}

/* ---- after ---- */

/* Compares one piece; the exit code of the program, or -1: it is the same. */
static int compare(uint64_t at)
{
        int code = cuda.read(found, address + at, PIECE);

        if (code != 0)
                return say_code("failed", "cuMemcpyDtoH", code, EXIT_DIFFERENT);
        for (uint64_t i = 0; i < WORDS; i++)
                if (found[i] != piece[i]) {
                        (void) printf("different %" PRIu64 "\n", at + i * sizeof(uint64_t));
                        return EXIT_DIFFERENT;
                }
        return -1;
}

static int judge(void)
{
        int r = -1;

        for (uint64_t at = 0; at < BYTES && r < 0; at += PIECE) {
                make_piece(at / sizeof(uint64_t), 0);
                r = compare(at);
        }
        if (r >= 0)
                return r;
        make_piece(0, UINT64_MAX); /* and what is written now is kept */
        int code = cuda.write(address, piece, PIECE);
        if (code != 0)
                return say_code("failed", "cuMemcpyHtoD", code, EXIT_DIFFERENT);
        r = compare(0);
        if (r >= 0)
                return r;
        code = cuda.free(address);
        if (code != 0)
                return say_code("failed", "cuMemFree", code, EXIT_DIFFERENT);
        (void) puts("same");
        return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        char line[16], text[RECORD_UUID_TEXT_SIZE];
        const char *call = NULL;
        uint8_t uuid[WARDEN_UUID_SIZE];

        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                (void) puts("lessor-prove " LESSOR_PROVE_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc > 1) {
                (void) fprintf(stderr, "%s\n", words);
                return EXIT_USAGE;
        }
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        const char *missing = cuda_open(&cuda);
        if (missing)
                return say_code("cannot", missing, 0, EXIT_CANNOT);
        int code = take_any(uuid, &call);
        if (code != 0)
                return say_code("cannot", call, code, EXIT_CANNOT);
        code = fill();
        if (code != 0)
                return say_code("cannot", "cuMemcpyHtoD", code, EXIT_CANNOT);
        record_uuid_text(uuid, text);
        (void) printf("ready %s %d\n", text, BYTES);
        if (!fgets(line, sizeof(line), stdin)) { /* whoever started it is gone */
                (void) alarm(LET_GO_S);
                (void) cuda.synchronize(); /* comes back when it is not locked (any more) */
                _exit(EXIT_UNASKED);
        }
        return judge();
}
