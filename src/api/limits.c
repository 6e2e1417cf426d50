/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller may have at once, and has. */
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include "api/routes.h"
#include "arbiter/usage.h"
#include "base/number.h"

enum { USER_TEXT_MAX = 64 };

uint32_t limits_row(struct conn *c)
{
        const struct api_host *host = &c->server->host;
        const struct peer *peer = &c->peer;
        /* Somebody else's groups (root's, under sudo) say nothing about the person. */
        size_t n = peer->uid == peer->kernel_uid ? peer->n_groups : 0;

        return host->quota_row(host->ctx, peer->uid, peer->groups, n);
}

static json_t *limit_or_null(uint64_t n)
{
        return view_u64_or_null(n != 0, n);
}

static json_t *view_quota(const struct quota *q)
{
        return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "priority_min", (int) q->priority_min, "leases_max",
                         view_u64(q->leases_max), "waiting_max", view_u64(q->waiting_max), "pins_max",
                         view_u64(q->pins_max), "bytes_max", limit_or_null(q->bytes_max), "slot_max_ms",
                         limit_or_null(q->slot_max_ms), "pin_max_ms", limit_or_null(q->pin_max_ms));
}

static json_t *view_has(const struct world *w, uint32_t uid, uint64_t now_ms)
{
        uint64_t n_leases = 0, n_waiting = 0, n_pins = 0, bytes = 0, usage = 0;

        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || lease->uid != uid)
                        continue;
                n_leases++;
                n_waiting += lease->state == LEASE_QUEUED;
                n_pins += lease_state_holds((enum lease_state) lease->state) && w->holders[lease->holder.index].pinned;
                if (lease->state != LEASE_DRAINING)
                        bytes = u64_add_sat(bytes, lease->bytes);
        }
        for (uint32_t i = 0; i < w->n_users; i++)
                if (w->users[i].in_use && w->users[i].uid == uid)
                        usage = usage_mib_s(&w->config, &w->users[i], now_ms);
        return json_pack("{s:o, s:o, s:o, s:o, s:o}", "leases", view_u64(n_leases), "waiting", view_u64(n_waiting),
                         "pins", view_u64(n_pins), "bytes", view_u64(bytes), "usage_mib_s", view_u64(usage));
}

/* Another user's, for administrators. Its groups are looked up: there is no connection to ask. -1 with the answer given. */
static int other_user(struct conn *c, const char *name, uint32_t *ret_uid, uint32_t *ret_row)
{
        const struct api_host *host = &c->server->host;
        struct problem p;
        uint64_t uid;

        if (!c->peer.is_admin) {
                problem_set(&p, 403, "not-owner",
                            "only administrators may look at another user's limits; leave user out");
                conn_reply_problem(c, &p, NULL);
                return -1;
        }
        const struct passwd *pw = NULL;
        if (strlen(name) > USER_TEXT_MAX) {
                problem_field(&p, "user", name, strlen(name), "the name or uid of a user", "see getent passwd");
                conn_reply_problem(c, &p, NULL);
                return -1;
        }
        pw = parse_u64("user", name, 0, UINT32_MAX - 1, &uid, NULL) == 0 ? NULL : getpwnam(name);
        if (pw)
                uid = pw->pw_uid;
        else if (parse_u64("user", name, 0, UINT32_MAX - 1, &uid, NULL) < 0) {
                problem_field(&p, "user", name, strlen(name), "the name or uid of a user", "see getent passwd");
                conn_reply_problem(c, &p, NULL);
                return -1;
        }
        gid_t groups[256];
        int n = (int) (sizeof(groups) / sizeof(groups[0]));
        pw = getpwuid((uid_t) uid);
        if (!pw || getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0)
                n = 0;
        *ret_uid = (uint32_t) uid;
        *ret_row = host->quota_row(host->ctx, *ret_uid, groups, (size_t) n);
        return 0;
}

void look_limits(struct conn *c)
{
        const struct api_host *host = &c->server->host;
        const char *user = conn_query(c, "user");
        uint32_t uid = c->peer.uid, row;
        struct view v;

        if (!user)
                row = limits_row(c);
        else if (other_user(c, user, &uid, &row) < 0)
                return;
        conn_view(c, &v);
        struct quota quota = config_quota(&v.world->config, row);
        bool is_admin = !user && c->peer.is_admin;
        json_t *object = json_pack("{s:I, s:o, s:s, s:b, s:o, s:o}", "uid", (json_int_t) uid, "user",
                                   view_text_or_null(user_names_get(v.names, uid)), "row",
                                   host->quota_name(host->ctx, row), "administrator", (int) is_admin, "limits",
                                   view_quota(&quota), "has", view_has(v.world, uid, v.now_ms));
        conn_reply(c, MHD_HTTP_OK, object);
}
