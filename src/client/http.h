/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One HTTP/1.1 exchange over a unix socket: a request is written, an answer is read, each step with a deadline. One
 * connection a call: the daemon may have been replaced since the last one. A call can be resumed after a deadline or a
 * wake-up, so that a caller can wait for an answer and look after other things meanwhile.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/strbuf.h"

enum {
        HTTP_HEAD_MAX = 16 * 1024,
        HTTP_BODY_MAX = 64 * 1024 * 1024, /* 4,096 leases and as many holders, with room to spare */
        HTTP_SOCKET_PATH_MAX = 107,       /* the kernel's sun_path, without the NUL */
};

enum http_stage { HTTP_SENDING, HTTP_HEAD, HTTP_BODY, HTTP_DONE };
enum http_framing { HTTP_BY_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

struct http_request {
        const char *method;
        const char *path;   /* with the query, already encoded */
        const char *accept; /* NULL = application/json */
        const char *body;   /* JSON text; NULL = none */
        const char *key;    /* Idempotency-Key; NULL = none */
        bool keep_open;     /* the connection is to outlive the answer: see http_call_take_fd() */
        size_t max_bytes;   /* of the answer; 0 = HTTP_BODY_MAX */
};

struct http_call {
        int fd;
        uint8_t stage;           /* enum http_stage */
        uint8_t framing;         /* enum http_framing */
        int status;              /* from HTTP_BODY on */
        uint64_t retry_after_ms; /* what the answer says; 0 = nothing */
        uint64_t left;           /* bytes of the body, or of the chunk, still to come */
        bool in_chunk;
        bool last_chunk;
        size_t sent;
        struct strbuf out;
        struct strbuf in;   /* received, not yet understood */
        struct strbuf body; /* a streaming caller takes what is there and resets it */
};

/*
 * Connect and queue the request. -ENOENT, -ECONNREFUSED: nobody listens; -EACCES: not allowed to; -ENAMETOOLONG;
 * -ETIMEDOUT: its queue of connections stayed full until @deadline_ms.
 */
int http_call_begin(struct http_call *call, const char *socket_path, const struct http_request *request,
                    uint64_t deadline_ms, struct error *err);
/* The same over a connection that is made, or being made (EINPROGRESS). It becomes the call's, also where this fails. */
int http_call_begin_on(struct http_call *call, int fd, const struct http_request *request, struct error *err);
/*
 * Go on until the answer is complete (@stream false) or more of it has come (@stream true; `stage` tells whether it was the
 * last). -ETIMEDOUT and -EINTR (@wake_fd, -1 = none, became readable) can be resumed by calling again; -ECONNRESET: the
 * other side went away; -EPROTO: no HTTP.
 * @deadline_ms  CLOCK_MONOTONIC; UINT64_MAX = none
 */
int http_call_go_on(struct http_call *call, bool stream, uint64_t deadline_ms, int wake_fd, struct error *err);
void http_call_end(struct http_call *call); /* fine on one that never began */
/* The connection of a complete call becomes the caller's. Never 0, 1 or 2. */
int http_call_take_fd(struct http_call *call);

/* A program that closed its standard descriptors shall not print into our connection: @fd, or a higher one instead of it. */
int http_clear_of_standard(int fd);

/* Reads what is in @call->in; for tests and fuzzing, which have no socket. */
int http_call_understand(struct http_call *call, bool at_end, struct error *err);
