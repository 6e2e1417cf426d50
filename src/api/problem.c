/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "api/problem.h"
#include "base/escape.h"

static const struct {
        const char *type, *title;
} titles[] = {
        { "bad-field", "A field of the request is not right" },
        { "bad-json", "The body is not the JSON that is expected here" },
        { "bad-request", "The request is not understood" },
        { "too-large", "The request is larger than allowed" },
        { "not-json", "The body must be JSON" },
        { "forbidden-origin", "Requests from web pages are refused" },
        { "forbidden-host", "The Host header is not ours" },
        { "token-missing", "A token is needed here" },
        { "token-wrong", "This token is not the one" },
        { "token-in-address", "A token must not stand in an address" },
        { "reads-only", "This caller may only look" },
        { "not-admin", "This is for administrators" },
        { "forbidden-container", "This container is not allowed to ask" },
        { "forbidden-caller", "This caller may not use this daemon" },
        { "bad-config", "The configuration is not right" },
        { "no-cgroup", "There is no cgroup to adopt" },
        { "nothing-to-adopt", "There is nothing to adopt" },
        { "already-leased", "It is under a lease already" },
        { "several-devices", "It is on several devices" },
        { "no-slot", "The lease has no slot" },
        { "backfill-keeps-slot", "Who went ahead as backfill keeps its slot" },
        { "not-yours", "That process belongs to somebody else" },
        { "not-owner", "The lease belongs to somebody else" },
        { "priority-ceiling", "The priority is above what this caller may ask for" },
        { "urgent-needs-slot", "Priority 1 needs an end and a way out" },
        { "never-fits", "It can never fit" },
        { "no-devices", "There is no device" },
        { "unknown-device", "There is no such device" },
        { "would-wait", "It cannot start now" },
        { "wait-over", "The wait is over" },
        { "cannot-park", "It cannot be parked now" },
        { "not-parked", "It is not parked" },
        { "is-parked", "Its program is parked" },
        { "way-out-unfit", "Its program could not survive this way out" },
        { "wrong-state", "The lease is in another state" },
        { "not-found", "There is no such thing" },
        { "method-not-allowed", "This method is not for this address" },
        { "ended", "The lease has ended" },
        { "store-full", "The disk is full" },
        { "store-unavailable", "The journal cannot be written" },
        { "busy", "The daemon cannot take this now" },
        { "limit-connections", "Too many connections" },
        { "limit-waiting", "Too many requests wait" },
        { "limit-requests", "Too many requests a second" },
        { "limit-refusals", "Too many requests were refused" },
        { "limit-unread", "Too many answers were not read" },
        { "limit-keys", "Too many requests with a key are under way" },
        { "limit-leases", "There are as many leases as there may be" },
        { "limit-entries", "The queue is full" },
        { "limit-users", "There are as many users as there may be" },
        { "limit-leases-per-user", "This user has as many leases as he may have" },
        { "limit-waiting-per-user", "This user has as many waiting requests as he may have" },
        { "limit-bytes-per-user", "This user's leases come to as much as they may" },
        { "limit-slot", "The slot is longer than it may be" },
        { "limit-pins", "This user has as many pins as he may have" },
        { "limit-pin-time", "The pin is longer than it may be" },
        { "idempotency-key-busy", "The first request with this key has no answer yet" },
        { "idempotency-key-reused", "The key was used with another body" },
};

const char *problem_title(const char *type)
{
        for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
                if (strcmp(titles[i].type, type) == 0)
                        return titles[i].title;
        return type;
}

int problem_set(struct problem *p, int status, const char *type, const char *detail, ...)
{
        *p = (struct problem){ .status = status };
        (void) snprintf(p->type, sizeof(p->type), "%s", type);
        (void) snprintf(p->title, sizeof(p->title), "%s", problem_title(type));

        va_list args;
        va_start(args, detail);
        (void) vsnprintf(p->detail, sizeof(p->detail), detail, args);
        va_end(args);
        return -1;
}

int problem_field(struct problem *p, const char *field, const char *given, size_t n_given, const char *allowed,
                  const char *cure)
{
        char safe_field[sizeof(p->field)], safe_given[sizeof(p->given)];

        text_escape(field, strlen(field), safe_field, sizeof(safe_field));
        if (safe_field[0] == '\0') /* a key may be empty; the words about it may not */
                (void) snprintf(safe_field, sizeof(safe_field), "\"\"");
        text_escape(given, n_given, safe_given, sizeof(safe_given));
        problem_set(p, 400, "bad-field", "%s: %s is not allowed; allowed: %s; %s", safe_field,
                    safe_given[0] ? safe_given : "an empty value", allowed, cure);
        (void) snprintf(p->field, sizeof(p->field), "%s", safe_field);
        (void) snprintf(p->given, sizeof(p->given), "%s", safe_given);
        (void) snprintf(p->allowed, sizeof(p->allowed), "%s", allowed);
        (void) snprintf(p->cure, sizeof(p->cure), "%s", cure);
        return -1;
}
