/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP (docs/api.md) over a unix socket and other doors: libmicrohttpd on the daemon's own loop. One thread; nothing here
 * waits.
 *
 * A request that needs a decision becomes an input (host->submit) and its connection sleeps until the actions of that
 * turn were committed and api_server_on_actions() brings the answer. A client that waits and goes away is noticed at
 * once and gives up its place. Limits: HTTP_HEAD_MAX_BYTES, HTTP_BODY_MAX_BYTES, API_REQUEST_DEADLINE_MS, connections in
 * all and per uid, one of them kept for an administrator, requests that wait, changes a second (api/bucket.h). Expensive
 * answers take turns (api/turns.h): no user's many keep out another's one.
 */
#include <stddef.h>
#include <stdint.h>
#include <uv.h>
#include "api/container.h"
#include "api/door.h"
#include "api/host.h"
#include "api/peer.h"
#include "base/error.h"

enum {
        API_CONNECTIONS_MAX = 1024,
        API_CONNECTIONS_PER_UID_MAX = 256,
        API_WAITING_MAX = 512,
        API_GROUP_NAME_MAX = 33,
        API_REQUEST_DEADLINE_MS = 5000, /* from its first byte to its last, and again for the answer; not for waits */
        API_IDLE_MS = 60 * 1000,        /* a connection without request and without a lease bound to it */
        API_STREAM_BEAT_MS = 15 * 1000, /* a comment on a silent event stream; a reader that took none of it until the
                                           next is dropped */
        API_POLL_MAX_MS = 3600 * 1000,
};

struct api_options {
        struct door doors[DOORS_MAX]; /* their sockets are taken over */
        uint32_t n_doors;
        const char *tls_cert, *tls_key; /* PEM; needed until api_server_new() has returned. NULL: no door has TLS */
        struct peer_rules rules;
        uint32_t connections_max; /* ≤ API_CONNECTIONS_MAX */
        uint32_t per_uid_max;
        uint32_t waiting_max; /* requests that wait and streams, all together */
};

/* What may change while it runs. */
struct api_limits {
        uint32_t requests_per_s; /* changes a user may ask for, administrators excepted; 0 = any number */
        uint32_t requests_burst;
        const struct container_rule *containers; /* the caller's, until the next api_server_set_limits() */
        uint32_t n_containers;
        const char *engine_socket; /* NULL: no engine is asked */
};

struct api_server;

/* On failure the doors' sockets stay the caller's. */
int api_server_new(struct api_server **ret, uv_loop_t *loop, const struct api_options *options,
                   const struct api_host *host, struct error *err);
/* Before the first request, and after the configuration was read again. A container that is inside stays while its section
 * is there and names the same user. */
void api_server_set_limits(struct api_server *server, const struct api_limits *limits);
/* Ends every connection and closes its handles; run the loop once more, then api_server_free(). Nothing is submitted. */
void api_server_stop(struct api_server *server);
void api_server_free(struct api_server *server);

/* The actions of a turn, after their commit, in order. */
void api_server_on_actions(struct api_server *server, const struct action *actions, size_t n);
/* host->settled() is true again: those who were held back are served. */
void api_server_on_settled(struct api_server *server);
/* A client's input of this turn could not be committed: nothing was changed. @code: errno, ENOSPC = the disk is full. */
void api_server_on_refused(struct api_server *server, uint64_t token, int code, const char *words);
