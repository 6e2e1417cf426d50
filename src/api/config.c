/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: what it says, and reading it again. */
#include <errno.h>
#include "api/routes.h"
#include "base/cleanup.h"

void look_config(struct conn *c)
{
        struct api_host *host = &c->server->host;

        conn_reply(c, MHD_HTTP_OK, host->config_json(host->ctx));
}

void ask_reload(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct error err = { 0 };
        struct problem p;

        if (empty_json_parse(strbuf_text(&c->body), c->body.len, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (host->reload(host->ctx, &err) < 0) {
                problem_set(&p, 422, "bad-config", "%s; nothing was changed", err.msg);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        conn_reply(c, MHD_HTTP_OK, host->config_json(host->ctx));
}
