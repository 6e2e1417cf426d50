/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/number.h"
#include "client/handle.h"

int lease_new(struct lessor *l, struct lessor_lease **ret)
{
        struct lessor_lease *x = calloc(1, sizeof(*x));
        if (!x)
                return -ENOMEM;
        x->l = l;
        x->bound_fd = x->link.call.fd = x->peek.call.fd = -1;
        x->deadline_ms = x->due_ms = x->peek_due_ms = UINT64_MAX;
        l->n_refs++;
        x->next = l->leases;
        l->leases = x;
        *ret = x;
        return 0;
}

void lessor_lease_free(struct lessor_lease *x)
{
        if (!x)
                return;
        struct lessor_lease **at = &x->l->leases;
        while (*at != x)
                at = &(*at)->next;
        *at = x->next;
        link_end(x, &x->link);
        link_end(x, &x->peek);
        closep(&x->bound_fd);
        json_decref(x->json);
        json_decref(x->events);
        free(x->json_text);
        free(x->question);
        lessor_error_free(x->error);
        lessor_request_free(x->request);
        handle_unref(x->l);
        free(x);
}

/* ---- calls of its own ---- */

int link_begin(struct lessor_lease *x, struct link *link, const struct http_request *request)
{
        link_end(x, link);
        int r = http_call_begin(&link->call, x->l->client.socket_path, request, 0, NULL);
        if (r < 0)
                http_call_end(&link->call);
        return r;
}

void link_end(struct lessor_lease *x, struct link *link)
{
        /* Said, not left to the close: a fork's child may have a copy, which would keep it there. And not by that child, whose
         * epoll is its parent's. */
        if (link->polled_for != 0 && !handle_is_forked(x->l))
                (void) epoll_ctl(x->l->epoll_fd, EPOLL_CTL_DEL, link->polled_fd, NULL);
        link->polled_for = 0;
        http_call_end(&link->call);
}

uint64_t lease_due_ms(const struct lessor_lease *x)
{
        if (x->later != LESSOR_NOTHING || x->events)
                return 0;
        if (x->doing == DOING_NOTHING)
                return UINT64_MAX;
        return u64_min(x->due_ms, u64_min(x->peek_due_ms, acquire_ends_ms(x)));
}

static bool is_following(const struct lessor_lease *x)
{
        return x->doing == DOING_CROWD || x->doing == DOING_FOLLOW || x->doing == DOING_EVENTS;
}

static enum lessor_news take(struct lessor_lease *x, int r)
{
        struct client_answer answer = { 0 };
        bool follows = is_following(x);
        enum lessor_news news = LESSOR_NOTHING;

        if (r == 0)
                r = client_answer_read(&x->link.call, &answer, NULL);
        if (r == 0 && x->doing == DOING_POST && x->request->bound_to == BOUND_TO_CONNECTION && answer.status == 201)
                x->bound_fd = http_call_take_fd(&x->link.call);
        link_end(x, &x->link);
        link_end(x, &x->peek);
        x->peek_due_ms = UINT64_MAX;
        bool passes = r == 0 && answer_is_passing(&answer);
        if (follows) {
                if (r < 0 || passes)
                        follow_hindered(x);
                else
                        news = follow_take(x, &answer);
        } else if (r < 0 || passes) {
                news = acquire_hindered(x, r, &answer);
        } else {
                bool was_away = x->away_since_ms != 0;
                x->away_since_ms = x->rest_ms = 0;
                news = acquire_take(x, &answer);
                if (was_away && x->state != LESSOR_STATE_REFUSED) {
                        lessor_error_free(x->error);
                        x->error = NULL;
                        x->later = news;
                        news = LESSOR_NEWS_BACK;
                }
        }
        client_answer_fini(&answer);
        return news;
}

enum lessor_news lease_step(struct lessor_lease *x)
{
        enum lessor_news news = x->later;
        uint64_t now_ms = clock_now_ms();

        x->later = LESSOR_NOTHING;
        if (news != LESSOR_NOTHING || follow_next_event(x, &news))
                return news;
        if (x->doing == DOING_NOTHING)
                return LESSOR_NOTHING;
        if (now_ms >= acquire_ends_ms(x))
                return acquire_time_is_up(x);
        if (x->rests) {
                bool began = false;
                if (now_ms < x->due_ms)
                        return LESSOR_NOTHING;
                news = is_following(x) ? follow_begin(x, &began) : acquire_begin(x, &began);
                if (!began)
                        return news;
                x->rests = false;
        }
        int r = http_call_go_on(&x->link.call, false, 0, -1, NULL);
        if (r == -ETIMEDOUT && clock_now_ms() < x->due_ms)
                return acquire_peek(x);
        return take(x, r);
}

/* ---- what is known of it ---- */

