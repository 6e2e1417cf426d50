/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/client: what liblessor's objects are made of. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <jansson.h>
#include "client/client.h"
#include "client/failure.h"
#include "client/lessor.h"
#include "model/limits.h"

enum {
        KEY_TEXT_MAX = 65,
        LEASE_NAME_MAX = 24, /* "L" and a number */
        AWAY_DEFAULT_MS = 60 * 1000,
        REFRESH_DEFAULT_MS = 30 * 1000,
        REFRESH_LEAST_MS = 100,
        REST_FIRST_MS = 50, /* between tries while lessord is away: doubled up to REST_LAST_MS */
        REST_LAST_MS = 1000,
        RETRY_AFTER_MOST_MS = 10 * 1000, /* an answer that sends us away for an hour is not obeyed */
        ANSWER_MAX = 1024 * 1024,        /* of an answer about one lease, or a page of events */
        WORDS_MAX = 1024,
};

struct lessor {
        struct client client;
        unsigned n_refs; /* the caller's, and one of each lease */
        bool is_closed;
        pid_t pid; /* whose it is: not that of a fork's child */
        enum lessor_if_down if_down;
        uint64_t away_ms;            /* how long a lessord that is away is waited for */
        int epoll_fd, timer_fd;      /* -1 until somebody asks for the descriptor */
        struct lessor_lease *leases; /* of this handle; whose turn it is first */
};

enum bound_to { BOUND_TO_PROCESS, BOUND_TO_CONNECTION, BOUND_TO_HEARTBEAT };

struct lessor_request {
        json_t *body; /* of POST /api/leases, without mode, wait_ms and bind */
        enum bound_to bound_to;
        int pid; /* 0 = who asks */
        uint64_t ttl_ms;
        uint64_t wait_ms;
        uint64_t refresh_ms;
        bool leaves_uncollected;
        char key[KEY_TEXT_MAX]; /* "" = a new one each time */
};

/* One call, and how it stands in the handle's epoll. */
struct link {
        struct http_call call;
        uint32_t polled_for; /* EPOLL… bits; 0 = it is not there */
        int polled_fd;
};

/* What a lease is busy with; it rests first while `rests`. */
enum doing {
        DOING_NOTHING,
        DOING_POST,    /* asking */
        DOING_POLL,    /* waiting for the grant, by long polls */
        DOING_COLLECT, /* the grant */
        DOING_GIVE_UP, /* the place; then `error` is the verdict */
        DOING_CROWD,   /* followed: how many leases are out */
        DOING_FOLLOW,  /* followed: the long poll */
        DOING_EVENTS,  /* followed: it changed; what happened, in order */
};

struct lessor_lease {
        struct lessor *l;
        struct lessor_lease *next;
        struct lessor_request *request; /* a copy; NULL when it was opened, not asked for */
        enum doing doing;
        bool rests;
        char *question;   /* as it was sent: a repetition under the same key must be the same text; NULL = not yet */
        bool is_tied;     /* the place is given up when the connection of the question ends (mode "wait") */
        uint64_t due_ms;  /* when the rest is over, or the call has taken too long */
        uint64_t rest_ms; /* the last one; 0 = it answered */
        uint64_t away_since_ms; /* 0 = it answered last time */
        uint64_t deadline_ms;   /* of the wait; UINT64_MAX = none */
        enum lessor_news later; /* news that comes after the one just told */
        struct link link;
        struct link peek; /* tied: how the wait goes, while the question is under way */
        uint64_t peek_due_ms;
        int bound_fd; /* bound to the connection: that one; -1 */
        char key[KEY_TEXT_MAX];

        enum lessor_state state;
        char id[LEASE_NAME_MAX]; /* "" = none yet */
        uint64_t rev;
        bool failed;     /* what ran under it ended with an error */
        json_t *json;    /* as last answered; NULL = nothing yet */
        char *json_text; /* of it, once asked for */
        struct lessor_error *error;
        char text[WORDS_MAX];
        char expectation[256];
        char rule[64];

