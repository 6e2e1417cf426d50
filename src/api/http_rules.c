/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>
#include "api/http_rules.h"
#include "base/error.h"
#include "base/number.h"

/* Digits alone, 1 … 65535: what may stand behind the colon of a Host. */
static bool is_port(const char *text)
{
        uint64_t port;
        return parse_u64("port", text, 1, 65535, &port, NULL) == 0;
}

/* @name with any port behind it, or with none; where @name has a port itself, that one. */
static bool host_is(const char *host, const char *name, size_t n)
{
        return strncasecmp(host, name, n) == 0 && (host[n] == '\0' || (host[n] == ':' && is_port(host + n + 1)));
}

bool http_host_is_ours(const char *host, bool by_tcp, const char *hosts)
{
        static const char *const names[] = { "localhost", "127.0.0.1", "[::1]", "lessor" };
        size_t n_names = sizeof(names) / sizeof(names[0]);

        if (host[0] == '\0')
                return !by_tcp;
        if (by_tcp) /* a name without a dot is one that somebody's name server may answer for */
                n_names--;
        for (size_t i = 0; i < n_names; i++)
                if (host_is(host, names[i], strlen(names[i])))
                        return true;
        for (const char *at = hosts ? hosts : ""; *at;) {
                size_t n = strcspn(at, " \t,");
                if (n > 0 && host_is(host, at, n))
                        return true;
                at += n;
                at += strspn(at, " \t,");
        }
        return false; /* also with a trailing dot, and everything a rebinding name server could answer for */
}

static bool is_json(const char *type)
{
        static const char json[] = "application/json";
        size_t n = sizeof(json) - 1;

        if (strncasecmp(type, json, n) != 0)
                return false;
        while (type[n] == ' ' || type[n] == '\t')
                n++;
        if (type[n] == '\0')
                return true;
        if (type[n++] != ';')
                return false;
        while (type[n] == ' ' || type[n] == '\t')
                n++;
        return strcasecmp(type + n, "charset=utf-8") == 0;
}

static int ambiguous(struct problem *p, const char *what)
{
        return problem_set(p, 400, "bad-request",
                           "the length of the body is not clear: %s; send one Content-Length, or "
                           "Transfer-Encoding: chunked",
                           what);
}

struct seen {
        const char *host, *length, *encoding, *type, *authorization, *key;
        size_t n_host, n_length, n_encoding, n_type, n_authorization, n_key;
};

static int look_at(const struct http_header *h, struct seen *seen, struct problem *p)
{
        if (strcasecmp(h->name, "Host") == 0) {
                seen->host = h->value;
                seen->n_host++;
        } else if (strcasecmp(h->name, "Content-Length") == 0) {
                seen->length = h->value;
                seen->n_length++;
        } else if (strcasecmp(h->name, "Transfer-Encoding") == 0) {
                seen->encoding = h->value;
                seen->n_encoding++;
        } else if (strcasecmp(h->name, "Content-Type") == 0) {
                seen->type = h->value;
                seen->n_type++;
        } else if (strcasecmp(h->name, "Authorization") == 0) {
                seen->authorization = h->value;
                seen->n_authorization++;
        } else if (strcasecmp(h->name, "Idempotency-Key") == 0) {
                seen->key = h->value;
                seen->n_key++;
        } else if (strcasecmp(h->name, "Origin") == 0) {
                return problem_set(p, 403, "forbidden-origin",
                                   "requests with an Origin come from web pages and are refused; use a program");
        } else if (strcasecmp(h->name, "Sec-Fetch-Site") == 0 && strcasecmp(h->value, "none") != 0 &&
                   strcasecmp(h->value, "same-origin") != 0) {
                return problem_set(p, 403, "forbidden-origin",
                                   "requests from other sites' pages are refused; use a program");
        } else if (strcasecmp(h->name, "Upgrade") == 0) {
                return problem_set(p, 400, "bad-request", "there is no other protocol here; leave out Upgrade");
        }
        return 0;
}

static int body_length(const struct seen *seen, uint64_t *ret, struct problem *p)
{
        uint64_t n;

        if (seen->n_encoding > 1 || seen->n_length > 1)
                return ambiguous(p, "a header that gives it stands twice");
        if (seen->n_encoding && seen->n_length)
                return ambiguous(p, "both Content-Length and Transfer-Encoding are given");
        if (seen->n_encoding)
                return strcasecmp(seen->encoding, "chunked") == 0
                               ? 0
                               : ambiguous(p, "the Transfer-Encoding is not chunked");
        if (!seen->n_length) {
                *ret = 0;
                return 0;
        }
        if (parse_u64("Content-Length", seen->length, 0, INT64_MAX, &n, NULL) < 0)
                return ambiguous(p, "the Content-Length is not a number");
        *ret = n;
        if (n > HTTP_BODY_MAX_BYTES)
                return problem_set(p, 413, "too-large", "the body has %s bytes, %d are allowed", seen->length,
                                   HTTP_BODY_MAX_BYTES);
        return 0;
}

/* "Bearer" and one blank or several; anything else is no token of ours, which is for the door to say. */
static const char *bearer_of(const char *authorization)
{
        static const char scheme[] = "Bearer";
        size_t n = sizeof(scheme) - 1;

        if (!authorization || strncasecmp(authorization, scheme, n) != 0 || authorization[n] != ' ')
                return NULL;
        return authorization + n + strspn(authorization + n, " ");
}

int http_head_check(const struct http_head *head, struct http_facts *ret, struct problem *reterr)
{
        struct seen seen = { 0 };
        struct problem first = { 0 };

        *ret = (struct http_facts){ .body_bytes = UINT64_MAX };
        if (head->n_headers > HTTP_HEADERS_MAX || head->n_bytes > HTTP_HEAD_MAX_BYTES)
                return problem_set(reterr, 431, "too-large",
                                   "the head of the request is larger than %d bytes or has more "
                                   "than %d lines",
                                   HTTP_HEAD_MAX_BYTES, HTTP_HEADERS_MAX);
        for (size_t i = 0; i < head->n_headers; i++)
                if (look_at(&head->headers[i], &seen, reterr) < 0 && first.status == 0)
                        first = *reterr;
        if (body_length(&seen, &ret->body_bytes, reterr) < 0)
                return -1;
        if (first.status != 0) {
                *reterr = first;
                return -1;
        }
        if (head->by_tcp && (seen.n_host != 1 || !http_host_is_ours(seen.host, true, head->hosts)))
                return problem_set(reterr, 403, "forbidden-host",
                                   "the Host header must be localhost, 127.0.0.1, [::1] or a name that tcp_hosts "
                                   "(metrics_hosts) in lessord.conf lists");
        if (!head->by_tcp &&
            (seen.n_host > 1 || (seen.n_host == 1 && !http_host_is_ours(seen.host, false, head->hosts))))
                return problem_set(reterr, 403, "forbidden-host",
                                   "the Host header must be localhost (or absent) on this socket");
        if (ret->body_bytes > 0 && !head->may_have_body)
                return problem_set(reterr, 400, "bad-request", "this method takes no body");
        if (ret->body_bytes > 0 && (seen.n_type != 1 || !is_json(seen.type)))
                return problem_set(reterr, 415, "not-json", "a body must say Content-Type: application/json");
        if (seen.n_authorization > 1)
                return problem_set(reterr, 400, "bad-request", "Authorization stands there twice; send one token");
        if (seen.n_key > 1)
                return problem_set(reterr, 400, "bad-request", "Idempotency-Key stands there twice; send one");
        ret->bearer = bearer_of(seen.authorization);
        ret->idempotency_key = seen.key;
        return 0;
}
