/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait for a lease: asked (POST), waited for by long polls, collected. A lease that is bound to the asking process
 * stands in the queue by itself (mode "queue"). Any other is asked for in one long question whose connection is its place
 * (mode "wait"), so that it is given up when this process dies; how it waits is seen by looking beside.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "client/handle.h"

enum {
        GRACE_MS = 2000, /* lessord's own end of the wait comes first where it can */
        LOOK_MS = 1000,  /* between two looks at a tied wait */
        PROGRESS_MS = 1000,
        GIVE_UP_MS = 2000,
        AGAIN_MS = 50, /* before it is asked for anew: whatever went wrong may go wrong again */
        NO_NEWS_MS = 200,
        PATH_TEXT_MAX = 128,
};

static const char *mode_of(const struct lessor_lease *x)
{
        return x->request->wait_ms == 0 ? "now" : x->is_tied ? "wait" : "queue";
}

static uint64_t left_ms(const struct lessor_lease *x)
{
        return x->deadline_ms == UINT64_MAX ? UINT64_MAX : u64_max(1, u64_sub0(x->deadline_ms, clock_now_ms()));
}

static void go_to(struct lessor_lease *x, enum doing doing)
{
        x->doing = doing;
        x->rests = true;
        x->due_ms = 0;
}

static enum lessor_news refuse(struct lessor_lease *x, struct lessor_error *error)
{
        if (error && error != x->error) {
                lessor_error_free(x->error);
                x->error = error;
        }
        link_end(x, &x->link);
        link_end(x, &x->peek);
        x->doing = DOING_NOTHING;
        x->state = LESSOR_STATE_REFUSED;
        return LESSOR_NEWS_REFUSED;
}

/* Gives up what may stand in the queue, and then says why. */
static enum lessor_news give_up(struct lessor_lease *x, struct lessor_error *why)
{
        lessor_error_free(x->error);
        x->error = why;
        link_end(x, &x->link);
        link_end(x, &x->peek);
        x->peek_due_ms = UINT64_MAX;
        if (x->id[0] == '\0' || x->is_tied)
                return refuse(x, NULL);
        go_to(x, DOING_GIVE_UP);
        return LESSOR_NOTHING;
}

uint64_t acquire_ends_ms(const struct lessor_lease *x)
{
        bool waits = x->doing == DOING_POST || x->doing == DOING_POLL;
        return waits && x->request->wait_ms > 0 ? u64_add_sat(x->deadline_ms, GRACE_MS) : UINT64_MAX;
}

enum lessor_news acquire_time_is_up(struct lessor_lease *x)
{
        return give_up(x, failure_new(ETIMEDOUT, "wait-over", "the wait is over: no room came free in time"));
}

/* ---- asking ---- */

/* The text of the question, made when it is about to be sent for the first time. */
static const char *question_of(struct lessor_lease *x)
{
        if (x->question)
                return x->question;
        json_t *body = request_body(x->request, mode_of(x), left_ms(x));
        x->question = body ? json_dumps(body, JSON_COMPACT) : NULL;
        json_decref(body);
        return x->question;
}

static void forget_question(struct lessor_lease *x)
{
        free(x->question);
        x->question = NULL;
}

static int begin_post(struct lessor_lease *x)
{
        bool is_long = x->is_tied && x->request->wait_ms > 0, is_first = !x->question;
        struct http_request request = { .method = "POST",
                                        .path = "/api/leases",
                                        .body = question_of(x),
                                        .key = x->key,
                                        .keep_open = x->request->bound_to == BOUND_TO_CONNECTION,
                                        .max_bytes = ANSWER_MAX };
        if (!request.body)
                return -ENOMEM;
        x->id[0] = '\0'; /* of one that was lost */
        x->due_ms = !is_long ? clock_now_ms() + CLIENT_CALL_MS : u64_add_sat(x->deadline_ms, CLIENT_CALL_MS);
        x->peek_due_ms = is_long ? clock_now_ms() + LOOK_MS : UINT64_MAX;
        int r = link_begin(x, &x->link, &request);
        if (r < 0 && is_first)
                forget_question(x); /* it was not sent; the time left to wait, which is in it, goes on */
        return r;
}

