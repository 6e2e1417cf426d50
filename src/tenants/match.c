/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/match.h"
#include <stdio.h>
#include <string.h>
#include "tenants/glob.h"

static const char not_seen[] = "not ours to see";

struct telling {
        match_line_fn *each;
        void *ctx;
        uint32_t rule;
        enum match_verdict all; /* so far */
};

static void tell(struct telling *t, const char *key, const char *wanted, const char *had, const char *why,
                 enum match_verdict verdict)
{
        const struct match_line line = { t->rule, key, wanted, had, why, (uint8_t) verdict };

        if (t->each)
                t->each(t->ctx, &line);
        if (verdict < t->all)
                t->all = verdict;
}

static enum match_verdict verdict_of(bool fits)
{
        return fits ? MATCH_YES : MATCH_NO;
}

/* ---- one program ---- */

static bool program_fits(const char *pattern, const char *program)
{
        const char *slash = strrchr(program, '/');

        return glob_fits(pattern, strchr(pattern, '/') || !slash ? program : slash + 1);
}

static enum match_verdict check_program(const char *pattern, const struct match_program *p)
{
        return p->program_known ? verdict_of(program_fits(pattern, p->program)) : MATCH_UNKNOWN;
}

static enum match_verdict check_title(const char *pattern, const struct match_program *p)
{
        if (!p->arguments_known)
                return MATCH_UNKNOWN;
        return verdict_of(p->n_arguments > 0 && glob_fits(pattern, p->arguments[0]));
}

/* *ret_had: the argument that fits. */
static enum match_verdict check_argument(const char *pattern, const struct match_program *p, const char **ret_had)
{
        *ret_had = NULL;
        for (uint32_t i = 1; p->arguments_known && i < p->n_arguments; i++)
                if (glob_fits(pattern, p->arguments[i])) {
                        *ret_had = p->arguments[i];
                        return MATCH_YES;
                }
        return p->arguments_known && !p->arguments_cut ? MATCH_NO : MATCH_UNKNOWN;
}

static const char *why_no_arguments(const struct match_program *p)
{
        return p->arguments_known ? "its command line is longer than what is kept of it" : not_seen;
}

static void tell_self(struct telling *t, const struct tenant_program *wanted, const struct match_program *p)
{
        const char *had;

        if (wanted->program) {
                enum match_verdict v = check_program(wanted->program, p);
                tell(t, "program", wanted->program, p->program_known ? p->program : NULL,
                     v == MATCH_UNKNOWN ? not_seen : NULL, v);
        }
        if (wanted->title) {
                enum match_verdict v = check_title(wanted->title, p);
                tell(t, "title", wanted->title, p->arguments_known && p->n_arguments > 0 ? p->arguments[0] : NULL,
                     v == MATCH_UNKNOWN ? not_seen : NULL, v);
        }
        for (uint32_t i = 0; i < wanted->arguments.n; i++) {
                enum match_verdict v = check_argument(wanted->arguments.items[i], p, &had);
                tell(t, "arguments", wanted->arguments.items[i], had, v == MATCH_UNKNOWN ? why_no_arguments(p) : NULL,
                     v);
        }
}

/* ---- ancestors ---- */

static enum match_verdict check_ancestor(const struct tenant_program *wanted, const struct match_program *p)
{
        struct telling all = { .all = MATCH_YES };

        tell_self(&all, wanted, p);
        return all.all;
}

static const char *first_wanted(const struct tenant_program *wanted)
{
        return wanted->program ? wanted->program : wanted->title ? wanted->title : wanted->arguments.items[0];
}

/* One of them must fit all of it. */
static void tell_ancestor(struct telling *t, const struct tenant_program *wanted, const struct match_subject *s)
{
        enum match_verdict best = MATCH_NO;
        const char *had = NULL;

        if (!wanted->program && !wanted->title && wanted->arguments.n == 0)
                return;
        for (uint32_t i = 0; i < s->n_ancestors && best != MATCH_YES; i++) {
                enum match_verdict v = check_ancestor(wanted, &s->ancestors[i]);
                if (v <= best)
                        continue;
                best = v;
                had = s->ancestors[i].program_known ? s->ancestors[i].program
                      : s->ancestors[i].arguments_known && s->ancestors[i].n_arguments > 0
                              ? s->ancestors[i].arguments[0]
                              : NULL;
        }
        tell(t, "ancestor", first_wanted(wanted), had,
             best == MATCH_UNKNOWN ? "what an ancestor of it runs is not ours to see" : NULL, best);
}

