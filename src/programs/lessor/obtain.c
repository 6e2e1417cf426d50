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
#include "model/lease.h"
#include "model/way_out.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum {
        BOOKED_LOOK_MS = 30 * 1000,
        UNREAD_MS = 3000,
        LOOK_MS = 1000, /* on a terminal the time waited so far stands in the line */
        PATH_TEXT_MAX = 128,
        WAYS_TEXT_MAX = 64,
        /* Since when it is worth a line that less would do: so many runs that all stayed that much below; what is proposed lies
         * a little above the largest of them. */
        SMALLER_RUNS_MIN = 5,
        SMALLER_WORTH_PERCENT = 10,
        SMALLER_MARGIN_PERCENT = 2,
};
#define MIB_BYTES (UINT64_C(1) << 20)

enum { GO_ON = -10 }; /* inside this file: nothing decided yet */

int obtain_init(struct obtain *o, const struct ask *ask, struct signals *signals, const char *verb)
{
        struct lessor_error *error = NULL;
        *o = (struct obtain){ .ask = ask, .signals = signals };
        client_init(&o->client);
        o->client.wake_fd = signals->fd;
        progress_init(&o->progress, verb);
        o->progress.quiet = ask->quiet;
        o->asked_ms = clock_now_ms();
        o->deadline_ms = ask->wait_ms == UINT64_MAX ? UINT64_MAX : u64_add_sat(o->asked_ms, ask->wait_ms);
        if (lessor_open(&o->handle, o->client.socket_path, &error) < 0) {
                progress_fail(&o->progress, "%s", lessor_error_text(error));
                lessor_error_free(error);
                return LESSOR_EXIT_AWAY;
        }
        return OBTAINED;
}

void obtain_fini(struct obtain *o)
{
        lessor_lease_free(o->lease);
        lessor_close(o->handle);
        o->lease = NULL;
        o->handle = NULL;
}

