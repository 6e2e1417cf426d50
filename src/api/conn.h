/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/api: one connection and the request it is busy with. */
#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "api/bucket.h"
#include "api/engine.h"
#include "api/host.h"
#include "api/http_rules.h"
#include "api/idempotency.h"
#include "api/lease_json.h"
#include "api/metrics.h"
#include "api/peer.h"
#include "api/problem.h"
#include "api/server.h"
#include "api/turns.h"
#include "api/user_lookup.h"
#include "api/user_names.h"
#include "api/view.h"
#include "api/wrong_tokens.h"
#include "base/strbuf.h"

/* Commands that were refused by the core leave a record in the journal each: so many of a user's a second, and so many at
 * once, whoever he is. 100,000 kept events last half an hour at this pace. */
enum { REFUSALS_PER_S = 50, REFUSALS_BURST = 1000 };

/* Answers that a user has not read yet lie here: long ones are made for him while they are no more than this. */
enum { UNREAD_MAX_BYTES = 16 * 1024 * 1024 };

enum conn_state {
        CONN_NEW,       /* its container is being asked about; libmicrohttpd does not have it yet */
        CONN_IDLE,      /* between requests */
        CONN_READING,   /* a request is coming in: deadline */
        CONN_TURN,      /* asleep until it is its user's turn (turns.h) */
        CONN_LATE,      /* asleep: a wrong token is answered late */
        CONN_STEPPING,  /* its input waits for the end of this turn; asleep */
        CONN_WAITING,   /* for something to happen to a lease; asleep; going away counts */
        CONN_ANSWERING, /* the answer is on its way: deadline */
        CONN_STREAMING, /* events, until either side ends it */
};

enum conn_want {
        WANT_NOTHING,
        WANT_LEASE,   /* POST /api/leases: an answer to the request, then the grant */
        WANT_COLLECT, /* the grant came while it waited: being collected for it */
        WANT_ENFORCE, /* the enforcer: mode, approvals */
        WANT_CALL,    /* activate, renew, release */
        WANT_CHANGE,  /* long poll */
        WANT_USER,    /* a user is looked up */
        WANT_STUDY,   /* the journal is read for it */
};

enum {
        API_SETTLE_MS = 5,              /* how soon to look again whether the disk has answered */
        API_USER_LOOKUP_MS = 10 * 1000, /* then it is told that the name services are silent */
};

struct route;
enum { ROUTE_ALLOWED_SIZE = 64 };

/* A door that is open. */
struct listener {
        struct api_server *server;
        struct door door;
        uv_poll_t poll;
        uint8_t number;
};

struct conn {
        struct api_server *server;
        const struct listener *listener;
        uint32_t slot;
        int fd; /* libmicrohttpd's; good until it says closed */
        struct MHD_Connection *mhd;
        struct peer peer;
        struct problem refusal; /* status != 0: every request of this caller is refused with it */
        enum conn_state state;
        uv_poll_t poll;        /* idle: the first byte of a request; asleep: the client left */
        uv_timer_t timer;      /* whatever deadline its state has */
        int watched;           /* by @poll: events of libuv */
        bool stirred;          /* @poll told something that was of no use */
        uint64_t idle_in_turn; /* since which of server->n_turns */
        uint32_t n_handles;
        struct engine_question *question;  /* CONN_NEW */
        uint8_t address[WRONG_TOKENS_KEY]; /* by TCP: where from, and by which door */
        bool counts_as_waiting;
        bool asleep;        /* suspended in libmicrohttpd */
        bool dead;          /* the client left, or was dropped */
        bool shut_out;      /* it is dropped once its input, which is under way, is answered */
        bool wants_settled; /* asleep until host->settled() */

        /* the request */
        const struct route *route;
        char allowed[ROUTE_ALLOWED_SIZE]; /* 405: the methods that its address takes */
        uint64_t lease_id;                /* in its address, or what it asked for */
        bool is_head;                     /* the answer's body stays here */
        bool too_large;
        struct problem early; /* status != 0: known before the body was read, and the answer once it was */
        bool dispatched;
        uint64_t late_ms; /* @early is a wrong token, answered so late */
        struct strbuf body;
        bool has_key;
        char key_text[IDEMPOTENCY_KEY_MAX + 1];
        struct idempotency key; /* once the body is there */
        uint32_t key_row;       /* with @has_key_row: in the table, under way */
        bool has_key_row;
        enum conn_want want;
        enum lease_ask_mode mode;
        uint64_t token;  /* of its input; 0 = none under way */
        uint64_t rev;    /* long poll: newer than this */
        bool gives_up;   /* if the client leaves now, the lease ends */
        bool binds_here; /* the lease is to live as long as this connection */
        bool streams;    /* the answer is an event stream */
        struct strbuf
                before; /* the lease as it was, for an answer about one that is gone: view_last_of_lease_begin() */
        struct MHD_Response *reply;
        unsigned reply_status;
        size_t reply_bytes; /* in memory until the client has read it */

