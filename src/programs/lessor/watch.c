/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/watch.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/number.h"
#include "programs/lessor/show.h"

enum stage {
        STAGE_OFF,     /* there is nothing more to say about this lease */
        STAGE_RESTING, /* until due_ms */
        STAGE_CROWD,   /* how many others there are */
        STAGE_LEASE,   /* the long poll */
        STAGE_EVENTS,  /* it changed: what happened, in order */
};

enum {
        TURN_MS = 10 * 60 * 1000, /* of the long poll: a wake-up of a process that has nothing else to do */
        REST_FIRST_MS = 250,
        REST_LAST_MS = 10 * 1000,
        NO_NEWS_MS = 1000, /* a long poll that is answered at once and with nothing new, always, shall not spin us */
        CROWD = 64, /* of the 256 connections that lessord allows a user, at most about so many are held by polls */
        GLANCE_MS = 15 * 1000,
        PATH_MAX_HERE = 128,
};

static const char goes_on[] = "the command goes on without a lease";

void watch_init(struct watch *w, const struct obtain *o)
{
        *w = (struct watch){ .client = o->client, .stage = STAGE_RESTING, .rev = o->rev, .call.fd = -1 };
        (void) snprintf(w->id, sizeof(w->id), "%s", o->id);
        (void) snprintf(w->device, sizeof(w->device), "%s", o->device);
        notices_init(&w->notices, o->progress.verb);
}

void watch_fini(struct watch *w)
{
        http_call_end(&w->call);
        json_decref(w->lease);
        w->lease = NULL;
        w->stage = STAGE_OFF;
}

static void rest(struct watch *w, uint64_t ms)
{
        http_call_end(&w->call);
        w->stage = STAGE_RESTING;
        w->due_ms = clock_now_ms() + ms;
}

/* No word of it: the command does not need the daemon, and the lease outlives a restart. */
static void rest_while_away(struct watch *w)
{
        w->rest_ms = u64_min(u64_max(2 * w->rest_ms, REST_FIRST_MS), REST_LAST_MS);
        rest(w, w->rest_ms);
}

static void begin(struct watch *w, enum stage stage)
{
        char path[PATH_MAX_HERE];
        struct error err = { 0 };
        int turn_ms = stage == STAGE_LEASE && !w->is_crowded ? TURN_MS : 0;
        if (stage == STAGE_CROWD)
                (void) snprintf(path, sizeof(path), "/api/devices");
        else if (stage == STAGE_LEASE)
                (void) snprintf(path, sizeof(path), "/api/leases/%s?after=%" PRIu64 "&wait_ms=%d", w->id, w->rev,
                                turn_ms);
        else
                (void) snprintf(path, sizeof(path), "/api/events?lease=%s&after=%" PRIu64, w->id, w->rev);
        http_call_end(&w->call);
        if (client_begin(&w->client, "GET", path, NULL, 0, &w->call, &err) < 0) {
                rest_while_away(w);
                return;
        }
        w->stage = (uint8_t) stage;
        w->due_ms = clock_now_ms() + (uint64_t) turn_ms + CLIENT_CALL_MS;
}

/* ---- what is said ---- */

/* Which of ours; RULE_N: a daemon younger than this program has a new one. */
static enum rule rule_of(const json_t *event)
{
        const char *name = json_text(event, "rule", "");
        unsigned rule = RULE_NONE;
        while (rule < RULE_N && strcmp(rule_name((enum rule) rule), name) != 0)
                rule++;
        return (enum rule) rule;
}

static void say_device_changed(struct watch *w)
{
        bool lost = strcmp(json_text(w->lease, "state", ""), "lost") == 0;
        if (!w->lease || lost == w->lost)
                return;
        w->lost = lost;
        if (lost)
                notices_say(
                        &w->notices,
                        "%s: its device %s is lost, the driver cannot reach it any more; `lessor devices` shows its "
                        "health, the kernel's log why",
                        w->id, w->device);
        else
                notices_say(&w->notices, "%s: its device %s is back", w->id, w->device);
}

static void say_warning(struct watch *w, const json_t *event)
{
        char text[SHOW_TEXT_MAX];
        uint64_t id = 0;
        enum rule rule = rule_of(event);

        if (rule == RULE_DEVICE_CHANGED) {
                say_device_changed(w);
                return;
        }
        if (rule < RULE_N && w->told[rule])
                return;
        if (rule < RULE_N)
                w->told[rule] = true;
        /* The lease's own sentence counts "in 9 min" from now on, the event's from when it happened. */
        bool is_last = json_amount(event, "id", &id) && id == json_amount_or(w->lease, "rev", 0) &&
                       json_is_string(json_object_get(w->lease, "why"));
        (void) show_field(is_last ? w->lease : event, is_last ? "why" : "text", "lessord warns, without words", text,
                          sizeof(text));
        if (rule == RULE_OTHER_DEVICE)
                notices_say(&w->notices, "%s: %s (%s)", w->id, text, w->device);
        else
                notices_say(&w->notices, "%s: %s", w->id, text);
}