/* A signal came: give up the place and end by it. Returns only when it was none of ours. */
static int interrupted(struct obtain *o)
{
        struct signalfd_siginfo info;
        while (signals_next(o->signals, &info)) {
                if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGCONT)
                        continue;
                progress_clear(&o->progress);
                obtain_release(o);
                if (o->id[0] != '\0') {
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

static void say_away(struct obtain *o, const char *why)
{
        progress_clear(&o->progress);
        if (o->ask->if_down != IF_DOWN_FAIL)
                progress_say(&o->progress, "%s\nWaiting up to 60 s for it.", why);
}

/*
 * One question got no answer. Waits a little, so that the caller just tries again; or decides: --if-down, 60 s are over, or
 * it is no matter of coming back.
 */
static int away(struct obtain *o, int r)
{
        uint64_t now_ms = clock_now_ms();
        char cure[AWAY_TEXT_MAX];
        if (r == -EINTR)
                return interrupted(o);
        progress_clear(&o->progress);
        if (!client_is_away(r))
                return show_away(o->progress.verb, &o->client, r);
        if (o->ask->if_down == IF_DOWN_RUN && o->id[0] == '\0')
                return OBTAIN_WITHOUT;
        if (o->away_since_ms == 0) {
                o->away_since_ms = now_ms;
                say_away(o, socket_path_cure(o->client.socket_path, r, cure, sizeof(cure)));
        }
        if (o->ask->if_down == IF_DOWN_FAIL || now_ms - o->away_since_ms > OBTAIN_AWAY_MS)
                return show_away(o->progress.verb, &o->client, r);
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

/* ---- no ---- */

static int refused(struct obtain *o, const struct lessor_error *error)
{
        int code = lessor_error_errno(error), status = lessor_error_status(error);
        struct client_answer answer = { .status = status };

        progress_clear(&o->progress);
        if (code == ETIMEDOUT && status == 0)
                return wait_over(o);
        if (status == 0 || status == 503) {
                progress_fail(&o->progress, "%s", lessor_error_text(error));
                return LESSOR_EXIT_AWAY;
        }
        answer.body = json_loads(lessor_error_json(error), 0, NULL);
        show_problem(o->progress.verb, &answer);
        if (code == EAGAIN)
                (void) fprintf(stderr, "  to let it wait: leave out --no-wait (or --wait 0)\n");
        if (strcmp(json_text(answer.body, "end", ""), "wait-over") == 0)
                code = ETIMEDOUT;
        client_answer_fini(&answer);
        return code == EAGAIN || code == ETIMEDOUT ? LESSOR_EXIT_WAIT_OVER : LESSOR_EXIT_OWN;
}

/* ---- waiting ---- */

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

/* Of a size that was named: so much less would have done for all its earlier runs, and has for several. */
static void tell_smaller(struct obtain *o, const json_t *usual)
{
        uint64_t n_runs = json_amount_or(usual, "runs", 0), p95_bytes = json_amount_or(usual, "p95_bytes", 0);
        uint64_t peak_bytes = json_amount_or(usual, "peak_bytes", 0), least_bytes = u64_max(p95_bytes, peak_bytes);
        uint64_t mib = (least_bytes + least_bytes / 100 * SMALLER_MARGIN_PERCENT) / MIB_BYTES + 1;
        char asked[SIZE_TEXT_MAX], p95[SIZE_TEXT_MAX], peak[SIZE_TEXT_MAX];

        if (n_runs < SMALLER_RUNS_MIN || mib * MIB_BYTES > o->bytes / 100 * (100 - SMALLER_WORTH_PERCENT))
                return;
        progress_say(&o->progress,
                     "%s asked for; its last %" PRIu64 " runs used at most %s (p95 %s): --vram %" PRIu64 "M would do",
                     size_text_short(o->bytes, asked), n_runs, size_text_short(peak_bytes, peak),
                     size_text_short(p95_bytes, p95), mib);
}

/* Which size it is now, and by what: where nobody named one, or earlier runs say that another is right. */
static void tell_size(struct obtain *o)
{
        char size[SIZE_TEXT_MAX], text[SHOW_SIZED_MAX];

        if (o->size_told || o->ask->exclusive)
                return;
        o->size_told = true;
        json_t *lease = json_loads(lessor_lease_json(o->lease), 0, NULL);
        bool by_runs = show_sized(lease, text);
        if (o->ask->has_size && by_runs)
                progress_say(&o->progress, "reserves %s, more than was asked for: %s", size_text(o->bytes, size), text);
        else if (o->ask->has_size && o->ask->size.kind == SIZE_BYTES)
                tell_smaller(o, json_object_get(lease, "usual"));
        else if (o->ask->has_size)
                ; /* a share, or all of it: as it was meant */
        else if (by_runs)
                progress_say(&o->progress, "no --vram: %s, %s", size_text(o->bytes, size), text);
        else
                progress_say(&o->progress, "no --vram: asking for all a device can give");
        json_decref(lease);
}

static void remember(struct obtain *o)
{
        (void) snprintf(o->id, sizeof(o->id), "%s", lessor_lease_id(o->lease));
        (void) snprintf(o->device, sizeof(o->device), "%s", lessor_lease_device(o->lease));
        o->n_devices = 0;
        for (int i = 0; i < lessor_lease_n_devices(o->lease) && i < GANG_MAX; i++)
                (void) snprintf(o->devices[o->n_devices++], sizeof(o->devices[0]), "%s",
                                lessor_lease_device_at(o->lease, i));
        o->bytes = lessor_lease_bytes(o->lease);
}

static void show_waiting(struct obtain *o)
{
        json_t *lease = json_loads(lessor_lease_json(o->lease), 0, NULL);
        if (lessor_lease_state(o->lease) == LESSOR_STATE_QUEUED && lease)
                tell_waiting(o, lease);
        json_decref(lease);
}

static int judge(struct obtain *o, enum lessor_news news)
{
        switch (news) {
        case LESSOR_NEWS_QUEUED:
                remember(o);
                tell_size(o);
                show_waiting(o);
                return GO_ON;
        case LESSOR_NEWS_GRANTED:
                remember(o);
                progress_clear(&o->progress);
                tell_size(o);
                return OBTAINED;
        case LESSOR_NEWS_REFUSED:
                return refused(o, lessor_lease_error(o->lease));
        case LESSOR_NEWS_AWAY:
                say_away(o, lessor_error_text(lessor_lease_error(o->lease)));
                return GO_ON;
        case LESSOR_NEWS_BACK:
                progress_say(&o->progress, "lessord is back");
                return GO_ON;
        case LESSOR_NEWS_AGAIN:
                progress_say(&o->progress, "%s does not exist any more; asking again", lessor_lease_id(o->lease));
                o->id[0] = '\0';
                return GO_ON;
        case LESSOR_NEWS_WITHOUT:
                return OBTAIN_WITHOUT;
        case LESSOR_NOTHING:
        case LESSOR_NEWS_CHANGED:
        case LESSOR_NEWS_WARNING:
        case LESSOR_NEWS_ASKED:
        case LESSOR_NEWS_THAWING:
        case LESSOR_NEWS_ENDED:
                break;
        }
        return GO_ON;
}

static int wait_for_news(struct obtain *o)
{
        struct pollfd fds[] = { { .fd = o->signals->fd, .events = POLLIN },
                                { .fd = lessor_fd(o->handle), .events = (short) lessor_events(o->handle) } };
        int timeout_ms = o->unread_since_ms != 0 ? UNREAD_MS : -1, code = GO_ON;
        for (;;) {
                int news = lessor_process(o->handle, NULL);
                if (news < 0) {
                        progress_fail(&o->progress, "%s", strerrordesc_np(-news));
                        return LESSOR_EXIT_OWN;
                }
                if (news == LESSOR_NOTHING)
                        break;
                code = judge(o, (enum lessor_news) news);
                if (code != GO_ON)
                        return code;
        }
        int n = poll(fds, 2, timeout_ms);
        if (n == 0)
                show_waiting(o);
        return n > 0 && fds[0].revents != 0 ? interrupted(o) : GO_ON;
}

int obtain_lease(struct obtain *o)
{
        struct lessor_error *error = NULL;
        struct lessor_request *request = NULL;
        uint64_t left_ms = UINT64_MAX;

        if (o->ask->booking[0] != '\0')
                return obtain_booked(o);
        lessor_lease_free(o->lease);
        o->lease = NULL;
        o->id[0] = '\0';
        if (o->deadline_ms != UINT64_MAX && o->ask->wait_ms > 0)
                left_ms = u64_max(1, u64_sub0(o->deadline_ms, clock_now_ms()));
        else if (o->ask->wait_ms == 0)
                left_ms = 0;
        int r = ask_request(o->ask, left_ms, &request);
        if (r == 0)
                r = lessor_request_set_refresh_ms(request, o->progress.on_terminal ? LOOK_MS : UINT64_MAX);
        if (r == 0)
                r = lessor_set_if_down(o->handle, (enum lessor_if_down) o->ask->if_down, OBTAIN_AWAY_MS);
        if (r == 0)
                r = lessor_acquire_begin(o->handle, request, &o->lease, &error);
        lessor_request_free(request);
        if (r < 0) {
                progress_fail(&o->progress, "%s", error ? lessor_error_text(error) : strerrordesc_np(-r));
                lessor_error_free(error);
                return LESSOR_EXIT_OWN;
        }
        int code = GO_ON;
        while (code == GO_ON)
                code = wait_for_news(o);
        return code;
}

static int get_slowly(struct obtain *o, const char *path, uint64_t wait_ms, json_t **ret_body)
{
        for (;;) {
                struct client_answer answer = { 0 };
                int r = client_call(&o->client, "GET", path, NULL, wait_ms + CLIENT_CALL_MS, &answer, NULL);
                int code = LESSOR_EXIT_OWN;
                if (r < 0 || answer.status == 503 || answer.status == 429) {
                        code = away(o, r < 0 ? r : -ECONNREFUSED);
                } else if (answer.status == 200 && answer.body) {
                        answered(o);
                        *ret_body = answer.body;
                        return 0;
                } else {
                        show_problem(o->progress.verb, &answer);
                }
                client_answer_fini(&answer);
                if (code != GO_ON)
                        return code;
        }
}

int obtain_get(struct obtain *o, const char *path, json_t **ret_body)
{
        return get_slowly(o, path, 0, ret_body);
}

/* ---- what was booked ---- */

static int not_to_be_had(struct obtain *o, const json_t *lease)
{
        const char *state = json_text(lease, "state", "?");

        if (!json_is_object(json_object_get(lease, "booking")))
                progress_fail(&o->progress, "%s is no booking; `lessor book list` names those", o->ask->booking);
        else
                progress_fail(&o->progress, "%s is %.16s: somebody has it already", o->ask->booking, state);
        return LESSOR_EXIT_OWN;
}

static int not_yet(struct obtain *o, const json_t *lease)
{
        char words[256], text[PROGRESS_MAX];

        (void) show_field(json_object_get(lease, "booking"), "words", "it waits", words, sizeof(words));
        (void) snprintf(text, sizeof(text), "%s %s%s", o->ask->booking,
                        strncmp(words, "begins", 6) == 0 ? "" : "waits: ", words);
        if (o->ask->wait_ms == 0 || clock_now_ms() >= o->deadline_ms) {
                progress_fail(&o->progress, "%s; it stays booked", text);
                return LESSOR_EXIT_WAIT_OVER;
        }
        o->waited = true;
        progress_update(&o->progress, text, text, o->ask->booking);
        return GO_ON;
}

static int open_booked(struct obtain *o)
{
        struct lessor_error *error = NULL;

        (void) lessor_set_if_down(o->handle, LESSOR_IF_DOWN_WAIT, OBTAIN_AWAY_MS);
        if (lessor_lease_open(o->handle, o->ask->booking, &o->lease, &error) < 0) {
                int code = refused(o, error);
                lessor_error_free(error);
                return code;
        }
        remember(o);
        progress_clear(&o->progress);
        return OBTAINED;
}

int obtain_booked(struct obtain *o)
{
        uint64_t rev = 0, wait_ms = 0;
        char path[PATH_TEXT_MAX];
        int code = GO_ON;

        lessor_lease_free(o->lease);
        o->lease = NULL;
        o->id[0] = '\0';
        while (code == GO_ON) {
                json_t *lease = NULL;
                size_t n = (size_t) snprintf(path, sizeof(path), "/api/leases/%s", o->ask->booking);
                if (wait_ms > 0)
                        (void) snprintf(path + n, sizeof(path) - n, "?after=%" PRIu64 "&wait_ms=%" PRIu64, rev,
                                        wait_ms);
                code = get_slowly(o, path, wait_ms, &lease);
                if (code != 0)
                        return code;
                const char *state = json_text(lease, "state", "");
                bool booked = json_is_object(json_object_get(lease, "booking"));
                rev = json_amount_or(lease, "rev", 0);
                if (booked && strcmp(state, "granted") == 0)
                        code = open_booked(o);
                else
                        code = booked && strcmp(state, "queued") == 0 ? not_yet(o, lease) : not_to_be_had(o, lease);
                json_decref(lease);
                wait_ms = u64_min(BOOKED_LOOK_MS, u64_max(1, u64_sub0(o->deadline_ms, clock_now_ms())));
        }
        return code;
}

int obtain_activate(struct obtain *o, uint64_t pid, uint64_t cgroup_id)
{
        /* Tried once at a time: whoever waits here wants to be able to interrupt it. */
        (void) lessor_set_if_down(o->handle, LESSOR_IF_DOWN_FAIL, 0);
        for (;;) {
                struct lessor_error *error = NULL;
                int r = lessor_lease_activate(o->lease, (int) pid, cgroup_id, &error), code = GO_ON;
                if (r == 0) {
                        answered(o);
                        remember(o);
                        return OBTAINED;
                }
                if (r == -EHOSTDOWN || r == -EBUSY) {
                        code = away(o, -ECONNREFUSED);
                } else if (r == -ENOENT || r == -EIDRM) {
                        progress_say(&o->progress, "%s was granted and is gone again; asking again", o->id);
                        code = OBTAIN_AGAIN;
                } else {
                        code = refused(o, error);
                }
                lessor_error_free(error);
                if (code != GO_ON)
                        return code;
        }
}

/* What runs already ends with its lease, so that it could not be started again: the other ways are good still. */
static void as_adopted(const struct ask *ask, struct ask *ret, char ways[WAYS_TEXT_MAX])
{
        uint8_t mask = 0;
        uint32_t bad_at;
        size_t n = 0;

        *ret = *ask;
        ret->yield_by = NULL;
        if (ask->filler)
                ret->priority = PRIORITY_FILLER;
        ret->filler = false;
        if (ask->yield_by)
                (void) ways_out_parse(ask->yield_by, &mask, &bad_at);
        for (unsigned way = 0; way < WAY_OUT_N; way++)
                if (way != WAY_OUT_RESTART && (mask & WAY_OUT_BIT(way)) != 0)
                        n += (size_t) snprintf(ways + n, WAYS_TEXT_MAX - n, "%s%s", n > 0 ? "," : "",
                                               way_out_name((enum way_out_kind) way));
        if (n > 0)
                ret->yield_by = ways;
}

int obtain_adopted(struct obtain *o, pid_t pid)
{
        struct lessor_request *request = NULL;
        struct lessor_lease *lease = NULL;
        struct ask ask;
        char ways[WAYS_TEXT_MAX];

        as_adopted(o->ask, &ask, ways);
        int r = ask_request(&ask, 0, &request);

        if (r == 0)
                r = lessor_request_set_bytes(request, o->bytes);
        if (r == 0)
                r = lessor_request_set_device(request, o->device);
        (void) lessor_set_if_down(o->handle, LESSOR_IF_DOWN_FAIL, 0);
        if (r == 0)
                r = lessor_adopt(o->handle, request, (int) pid, false, &lease, NULL);
        lessor_request_free(request);
        if (r < 0)
                return r == -EHOSTDOWN || r == -EBUSY || r == -EBADFD ? -EAGAIN : r;
        lessor_lease_free(o->lease);
        o->lease = lease;
        remember(o);
        return 0;
}

void obtain_release(struct obtain *o)
{
        if (o->ask->booking[0] != '\0' && o->lease && lessor_lease_state(o->lease) == LESSOR_STATE_GRANTED)
                return; /* not collected: it was there before us, and stays */
        (void) lessor_set_if_down(o->handle, LESSOR_IF_DOWN_WAIT, OBTAIN_AWAY_MS); /* a few seconds, all the same */
        (void) lessor_lease_release(o->lease, NULL);
}
