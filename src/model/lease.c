/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "model/lease.h"

/*
 * LEASE_NONE is 0, so an empty cell means "no such edge". A command that is gone while its workers are parked leaves the
 * lease parked (lease.owner_gone): orphaned is for what is on the device.
 */
static const uint8_t edges[LEASE_STATE_N][LEASE_EVENT_N] = {
        [LEASE_QUEUED] = {
                [LEASE_EVENT_GRANT] = LEASE_GRANTED,
                [LEASE_EVENT_END] = LEASE_ENDED,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ENDED,
        },
        [LEASE_GRANTED] = {
                [LEASE_EVENT_ACTIVATE] = LEASE_ACTIVE,
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_DEVICE_LOST] = LEASE_LOST,
        },
        [LEASE_ACTIVE] = {
                [LEASE_EVENT_ACTIVATE] = LEASE_ACTIVE, /* again: the command changed, or the answer was lost */
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_DEVICE_LOST] = LEASE_LOST,
                [LEASE_EVENT_ASK] = LEASE_ASKING,
                [LEASE_EVENT_HOLD] = LEASE_HELD,
        },
        [LEASE_ASKING] = {
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_DEVICE_LOST] = LEASE_LOST,
                [LEASE_EVENT_ASK] = LEASE_ASKING,
                [LEASE_EVENT_PARK] = LEASE_PARKED,
                [LEASE_EVENT_RETURN] = LEASE_ACTIVE,
                [LEASE_EVENT_STICK] = LEASE_STUCK,
                [LEASE_EVENT_MEMORY_GONE] = LEASE_ENDED,
        },
        [LEASE_HELD] = {
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_DEVICE_LOST] = LEASE_LOST,
                [LEASE_EVENT_RETURN] = LEASE_ACTIVE,
                [LEASE_EVENT_STICK] = LEASE_STUCK,
                [LEASE_EVENT_ASK] = LEASE_ASKING,
        },
        [LEASE_PARKED] = {
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_ASK] = LEASE_ASKING, /* it took its memory again: the next way out */
                [LEASE_EVENT_THAW] = LEASE_THAWING,
                [LEASE_EVENT_STICK] = LEASE_STUCK,
        },
        [LEASE_THAWING] = {
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_DEVICE_LOST] = LEASE_LOST,
                [LEASE_EVENT_RETURN] = LEASE_ACTIVE,
                [LEASE_EVENT_ACTIVATE] = LEASE_ACTIVE,
                [LEASE_EVENT_PARK] = LEASE_PARKED,
                [LEASE_EVENT_STICK] = LEASE_STUCK,
        },
        [LEASE_DRAINING] = {
                [LEASE_EVENT_MEMORY_GONE] = LEASE_ENDED,
        },
        [LEASE_ORPHANED] = {
                [LEASE_EVENT_ACTIVATE] = LEASE_ACTIVE, /* an owner came back for it (re-adopted) */
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_MEMORY_GONE] = LEASE_ENDED, /* the last worker left */
                [LEASE_EVENT_DEVICE_LOST] = LEASE_LOST,
        },
        [LEASE_STUCK] = {
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_DEVICE_LOST] = LEASE_LOST,
                [LEASE_EVENT_PARK] = LEASE_PARKED,
                [LEASE_EVENT_RETURN] = LEASE_ACTIVE,
                [LEASE_EVENT_ASK] = LEASE_ASKING,
                [LEASE_EVENT_THAW] = LEASE_THAWING,
        },
        [LEASE_LOST] = {
                [LEASE_EVENT_GRANT] = LEASE_GRANTED, /* the device is back, and nobody has collected it yet */
                [LEASE_EVENT_MEMORY_GONE] = LEASE_ENDED, /* nobody of it lives any more */
                [LEASE_EVENT_END] = LEASE_DRAINING,
                [LEASE_EVENT_OWNER_GONE] = LEASE_ORPHANED,
                [LEASE_EVENT_DEVICE_BACK] = LEASE_ACTIVE,
        },
};

enum lease_state lease_next(enum lease_state state, enum lease_event event)
{
        if (state >= LEASE_STATE_N || event >= LEASE_EVENT_N)
                return LEASE_NONE;
        return (enum lease_state) edges[state][event];
}

const char *lease_state_name(enum lease_state state)
{
        static const char *const names[LEASE_STATE_N] = {
                [LEASE_NONE] = "none",         [LEASE_QUEUED] = "queued",   [LEASE_GRANTED] = "granted",
                [LEASE_ACTIVE] = "active",     [LEASE_ASKING] = "asking",   [LEASE_HELD] = "held",
                [LEASE_PARKED] = "parked",     [LEASE_THAWING] = "thawing", [LEASE_DRAINING] = "draining",
                [LEASE_ORPHANED] = "orphaned", [LEASE_STUCK] = "stuck",     [LEASE_LOST] = "lost",
                [LEASE_ENDED] = "ended",
        };
        return state < LEASE_STATE_N ? names[state] : "?";
}

