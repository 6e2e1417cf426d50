/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/rescue_words.h"
#include <stdio.h>
#include <string.h>

/* Those that checkpoint calls, and a small program's own calls, were seen to give (fact sheet, part B). */
static const struct {
        uint32_t code;
        const char *words;
} codes[] = {
        { 0, "success" },
        { 1, "invalid value, also said of a process it does not know" },
        { 2, "out of memory" },
        { 3, "not initialised" },
        { 46, "the device is in use by another process alone" },
        { 100, "no device" },
        { 101, "no such device" },
        { 201, "no such context" },
        { 304, "a call of the operating system failed" },
        { 401, "not in a state for this" },
        { 600, "not ready in time" },
        { 700, "an illegal address was used" },
        { 719, "the launch failed" },
        { 800, "not permitted" },
        { 801, "not supported" },
        { 802, "the system is not ready" },
        { 803, "driver and library do not fit together" },
        { 999, "unknown error" },
};

const char *rescue_code_words(uint32_t code)
{
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
                if (codes[i].code == code)
                        return codes[i].words;
        return "an error that is not known here";
}

const char *rescue_answer_words(const struct warden_answer *answer, char buf[RESCUE_WORDS_MAX])
{
        char code[RESCUE_WORDS_MAX / 2] = "", error[RESCUE_WORDS_MAX / 4] = "";
        const char *said = answer->error != 0 ? strerrordesc_np(answer->error) : NULL;

        if (answer->driver_code != 0)
                (void) snprintf(code, sizeof(code), " (CUDA %u: %s)", answer->driver_code,
                                rescue_code_words(answer->driver_code));
        if (answer->error != 0)
                (void) snprintf(error, sizeof(error), ": %s", said ? said : "unknown error");
        (void) snprintf(buf, RESCUE_WORDS_MAX, "%s%s%s", warden_why_words(answer->why), error, code);
        return buf;
}