        /* followed */
        bool is_counted, is_crowded;
        uint64_t
                heard_rev; /* of the lease, when last looked at: events are told further, and calls of ours answer for a later one */
        bool owner_known;
        uint64_t owner_pid;
        char asked_way[16]; /* what it was told to do last, and has not come back from; "" = nothing */
        json_t *events;     /* of the last page; the first `at_event` were told */
        size_t at_event;
};

/* ---- handle.c ---- */
bool handle_is_forked(const struct lessor *l);
int handle_check(const struct lessor *l, struct lessor_error **reterr); /* -ECHILD with words */
void handle_unref(struct lessor *l);
/* Bring its epoll up to what the leases wait for. @at_once: there is more to be told. */
void handle_arm(struct lessor *l, bool at_once);

/* ---- request.c ---- */
struct lessor_request *request_copy(const struct lessor_request *request);
/* Caller decrefs. NULL: no memory. @mode NULL: neither mode nor wait; for questions that only look like asking. */
json_t *request_body(const struct lessor_request *request, const char *mode, uint64_t wait_left_ms);
void request_new_key(char key[KEY_TEXT_MAX]);

/* ---- lease.c ---- */
int lease_new(struct lessor *l, struct lessor_lease **ret);
/* Take over what an answer says of it; its JSON is kept by reference. */
void lease_remember(struct lessor_lease *x, json_t *json);
bool lease_is_about(const struct lessor_lease *x, const json_t *json); /* does this answer tell of it? */
void lease_say(struct lessor_lease *x, const char *text, const char *rule);
int link_begin(struct lessor_lease *x, struct link *link, const struct http_request *request);
void link_end(struct lessor_lease *x, struct link *link);
/* When something has to be done for it, should nothing happen before; UINT64_MAX = nothing. */
uint64_t lease_due_ms(const struct lessor_lease *x);
/* One step that never waits: news, or LESSOR_NOTHING. */
enum lessor_news lease_step(struct lessor_lease *x);

/* ---- acquire.c ---- */
enum lessor_news acquire_begin(struct lessor_lease *x, bool *ret_began);
enum lessor_news acquire_take(struct lessor_lease *x, const struct client_answer *answer);
/* No usable answer: @r of the call, or 0 and an answer that says "not now". */
enum lessor_news acquire_hindered(struct lessor_lease *x, int r, const struct client_answer *answer);
/* When its wait is over, as seen from here; UINT64_MAX = never. And then: give up the place. */
uint64_t acquire_ends_ms(const struct lessor_lease *x);
enum lessor_news acquire_time_is_up(struct lessor_lease *x);
enum lessor_news acquire_peek(struct lessor_lease *x);

/* ---- follow.c ---- */
enum lessor_news follow_begin(struct lessor_lease *x, bool *ret_began);
enum lessor_news follow_take(struct lessor_lease *x, const struct client_answer *answer);
void follow_hindered(struct lessor_lease *x);
bool follow_next_event(struct lessor_lease *x, enum lessor_news *ret);

/* ---- patient.c ---- */
struct question {
        const char *method, *path;
        json_t *body; /* borrowed; NULL = none */
        const char *key;
        uint64_t most_ms; /* patience; UINT64_MAX = the handle's */
        bool only_once;   /* a lost answer is the end of it: -ENOTRECOVERABLE */
};
/* Asks until it is answered or the patience is over. 0: *ret is the caller's, status below 400. @ret_again: asked again. */
int patient_call(struct lessor *l, const struct question *q, struct client_answer *ret, bool *ret_again,
                 struct lessor_error **reterr);
/* "Not now, but soon": busy, starting, too many connections. */
bool answer_is_passing(const struct client_answer *answer);
bool answer_is_of(const struct client_answer *answer, const char *problem);