        struct user_found *user_found; /* who was looked up for it (limits.c) */

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
        struct http { /* libmicrohttpd, plain and with TLS */
                struct MHD_Daemon *mhd;
                uv_poll_t poll;
        } http[2];
        struct listener listeners[DOORS_MAX];
        uint32_t n_listeners;
        uv_timer_t mhd_timer, accept_timer;
        uv_prepare_t turn_begins, turn_passes;
        uint64_t n_turns;       /* of the loop */
        uv_idle_t turn_goes_on; /* while somebody waits for his turn the loop does not sleep */
        bool stopping;
        bool woken; /* somebody was resumed: libmicrohttpd has to run */
        uint64_t next_token;
        struct user_names names;
        struct conn *incoming; /* while it is being handed over */
        uint32_t n_conns, n_waiting, n_questions;
        uint32_t n_slots; /* connections are below it: what each turn goes through is not all that there might be */
        struct buckets requests, refusals;
        struct wrong_tokens wrong_tokens;
        struct turns turns;
        struct metrics metrics;
        struct idempotency_table keys;
        struct conn *conns[API_CONNECTIONS_MAX];
        uint64_t awaited[API_CONNECTIONS_MAX]; /* lease that the connection in this slot waits for; 0 = none */
};

/* ---- accept.c ---- */
void accept_start(struct api_server *server, const struct api_options *options);
/* Closes the doors; what came in by them stays. */
void accept_stop(struct api_server *server);
/* It is known who this is, or that he is refused: libmicrohttpd takes over. */
void accept_hand_over(struct conn *c);
/* It is not wanted any more, what its engine says about it. */
void accept_forget(struct conn *c);

/* ---- server.c ---- */
void server_run_http(struct api_server *server);
/* Somebody was served who takes turns, or waits for his: a turn of the loop has a beginning. */
void server_await_turn(struct api_server *server);
/* libmicrohttpd has something to do that no descriptor tells: let it, soon (its own wake-up is silent without a thread of
 * its own). */
void server_kick(struct api_server *server);
/* What tells an answer that comes later from those for whoever had this place before. */
uint64_t server_next_token(struct api_server *server, const struct conn *c);
/* NULL: it does not wait any more. */
struct conn *server_conn_of_token(const struct api_server *server, uint64_t token);
bool server_is_settled(const struct api_server *server);
void server_free_slot(struct api_server *server, uint32_t slot);

/* ---- conn_watch.c ---- */
/* To hear of @events of libuv on its descriptor; 0: of none. Asking again for what is watched costs nothing. */
void conn_watch(struct conn *c, int events);

/* ---- conn.c ---- */
struct conn *conn_new(struct api_server *server, const struct listener *listener, int fd);
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
/* Another type of body: takes over the text, NULL without memory for it. */
void conn_reply_text(struct conn *c, unsigned status, const char *type, char *text);
/* JSON that was written as text; empties @text. */
void conn_reply_strbuf(struct conn *c, unsigned status, struct strbuf *text);
void conn_reply_problem(struct conn *c, const struct problem *problem, json_t *extra);
/* With Retry-After: it may be tried again then. */
void conn_reply_later(struct conn *c, const struct problem *problem, uint64_t wait_ms);
enum MHD_Result conn_send_reply(struct conn *c);
/* May it wait for something to happen? False: the client was told that too many do. */
bool conn_may_wait(struct conn *c);
void conn_view(struct conn *c, struct view *ret);
/* A fact that only this connection knows: its client left, its lease is collected. Never refused. */
void conn_submit_fact(struct conn *c, enum input_kind kind, uint64_t lease_id, enum end_reason end, uint64_t token);
void conn_bind_lease(struct conn *c, uint64_t lease_id);

/* ---- dispatch.c ---- */
/* The request is there, with its body: is he allowed so many, was it asked before, is it his turn? Then it runs. */
void conn_dispatch(struct conn *c);
/* It is its turn. */
void conn_run(struct conn *c);

/* ---- enter.c ---- */
/* Who asks, and may he ask this here? Every request anew: by TCP a connection is nobody's, and each request has its token.
 * -1 with *reterr. */
int enter_check(struct conn *c, const char *url, const char *method, uint64_t *ret_body_bytes, struct problem *reterr);

/* ---- stream.c ---- */
void stream_begin(struct conn *c, uint64_t after, uint64_t lease_id);
/* Something of interest was committed. */
void stream_wake(struct conn *c);
void stream_on_beat(struct conn *c);
