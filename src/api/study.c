/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the whole journal knows: who had what for how long, and what led to what. It is read on another thread, over a
 * connection of its own; the one who asked sleeps meanwhile, and nobody else notices.
 */
#include <inttypes.h>
#include <string.h>
#include "api/routes.h"
#include "api/told_json.h"
#include "model/lease.h"

enum { STUDY_MAX_MS = 60 * 1000, STUDY_AGAIN_MS = 1000 };

static const char *name_of(void *ctx, uint32_t uid)
{
        return user_names_get(ctx, uid);
}

static void reply_usage(struct conn *c, struct api_studied *studied)
{
        struct view v;

        conn_view(c, &v);
        if (!studied->study.by_consumer)
                account_fold_by_user(&studied->account);
        else if (!v.viewer_is_admin)
                account_fold_for(&studied->account, v.viewer_uid);
        conn_reply(c, MHD_HTTP_OK, told_account(&studied->account, studied->study.by_consumer, name_of, v.names));
}

static void reply_story(struct conn *c, const struct api_studied *studied)
{
        char who[STORY_SUBJECT_TEXT_MAX];
        struct problem p;

        if (studied->story.n_steps == 0) {
                problem_set(&p, 404, "not-found", "the journal knows nothing of %s",
                            story_subject_text(&studied->study.subject, who));
                conn_reply_problem(c, &p, NULL);
                return;
        }
        conn_reply(c, MHD_HTTP_OK, told_story(&studied->study.subject, &studied->story));
}

static void reply(struct conn *c, struct api_studied *studied)
{
        struct problem p;

        if (studied->r < 0) {
                problem_set(&p, 503, "store-unavailable", "the journal cannot be read: %s; try again",
                            studied->err.msg);
                conn_reply_problem(c, &p, NULL);
        } else if (studied->study.kind == API_STUDY_USAGE) {
                reply_usage(c, studied);
        } else if (studied->study.kind == API_STUDY_STORY) {
                reply_story(c, studied);
        }
        if (studied->study.kind == API_STUDY_AUDIT)
                audit_studied(studied->r < 0 ? NULL : c, studied);
}

static void on_studied(void *ctx, uint64_t token, struct api_studied *studied)
{
        struct api_server *s = ctx;
        struct conn *c = server_conn_of_token(s, token);

        if (c && !s->stopping) {
                c->token = 0;
                reply(c, studied);
        } else if (studied->study.kind == API_STUDY_AUDIT) {
                audit_studied(NULL, studied);
        }
}

bool study_begin(struct conn *c, const struct api_study *what)
{
        struct api_server *s = c->server;
        struct problem p;

        if (!conn_may_wait(c))
                return false;
        c->token = server_next_token(s, c);
        if (!s->host.study(s->host.ctx, what, on_studied, s, c->token)) {
                c->token = 0;
                problem_set(&p, 503, "busy", "the journal is being read for others; try again");
                conn_reply_later(c, &p, STUDY_AGAIN_MS);
                return false;
        }
        c->want = WANT_STUDY;
        conn_sleep(c, CONN_WAITING);
        conn_limit_wait(c, STUDY_MAX_MS);
        return true;
}

void study_reply_late(struct conn *c)
{
        struct problem p;

        problem_set(&p, 503, "busy", "reading the journal takes too long just now; try again");
        conn_reply_later(c, &p, STUDY_AGAIN_MS);
}

void study_usage(struct conn *c)
{
        const char *by = conn_query(c, "by"), *since = conn_query(c, "since");
        struct api_study what = { .kind = API_STUDY_USAGE };
        struct error err = { 0 };
        struct problem p;

        what.by_consumer = by && strcmp(by, "consumer") == 0;
        if (by && !what.by_consumer && strcmp(by, "user") != 0) {
                problem_field(&p, "by", by, strlen(by), "user or consumer", "leave it out for sums by user");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (since && told_time_parse("since", since, &what.since_wall_ms, &err) < 0) {
                problem_field(&p, "since", since, strlen(since), "a moment such as 2026-11-30T14:05:09Z",
                              "leave it out for all that is kept");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        (void) study_begin(c, &what);
}

void study_why(struct conn *c)
{
        static const char *const names[] = {
                [STORY_LEASE] = "lease", [STORY_EVENT] = "event", [STORY_PROCESS] = "pid"
        };
        struct api_study what = { .kind = API_STUDY_STORY };
        uint64_t *id = &what.subject.id;
        struct problem p;
        unsigned n = 0;

        for (unsigned kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++)
                if (conn_query(c, names[kind])) {
                        what.subject.kind = (enum story_kind) kind;
                        n++;
                }
        if (n != 1) {
                problem_set(&p, 400, "bad-request", "say of what: one of lease, pid and event, such as ?lease=L17");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        const char *lease = conn_query(c, "lease");
        if (lease && !lease_id_parse(lease, id)) {
                problem_field(&p, "lease", lease, strlen(lease), "a lease id such as L17", "see /api/leases");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (!lease && route_query_u64(c, names[what.subject.kind], 1,
                                      what.subject.kind == STORY_PROCESS ? UINT32_MAX : INT64_MAX, 0, id) < 0)
                return;
        (void) study_begin(c, &what);
}
