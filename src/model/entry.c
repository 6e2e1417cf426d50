/* SPDX-License-Identifier: Apache-2.0 */
#include "model/entry.h"

const char *entry_kind_name(enum entry_kind kind)
{
        static const char *const names[ENTRY_KIND_N] = {
                [ENTRY_NONE] = "none",
                [ENTRY_REQUEST] = "request",
                [ENTRY_THAW] = "thaw",
                [ENTRY_BOOKING] = "booking",
        };
        return kind < ENTRY_KIND_N ? names[kind] : "?";
}

const char *wait_kind_name(enum wait_kind kind)
{
        static const char *const names[WAIT_KIND_N] = {
                [WAIT_NOT_LOOKED] = "new",
                [WAIT_READING] = "reading",
                [WAIT_NO_ROOM] = "no-room",
                [WAIT_BEHIND] = "behind-head",
                [WAIT_NO_ROOM_BEHIND] = "no-room-behind-head",
                [WAIT_BLOCKED] = "head-blocks",
                [WAIT_NO_DEVICE] = "no-usable-device",
                [WAIT_ON_HOLD] = "on-hold",
                [WAIT_ABOVE_CEILING] = "above-ceiling",
                [WAIT_EXCLUSIVE] = "exclusive-holds",
                [WAIT_RECLAIMING] = "reclaiming",
                [WAIT_BACK] = "stays-parked",
                [WAIT_BOOKED] = "booked",
                [WAIT_BEFORE_BOOKING] = "before-booking",
        };
        return kind < WAIT_KIND_N ? names[kind] : "?";
}
