/* SPDX-License-Identifier: Apache-2.0 */
#include "model/input.h"

const char *input_kind_name(enum input_kind kind)
{
        static const char *const names[INPUT_KIND_N] = {
                [INPUT_NONE] = "none",
                [INPUT_TICK] = "tick",
                [INPUT_CONFIG] = "config",
                [INPUT_DEVICE] = "device",
                [INPUT_READING] = "reading",
                [INPUT_PROCESS] = "process",
                [INPUT_PROCESS_ENDED] = "process-ended",
                [INPUT_EYES] = "eyes",
                [INPUT_REQUEST] = "request",
                [INPUT_ACTIVATE] = "activate",
                [INPUT_RENEW] = "renew",
                [INPUT_RELEASE] = "release",
                [INPUT_OWNER_ENDED] = "owner-ended",
                [INPUT_RESTART] = "restart",
                [INPUT_CHANGE] = "change",
                [INPUT_OUTCOME] = "outcome",
        };
        return kind < INPUT_KIND_N ? names[kind] : "?";
}