static int begin_poll(struct lessor_lease *x)
{
        char path[PATH_TEXT_MAX];
        uint64_t turn_ms = x->away_since_ms != 0 ? 0 : x->request->refresh_ms; /* is it back? That is news by itself */
        if (x->deadline_ms != UINT64_MAX)
                turn_ms = u64_min(turn_ms, u64_sub0(x->deadline_ms + GRACE_MS, clock_now_ms()) + 1);
        (void) snprintf(path, sizeof(path), "/api/leases/%s?after=%" PRIu64 "&wait_ms=%" PRIu64, x->id, x->rev,
                        turn_ms);
        struct http_request request = { .method = "GET", .path = path, .max_bytes = ANSWER_MAX };
        x->due_ms = clock_now_ms() + turn_ms + CLIENT_CALL_MS;
        return link_begin(x, &x->link, &request);
}

static int begin_change(struct lessor_lease *x, const char *method, const char *what, uint64_t most_ms)
{
        char path[PATH_TEXT_MAX];
        (void) snprintf(path, sizeof(path), "/api/leases/%s%s", x->id, what);
        struct http_request request = { .method = method, .path = path, .max_bytes = ANSWER_MAX };
        x->due_ms = clock_now_ms() + most_ms;
        return link_begin(x, &x->link, &request);
}

enum lessor_news acquire_begin(struct lessor_lease *x, bool *ret_began)
{
        int r = 0;
        switch (x->doing) {
        case DOING_POST:
                r = begin_post(x);
                break;
        case DOING_POLL:
                r = begin_poll(x);
                break;
        case DOING_COLLECT:
                r = begin_change(x, "POST", "/activate", CLIENT_CALL_MS);
                break;
        case DOING_GIVE_UP:
                r = begin_change(x, "DELETE", "", GIVE_UP_MS);
                break;
        case DOING_NOTHING:
        case DOING_CROWD:
        case DOING_FOLLOW:
        case DOING_EVENTS:
                return LESSOR_NOTHING;
        }
        *ret_began = r == 0;
        return r < 0 ? acquire_hindered(x, r, NULL) : LESSOR_NOTHING;
}

static void rest(struct lessor_lease *x, uint64_t at_least_ms)
{
        x->rest_ms = u64_min(u64_max(2 * x->rest_ms, REST_FIRST_MS), REST_LAST_MS);
        x->rests = true;
        x->due_ms = clock_now_ms() + u64_max(x->rest_ms, u64_min(at_least_ms, RETRY_AFTER_MOST_MS));
}

enum lessor_news acquire_hindered(struct lessor_lease *x, int r, const struct client_answer *answer)
{
        const struct lessor *l = x->l;
        uint64_t now_ms = clock_now_ms();
        /* Too many connections, or the lost question is still under way: a queue like any other, as long as the caller is
         * willing to wait. */
        bool is_crowd = r == 0 && answer->status != 503;

        if (x->doing == DOING_GIVE_UP)
                return refuse(x, NULL);
        struct lessor_error *why = r < 0 ? failure_of_call(&l->client, r) : failure_of_answer(answer);
        if (r < 0 && !client_is_away(r))
                return refuse(x, why);
        if (!is_crowd && l->if_down == LESSOR_IF_DOWN_RUN && x->id[0] == '\0') {
                lessor_error_free(x->error);
                x->error = why;
                x->doing = DOING_NOTHING;
                x->state = LESSOR_STATE_WITHOUT;
                return LESSOR_NEWS_WITHOUT;
        }
        bool is_first = x->away_since_ms == 0;
        if (is_first)
                x->away_since_ms = now_ms;
        bool patience_ends = !is_crowd || x->request->wait_ms == 0;
        if (patience_ends && (l->if_down == LESSOR_IF_DOWN_FAIL || now_ms - x->away_since_ms > l->away_ms))
                return refuse(x, why);
        lessor_error_free(x->error);
        x->error = why;
        rest(x, r == 0 ? answer->retry_after_ms : 0);
        return is_first ? LESSOR_NEWS_AWAY : LESSOR_NOTHING;
}

