/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the tests of liblessor have in common: a fake lessord, a handle on it, and the first lease. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "client/handle.h"
#include "fake_lessord.h"

static struct fake f; /* one a test; each file of tests has its own */

static inline int start(void **state)
{
        (void) state;
        fake_start(&f);
        return 0;
}

static inline int stop(void **state)
{
        (void) state;
        fake_stop(&f);
        return 0;
}

#define QUEUED_L1                                                                                                      \
        "{\"id\":\"L1\",\"state\":\"queued\",\"rev\":5,\"place\":2,\"n_waiting\":3,\"expected_start_ms\":9000,"        \
        "\"expectation\":\"in about 9 s\",\"why\":\"waits: no room\",\"reason\":{\"rule\":\"no-room\"},"               \
        "\"binding\":{\"to\":\"process\",\"pid\":1}}"
#define GRANTED_L1 "{\"id\":\"L1\",\"state\":\"granted\",\"rev\":6,\"device\":\"GPU-1\",\"bytes\":1000,\"priority\":3}"
#define ACTIVE_L1                                                                                                      \
        "{\"id\":\"L1\",\"state\":\"active\",\"rev\":7,\"device\":\"GPU-1\",\"bytes\":1000,\"priority\":3,"            \
        "\"slot_left_ms\":5000,\"used_bytes\":null,\"binding\":{\"to\":\"process\",\"pid\":1}}"
#define PROBLEM(status, type, detail)                                                                                  \
        "{\"type\":\"urn:lessor:problem:" type "\",\"title\":\"A title\",\"status\":" #status ",\"detail\":\"" detail  \
        "\"}"

static inline struct lessor_request *some_request(void)
{
        struct lessor_request *q = NULL;
        assert_int_equal(lessor_request_new(&q), 0);
        assert_int_equal(lessor_request_set_size(q, "90%"), 0);
        return q;
}

static inline struct lessor_lease *begin(struct lessor_request *q)
{
        struct lessor_lease *lease = NULL;
        assert_int_equal(lessor_acquire_begin(f.l, q, &lease, NULL), 0);
        lessor_request_free(q);
        return lease;
}

static inline struct lessor_lease *begin_some(void)
{
        return begin(some_request());
}

static inline void expect_request(const char *line)
{
        fake_next_call(&f);
        if (strncmp(f.request, line, strlen(line)) != 0)
                fail_msg("asked %.*s instead of %s", (int) strcspn(f.request, "\r"), f.request, line);
}

static inline json_t *body_of_request(void)
{
        json_t *body = json_loads(fake_body(&f), JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(body);
        return body;
}
