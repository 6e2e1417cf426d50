/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a request may look like before anybody reads its body (security S05, S07; failures F88). Pure over the list of
 * headers: a table of names and values in the order they came, duplicates included.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "api/problem.h"

enum {
        HTTP_HEADERS_MAX = 64,
        HTTP_HEAD_MAX_BYTES = 8 * 1024,
        HTTP_BODY_MAX_BYTES = 64 * 1024,
};

struct http_header {
        const char *name;
        const char *value; /* "" when empty; never NULL */
};

struct http_head {
        size_t n_headers; /* may count more than are listed: then it is refused */
        struct http_header headers[HTTP_HEADERS_MAX];
        size_t n_bytes;     /* of request line and headers */
        bool may_have_body; /* POST, PUT, PATCH, DELETE */
};

/* 0, or -1 with *reterr. *ret_body_bytes, also on failure: the declared length, 0 without a body, UINT64_MAX for a chunked
 * one and where nobody can be sure. */
int http_head_check(const struct http_head *head, uint64_t *ret_body_bytes, struct problem *reterr);
/* Is this a name of this machine's own, as clients of a local socket write it? Exposed for its table test. */
bool http_host_is_ours(const char *host);