/* ---- what an answer means ---- */

static enum lessor_news granted(struct lessor_lease *x)
{
        if (x->state == LESSOR_STATE_GRANTED && !x->request->leaves_uncollected) {
                go_to(x, DOING_COLLECT);
                return LESSOR_NOTHING;
        }
        x->doing = DOING_NOTHING;
        return LESSOR_NEWS_GRANTED;
}

/* It is gone: a new question, under a new key. */
static enum lessor_news ask_again(struct lessor_lease *x)
{
        request_new_key(x->key);
        x->rev = 0;
        forget_question(x);
        x->state = LESSOR_STATE_ASKED;
        go_to(x, DOING_POST);
        x->due_ms = clock_now_ms() + AGAIN_MS;
        return LESSOR_NEWS_AGAIN;
}

/* In the queue. An answer to a long poll that says nothing new and comes before its time shall not spin us. */
static enum lessor_news queued(struct lessor_lease *x, uint64_t rev)
{
        uint64_t now_ms = clock_now_ms();
        bool is_early = x->doing == DOING_POLL && x->rev <= rev && now_ms + CLIENT_CALL_MS < x->due_ms;
        go_to(x, DOING_POLL);
        if (is_early)
                x->due_ms = now_ms + NO_NEWS_MS;
        return LESSOR_NEWS_QUEUED;
}

static enum lessor_news judge(struct lessor_lease *x, json_t *json)
{
        uint64_t rev = x->rev;
        lease_remember(x, json);
        if (x->id[0] != '\0')
                switch (x->state) {
                case LESSOR_STATE_QUEUED:
                        return queued(x, rev);
                case LESSOR_STATE_DRAINING:
                case LESSOR_STATE_ENDED:
                        return ask_again(x);
                case LESSOR_STATE_GRANTED:
                case LESSOR_STATE_ACTIVE:
                case LESSOR_STATE_ASKING: /* these: the answer to a repetition, after a long while */
                case LESSOR_STATE_HELD:
                case LESSOR_STATE_PARKED:
                case LESSOR_STATE_THAWING:
                case LESSOR_STATE_ORPHANED:
                case LESSOR_STATE_STUCK:
                case LESSOR_STATE_LOST:
                        return granted(x);
                case LESSOR_STATE_ASKED:
                case LESSOR_STATE_REFUSED:
                case LESSOR_STATE_WITHOUT:
                case LESSOR_STATE_OTHER:
                        break;
                }
        return refuse(x, failure_of_call(&x->l->client, -EPROTO));
}

/* `end` of a 410: as text, or inside an object. */
static const char *end_of(const json_t *body)
{
        const json_t *end = json_object_get(body, "end");
        return json_is_object(end) ? json_text(end, "reason", "") : json_text(body, "end", "");
}

/* Ends that are nobody's will: it was not collected in time, or lessord lost sight of us. */
static bool is_lost(const struct client_answer *answer)
{
        const char *end = end_of(answer->body);
        return answer->status == 404 ||
               (answer->status == 410 && (strcmp(end, "not-collected") == 0 ||
                                          strcmp(end, "owner-gone-while-away") == 0 || strcmp(end, "rebooted") == 0));
}

static enum lessor_news refused(struct lessor_lease *x, const struct client_answer *answer)
{
        return refuse(x, failure_of_answer(answer));
}

