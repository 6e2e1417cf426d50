/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request: is it well formed, who asks by it, and may he ask this at this door? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "api/routes.h"
#include "base/log.h"

struct gather {
        struct http_head head;
        const struct route *route;
        const char *unknown_query;
        bool has_token;
};

static enum MHD_Result gather_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct gather *g = cls;

        (void) kind;
        if (g->head.n_headers < HTTP_HEADERS_MAX)
                g->head.headers[g->head.n_headers] = (struct http_header){ name, value ? value : "" };
        g->head.n_headers++;
        return MHD_YES;
}

static enum MHD_Result gather_query(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct gather *g = cls;

        (void) kind;
        (void) value;
        g->has_token = g->has_token || strcasecmp(name, "token") == 0 || strcasecmp(name, "access_token") == 0;
        if (g->route && !route_takes_query(g->route, name) && !g->unknown_query)
                g->unknown_query = name;
        return MHD_YES;
}

/* ---- who asks ---- */

static int refuse_token(struct conn *c, bool given, struct problem *p)
{
        struct api_server *s = c->server;
        uint32_t count;

        if (!given)
                return problem_set(p, 401, "token-missing",
                                   "by TCP each request needs `Authorization: Bearer TOKEN`; the administrator of this "
                                   "machine has the token, and on the machine itself the unix socket needs none");
        c->late_ms = wrong_tokens_note(&s->wrong_tokens, c->address, s->host.now_ms(s->host.ctx), &count);
        if (count > 0)
                log_warning("event=wrong-tokens door=\"%s\" count=%" PRIu32 " late_ms=%" PRIu64, c->listener->door.name,
                            count, c->late_ms);
        return problem_set(p, 401, "token-wrong",
                           "this is not the token of this door; after several wrong ones the answer "
                           "comes late");
}

/* By TCP a connection is nobody's: each request has its token. */
static int identify_by_token(struct conn *c, const char *bearer, struct problem *p)
{
        const struct door *door = &c->listener->door;
        const struct peer_rules *rules = &c->server->options.rules;
        size_t n = bearer ? strlen(bearer) : 0;
        enum door_role role = bearer ? door_role_of(door, bearer, n) : DOOR_ROLE_NONE;

        if (bearer) /* it need not stay in the connection's memory */
                explicit_bzero((void *) (uintptr_t) bearer, n);
        peer_of_tcp(&c->peer);
        switch (role) {
        case DOOR_ROLE_NONE:
                return refuse_token(c, bearer != NULL, p);
        case DOOR_ROLE_READER:
                return 0;
        case DOOR_ROLE_USER:
                c->peer.uid = door->uid;
                c->peer.reads_only = false;
                return 0;
        case DOOR_ROLE_ADMIN:
                c->peer.uid = door->uid_known ? door->uid : rules->own_session ? rules->own_uid : 0;
                c->peer.is_admin = true;
                c->peer.reads_only = false;
                return 0;
        }
        return 0;
}

/* ---- may he ---- */

static int check_rights(const struct conn *c, struct problem *p)
{
        unsigned flags = c->route->flags;

        if ((flags & ROUTE_CHANGES) && c->peer.reads_only)
                return problem_set(
                        p, 403, "reads-only",
                        "this token may only look: give tcp_uid in lessord.conf the user it is to act as, use "
                        "the administrators' token, or ask on the machine itself");
        return (flags & ROUTE_ADMIN) && !c->peer.is_admin ? route_not_admin(c, p) : 0;
}

int route_not_admin(const struct conn *c, struct problem *p)
{
        const struct peer_rules *rules = &c->server->options.rules;

        if (rules->admin_group)
                return problem_set(
                        p, 403, "not-admin",
                        "this is for administrators: root and the members of group %s; `usermod -aG %s NAME` "
                        "adds a user, who logs in again afterwards",
                        rules->admin_group, rules->admin_group);
        return problem_set(p, 403, "not-admin",
                           "this is for administrators, which here is root alone; admin_group in lessord.conf names a "
                           "group of others");
}

static int check_key(struct conn *c, const char *key, struct problem *p)
{
        if (!key)
                return 0;
        if (!idempotency_key_is_wellformed(key))
                return problem_field(p, "Idempotency-Key", key, strlen(key), "1 … 64 printable ASCII characters",
                                     "a random UUID does");
        if (c->route->flags & ROUTE_KEYED) { /* elsewhere asking twice is the same as once */
                (void) snprintf(c->key_text, sizeof(c->key_text), "%s", key);
                c->has_key = true;
        }
        return 0;
}

int enter_check(struct conn *c, const char *url, const char *method, uint64_t *ret_body_bytes, struct problem *p)
{
        const struct door *door = &c->listener->door;
        struct gather g = { .head = {
                                    .may_have_body = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0,
                                    .by_tcp = door->kind != DOOR_UNIX,
                                    .hosts = door->hosts,
                            } };
        const union MHD_ConnectionInfo *info;
        struct http_facts facts;

        info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        g.head.n_bytes = info ? info->header_size : 0;
        (void) MHD_get_connection_values(c->mhd, MHD_HEADER_KIND, gather_header, &g);
        int r = http_head_check(&g.head, &facts, p);
        *ret_body_bytes = facts.body_bytes;
        if (r < 0)
                return r;
        if (g.head.by_tcp && identify_by_token(c, facts.bearer, p) < 0)
                return -1;

        c->route = route_find(method, url, &c->lease_id, c->allowed, p);
        g.route = c->route;
        (void) MHD_get_connection_values(c->mhd, MHD_GET_ARGUMENT_KIND, gather_query, &g);
        if (g.has_token)
                return problem_set(p, 400, "token-in-address",
                                   "a token in an address ends up in logs and histories: send `Authorization: Bearer "
                                   "TOKEN`, and replace this one");
        if (!c->route)
                return -1;
        if (door->kind == DOOR_METRICS && !(c->route->flags & ROUTE_METRICS))
                return problem_set(p, 404, "not-found",
                                   "at this door there are /metrics and /healthz and nothing else");
        if (check_rights(c, p) < 0)
                return -1;
        if (g.unknown_query)
                return problem_field(p, g.unknown_query, g.unknown_query, strlen(g.unknown_query),
                                     c->route->queries[0] ? c->route->queries : "no parameters here",
                                     "leave the parameter out, or check its spelling");
        return check_key(c, facts.idempotency_key, p);
}
