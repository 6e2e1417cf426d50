/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S05, F88: heads of requests. The first byte says by which door and with what right to a body, then lines "name:value". Any
 * bytes are safe; what is accepted has one meaning: a Host of ours, one length, JSON, nothing of a web page.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "api/http_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct http_head *head, const struct http_facts *facts)
{
        unsigned n_host = 0, n_length = 0, n_encoding = 0;

        for (size_t i = 0; i < head->n_headers; i++) {
                const char *name = head->headers[i].name, *value = head->headers[i].value;
                assert(strcasecmp(name, "Origin") != 0 && strcasecmp(name, "Upgrade") != 0);
                n_length += strcasecmp(name, "Content-Length") == 0;
                n_encoding += strcasecmp(name, "Transfer-Encoding") == 0;
                if (strcasecmp(name, "Host") != 0)
                        continue;
                n_host++;
                assert(http_host_is_ours(value, head->by_tcp, head->hosts));
                size_t n = strlen(value);
                assert(n == 0 || value[n - 1] != '.');
        }
        assert(n_length + n_encoding <= 1 && n_host <= 1 && (n_host == 1 || !head->by_tcp));
        assert(facts->body_bytes <= HTTP_BODY_MAX_BYTES || (facts->body_bytes == UINT64_MAX && n_encoding == 1));
        assert(facts->body_bytes == 0 || head->may_have_body);
        assert(!facts->bearer || facts->bearer[0] != ' ');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct http_head head;
        struct http_facts facts;
        struct problem p = { 0 };

        if (size == 0)
                return 0;
        char *text = malloc(size);
        if (!text)
                return 0;
        memcpy(text, data + 1, size - 1);
        text[size - 1] = '\0';
        head = (struct http_head){ .n_bytes = size, .by_tcp = data[0] & 1, .may_have_body = (data[0] & 2) != 0 };
        head.hosts = data[0] & 4 ? "gpu.example box:8443" : NULL;
        char *rest = text;
        for (char *line; head.n_headers < HTTP_HEADERS_MAX && (line = strsep(&rest, "\n")) != NULL;) {
                char *value = strchr(line, ':');
                if (!value)
                        continue;
                *value++ = '\0';
                head.headers[head.n_headers++] = (struct http_header){ line, value };
        }
        if (http_head_check(&head, &facts, &p) == 0)
                check_accepted(&head, &facts);
        else
                assert(p.status >= 400 && p.status < 500 && p.type[0] && p.detail[0]);
        free(text);
        return 0;
}
