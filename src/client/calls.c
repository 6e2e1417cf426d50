/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a lease that is there, and the questions that wait for nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/number.h"
#include "client/handle.h"

enum {
        PATH_TEXT_MAX = 128,
        RELEASE_MS = 4000, /* it is freed anyway when what it is bound to is gone */
        LAST_TRY_MS = 1000,
};

/* 1: there is nothing to be done to it; 0: go on. */
static int check(const struct lessor_lease *x, struct lessor_error **reterr)
{
        int r = handle_check(x->l, reterr);
        if (r < 0)
                return r;
        if (x->state == LESSOR_STATE_WITHOUT)
                return 1;
        if (x->id[0] == '\0')
                return failure_give(failure_new(EBADFD, "wrong-state", "there is no lease yet"), reterr);
        return 0;
}

/* One question about @x. @what stands behind its address. */
static int ask(struct lessor_lease *x, const char *method, const char *what, struct question q,
               struct client_answer *ret, bool *ret_again, struct lessor_error **reterr)
{
        char path[PATH_TEXT_MAX];
        (void) snprintf(path, sizeof(path), "/api/leases/%s%s", x->id, what);
        q.method = method;
        q.path = path;
        if (q.most_ms == 0)
                q.most_ms = UINT64_MAX;
        return patient_call(x->l, &q, ret, ret_again, reterr);
}

static int ask_and_remember(struct lessor_lease *x, const char *method, const char *what, struct question q,
                            bool *ret_again, struct lessor_error **reterr)
{
        struct client_answer answer;
        int r = check(x, reterr);
        if (r != 0)
                return r < 0 ? r : 0;
        uint64_t rev = x->rev;
        bool follows = x->doing >= DOING_CROWD;
        r = ask(x, method, what, q, &answer, ret_again, reterr);
        if (r < 0)
                return r;
        if (!lease_is_about(x, answer.body)) {
                client_answer_fini(&answer);
                return failure_give(failure_of_call(&x->l->client, -EPROTO), reterr);
        }
        lease_remember(x, answer.body);
        if (follows) /* what happened in between is still to be told */
                x->rev = rev;
        client_answer_fini(&answer);
        return 0;
}

int lessor_lease_refresh(struct lessor_lease *x, struct lessor_error **reterr)
{
        bool again;
        return ask_and_remember(x, "GET", "", (struct question){ 0 }, &again, reterr);
}

static json_t *number_or_null(uint64_t n)
{
        return n > 0 ? json_integer((json_int_t) n) : json_null();
}

int lessor_lease_activate(struct lessor_lease *x, int pid, uint64_t cgroup_id, struct lessor_error **reterr)
{
        bool again = false;
        struct lessor_error *error = NULL;
        if (pid < 0 || cgroup_id > INT64_MAX)
                return failure_give(failure_new(EINVAL, NULL, "that is no process or no cgroup"), reterr);
        json_t *body =
                json_pack("{s:o, s:o}", "pid", number_or_null((uint64_t) pid), "cgroup_id", number_or_null(cgroup_id));
        if (!body)
                return failure_give(failure_new(ENOMEM, NULL, "building the question"), reterr);
        bool was_active = x->state == LESSOR_STATE_ACTIVE;
        int r = ask_and_remember(x, "POST", "/activate", (struct question){ .body = body }, &again, &error);
        json_decref(body);
        /* Collected already: with the grant, or by a try whose answer was lost. */
        if (r == -EBADFD && (was_active || again) && lessor_lease_refresh(x, NULL) == 0 &&
            x->state == LESSOR_STATE_ACTIVE) {
                lessor_error_free(error);
                return 0;
        }
        return r < 0 ? failure_give(error, reterr) : r;
}

int lessor_lease_renew(struct lessor_lease *x, struct lessor_error **reterr)
{
        bool again;
        return ask_and_remember(x, "POST", "/renew", (struct question){ 0 }, &again, reterr);
}

int lessor_lease_yielded(struct lessor_lease *x, struct lessor_error **reterr)
{
        bool again;
        return ask_and_remember(x, "POST", "/yielded", (struct question){ 0 }, &again, reterr);
}

int lessor_lease_busy(struct lessor_lease *x, struct lessor_error **reterr)
{
        bool again;
        return ask_and_remember(x, "POST", "/busy", (struct question){ 0 }, &again, reterr);
}

int lessor_lease_thaw(struct lessor_lease *x, struct lessor_error **reterr)
{
        bool again;
        return ask_and_remember(x, "POST", "/thaw", (struct question){ 0 }, &again, reterr);
}

/* @body becomes the call's. */
static int ask_with(struct lessor_lease *x, const char *what, json_t *body, struct lessor_error **reterr)
{
        bool again;
        if (!body)
                return failure_give(failure_new(ENOMEM, NULL, "building the question"), reterr);
        int r = ask_and_remember(x, "POST", what, (struct question){ .body = body }, &again, reterr);
        json_decref(body);
        return r;
}

