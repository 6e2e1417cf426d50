/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes back on lessord's socket, from whoever listens there. The first byte chooses what was asked, the second in which
 * pieces the answer comes; the rest is the answer. Any bytes are safe; memory is bounded; an id that was taken over can only
 * ever be an id.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "base/escape.h"
#include "client/handle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4096 };

static void check_text(const char *text, size_t size)
{
        assert(memchr(text, '\0', size) && text_is_plain(text, strlen(text)));
}

static void check_lease(struct lessor_lease *x)
{
        uint64_t n, m;
        size_t n_id = strlen(x->id);
        assert(n_id == 0 || (n_id > 1 && x->id[0] == 'L' && strspn(x->id + 1, "0123456789") == n_id - 1));
        check_text(x->text, sizeof(x->text));
        check_text(x->rule, sizeof(x->rule));
        check_text(x->expectation, sizeof(x->expectation));
        assert(x->state >= LESSOR_STATE_ASKED && x->state <= LESSOR_STATE_OTHER);
        assert(lessor_lease_priority(x) >= 0 && lessor_lease_priority(x) <= 5);
        assert(x->state != LESSOR_STATE_REFUSED || lessor_error_errno(x->error) > 0);
        if (x->error) {
                assert(lessor_error_text(x->error)[0] != '\0' && lessor_error_type(x->error));
                assert(lessor_error_json(x->error) && lessor_error_title(x->error));
        }
        (void) lessor_lease_place(x, &n, &m);
        (void) lessor_lease_used_bytes(x, &n);
        assert(lessor_lease_json(x) && lessor_lease_device(x));
}

/* The answer in pieces of @step bytes. 0: it is whole. */
static int understand(struct http_call *call, const char *text, size_t n, size_t step)
{
        int r = 0;
        *call = (struct http_call){ .fd = -1, .stage = HTTP_HEAD };
        strbuf_init(&call->in, MOST + HTTP_HEAD_MAX);
        strbuf_init(&call->body, MOST);
        for (size_t at = 0; at < n && r == 0 && call->stage != HTTP_DONE; at += step) {
                strbuf_append(&call->in, text + at, n - at < step ? n - at : step);
                if (call->in.failed)
                        return -1;
                r = http_call_understand(call, false, NULL);
        }
        if (r == 0 && call->stage != HTTP_DONE)
                r = http_call_understand(call, true, NULL);
        assert(call->body.len <= MOST && call->retry_after_ms <= 3600 * 1000);
        return r;
}

static void take(struct lessor_lease *x, enum doing doing, const struct client_answer *answer)
{
        enum lessor_news news = LESSOR_NOTHING;
        x->doing = doing;
        if (answer_is_passing(answer)) {
                if (doing >= DOING_CROWD)
                        follow_hindered(x);
                else
                        (void) acquire_hindered(x, 0, answer);
        } else if (doing >= DOING_CROWD) {
                (void) follow_take(x, answer);
        } else {
                (void) acquire_take(x, answer);
        }
        check_lease(x);
        while (follow_next_event(x, &news))
                check_lease(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lessor *l = NULL;
        struct lessor_request *request = NULL;
        struct lessor_lease *x = NULL;
        struct http_call call;
        struct client_answer answer = { 0 };

        if (size < 2)
                return 0;
        size_t step = data[1] % 16 == 0 ? size : data[1] % 16;
        enum doing doing = (enum doing)(DOING_POST + data[0] % (DOING_EVENTS - DOING_POST + 1));
        int r = understand(&call, (const char *) data + 2, size - 2, step);
        if (r == 0 && client_answer_read(&call, &answer, NULL) == 0 && lessor_open(&l, "/nowhere", NULL) == 0 &&
            lessor_request_new(&request) == 0 && lessor_acquire_begin(l, request, &x, NULL) == 0) {
                (void) strcpy(x->id, doing == DOING_POST ? "" : "L1");
                if (doing == DOING_GIVE_UP) /* with a verdict already */
                        x->error = failure_new(ETIMEDOUT, "wait-over", "the wait is over");
                take(x, doing, &answer);
        }
        client_answer_fini(&answer);
        http_call_end(&call);
        lessor_lease_free(x);
        lessor_request_free(request);
        lessor_close(l);
        return 0;
}
