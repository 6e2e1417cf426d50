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
        bool by_tcp;        /* where a web page's requests could arrive too: the Host has to be there */
        const char *
                hosts; /* what else a Host may be: "name" (with any port) or "name:port", blanks between; NULL: nothing */
};

/* What of it is wanted later. Texts are those of the list. */
struct http_facts {
        uint64_t
                body_bytes; /* as declared; 0 without a body, UINT64_MAX for a chunked one and where nobody can be sure */
        const char *bearer;          /* behind "Authorization: Bearer"; NULL: there is none */
        const char *idempotency_key; /* NULL: none */
};

/* 0, or -1 with *reterr; ret->body_bytes is good in both cases. */
int http_head_check(const struct http_head *head, struct http_facts *ret, struct problem *reterr);
/* Is this a name of this machine, as its clients write it? Exposed for its table test. */
bool http_host_is_ours(const char *host, bool by_tcp, const char *hosts);