int lessor_lease_idle(struct lessor_lease *x, uint64_t keep_alive_ms, struct lessor_error **reterr)
{
        if (keep_alive_ms > INT64_MAX)
                return failure_give(failure_new(EINVAL, NULL, "that is longer than there is time"), reterr);
        return ask_with(x, "/idle", json_pack("{s:o}", "keep_alive_ms", number_or_null(keep_alive_ms)), reterr);
}

int lessor_lease_park(struct lessor_lease *x, const char *span, struct lessor_error **reterr)
{
        return ask_with(x, "/park", json_pack("{s:s?}", "for", span), reterr);
}

/* A question that is under way may become a place in the queue: it is heard to its end, or its connection is the place. */
static void stop_waiting(struct lessor_lease *x)
{
        uint64_t until_ms = clock_now_ms() + LAST_TRY_MS;
        if (x->doing == DOING_POST && !x->rests && !x->is_tied &&
            http_call_go_on(&x->link.call, false, until_ms, -1, NULL) == 0) {
                struct client_answer answer;
                if (client_answer_read(&x->link.call, &answer, NULL) == 0 && answer.status < 300)
                        lease_remember(x, answer.body);
                client_answer_fini(&answer);
        }
        if (x->doing == DOING_POST && x->is_tied)
                x->id[0] = '\0'; /* seen from beside only */
        link_end(x, &x->link);
        link_end(x, &x->peek);
        x->doing = DOING_NOTHING;
        x->later = LESSOR_NOTHING;
}

void lessor_lease_set_failed(struct lessor_lease *x)
{
        if (x)
                x->failed = true;
}

int lessor_lease_release(struct lessor_lease *x, struct lessor_error **reterr)
{
        bool again = false;
        struct lessor_error *error = NULL;
        if (!x)
                return 0;
        int r = handle_check(x->l, reterr);
        if (r < 0)
                return r;
        bool waits = x->doing != DOING_NOTHING && x->doing < DOING_CROWD;
        stop_waiting(x);
        if (waits && x->id[0] == '\0') {
                x->state = LESSOR_STATE_ENDED;
                handle_arm(x->l, false);
                return 0;
        }
        r = ask_and_remember(x, "DELETE", x->failed ? "?failed=1" : "", (struct question){ .most_ms = RELEASE_MS },
                             &again, &error);
        handle_arm(x->l, false);
        if (r == 0 && x->bound_fd >= 0) {
                (void) close(x->bound_fd);
                x->bound_fd = -1;
        }
        if (r == -EIDRM)
                x->state = LESSOR_STATE_ENDED;
        if (r == -EIDRM && again) { /* it was us, and the answer was lost */
                lessor_error_free(error);
                return 0;
        }
        return r < 0 ? failure_give(error, reterr) : r;
}

/* ---- changes ---- */

static int change(struct lessor_lease *x, const char *field, json_t *value, bool only_once,
                  struct lessor_error **reterr)
{
        bool again;
        char key[KEY_TEXT_MAX];
        json_t *body = value ? json_pack("{s:o}", field, value) : NULL;
        if (!body)
                return failure_give(failure_new(EINVAL, NULL, "%s: not UTF-8, or no memory", field), reterr);
        request_new_key(key);
        int r = ask_and_remember(x, "PATCH", "", (struct question){ .body = body, .key = key, .only_once = only_once },
                                 &again, reterr);
        json_decref(body);
        return r;
}

int lessor_lease_extend(struct lessor_lease *x, const char *span, struct lessor_error **reterr)
{
        return change(x, "extend", span ? json_string(span) : NULL, true, reterr);
}

int lessor_lease_set_for(struct lessor_lease *x, const char *span, struct lessor_error **reterr)
{
        return change(x, "for", span ? json_string(span) : json_null(), false, reterr);
}

int lessor_lease_renice(struct lessor_lease *x, int priority, struct lessor_error **reterr)
{
        return change(x, "priority", json_integer(priority), false, reterr);
}

int lessor_lease_pin(struct lessor_lease *x, const char *span, struct lessor_error **reterr)
{
        return change(x, "pin", span ? json_string(span) : json_true(), false, reterr);
}

int lessor_lease_unpin(struct lessor_lease *x, struct lessor_error **reterr)
{
        return change(x, "pin", json_false(), false, reterr);
}

/* ---- questions of the handle ---- */

static int lease_of_answer(struct lessor *l, struct client_answer *answer, struct lessor_lease **ret,
                           struct lessor_error **reterr)
{
        struct lessor_lease *x = NULL;
        if (!json_is_object(answer->body))
                return failure_give(
                        failure_new(EPROTO, NULL, "lessord answers HTTP %d without a lease", answer->status), reterr);
        if (lease_new(l, &x) < 0)
                return failure_give(failure_new(ENOMEM, NULL, "keeping a lease"), reterr);
        lease_remember(x, answer->body);
        *ret = x;
        return 0;
}