/* ---- the place ---- */

static void tell_unit(struct telling *t, const char *wanted, const struct match_subject *s)
{
        if (!wanted)
                return;
        if (!s->place_known)
                tell(t, "unit", wanted, NULL, "its cgroup is not known", MATCH_UNKNOWN);
        else
                tell(t, "unit", wanted, s->unit, NULL, verdict_of(s->unit && glob_fits(wanted, s->unit)));
}

static void tell_container(struct telling *t, const char *key, const char *wanted, const struct match_subject *s,
                           const char *had)
{
        if (!wanted)
                return;
        if (!s->place_known)
                tell(t, key, wanted, NULL, "its cgroup is not known", MATCH_UNKNOWN);
        else if (!s->in_container)
                tell(t, key, wanted, NULL, NULL, MATCH_NO);
        else if (!s->container_known)
                tell(t, key, wanted, NULL, "no container engine has said what its container is (engine_socket)",
                     MATCH_UNKNOWN);
        else
                tell(t, key, wanted, had, NULL, verdict_of(had && glob_fits(wanted, had)));
}

/* ---- rules ---- */

enum match_verdict match_rule(const struct tenant *tenant, uint32_t rule, const struct match_subject *s,
                              match_line_fn *each, void *ctx)
{
        struct telling t = { .each = each, .ctx = ctx, .rule = rule, .all = MATCH_YES };
        const struct tenant_rule *r = &tenant->rules[rule];

        tell_self(&t, &r->self, &s->self);
        tell_ancestor(&t, &r->ancestor, s);
        tell_unit(&t, r->unit, s);
        tell_container(&t, "container", r->container, s, s->container);
        tell_container(&t, "image", r->image, s, s->image);
        tell_container(&t, "compose_service", r->compose_service, s, s->compose_service);
        tell_container(&t, "compose_project", r->compose_project, s, s->compose_project);
        return t.all;
}

const char *match_role(const struct tenant *t, uint32_t rule)
{
        return t->rules[rule].role ? t->rules[rule].role : "main";
}

static bool is_by_place(const struct tenant_rule *r)
{
        return r->unit || r->container || r->image || r->compose_service || r->compose_project;
}

static unsigned conditions_of(const struct tenant_program *p)
{
        return (p->program ? 1U : 0U) + (p->title ? 1U : 0U) + p->arguments.n;
}

/* What goes before what, as a number: greater first. */
static unsigned weight(const struct tenants *set, const struct tenant *t, uint32_t rule)
{
        const struct tenant_rule *r = &t->rules[rule];
        const char *const place[] = { r->unit, r->container, r->image, r->compose_service, r->compose_project };
        unsigned own = conditions_of(&r->self), n = own + conditions_of(&r->ancestor);

        for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++)
                n += place[i] != NULL;
        return (set->files[t->from[TENANT_MATCH]].shipped ? 0U : 1U << 12) + (is_by_place(r) ? 1U << 11 : 0U) +
               (own > 0 ? 1U << 10 : 0U) + n;
}

enum match_verdict match_tenant(const struct tenants *set, const struct tenant *t, const struct match_subject *subject,
                                uint32_t *ret_rule)
{
        enum match_verdict best = MATCH_NO;
        unsigned best_weight = 0;

        for (uint32_t i = 0; i < t->n_rules; i++) {
                enum match_verdict v = match_rule(t, i, subject, NULL, NULL);
                unsigned w = weight(set, t, i);
                if (v == MATCH_NO || v < best || (v == best && w <= best_weight))
                        continue;
                best = v;
                best_weight = w;
                *ret_rule = i;
        }
        return best;
}

void match_find(const struct tenants *set, const struct match_subject *subject, struct match *ret)
{
        unsigned best_weight = 0;

        *ret = (struct match){ 0 };
        for (uint32_t i = 0; i < set->n; i++) {
                const struct tenant *t = &set->list[i];
                uint32_t rule = 0;
                enum match_verdict v = t->disabled ? MATCH_NO : match_tenant(set, t, subject, &rule);
                ret->n_unknown += v == MATCH_UNKNOWN;
                if (v != MATCH_YES)
                        continue;
                unsigned w = weight(set, t, rule);
                ret->n_others += ret->tenant != NULL;
                if (ret->tenant && w <= best_weight)
                        continue; /* by name: the earlier one stays */
                ret->tenant = t;
                ret->rule = rule;
                ret->by_place = is_by_place(&t->rules[rule]);
                best_weight = w;
        }
}