static enum lessor_news take_collect(struct lessor_lease *x, const struct client_answer *answer)
{
        if (answer->status == 200 && lease_is_about(x, answer->body)) {
                lease_remember(x, answer->body);
                x->doing = DOING_NOTHING;
                return LESSOR_NEWS_GRANTED;
        }
        if (answer->status == 409) { /* collected already: the answer to an earlier try was lost */
                x->doing = DOING_NOTHING;
                x->state = LESSOR_STATE_ACTIVE;
                return LESSOR_NEWS_GRANTED;
        }
        return answer->status == 404 || answer->status == 410 ? ask_again(x) : refused(x, answer);
}

enum lessor_news acquire_take(struct lessor_lease *x, const struct client_answer *answer)
{
        switch (x->doing) {
        case DOING_POST:
                if (answer->status == 200 || answer->status == 201 || answer->status == 202)
                        return judge(x, answer->body);
                /* a repetition, and what came of the first one is over already */
                return is_lost(answer) && answer->status == 410 ? ask_again(x) : refused(x, answer);
        case DOING_POLL:
                if (answer->status == 200 && lease_is_about(x, answer->body))
                        return judge(x, answer->body);
                return is_lost(answer) ? ask_again(x) : refused(x, answer);
        case DOING_COLLECT:
                return take_collect(x, answer);
        case DOING_GIVE_UP:
                return refuse(x, NULL);
        case DOING_NOTHING:
        case DOING_CROWD:
        case DOING_FOLLOW:
        case DOING_EVENTS:
                break;
        }
        return LESSOR_NOTHING;
}

/* ---- a look beside: for showing only ---- */

static bool text_is(const json_t *object, const char *key, const char *value)
{
        return strcmp(json_text(object, key, ""), value) == 0;
}

/* Is this lease what was asked for here? By whose it is and how it is called; one that this handle knows is another's. */
static bool may_be_ours(const struct lessor_lease *x, const json_t *lease)
{
        const struct lessor_request *q = x->request;
        const char *consumer = json_text(q->body, "consumer", NULL), *name = json_text(q->body, "name", NULL);
        const json_t *binding = json_object_get(lease, "binding");
        uint64_t pid;

        if (consumer && !text_is(lease, "consumer", consumer))
                return false;
        if (name && !text_is(lease, "name", name))
                return false;
        if (q->bound_to == BOUND_TO_HEARTBEAT && !text_is(binding, "to", "heartbeat"))
                return false;
        if (q->bound_to == BOUND_TO_PROCESS &&
            (!json_amount(binding, "pid", &pid) || pid != (uint64_t) (q->pid > 0 ? q->pid : (int) getpid())))
                return false;
        for (const struct lessor_lease *other = x->l->leases; other; other = other->next)
                if (other != x && other->id[0] != '\0' && text_is(lease, "id", other->id))
                        return false;
        return true;
}

static bool take_peek(struct lessor_lease *x, const json_t *leases)
{
        size_t i;
        json_t *lease, *mine = NULL;
        json_array_foreach(leases, i, lease)
        {
                if (text_is(lease, "state", "queued") && may_be_ours(x, lease))
                        mine = lease; /* the newest of several */
        }
        if (!mine)
                return false;
        lease_remember(x, mine);
        return true;
}

enum lessor_news acquire_peek(struct lessor_lease *x)
{
        struct http_request request = { .method = "GET", .path = "/api/leases" };
        struct client_answer answer = { 0 };
        uint64_t now_ms = clock_now_ms();
        bool seen = false;

        if (x->peek_due_ms == UINT64_MAX)
                return LESSOR_NOTHING;
        if (x->peek.call.fd < 0) {
                if (now_ms < x->peek_due_ms)
                        return LESSOR_NOTHING;
                x->peek_due_ms = now_ms + LOOK_MS;
                if (link_begin(x, &x->peek, &request) < 0)
                        return LESSOR_NOTHING;
        }
        int r = http_call_go_on(&x->peek.call, false, 0, -1, NULL);
        if (r == -ETIMEDOUT && now_ms < x->peek_due_ms)
                return LESSOR_NOTHING;
        if (r == 0 && client_answer_read(&x->peek.call, &answer, NULL) == 0 && answer.status == 200)
                seen = take_peek(x, json_object_get(answer.body, "leases"));
        client_answer_fini(&answer);
        link_end(x, &x->peek);
        x->peek_due_ms = now_ms + LOOK_MS;
        return seen ? LESSOR_NEWS_QUEUED : LESSOR_NOTHING;
}