static void say_end(struct watch *w, const char *words)
{
        notices_say(&w->notices, "%s: %s; %s", w->id, words, goes_on);
        w->stage = STAGE_OFF;
}

/* ---- what was answered ---- */

/* Books that were begun anew count their leases from 1 again: the same id may be somebody else's now. */
static bool is_ours(const json_t *lease)
{
        uint64_t pid;
        const json_t *binding = json_object_get(lease, "binding");
        return json_is_object(binding) && (!json_amount(binding, "pid", &pid) || pid == (uint64_t) getpid());
}

/* Counted once: those that came earlier and hold connections are among those that are counted now. */
static void take_crowd(struct watch *w, const struct client_answer *answer)
{
        size_t i, k, n = 0;
        json_t *device, *holder;
        if (answer->status != 200) {
                rest_while_away(w);
                return;
        }
        json_array_foreach(json_object_get(answer->body, "devices"), i, device)
        {
                json_array_foreach(json_object_get(device, "holders"), k, holder) n +=
                        json_is_string(json_object_get(holder, "lease"));
        }
        w->counted = true;
        w->is_crowded = n > CROWD;
        begin(w, STAGE_LEASE);
}

static void take_lease(struct watch *w, const struct client_answer *answer)
{
        json_decref(w->lease);
        w->lease = NULL;
        if (answer->status == 404 || (answer->status == 200 && answer->body && !is_ours(answer->body))) {
                say_end(w, "lessord does not know it any more, its books are new");
                return;
        }
        if (answer->status != 410 && (answer->status != 200 || !answer->body)) {
                rest_while_away(w);
                return;
        }
        w->rest_ms = 0;
        if (answer->status == 200)
                w->lease = json_incref(answer->body);
        if (w->lease && json_amount_or(w->lease, "rev", 0) <= w->rev)
                rest(w, w->is_crowded ? GLANCE_MS : NO_NEWS_MS);
        else
                begin(w, STAGE_EVENTS);
}

static void take_event(struct watch *w, const json_t *event)
{
        char text[SHOW_TEXT_MAX];
        const char *kind = json_text(event, "kind", "");
        if (strcmp(kind, "warning") == 0)
                say_warning(w, event);
        else if (strcmp(kind, "draining") == 0 || strcmp(kind, "ended") == 0)
                say_end(w, show_field(event, "text", "ended", text, sizeof(text)));
}

static void take_events(struct watch *w, const struct client_answer *answer)
{
        size_t i;
        json_t *event;
        const json_t *events = json_object_get(answer->body, "events");
        if (answer->status != 200) {
                rest_while_away(w);
                return;
        }
        json_array_foreach(events, i, event)
        {
                take_event(w, event);
                if (w->stage == STAGE_OFF)
                        return;
        }
        if (!w->lease && json_array_size(events) == 0) { /* over, and how is not kept any more */
                say_end(w, "ended");
                return;
        }
        w->rev = u64_max(w->rev, json_amount_or(answer->body, "next", 0));
        if (w->lease && json_array_size(events) == 0) /* nor what changed */
                w->rev = u64_max(w->rev, json_amount_or(w->lease, "rev", 0));
        begin(w, STAGE_LEASE);
}

/* ---- the loop's side ---- */

nfds_t watch_wants(const struct watch *w, struct pollfd *ret, int *timeout_ms)
{
        uint64_t due_ms = w->stage != STAGE_OFF ? w->due_ms : UINT64_MAX;
        if (w->notices.len > 0)
                due_ms = u64_min(due_ms, w->notices.due_ms);
        if (due_ms != UINT64_MAX) {
                uint64_t left_ms = u64_min(u64_sub0(due_ms, clock_now_ms()), INT32_MAX);
                if (*timeout_ms < 0 || left_ms < (uint64_t) *timeout_ms)
                        *timeout_ms = (int) left_ms;
        }
        if (w->stage == STAGE_OFF || w->stage == STAGE_RESTING)
                return 0;
        *ret = (struct pollfd){ .fd = w->call.fd, .events = w->call.stage == HTTP_SENDING ? POLLOUT : POLLIN };
        return 1;
}

/* One step, and back to the loop: a daemon that answers without end shall not keep it from the command. */
void watch_go_on(struct watch *w)
{
        struct error err = { 0 };
        struct client_answer answer = { 0 };

        notices_go_on(&w->notices);
        if (w->stage == STAGE_OFF)
                return;
        if (w->stage == STAGE_RESTING) {
                if (clock_now_ms() >= w->due_ms)
                        begin(w, w->counted ? STAGE_LEASE : STAGE_CROWD);
                return;
        }
        int r = http_call_go_on(&w->call, false, 0, -1, &err);
        if (r == -ETIMEDOUT && clock_now_ms() < w->due_ms)
                return;
        if (r == 0)
                r = client_answer_read(&w->call, &answer, &err);
        http_call_end(&w->call);
        if (r < 0)
                rest_while_away(w);
        else if (w->stage == STAGE_CROWD)
                take_crowd(w, &answer);
        else if (w->stage == STAGE_LEASE)
                take_lease(w, &answer);
        else
                take_events(w, &answer);
        client_answer_fini(&answer);
}
