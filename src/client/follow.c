/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a lease that was granted: one long poll and, when it changed, what happened, in order. Where many leases
 * are out it looks now and then instead: a user's connections are limited, and who waits or asks needs them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/number.h"
#include "client/handle.h"

enum {
        TURN_MS = 10 * 60 * 1000, /* of the long poll: a wake-up of a process that has nothing else to do */
        AWAY_FIRST_MS = 250,
        AWAY_LAST_MS = 10 * 1000,
        NO_NEWS_MS = 1000, /* a long poll that is answered at once and with nothing new, always, shall not spin us */
        CROWD = 64, /* of the 256 connections that lessord allows a user, at most about so many are held by polls */
        GLANCE_MS = 15 * 1000,
        PATH_TEXT_MAX = 128,
};

static void rest(struct lessor_lease *x, enum doing then, uint64_t ms)
{
        x->doing = then;
        x->rests = true;
        x->due_ms = ms > 0 ? clock_now_ms() + ms : 0;
}

static void come_back_later(struct lessor_lease *x)
{
        x->rest_ms = u64_min(u64_max(2 * x->rest_ms, AWAY_FIRST_MS), AWAY_LAST_MS);
        rest(x, x->is_counted ? DOING_FOLLOW : DOING_CROWD, x->rest_ms);
}

void follow_hindered(struct lessor_lease *x)
{
        come_back_later(x);
}

enum lessor_news follow_begin(struct lessor_lease *x, bool *ret_began)
{
        char path[PATH_TEXT_MAX];
        int turn_ms = x->doing == DOING_FOLLOW && !x->is_crowded ? TURN_MS : 0;
        struct http_request request = { .method = "GET", .path = path, .max_bytes = ANSWER_MAX };
        if (x->doing == DOING_CROWD) {
                (void) snprintf(path, sizeof(path), "/api/devices");
                request.max_bytes = 0;
        } else if (x->doing == DOING_FOLLOW) {
                (void) snprintf(path, sizeof(path), "/api/leases/%s?after=%" PRIu64 "&wait_ms=%d", x->id, x->heard_rev,
                                turn_ms);
        } else {
                (void) snprintf(path, sizeof(path), "/api/events?lease=%s&after=%" PRIu64, x->id, x->rev);
        }
        x->due_ms = clock_now_ms() + (uint64_t) turn_ms + CLIENT_CALL_MS;
        *ret_began = link_begin(x, &x->link, &request) == 0;
        if (!*ret_began)
                come_back_later(x);
        return LESSOR_NOTHING;
}

static enum lessor_news ended(struct lessor_lease *x, const char *words, const char *rule)
{
        lease_say(x, words, rule);
        json_decref(x->events);
        x->events = NULL;
        x->doing = DOING_NOTHING;
        if (x->state != LESSOR_STATE_DRAINING)
                x->state = LESSOR_STATE_ENDED;
        return LESSOR_NEWS_ENDED;
}

/* Books that were begun anew count their leases from 1 again: the same id may be somebody else's now. */
static bool is_ours(const struct lessor_lease *x, const json_t *lease)
{
        uint64_t pid;
        const json_t *binding = json_object_get(lease, "binding");
        if (!lease_is_about(x, lease))
                return false;
        if (!x->owner_known)
                return true;
        return json_is_object(binding) && (!json_amount(binding, "pid", &pid) || pid == x->owner_pid);
}

/* Counted once: those that came earlier and hold connections are among those that are counted now. */
static void take_crowd(struct lessor_lease *x, const struct client_answer *answer)
{
        size_t i, k, n = 0;
        json_t *device, *holder;
        json_array_foreach(json_object_get(answer->body, "devices"), i, device)
        {
                json_array_foreach(json_object_get(device, "holders"), k, holder) n +=
                        json_is_string(json_object_get(holder, "lease"));
        }
        x->is_counted = true;
        x->is_crowded = n > CROWD;
        rest(x, DOING_FOLLOW, 0);
}

/* By these its program does something itself, and has to hear of it; once each way, which may change while it is asked. */
static enum lessor_news news_of(struct lessor_lease *x)
{
        const char *way = lessor_lease_park_way(x);
        bool acts = strcmp(way, "cooperate") == 0 || strcmp(way, "restart") == 0;

