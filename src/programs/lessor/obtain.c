/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/obtain.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/duration.h"
#include "base/number.h"
#include "base/size.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum {
        RELEASE_TRIES = 4,
        RELEASE_CALL_MS = 1000,
        RELEASE_AGAIN_MS = 100,
        GRACE_MS = 2000, /* the daemon's own end of the wait comes first where it can */
        UNREAD_MS = 3000,
        LOOK_MS = 1000, /* `mode: wait` tells nothing until the grant: look after it so often */
        PATH_TEXT_MAX = 128,
};

enum { GO_ON = -10 }; /* inside this file: nothing decided yet */

void obtain_init(struct obtain *o, const struct ask *ask, struct signals *signals, const char *verb)
{
        *o = (struct obtain){ .ask = ask, .signals = signals };
        client_init(&o->client);
        o->client.wake_fd = signals->fd;
        progress_init(&o->progress, verb);
        o->progress.quiet = ask->quiet;
        o->asked_ms = clock_now_ms();
        o->deadline_ms = ask->wait_ms == UINT64_MAX ? UINT64_MAX : o->asked_ms + ask->wait_ms;
}

static bool heartbeat_bound(const struct obtain *o)
{
        return o->ask->ttl_ms > 0;
}

/* A signal came: give up the place and end by it. Returns only when it was none of ours. */
static int interrupted(struct obtain *o)
{
        struct signalfd_siginfo info;
        while (signals_next(o->signals, &info)) {
                if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGCONT)
                        continue;
                progress_clear(&o->progress);
                if (o->id[0] != '\0') {
                        obtain_release(o);
                        progress_say(&o->progress, "%s given up: %s", o->id, sigdescr_np((int) info.ssi_signo));
                }
                signals_die_by((int) info.ssi_signo);
        }
        return GO_ON;
}

static int wait_over(struct obtain *o)
{
        char waited[DURATION_TEXT_MAX];
        obtain_release(o);
        progress_fail(&o->progress, "the wait is over after %s: no room came free. `lessor why %s` tells more",
                      duration_text(clock_now_ms() - o->asked_ms, waited), o->id[0] != '\0' ? o->id : "ID");
        return LESSOR_EXIT_WAIT_OVER;
}

/*
 * The daemon did not answer. Waits a little, so that the caller just tries again; or decides: --if-down, the wait's end,
 * 60 s are over, or it is no matter of coming back.
 */
static int away(struct obtain *o, int r)
{
        uint64_t now_ms = clock_now_ms();
        if (r == -EINTR)
                return interrupted(o);
        progress_clear(&o->progress);
        if (!client_is_away(r))
                return show_away(o->progress.verb, &o->client, r);
        if (o->ask->if_down == IF_DOWN_RUN && o->id[0] == '\0')
                return OBTAIN_WITHOUT;
        if (o->away_since_ms == 0) {
                o->away_since_ms = now_ms;
                if (o->ask->if_down != IF_DOWN_FAIL) {
                        char cure[AWAY_TEXT_MAX];
                        progress_say(&o->progress, "%s\nWaiting up to 60 s for it.",
                                     socket_path_cure(o->client.socket_path, r, cure, sizeof(cure)));
                }
        }
        if (o->ask->if_down == IF_DOWN_FAIL || now_ms - o->away_since_ms > OBTAIN_AWAY_MS)
                return show_away(o->progress.verb, &o->client, r);
        if (now_ms > o->deadline_ms && o->ask->wait_ms > 0)
                return wait_over(o);
        struct pollfd fd = { .fd = o->signals->fd, .events = POLLIN };
        if (poll(&fd, 1, OBTAIN_AGAIN_MS) > 0)
                return interrupted(o);
        return GO_ON;
}

static void answered(struct obtain *o)
{
        if (o->away_since_ms != 0)
                progress_say(&o->progress, "lessord is back");
        o->away_since_ms = 0;
}