/* ---- lessor.h ---- */

int lessor_acquire_begin(struct lessor *l, const struct lessor_request *request, struct lessor_lease **ret,
                         struct lessor_error **reterr)
{
        struct lessor_lease *x = NULL;
        int r = handle_check(l, reterr);
        if (r < 0)
                return r;
        if (lease_new(l, &x) < 0)
                return failure_give(failure_new(ENOMEM, NULL, "asking for a lease"), reterr);
        x->request = request_copy(request);
        if (!x->request) {
                lessor_lease_free(x);
                return failure_give(failure_new(ENOMEM, NULL, "asking for a lease"), reterr);
        }
        if (request->key[0] != '\0')
                (void) snprintf(x->key, sizeof(x->key), "%s", request->key);
        else
                request_new_key(x->key);
        x->is_tied = request->bound_to != BOUND_TO_PROCESS || (request->pid > 0 && request->pid != (int) l->pid);
        if (request->wait_ms != LESSOR_FOR_EVER)
                x->deadline_ms = u64_add_sat(clock_now_ms(), request->wait_ms);
        go_to(x, DOING_POST);
        handle_arm(l, false);
        *ret = x;
        return 0;
}

/* Until this one lease has something to do. False: a second is over, or a signal came. */
static bool wait_for(const struct lessor_lease *x)
{
        struct pollfd fds[2];
        nfds_t n = 0;
        uint64_t due_ms = lease_due_ms(x), now_ms = clock_now_ms();
        uint64_t wait_ms = u64_min(u64_sub0(due_ms, now_ms), PROGRESS_MS);
        const struct link *links[] = { &x->link, &x->peek };
        for (size_t i = 0; i < 2; i++)
                if (links[i]->call.fd >= 0)
                        fds[n++] = (struct pollfd){ .fd = links[i]->call.fd,
                                                    .events = links[i]->call.stage == HTTP_SENDING ? POLLOUT : POLLIN };
        return poll(fds, n, (int) wait_ms) > 0 || (due_ms != UINT64_MAX && clock_now_ms() >= due_ms);
}

static int end_of_acquire(struct lessor_lease *x, int r, struct lessor_error *error, struct lessor_lease **ret,
                          struct lessor_error **reterr)
{
        if (r >= 0) {
                *ret = x;
                return r;
        }
        lessor_lease_free(x);
        return failure_give(error, reterr);
}

int lessor_acquire(struct lessor *l, const struct lessor_request *request, lessor_progress_fn progress, void *userdata,
                   struct lessor_lease **ret, struct lessor_error **reterr)
{
        struct lessor_lease *x = NULL;
        int r = lessor_acquire_begin(l, request, &x, reterr);
        if (r < 0)
                return r;
        for (;;) {
                enum lessor_news news = lease_step(x);
                if (news == LESSOR_NOTHING && wait_for(x))
                        continue;
                if (news == LESSOR_NEWS_REFUSED)
                        return end_of_acquire(x, -1, failure_copy(x->error), ret, reterr);
                if (progress && progress(x, news, userdata) != 0) {
                        (void) lessor_lease_release(x, NULL);
                        return end_of_acquire(x, -1, failure_new(ECANCELED, NULL, "the wait was given up"), ret,
                                              reterr);
                }
                if (news == LESSOR_NEWS_GRANTED)
                        return end_of_acquire(x, 0, NULL, ret, reterr);
                if (news == LESSOR_NEWS_WITHOUT)
                        return end_of_acquire(x, 1, NULL, ret, reterr);
        }
}