static const struct {
        const char *name;
        enum lessor_state state;
} states[] = {
        { "queued", LESSOR_STATE_QUEUED },     { "granted", LESSOR_STATE_GRANTED },
        { "active", LESSOR_STATE_ACTIVE },     { "asking", LESSOR_STATE_ASKING },
        { "held", LESSOR_STATE_HELD },         { "parked", LESSOR_STATE_PARKED },
        { "thawing", LESSOR_STATE_THAWING },   { "draining", LESSOR_STATE_DRAINING },
        { "orphaned", LESSOR_STATE_ORPHANED }, { "stuck", LESSOR_STATE_STUCK },
        { "lost", LESSOR_STATE_LOST },         { "ended", LESSOR_STATE_ENDED },
};

static enum lessor_state state_of(const json_t *json)
{
        const char *name = json_text(json, "state", "");
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
                if (strcmp(states[i].name, name) == 0)
                        return states[i].state;
        return LESSOR_STATE_OTHER;
}

void lease_say(struct lessor_lease *x, const char *text, const char *rule)
{
        (void) text_escape(text, strlen(text), x->text, sizeof(x->text));
        (void) text_escape(rule, strlen(rule), x->rule, sizeof(x->rule));
}

/* "L17", and never anything that would become another address behind /api/leases/. */
static void remember_id(struct lessor_lease *x, const char *id)
{
        size_t n = strlen(id);
        bool is_one = n > 1 && n < sizeof(x->id) && id[0] == 'L' && strspn(id + 1, "0123456789") == n - 1;
        (void) snprintf(x->id, sizeof(x->id), "%s", is_one ? id : "");
}

bool lease_is_about(const struct lessor_lease *x, const json_t *json)
{
        return strcmp(json_text(json, "id", ""), x->id) == 0;
}

void lease_remember(struct lessor_lease *x, json_t *json)
{
        const char *expectation = json_text(json, "expectation", "");
        if (!json_is_object(json))
                return;
        json_incref(json);
        json_decref(x->json);
        x->json = json;
        free(x->json_text);
        x->json_text = NULL;
        x->state = state_of(json);
        x->rev = json_amount_or(json, "rev", x->rev);
        remember_id(x, json_text(json, "id", ""));
        (void) text_escape(expectation, strlen(expectation), x->expectation, sizeof(x->expectation));
        lease_say(x, json_text(json, "why", ""), json_text(json_object_get(json, "reason"), "rule", ""));
}

enum lessor_state lessor_lease_state(const struct lessor_lease *x)
{
        return x->state;
}

const char *lessor_lease_id(const struct lessor_lease *x)
{
        return x->id;
}

const char *lessor_lease_device(const struct lessor_lease *x)
{
        return json_text(x->json, "device", "");
}

int lessor_lease_n_devices(const struct lessor_lease *x)
{
        return (int) json_array_size(json_object_get(x->json, "devices"));
}

const char *lessor_lease_device_at(const struct lessor_lease *x, int at)
{
        const json_t *devices = json_object_get(x->json, "devices");
        const char *uuid = at < 0 ? NULL : json_string_value(json_array_get(devices, (size_t) at));

        return uuid ? uuid : "";
}

uint64_t lessor_lease_bytes(const struct lessor_lease *x)
{
        return json_amount_or(x->json, "bytes", 0);
}

int lessor_lease_priority(const struct lessor_lease *x)
{
        uint64_t priority = json_amount_or(x->json, "priority", 0);
        return priority <= 5 ? (int) priority : 0;
}

bool lessor_lease_place(const struct lessor_lease *x, uint64_t *ret_place, uint64_t *ret_n_waiting)
{
        return json_amount(x->json, "place", ret_place) && json_amount(x->json, "n_waiting", ret_n_waiting);
}

bool lessor_lease_expected_start_ms(const struct lessor_lease *x, uint64_t *ret_ms)
{
        return json_amount(x->json, "expected_start_ms", ret_ms);
}

bool lessor_lease_slot_left_ms(const struct lessor_lease *x, uint64_t *ret_ms)
{
        return json_amount(x->json, "slot_left_ms", ret_ms);
}

bool lessor_lease_used_bytes(const struct lessor_lease *x, uint64_t *ret_bytes)
{
        return json_amount(x->json, "used_bytes", ret_bytes);
}

const char *lessor_lease_park_way(const struct lessor_lease *x)
{
        return json_text(json_object_get(x->json, "park"), "way", "");
}

bool lessor_lease_park_deadline_ms(const struct lessor_lease *x, uint64_t *ret_ms)
{
        return json_amount(json_object_get(x->json, "park"), "deadline_ms", ret_ms);
}

const char *lessor_lease_expectation(const struct lessor_lease *x)
{
        return x->expectation;
}

const char *lessor_lease_text(const struct lessor_lease *x)
{
        return x->text;
}

const char *lessor_lease_rule(const struct lessor_lease *x)
{
        return x->rule;
}

const char *lessor_lease_json(struct lessor_lease *x)
{
        if (!x->json_text && x->json)
                x->json_text = json_dumps(x->json, JSON_COMPACT);
        return x->json_text ? x->json_text : "";
}

const struct lessor_error *lessor_lease_error(const struct lessor_lease *x)
{
        return x->error;
}