/* Statuses that pass: the daemon is busy or starting. */
static bool is_passing(const struct client_answer *answer)
{
        return answer->status == 503;
}

static const char *problem_kind(const struct client_answer *answer)
{
        static const char prefix[] = "urn:lessor:problem:";
        const char *type = json_text(answer->body, "type", "");
        return strncmp(type, prefix, sizeof(prefix) - 1) == 0 ? type + sizeof(prefix) - 1 : type;
}

/* `end` of a 410: the machine form, whether it comes as text or inside an object. */
static const char *end_kind(const json_t *body)
{
        const json_t *end = json_object_get(body, "end");
        if (json_is_object(end))
                return json_text(end, "reason", "");
        return json_is_string(end) ? json_string_value(end) : "";
}

static int refused(struct obtain *o, const struct client_answer *answer)
{
        progress_clear(&o->progress);
        show_problem(o->progress.verb, answer);
        if (strcmp(problem_kind(answer), "would-wait") == 0)
                (void) fprintf(stderr, "  to let it wait: leave out --no-wait (or --wait 0)\n");
        if (answer->status == 409 &&
            (strcmp(problem_kind(answer), "would-wait") == 0 || strcmp(problem_kind(answer), "wait-over") == 0))
                return LESSOR_EXIT_WAIT_OVER;
        if (answer->status == 410 && strcmp(end_kind(answer->body), "wait-over") == 0)
                return LESSOR_EXIT_WAIT_OVER;
        return LESSOR_EXIT_OWN;
}

static void remember(struct obtain *o, const json_t *lease)
{
        (void) snprintf(o->id, sizeof(o->id), "%s", json_text(lease, "id", ""));
        (void) snprintf(o->device, sizeof(o->device), "%s", json_text(lease, "device", ""));
        (void) json_amount(lease, "rev", &o->rev);
        (void) json_amount(lease, "bytes", &o->bytes);
}

/* A reading that is too old for a moment is the daemon's own affair; one that stays so is news. */
static bool is_passing_reason(struct obtain *o, const json_t *lease)
{
        const char *rule = json_text(json_object_get(lease, "reason"), "rule", "");
        if (strncmp(rule, "reading-", 8) != 0) {
                o->unread_since_ms = 0;
                return false;
        }
        if (o->unread_since_ms == 0)
                o->unread_since_ms = clock_now_ms();
        return clock_now_ms() - o->unread_since_ms < UNREAD_MS;
}

static void tell_waiting(struct obtain *o, const json_t *lease)
{
        char why[SHOW_TEXT_MAX], expectation[256], size[SIZE_TEXT_MAX], waited[DURATION_TEXT_MAX];
        char text[PROGRESS_MAX], brief[PROGRESS_MAX], key[PROGRESS_MAX], place[64] = "";
        uint64_t at, n, bytes;

        o->waited = true;
        if (is_passing_reason(o, lease))
                return;
        if (json_amount(lease, "place", &at) && json_amount(lease, "n_waiting", &n))
                (void) snprintf(place, sizeof(place), "place %" PRIu64 " of %" PRIu64, at, n);
        (void) show_field(lease, "why", "no reason given yet", why, sizeof(why));
        (void) show_field(lease, "expectation", "unknown", expectation, sizeof(expectation));
        if (json_amount(lease, "bytes", &bytes) && bytes > 0)
                (void) size_text(bytes, size);
        else
                (void) ask_size_text(o->ask, size);
        (void) duration_text(clock_now_ms() - o->asked_ms, waited);
        /* the reason may tell place and start already; once is enough */
        bool place_is_told = place[0] == '\0' || strstr(why, place), start_is_told = strstr(why, "expected start");
        (void) snprintf(text, sizeof(text), "%s wants %s and %s%.600s%s%s%s%.200s", o->id, size,
                        strncmp(why, "waits", 5) == 0 ? "" : "waits: ", why, place_is_told ? "" : "; ",
                        place_is_told ? "" : place, start_is_told ? "" : "; expected start ",
                        start_is_told ? "" : expectation);
        (void) snprintf(brief, sizeof(brief), "%s waits since %s, %s; start: %s", o->id, waited, place, expectation);
        (void) snprintf(key, sizeof(key), "%s %s %s", o->id, place,
                        json_text(json_object_get(lease, "reason"), "rule", why));
        progress_update(&o->progress, text, brief, key);
}

