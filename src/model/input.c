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
                [INPUT_PARK] = "park",
                [INPUT_HOST] = "host",
                [INPUT_RECORD] = "record",
                [INPUT_MANAGER] = "manager",
                [INPUT_PAUSE] = "pause",
                [INPUT_ENFORCE] = "enforce",
        };
        return kind < INPUT_KIND_N ? names[kind] : "?";
}

const char *park_call_name(enum park_call_what what)
{
        static const char *const names[PARK_CALL_N] = {
                [PARK_CALL_NONE] = "none", [PARK_CALL_PARK] = "park",       [PARK_CALL_REHEARSE] = "rehearse",
                [PARK_CALL_THAW] = "thaw", [PARK_CALL_YIELDED] = "yielded", [PARK_CALL_IDLE] = "idle",
                [PARK_CALL_BUSY] = "busy", [PARK_CALL_FORGIVE] = "forgive",
        };
        return what < PARK_CALL_N ? names[what] : "?";
}

const char *enforce_call_name(enum enforce_call_what what)
{
        static const char *const names[ENFORCE_CALL_N] = { [ENFORCE_CALL_NONE] = "none",
                                                           [ENFORCE_CALL_MODE] = "mode",
                                                           [ENFORCE_CALL_APPROVE] = "approve",
                                                           [ENFORCE_CALL_UNAPPROVE] = "unapprove" };
        return what < ENFORCE_CALL_N ? names[what] : "?";
}
