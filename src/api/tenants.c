/* SPDX-License-Identifier: Apache-2.0 */
/* Applications as data: those that lessord knows. */
#include "api/routes.h"

void look_tenants(struct conn *c)
{
        struct api_host *host = &c->server->host;

        conn_reply(c, MHD_HTTP_OK, host->tenants_json(host->ctx));
}