/* What a lease's state means for somebody who waits for it. */
static int judge(struct obtain *o, const json_t *lease)
{
        const char *state = json_text(lease, "state", "");
        remember(o, lease);
        if (strcmp(state, "queued") == 0) {
                tell_waiting(o, lease);
                return GO_ON;
        }
        if (strcmp(state, "granted") == 0 || strcmp(state, "active") == 0) {
                o->collected = strcmp(state, "active") == 0;
                progress_clear(&o->progress);
                return OBTAINED;
        }
        return OBTAIN_AGAIN; /* draining or ended: not ours any more */
}

/* A lease of ours in the daemon's list, although no answer ever told us of it: same process, not collected by anybody. */
static const json_t *find_mine(const struct obtain *o, const json_t *leases)
{
        size_t i;
        json_t *lease;
        json_array_foreach(leases, i, lease)
        {
                const json_t *binding = json_object_get(lease, "binding");
                const char *state = json_text(lease, "state", "");
                uint64_t pid;
                if (!json_amount(binding, "pid", &pid) || pid != o->ask->pid)
                        continue;
                if (strcmp(json_text(lease, "consumer", ""), o->ask->consumer) != 0)
                        continue;
                if (strcmp(state, "queued") == 0 || strcmp(state, "granted") == 0)
                        return lease;
        }
        return NULL;
}

static int look_for_mine(struct obtain *o)
{
        struct client_answer answer;
        struct error err = { 0 };
        if (heartbeat_bound(o)) {
                o->must_look = false; /* nothing ties it to us: it ends by its own time to live */
                return GO_ON;
        }
        int r = client_call(&o->client, "GET", "/api/leases", NULL, CLIENT_CALL_MS, &answer, &err);
        if (r < 0)
                return away(o, r);
        answered(o);
        int code = GO_ON;
        if (answer.status == 200) {
                const json_t *mine = find_mine(o, json_object_get(answer.body, "leases"));
                o->must_look = false;
                if (mine)
                        code = judge(o, mine);
        }
        client_answer_fini(&answer);
        return code == OBTAIN_AGAIN ? GO_ON : code;
}

/* `mode: wait` is silent until its end: find the entry in the list, for the person's sake. */
static void peek(struct obtain *o)
{
        struct client quiet = o->client;
        struct client_answer answer;
        quiet.wake_fd = -1;
        if (client_call(&quiet, "GET", "/api/leases", NULL, LOOK_MS, &answer, NULL) < 0)
                return;
        if (answer.status == 200) {
                size_t i;
                json_t *lease;
                const json_t *mine = NULL;
                json_array_foreach(json_object_get(answer.body, "leases"), i, lease)
                {
                        uint64_t pid;
                        if (strcmp(json_text(lease, "state", ""), "queued") != 0 ||
                            strcmp(json_text(lease, "consumer", ""), o->ask->consumer) != 0)
                                continue;
                        if (heartbeat_bound(o) ||
                            (json_amount(json_object_get(lease, "binding"), "pid", &pid) && pid == o->ask->pid))
                                mine = lease; /* the newest of several */
                }
                if (mine) {
                        char id[LEASE_ID_TEXT_MAX];
                        (void) snprintf(id, sizeof(id), "%s", o->id);
                        (void) snprintf(o->id, sizeof(o->id), "%s", json_text(mine, "id", ""));
                        tell_waiting(o, mine);
                        (void) snprintf(o->id, sizeof(o->id), "%s", id);
                }
        }
        client_answer_fini(&answer);
}

