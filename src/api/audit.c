/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who had device memory without a lease, in words (design 4.7): those who have now, one pid, or all that the journal has of them.
 * The rows lie in the journal, which is read on another thread (study.c); how it stands with them is seen in the world.
 */
#include <stdlib.h>
#include <string.h>
#include "api/audit_json.h"
#include "api/routes.h"

/* ---- what is asked ---- */

static int by_identity(const void *a, const void *b)
{
        return identity_compare(*(const struct identity *) a, *(const struct identity *) b);
}

/* Those who have memory now: as many as the driver lists, at most. NULL: no memory. */
static struct identity *strangers_now(struct world *w, size_t *ret_n)
{
        struct identity *list = calloc(JOURNAL_AUDITS_LIMIT, sizeof(*list));
        size_t n = 0;

        world_each_holder_of (w, i, HOLDER_STRANGER)
                if (list && n < JOURNAL_AUDITS_LIMIT && w->holders[i].process.start_ticks != 0)
                        list[n++] = w->holders[i].process;
        if (list)
                qsort(list, n, sizeof(*list), by_identity);
        *ret_n = n;
        return list;
}

static int query_all(struct conn *c, bool *ret)
{
        const char *all = conn_query(c, "all");
        struct problem p;

        *ret = all && strcmp(all, "true") == 0;
        if (!all || *ret || strcmp(all, "false") == 0)
                return 0;
        problem_field(&p, "all", all, strlen(all), "true or false", "leave it out for those who have memory now");
        conn_reply_problem(c, &p, NULL);
        return -1;
}

void audit_list(struct conn *c)
{
        struct api_study what = { .kind = API_STUDY_AUDIT };
        struct identity *now = NULL;
        uint64_t pid, limit;
        struct problem p;
        bool all;

        if (route_query_u64(c, "pid", 1, UINT32_MAX, 0, &pid) < 0 ||
            route_query_u64(c, "before", 1, INT64_MAX, 0, &what.look.before_id) < 0 ||
            route_query_u64(c, "limit", 1, JOURNAL_AUDITS_LIMIT, JOURNAL_AUDITS_LIMIT, &limit) < 0 ||
            query_all(c, &all) < 0)
                return;
        what.look.pid = (uint32_t) pid;
        what.look.limit = (uint32_t) limit;
        if (pid == 0 && !all) {
                now = strangers_now(route_world(c), &what.look.n_only);
                if (!now) {
                        problem_set(&p, 503, "out-of-memory", "there is no memory for the list; try again");
                        conn_reply_problem(c, &p, NULL);
                        return;
                }
                what.look.only = now;
        }
        if (!study_begin(c, &what))
                free(now);
}

/* ---- what is answered ---- */

struct answering {
        struct conn *c;
        struct view view;
        const char *boot_id;
};

static const char *name_of(void *ctx, uint32_t uid)
{
        return user_names_get(((struct answering *) ctx)->view.names, uid);
}

static bool shows(void *ctx, const struct journal_audit *audit)
{
        const struct view *v = &((struct answering *) ctx)->view;

        return v->viewer_is_admin || (audit->uid_known && view_shows_detail(v, audit->uid));
}

static void stands_now(void *ctx, const struct journal_audit *audit, struct told_now *ret)
{
        struct answering *a = ctx;
        struct world *w = a->view.world;
        const struct identity who = { audit->pid, audit->start_ticks };
        const struct process *p = strcmp(a->boot_id, audit->boot_id) == 0 ? world_process_find(w, who) : NULL;

        *ret = (struct told_now){ .known = true, .is_live = p && p->state != PROCESS_ENDED };
        if (!ret->is_live)
                return;
        ret->used_known = true;
        for (uint32_t d = 0; d < w->n_devices; d++) {
                const struct occupancy *row = world_occupancy_find(w, d, who);
                ret->used_known = ret->used_known && (!row || (row->flags & ROW_USED_KNOWN));
                ret->used_bytes += row ? row->used_bytes : 0;
        }
        const struct lease *lease = world_lease_get(w, p->lease);
        ret->lease_id = lease ? lease->id : 0;
}

/* Who lives, and the journal has no row of: under a lease, or there was no room for it. */
static void add_known(struct answering *a, struct api_studied *studied, uint32_t pid)
{
        const struct journal_audit *known = a->c->server->host.facts(a->c->server->host.ctx, pid);

        if (known)
                (void) audited_add(&studied->audited, known);
}

static void reply(struct conn *c, struct api_studied *studied)
{
        const struct audited_look *look = &studied->study.look;
        struct answering a = { .c = c, .boot_id = look->boot_id };
        struct told_audit_host host = { .ctx = &a, .name = name_of, .shows = shows, .now = stands_now };
        struct problem p;

        conn_view(c, &a.view);
        if (look->before_id == 0 && look->pid != 0)
                add_known(&a, studied, look->pid);
        for (size_t i = 0; look->before_id == 0 && i < look->n_only; i++)
                add_known(&a, studied, look->only[i].pid);
        if (look->pid != 0 && studied->audited.n_rows == 0) {
                problem_set(&p, 404, "not-found", "no process %u is known to have had device memory without a lease",
                            look->pid);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        conn_reply(c, MHD_HTTP_OK, told_audited(&studied->audited, &host));
}

void audit_studied(struct conn *c, struct api_studied *studied)
{
        if (c)
                reply(c, studied);
        free((void *) (uintptr_t) studied->study.look.only);
        studied->study.look.only = NULL;
}
