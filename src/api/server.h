/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP over a unix socket (docs/api.md): libmicrohttpd on the daemon's own loop. One thread; nothing here waits.
 *
 * A request that needs a decision becomes an input (host->submit) and its connection sleeps until the actions of that
 * turn were committed and api_server_on_actions() brings the answer. A client that waits and goes away is noticed at
 * once and gives up its place. Limits: HTTP_HEAD_MAX_BYTES, HTTP_BODY_MAX_BYTES, API_REQUEST_DEADLINE_MS, connections in
 * all and per uid, one of them kept for an administrator.
 */
#include <stddef.h>
#include <stdint.h>
#include <uv.h>
#include "api/host.h"
#include "api/peer.h"
#include "base/error.h"

enum {
        API_CONNECTIONS_MAX = 1024,
        API_CONNECTIONS_PER_UID_MAX = 256,
        API_REQUEST_DEADLINE_MS = 5000, /* from its first byte to its last, and again for the answer; not for waits */
        API_IDLE_MS = 60 * 1000,        /* a connection without request and without a lease bound to it */
        API_STREAM_BEAT_MS = 15 * 1000, /* a comment on a silent event stream; a reader that took none of it until the
                                           next is dropped */
        API_POLL_MAX_MS = 3600 * 1000,
};

struct api_options {
        int listen_fd; /* taken over: bound, listening, non-blocking */
        struct peer_rules rules;
        uint32_t connections_max; /* ≤ API_CONNECTIONS_MAX */
        uint32_t per_uid_max;
};

struct api_server;

int api_server_new(struct api_server **ret, uv_loop_t *loop, const struct api_options *options,
                   const struct api_host *host, struct error *err);
/* Ends every connection and closes its handles; run the loop once more, then api_server_free(). Nothing is submitted. */
void api_server_stop(struct api_server *server);
void api_server_free(struct api_server *server);

/* The actions of a turn, after their commit, in order. */
void api_server_on_actions(struct api_server *server, const struct action *actions, size_t n);
/* A client's input of this turn could not be committed: nothing was changed. @code: errno, ENOSPC = the disk is full. */
void api_server_on_refused(struct api_server *server, uint64_t token, int code, const char *words);
