/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/api: one connection and the request it is busy with. */
#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "api/host.h"
#include "api/http_rules.h"
#include "api/lease_json.h"
#include "api/peer.h"
#include "api/problem.h"
#include "api/server.h"
#include "api/user_names.h"
#include "api/view.h"
#include "base/strbuf.h"

enum conn_state {
        CONN_IDLE,      /* between requests */
        CONN_READING,   /* a request is coming in: deadline */
        CONN_STEPPING,  /* its input waits for the end of this turn; asleep */
        CONN_WAITING,   /* for something to happen to a lease; asleep; going away counts */
        CONN_ANSWERING, /* the answer is on its way: deadline */
        CONN_STREAMING, /* events, until either side ends it */
};

enum conn_want {
        WANT_NOTHING,
        WANT_LEASE,   /* POST /api/leases: an answer to the request, then the grant */
        WANT_COLLECT, /* the grant came while it waited: being collected for it */
        WANT_CALL,    /* activate, renew, release */
        WANT_CHANGE,  /* long poll */
};

struct route;

struct conn {
        struct api_server *server;
        uint32_t slot;
        int fd; /* libmicrohttpd's; good until it says closed */
        struct MHD_Connection *mhd;
        struct peer peer;
        struct problem refusal; /* status != 0: every request of this caller is refused with it */
        enum conn_state state;
        uv_poll_t poll;   /* idle: the first byte of a request; asleep: the client left */
        uv_timer_t timer; /* whatever deadline its state has */
        uint32_t n_handles;
        bool asleep; /* suspended in libmicrohttpd */
        bool dead;   /* the client left, or was dropped */

        /* the request */
        const struct route *route;
        uint64_t lease_id; /* in its address, or what it asked for */
        bool is_head;      /* the answer's body stays here */
        bool too_large;
        struct problem early; /* status != 0: known before the body was read, and the answer once it was */
        bool dispatched;
        struct strbuf body;
        enum conn_want want;
        enum lease_ask_mode mode;
        uint64_t token;  /* of its input; 0 = none under way */
        uint64_t rev;    /* long poll: newer than this */
        bool gives_up;   /* if the client leaves now, the lease ends */
        bool binds_here; /* the lease is to live as long as this connection */
        bool streams;    /* the answer is an event stream */
        json_t *before;  /* the lease as it was, for an answer about one that is gone */
        struct MHD_Response *reply;
        unsigned reply_status;

        /* event stream */
        struct strbuf out;
        size_t out_at;
        uint64_t cursor;
        bool beat_due;

        /* leases that live as long as this connection */
        uint64_t *bound;
        uint32_t n_bound, cap_bound;
};

struct api_server {
        uv_loop_t *loop;
        struct api_host host;
        struct api_options options;
        struct MHD_Daemon *mhd;
        uv_poll_t listen_poll, mhd_poll;
        uv_timer_t mhd_timer, accept_timer;
        bool stopping;
        bool woken; /* somebody was resumed: libmicrohttpd has to run */
        uint64_t next_token;
        struct user_names names;
        struct conn *incoming; /* while it is being handed over */
        uint32_t n_conns;
        struct conn *conns[API_CONNECTIONS_MAX];
        uint64_t awaited[API_CONNECTIONS_MAX]; /* lease that the connection in this slot waits for; 0 = none */
};

/* ---- server.c ---- */
/* libmicrohttpd has something to do that no descriptor tells: let it, soon (its own wake-up is silent without a thread of
 * its own). */
void server_kick(struct api_server *server);

/* ---- conn.c ---- */
struct conn *conn_new(struct api_server *server, int fd);
void conn_free_later(struct conn *c);
void conn_set_state(struct conn *c, enum conn_state state);
enum MHD_Result conn_begin(struct conn *c, const char *url, const char *method);
void conn_end_request(struct conn *c, bool sent);
/* libmicrohttpd has closed it. */
void conn_on_closed(struct conn *c);
/* Ends it now, from our side. */
void conn_drop(struct conn *c);
void conn_sleep(struct conn *c, enum conn_state state);
void conn_wake(struct conn *c);
/* Asleep and waiting, for so long at most. */
void conn_limit_wait(struct conn *c, uint64_t ms);
void conn_await(struct conn *c, uint64_t lease_id);
const char *conn_query(struct conn *c, const char *name);
/* All of these take over the JSON and wake a sleeping connection. */
void conn_reply(struct conn *c, unsigned status, json_t *body);
void conn_reply_problem(struct conn *c, const struct problem *problem, json_t *extra);
enum MHD_Result conn_send_reply(struct conn *c);
void conn_view(struct conn *c, struct view *ret);
/* A fact that only this connection knows: its client left, its lease is collected. Never refused. */
void conn_submit_fact(struct conn *c, enum input_kind kind, uint64_t lease_id, enum end_reason end, uint64_t token);
void conn_bind_lease(struct conn *c, uint64_t lease_id);

/* ---- stream.c ---- */
void stream_begin(struct conn *c, uint64_t after, uint64_t lease_id);
/* Something of interest was committed. */
void stream_wake(struct conn *c);
void stream_on_beat(struct conn *c);