/* One POST. @mode "wait" may take as long as it takes, and closing the connection gives up the place. */
static int post(struct obtain *o, const char *mode, struct client_answer *ret, struct error *err)
{
        struct http_call call;
        uint64_t now_ms = clock_now_ms();
        uint64_t left = o->deadline_ms == UINT64_MAX ? UINT64_MAX : u64_max(1, u64_sub0(o->deadline_ms, now_ms));
        bool waits = strcmp(mode, "wait") == 0;
        json_t *body = ask_body(o->ask, mode, left);
        if (!body)
                return error_set(err, ENOMEM, "building the request");
        int r = client_begin(&o->client, "POST", "/api/leases", body, CLIENT_CALL_MS, &call, err);
        json_decref(body);
        if (r < 0)
                return r;
        uint64_t until = !waits               ? now_ms + CLIENT_CALL_MS
                         : left == UINT64_MAX ? UINT64_MAX
                                              : now_ms + left + CLIENT_CALL_MS;
        for (;;) {
                uint64_t turn = waits ? u64_min(until, clock_now_ms() + LOOK_MS) : until;
                r = http_call_go_on(&call, false, turn, o->client.wake_fd, err);
                if (r != -ETIMEDOUT || turn == until)
                        break;
                peek(o);
        }
        if (r == 0)
                r = client_answer_read(&call, ret, err);
        else
                o->must_look = true;
        http_call_end(&call);
        return r;
}

static int ask_once(struct obtain *o, const char *mode)
{
        struct client_answer answer = { 0 };
        struct error err = { 0 };
        if (o->must_look) {
                int code = look_for_mine(o);
                if (code != GO_ON || o->must_look || o->id[0] != '\0')
                        return code;
        }
        int r = post(o, mode, &answer, &err);
        if (r < 0)
                return away(o, r);
        int code = GO_ON;
        if (is_passing(&answer)) {
                code = away(o, -ECONNREFUSED);
        } else if (answer.status == 200 || answer.status == 201 || answer.status == 202) {
                answered(o);
                code = judge(o, answer.body);
                if (code == OBTAIN_AGAIN) {
                        progress_say(&o->progress, "%s ended before it began; asking again", o->id);
                        o->id[0] = '\0';
                        code = GO_ON;
                }
        } else {
                answered(o);
                code = refused(o, &answer);
        }
        client_answer_fini(&answer);
        return code;
}

/* One turn of the long poll. */
static int poll_once(struct obtain *o)
{
        char path[PATH_TEXT_MAX];
        struct client_answer answer = { 0 };
        struct error err = { 0 };
        uint64_t turn = CLIENT_POLL_MS, now_ms = clock_now_ms();

        if (o->deadline_ms != UINT64_MAX) {
                if (now_ms > o->deadline_ms + GRACE_MS)
                        return wait_over(o);
                turn = u64_min(turn, o->deadline_ms + GRACE_MS - now_ms + 1);
        }
        if (o->unread_since_ms != 0)
                turn = u64_min(turn, UNREAD_MS);
        if (o->progress.on_terminal)
                turn = u64_min(turn, LOOK_MS); /* the time waited so far stands in the line */
        (void) snprintf(path, sizeof(path), "/api/leases/%s?after=%" PRIu64 "&wait_ms=%" PRIu64, o->id, o->rev, turn);
        int r = client_call(&o->client, "GET", path, NULL, turn + CLIENT_CALL_MS, &answer, &err);
        if (r < 0)
                return away(o, r);
        int code = GO_ON;
        if (is_passing(&answer)) {
                code = away(o, -ECONNREFUSED);
        } else if (answer.status == 200) {
                answered(o);
                code = judge(o, answer.body);
        } else if (answer.status == 404) {
                answered(o);
                code = OBTAIN_AGAIN;
        } else if (answer.status == 410) {
                const char *end = end_kind(answer.body);
                answered(o);
                /* not collected: stopped for too long, or the answer was lost; the others: the daemon lost sight of us */
                bool lost = strcmp(end, "not-collected") == 0 || strcmp(end, "owner-gone-while-away") == 0 ||
                            strcmp(end, "rebooted") == 0;
                code = lost ? OBTAIN_AGAIN : refused(o, &answer);
        } else {
                code = refused(o, &answer);
        }
        client_answer_fini(&answer);
        if (code == OBTAIN_AGAIN) {
                progress_say(&o->progress, "%s does not exist any more; asking again", o->id);
                o->id[0] = '\0';
                code = GO_ON;
        }
        return code;
}

