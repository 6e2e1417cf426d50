/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/number.h"
#include "client/client.h"
#include "client/sse.h"
#include "model/lease.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { PAGE = 1000, AWAY_MS = 60 * 1000, AGAIN_MS = 250 };

const struct option events_options[] = {
        { "follow", NULL, "go on with what happens from now on" },
        { "lease", "ID", "only those about this lease" },
        { "after", "N", "only those after event N" },
        { "json", NULL, "one JSON object a line" },
        { 0 },
};

struct listing {
        bool json;
        bool stop; /* nobody reads any more */
        uint64_t last;
        uint64_t lease;
};

static void print_event(const json_t *event, struct listing *l)
{
        char time[48], kind[64], lease[32], text[SHOW_TEXT_MAX];
        uint64_t id = json_amount_or(event, "id", 0);
        if (id > l->last)
                l->last = id;
        if (l->json)
                show_json_line(event);
        else
                (void) printf("%s%s%s  %-14s %-6s %s\n", show_colour(SHOW_DIM),
                              show_field(event, "time", "?", time, sizeof(time)), show_colour(SHOW_PLAIN),
                              show_field(event, "kind", "?", kind, sizeof(kind)),
                              show_field(event, "lease", "", lease, sizeof(lease)),
                              show_field(event, "text", "", text, sizeof(text)));
}

static void make_path(const struct listing *l, bool page, char *buf, size_t buf_size)
{
        char lease[48] = "", limit[32] = "";
        if (l->lease > 0)
                (void) snprintf(lease, sizeof(lease), "&lease=L%" PRIu64, l->lease);
        if (page)
                (void) snprintf(limit, sizeof(limit), "&limit=%d", PAGE);
        (void) snprintf(buf, buf_size, "/api/events?after=%" PRIu64 "%s%s", l->last, lease, limit);
}

/* Everything that is there, page by page. */
static int list_events(const struct verb *verb, struct listing *l)
{
        for (;;) {
                char path[160];
                json_t *body = NULL, *event;
                size_t i;
                make_path(l, true, path, sizeof(path));
                int code = show_get(verb->name, path, &body);
                if (code != LESSOR_EXIT_OK)
                        return code;
                json_t *events = json_object_get(body, "events");
                size_t n = json_array_size(events);
                json_array_foreach(events, i, event) print_event(event, l);
                uint64_t next = json_amount_or(body, "next", l->last);
                l->last = u64_max(l->last, next);
                json_decref(body);
                if (n == 0)
                        return LESSOR_EXIT_OK;
        }
}

static int take_event(const char *data, void *arg)
{
        struct listing *l = arg;
        json_t *event = json_loads(data, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(event)) {
                json_decref(event);
                return -EPROTO;
        }
        print_event(event, l);
        json_decref(event);
        return fflush(stdout) == 0 ? 0 : -EPIPE;
}

/* `… | head` leaves when it has seen enough: a pipe says so at once, and not only at the next event. -1 = no pipe. */
static int pipe_to_watch(void)
{
        struct stat st;
        return fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode) ? STDOUT_FILENO : -1;
}

/* One connection; returns why it ended. */
static int follow_once(const struct client *client, struct listing *l, bool *ret_heard, int *ret_status,
                       struct error *err)
{
        char path[160];
        struct http_call call;
        struct sse sse;
        make_path(l, false, path, sizeof(path));
        struct http_request request = { .method = "GET", .path = path, .accept = "text/event-stream" };
        int r = http_call_begin(&call, client->socket_path, &request, clock_now_ms() + CLIENT_CALL_MS, err);
        if (r < 0) {
                http_call_end(&call);
                return r;
        }
        sse_init(&sse);
        for (;;) {
                r = http_call_go_on(&call, true, UINT64_MAX, pipe_to_watch(), err);
                *ret_status = call.status;
                if (r == -EINTR)
                        r = -EPIPE;
                if (r < 0 || (call.stage >= HTTP_BODY && call.status != 200))
                        break;
                *ret_heard = true;
                r = sse_feed(&sse, strbuf_text(&call.body), call.body.len, take_event, l, err);
                strbuf_reset(&call.body);
                if (r < 0)
                        break;
                if (call.stage == HTTP_DONE) {
                        r = -ECONNRESET;
                        break;
                }
        }
        sse_fini(&sse);
        http_call_end(&call);
        return r;
}

static int follow_events(const struct verb *verb, struct listing *l)
{
        struct client client;
        uint64_t away_since_ms = 0;
        client_init(&client);
        for (;;) {
                struct error err = { 0 };
                bool heard = false;
                int status = 0;
                int r = follow_once(&client, l, &heard, &status, &err);
                if (r == -EPIPE)
                        return LESSOR_EXIT_OK; /* `… | head` has seen enough */
                if (status != 0 && status != 200) {
                        (void) fprintf(stderr, "lessor events: lessord answers with HTTP %d\n", status);
                        return LESSOR_EXIT_REFUSED;
                }
                if (!client_is_away(r))
                        return show_away(verb->name, &client, r);
                uint64_t now_ms = clock_now_ms();
                if (heard || away_since_ms == 0)
                        away_since_ms = now_ms;
                if (now_ms - away_since_ms > AWAY_MS)
                        return show_away(verb->name, &client, r);
                (void) poll(NULL, 0, AGAIN_MS);
        }
}

int verb_events_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        struct listing l = { 0 };
        struct error err = { 0 };
        bool follow = false;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words; did you mean --lease?");
                const char *name = option_name(&o, what);
                if (strcmp(name, "follow") == 0)
                        follow = true;
                else if (strcmp(name, "json") == 0)
                        l.json = true;
                else if (strcmp(name, "lease") == 0 && !lease_id_parse(o.value, &l.lease))
                        return verb_usage_error(verb, "--lease: an id is L and a number, as L17 (`lessor status`)");
                else if (strcmp(name, "after") == 0 && parse_u64("--after", o.value, 0, INT64_MAX, &l.last, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        int code = list_events(verb, &l);
        if (code != LESSOR_EXIT_OK || !follow)
                return code;
        (void) fflush(stdout);
        return follow_events(verb, &l);
}