int lessor_lease_open(struct lessor *l, const char *id, struct lessor_lease **ret, struct lessor_error **reterr)
{
        bool again;
        char path[PATH_TEXT_MAX];
        struct client_answer answer;
        size_t n = strlen(id);
        /* An id is an address here: whatever is more than one word of it would be another address. */
        if (n == 0 || n >= LEASE_NAME_MAX || strspn(id, "L0123456789") < n)
                return failure_give(failure_new(EINVAL, NULL, "an id is L and a number, as L17"), reterr);
        (void) snprintf(path, sizeof(path), "/api/leases/%s", id);
        struct question q = { .method = "GET", .path = path, .most_ms = UINT64_MAX };
        int r = patient_call(l, &q, &answer, &again, reterr);
        if (r < 0)
                return r;
        r = lease_of_answer(l, &answer, ret, reterr);
        client_answer_fini(&answer);
        return r;
}

int lessor_adopt(struct lessor *l, const struct lessor_request *request, int pid, bool whole_cgroup,
                 struct lessor_lease **ret, struct lessor_error **reterr)
{
        bool again;
        char key[KEY_TEXT_MAX];
        struct client_answer answer;
        struct lessor_error *error = NULL;
        json_t *body = request_body(request, NULL, 0);
        if (!body)
                return failure_give(failure_new(ENOMEM, NULL, "building the question"), reterr);
        (void) json_object_del(body, "bind"); /* to what is adopted */
        (void) json_object_set_new(body, "pid", json_integer(pid));
        (void) json_object_set_new(body, "cgroup", json_boolean(whole_cgroup));
        if (request->key[0] != '\0')
                (void) snprintf(key, sizeof(key), "%s", request->key);
        else
                request_new_key(key);
        struct question q = { .method = "POST", .path = "/api/adopt", .body = body, .key = key, .most_ms = UINT64_MAX };
        int r = patient_call(l, &q, &answer, &again, &error);
        json_decref(body);
        if (r < 0)
                return failure_is_older(error, reterr);
        r = lease_of_answer(l, &answer, ret, reterr);
        client_answer_fini(&answer);
        return r;
}

static int give_json(struct client_answer *answer, char **ret_json, struct lessor_error **reterr)
{
        char *text = NULL;
        if (!ret_json)
                return 0;
        text = answer->body ? json_dumps(answer->body, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("");
        if (!text)
                return failure_give(failure_new(ENOMEM, NULL, "keeping the answer"), reterr);
        *ret_json = text;
        return 0;
}

int lessor_plan(struct lessor *l, const struct lessor_request *request, char **ret_json, struct lessor_error **reterr)
{
        bool again;
        struct client_answer answer;
        struct lessor_error *error = NULL;
        json_t *body = request_body(request, NULL, 0);
        if (!body)
                return failure_give(failure_new(ENOMEM, NULL, "building the question"), reterr);
        struct question q = { .method = "POST", .path = "/api/plan", .body = body, .most_ms = UINT64_MAX };
        int r = patient_call(l, &q, &answer, &again, &error);
        json_decref(body);
        if (r < 0)
                return failure_is_older(error, reterr);
        r = give_json(&answer, ret_json, reterr);
        client_answer_fini(&answer);
        return r;
}

static bool is_address(const char *text)
{
        return text && text[0] == '/' && strcspn(text, " \r\n\t") == strlen(text);
}

static bool is_method(const char *text)
{
        size_t n = text ? strlen(text) : 0;
        return n > 0 && n < 16 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == n;
}

int lessor_call(struct lessor *l, const char *method, const char *path, const char *body, int *ret_status,
                char **ret_json, struct lessor_error **reterr)
{
        bool again;
        char key[KEY_TEXT_MAX];
        struct client_answer answer;
        json_t *parsed = body ? json_loads(body, JSON_REJECT_DUPLICATES, NULL) : NULL;
        if (!is_method(method) || !is_address(path) || (body && !parsed)) {
                json_decref(parsed);
                return failure_give(failure_new(EINVAL, NULL, "that is no method, no address, or no JSON"), reterr);
        }
        request_new_key(key);
        struct question q = { .method = method,
                              .path = path,
                              .body = parsed,
                              .key = strcmp(method, "GET") == 0 ? NULL : key,
                              .most_ms = UINT64_MAX };
        int r = patient_call(l, &q, &answer, &again, reterr);
        json_decref(parsed);
        if (r < 0)
                return r;
        r = give_json(&answer, ret_json, reterr);
        if (r == 0 && ret_status)
                *ret_status = answer.status;
        client_answer_fini(&answer);
        return r;
}
