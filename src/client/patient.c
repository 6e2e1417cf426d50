/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that are answered at once, asked until lessord is there to answer them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "client/handle.h"

bool answer_is_of(const struct client_answer *answer, const char *problem)
{
        static const char prefix[] = "urn:lessor:problem:";
        const char *type = json_text(answer->body, "type", "");
        return strncmp(type, prefix, sizeof(prefix) - 1) == 0 && strcmp(type + sizeof(prefix) - 1, problem) == 0;
}

bool answer_is_passing(const struct client_answer *answer)
{
        return answer->status == 503 || (answer->status == 409 && answer_is_of(answer, "idempotency-key-busy")) ||
               (answer->status == 429 && (answer->retry_after_ms > 0 || answer_is_of(answer, "limit-connections")));
}

/* 0, or what http_call_… says. *ret_sent: the question may have arrived. */
static int ask_once(struct lessor *l, const struct question *q, struct client_answer *ret, bool *ret_sent)
{
        struct http_call call;
        auto_free char *text = q->body ? json_dumps(q->body, JSON_COMPACT) : NULL;
        struct http_request request = { .method = q->method, .path = q->path, .body = text, .key = q->key };
        if (q->body && !text)
                return -ENOMEM;
        uint64_t until_ms = clock_now_ms() + u64_min(q->most_ms > 0 ? q->most_ms : CLIENT_CALL_MS, CLIENT_CALL_MS);
        *ret_sent = false;
        int r = http_call_begin(&call, l->client.socket_path, &request, until_ms, NULL);
        if (r == 0) {
                *ret_sent = true;
                r = http_call_go_on(&call, false, until_ms, -1, NULL);
        }
        if (r == 0)
                r = client_answer_read(&call, ret, NULL);
        http_call_end(&call);
        return r;
}

static uint64_t patience_ms(const struct lessor *l, const struct question *q)
{
        return l->if_down == LESSOR_IF_DOWN_WAIT ? u64_min(q->most_ms, l->away_ms) : 0;
}

int patient_call(struct lessor *l, const struct question *q, struct client_answer *ret, bool *ret_again,
                 struct lessor_error **reterr)
{
        uint64_t since_ms = clock_now_ms(), rest_ms = 0;
        bool sent = false;
        int r = handle_check(l, reterr);

        if (r < 0)
                return r;
        *ret_again = false;
        for (;;) {
                *ret = (struct client_answer){ 0 };
                r = ask_once(l, q, ret, &sent);
                if (r < 0 && sent && q->only_once)
                        return failure_give(failure_new(ENOTRECOVERABLE, NULL,
                                                        "the connection broke before the answer came: it may have been "
                                                        "done or not; look before trying again"),
                                            reterr);
                if (r == 0 && ret->status < 400)
                        return 0;
                bool passes = r < 0 ? client_is_away(r) : answer_is_passing(ret);
                uint64_t over_ms = clock_now_ms() - since_ms, most_ms = patience_ms(l, q);
                if (!passes || over_ms >= most_ms)
                        break;
                rest_ms = u64_min(u64_max(2 * rest_ms, REST_FIRST_MS), REST_LAST_MS);
                rest_ms = u64_max(rest_ms, u64_min(ret->retry_after_ms, RETRY_AFTER_MOST_MS));
                client_answer_fini(ret);
                *ret_again = *ret_again || (r < 0 && sent);
                (void) poll(NULL, 0, (int) u64_min(rest_ms, most_ms - over_ms));
        }
        r = failure_give(r < 0 ? failure_of_call(&l->client, r) : failure_of_answer(ret), reterr);
        client_answer_fini(ret);
        return r;
}