int obtain_lease(struct obtain *o)
{
        const char *mode = o->ask->wait_ms == 0 ? "now" : o->tied_to_call ? "wait" : "queue";
        int code = GO_ON;
        o->id[0] = '\0';
        o->rev = 0;
        o->collected = false;
        while (code == GO_ON)
                code = o->id[0] == '\0' ? ask_once(o, mode) : poll_once(o);
        return code;
}

int obtain_get(struct obtain *o, const char *path, json_t **ret_body)
{
        for (;;) {
                struct client_answer answer = { 0 };
                struct error err = { 0 };
                int r = client_call(&o->client, "GET", path, NULL, CLIENT_CALL_MS, &answer, &err);
                int code = GO_ON;
                if (r < 0 || is_passing(&answer)) {
                        code = away(o, r < 0 ? r : -ECONNREFUSED);
                        client_answer_fini(&answer);
                } else if (answer.status == 200 && answer.body) {
                        answered(o);
                        *ret_body = answer.body;
                        return 0;
                } else {
                        code = refused(o, &answer);
                        client_answer_fini(&answer);
                }
                if (code != GO_ON)
                        return code;
        }
}

int obtain_activate(struct obtain *o, uint64_t pid, uint64_t cgroup_id)
{
        char path[PATH_TEXT_MAX];
        int code = GO_ON;
        json_t *body = json_pack("{s:o, s:o}", "pid", pid > 0 ? json_integer((json_int_t) pid) : json_null(),
                                 "cgroup_id", cgroup_id > 0 ? json_integer((json_int_t) cgroup_id) : json_null());
        if (!body)
                return LESSOR_EXIT_OWN;
        (void) snprintf(path, sizeof(path), "/api/leases/%s/activate", o->id);
        while (code == GO_ON) {
                struct client_answer answer = { 0 };
                struct error err = { 0 };
                int r = client_call(&o->client, "POST", path, body, CLIENT_CALL_MS, &answer, &err);
                if (r < 0) {
                        code = away(o, r);
                        continue;
                }
                if (is_passing(&answer)) {
                        code = away(o, -ECONNREFUSED);
                } else if (answer.status == 200) {
                        answered(o);
                        remember(o, answer.body);
                        code = OBTAINED;
                } else if (answer.status == 409 && o->collected) {
                        code = OBTAINED; /* `now` and `wait`: collected with the answer */
                } else if (answer.status == 404 || answer.status == 410) {
                        progress_say(&o->progress, "%s was granted and is gone again; asking again", o->id);
                        code = OBTAIN_AGAIN;
                } else {
                        code = refused(o, &answer);
                }
                client_answer_fini(&answer);
        }
        json_decref(body);
        return code;
}

void obtain_release(struct obtain *o)
{
        char path[PATH_TEXT_MAX];
        struct client quiet = o->client;
        if (o->id[0] == '\0')
                return;
        quiet.wake_fd = -1;
        (void) snprintf(path, sizeof(path), "/api/leases/%s", o->id);
        for (int i = 0; i < RELEASE_TRIES; i++) {
                struct client_answer answer = { 0 };
                int r = client_call(&quiet, "DELETE", path, NULL, RELEASE_CALL_MS, &answer, NULL);
                bool done = r == 0 && !is_passing(&answer);
                client_answer_fini(&answer);
                if (done || (r < 0 && !client_is_away(r)))
                        return;
                (void) poll(NULL, 0, RELEASE_AGAIN_MS);
        }
}