        if (x->state == LESSOR_STATE_ASKING && acts && strcmp(way, x->asked_way) != 0) {
                (void) snprintf(x->asked_way, sizeof(x->asked_way), "%s", way);
                return LESSOR_NEWS_ASKED;
        }
        if (x->asked_way[0] != '\0' && (x->state == LESSOR_STATE_THAWING || x->state == LESSOR_STATE_ACTIVE)) {
                x->asked_way[0] = '\0';
                return LESSOR_NEWS_THAWING;
        }
        return LESSOR_NEWS_CHANGED;
}

static enum lessor_news take_lease(struct lessor_lease *x, const struct client_answer *answer)
{
        uint64_t rev = x->rev;
        if (answer->status == 404 || (answer->status == 200 && !is_ours(x, answer->body)))
                return ended(x, "lessord does not know it any more, its books are new", "books-new");
        if (answer->status != 410 && (answer->status != 200 || !json_is_object(answer->body))) {
                come_back_later(x);
                return LESSOR_NOTHING;
        }
        x->rest_ms = 0;
        if (answer->status == 410) {
                x->state = LESSOR_STATE_ENDED; /* the events tell how */
                rest(x, DOING_EVENTS, 0);
                return LESSOR_NOTHING;
        }
        lease_remember(x, answer->body);
        bool is_new = x->rev > x->heard_rev;
        x->heard_rev = u64_max(x->rev, x->heard_rev);
        x->rev = rev; /* told up to here only */
        rest(x, is_new ? DOING_EVENTS : DOING_FOLLOW, is_new ? 0 : x->is_crowded ? GLANCE_MS : NO_NEWS_MS);
        return is_new ? news_of(x) : LESSOR_NOTHING;
}

static enum lessor_news take_events(struct lessor_lease *x, const struct client_answer *answer)
{
        json_t *events = json_object_get(answer->body, "events");
        if (answer->status != 200) {
                come_back_later(x);
                return LESSOR_NOTHING;
        }
        bool none = json_array_size(events) == 0;
        if (none && x->state == LESSOR_STATE_ENDED)
                return ended(x, "ended", ""); /* and how is not kept any more */
        x->rev = u64_max(x->rev, json_amount_or(answer->body, "next", 0));
        if (none) /* nor what changed */
                x->rev = u64_max(x->rev, json_amount_or(x->json, "rev", 0));
        rest(x, DOING_FOLLOW, 0);
        if (!none) {
                x->events = json_incref(events);
                x->at_event = 0;
        }
        return LESSOR_NOTHING;
}

enum lessor_news follow_take(struct lessor_lease *x, const struct client_answer *answer)
{
        if (x->doing == DOING_FOLLOW)
                return take_lease(x, answer);
        if (x->doing == DOING_EVENTS)
                return take_events(x, answer);
        if (answer->status == 200)
                take_crowd(x, answer);
        else
                come_back_later(x);
        return LESSOR_NOTHING;
}

/* The lease's own sentence counts "in 9 min" from now on, the event's from when it happened. */
static enum lessor_news warned(struct lessor_lease *x, const json_t *event)
{
        uint64_t id = 0;
        const char *why = json_text(x->json, "why", NULL);
        bool is_last = json_amount(event, "id", &id) && id == json_amount_or(x->json, "rev", 0) && why;
        lease_say(x, is_last ? why : json_text(event, "text", "lessord warns, without words"),
                  json_text(event, "rule", ""));
        return LESSOR_NEWS_WARNING;
}

bool follow_next_event(struct lessor_lease *x, enum lessor_news *ret)
{
        while (x->events && x->at_event < json_array_size(x->events)) {
                const json_t *event = json_array_get(x->events, x->at_event++);
                const char *kind = json_text(event, "kind", "");
                if (strcmp(kind, "warning") == 0) {
                        *ret = warned(x, event);
                        return true;
                }
                if (strcmp(kind, "draining") == 0 || strcmp(kind, "ended") == 0) {
                        *ret = ended(x, json_text(event, "text", "ended"), json_text(event, "rule", ""));
                        return true;
                }
        }
        json_decref(x->events);
        x->events = NULL;
        return false;
}

int lessor_lease_follow(struct lessor_lease *x)
{
        const json_t *binding = json_object_get(x->json, "binding");
        if (handle_is_forked(x->l))
                return -ECHILD;
        if (x->state == LESSOR_STATE_WITHOUT || x->doing >= DOING_CROWD)
                return 0;
        if (x->doing != DOING_NOTHING || x->id[0] == '\0')
                return -EBADFD;
        x->owner_known = json_amount(binding, "pid", &x->owner_pid);
        x->heard_rev = x->rev;
        x->rest_ms = 0;
        rest(x, DOING_CROWD, 0);
        handle_arm(x->l, false);
        return 0;
}