const char *lease_event_name(enum lease_event event)
{
        static const char *const names[LEASE_EVENT_N] = {
                [LEASE_EVENT_GRANT] = "grant",
                [LEASE_EVENT_ACTIVATE] = "activate",
                [LEASE_EVENT_END] = "end",
                [LEASE_EVENT_OWNER_GONE] = "owner-gone",
                [LEASE_EVENT_MEMORY_GONE] = "memory-gone",
                [LEASE_EVENT_DEVICE_LOST] = "device-lost",
                [LEASE_EVENT_DEVICE_BACK] = "device-back",
                [LEASE_EVENT_ASK] = "ask",
                [LEASE_EVENT_PARK] = "park",
                [LEASE_EVENT_THAW] = "thaw",
                [LEASE_EVENT_RETURN] = "return",
                [LEASE_EVENT_STICK] = "stick",
                [LEASE_EVENT_HOLD] = "hold",
        };
        return event < LEASE_EVENT_N ? names[event] : "?";
}

static const struct {
        const char *name;
        const char *text;
} end_reasons[END_REASON_N] = {
        [END_NONE] = { "none", "it did not end" },
        [END_RELEASED] = { "released", "its owner released it" },
        [END_RELEASED_ADMIN] = { "released-by-administrator", "an administrator released it" },
        [END_OWNER_EXITED] = { "owner-exited", "the process it was bound to is gone" },
        [END_CONNECTION_CLOSED] = { "connection-closed", "the connection it was bound to was closed" },
        [END_EXPIRED] = { "expired", "nobody renewed it in time" },
        [END_NOT_COLLECTED] = { "not-collected", "it was granted and nobody collected it" },
        [END_WAIT_OVER] = { "wait-over", "it waited as long as it was willing to" },
        [END_CANCELLED] = { "cancelled", "it left the queue" },
        [END_OWNER_GONE_WHILE_AWAY] = { "owner-gone-while-away",
                                        "its process was not there any more when the daemon came back" },
        [END_REBOOTED] = { "rebooted", "the machine was rebooted" },
        [END_WORKERS_GONE] = { "workers-gone", "its command had ended, and now its last worker has" },
        [END_UNADOPTED] = { "unadopted", "it was let go; its processes are strangers again" },
};

const char *end_reason_name(enum end_reason reason)
{
        return reason < END_REASON_N ? end_reasons[reason].name : "?";
}

const char *end_reason_text(enum end_reason reason)
{
        return reason < END_REASON_N ? end_reasons[reason].text : "?";
}

const char *sized_name(enum sized sized)
{
        static const char *const names[SIZED_N] = {
                [SIZED_ASKED] = "asked",
                [SIZED_LEARNED] = "learned",
                [SIZED_WHOLE] = "whole",
                [SIZED_RAISED] = "raised",
        };
        return sized < SIZED_N ? names[sized] : "?";
}

const char *binding_kind_name(enum binding_kind kind)
{
        static const char *const names[BINDING_KIND_N] = {
                [BINDING_PROCESS] = "process",
                [BINDING_CONNECTION] = "connection",
                [BINDING_HEARTBEAT] = "heartbeat",
        };
        return kind < BINDING_KIND_N ? names[kind] : "?";
}

const char *lease_id_text(uint64_t id, char buf[LEASE_ID_TEXT_MAX])
{
        (void) snprintf(buf, LEASE_ID_TEXT_MAX, "L%llu", (unsigned long long) id);
        return buf;
}

bool lease_id_parse(const char *text, uint64_t *ret_id)
{
        if (*text == 'L')
                text++;
        if (*text < '1' || *text > '9')
                return false;

        uint64_t id = 0;
        for (; *text != '\0'; text++) {
                if (*text < '0' || *text > '9' || __builtin_mul_overflow(id, (uint64_t) 10, &id) ||
                    __builtin_add_overflow(id, (uint64_t) (*text - '0'), &id))
                        return false;
        }
        *ret_id = id;
        return true;
}

bool lease_state_holds(enum lease_state state)
{
        return state != LEASE_NONE && state != LEASE_QUEUED && state != LEASE_ENDED && state < LEASE_STATE_N;
}

static const char *const priority_names[] = { "?", "urgent", "interactive", "normal", "batch", "filler" };

const char *priority_name(unsigned priority)
{
        return priority_names[priority >= PRIORITY_URGENT && priority <= PRIORITY_FILLER ? priority : 0];
}

bool priority_parse(const char *text, uint8_t *ret_priority)
{
        for (uint8_t p = PRIORITY_URGENT; p <= PRIORITY_FILLER; p++)
                if (strcmp(text, priority_names[p]) == 0 || (text[0] == '0' + p && text[1] == '\0')) {
                        *ret_priority = p;
                        return true;
                }
        return false;
}
