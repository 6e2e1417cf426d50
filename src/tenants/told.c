/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/told.h"
#include <string.h>
#include "base/escape.h"

enum { TEXT_MAX = 1024 };

static json_t *text_or_null(const char *text)
{
        char safe[TEXT_MAX];

        return text ? json_string(text_escape(text, strlen(text), safe, sizeof(safe))) : json_null();
}

/* ---- the set ---- */

static json_t *files_of(const struct tenants *set)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < set->n_files; i++)
                (void) json_array_append_new(list, json_pack("{s:o, s:b}", "path", text_or_null(set->files[i].name),
                                                             "shipped", (int) set->files[i].shipped));
        return list;
}

static json_t *ways_of(const struct tenant *t)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < t->ways.n; i++) {
                const struct tenant_way *way = &t->ways.items[i];
                (void) json_array_append_new(
                        list, json_pack("{s:s, s:b, s:o}", "by", tenant_way_name((enum tenant_way_by) way->by), "on",
                                        (int) tenant_way_is_on(way), "drops", text_or_null(way->drops)));
        }
        return list;
}

static json_t *sources_of(const struct tenants *set, const struct tenant *t)
{
        json_t *ret = json_object();

        for (enum tenant_key key = 0; ret && key < TENANT_KEY_N; key++)
                if (tenant_gives(t, key))
                        (void) json_object_set_new(ret, tenant_key_name(key),
                                                   text_or_null(set->files[t->from[key]].name));
        return ret;
}

static bool is_shipped(const struct tenants *set, const struct tenant *t)
{
        for (enum tenant_key key = 0; key < TENANT_KEY_N; key++)
                if (tenant_gives(t, key) && !set->files[t->from[key]].shipped)
                        return false;
        return true;
}

json_t *told_tenants(const struct tenants *set)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < set->n; i++) {
                const struct tenant *t = &set->list[i];
                json_t *one = json_pack("{s:s, s:o, s:b, s:b, s:o, s:o, s:o}", "name", t->name, "title",
                                        text_or_null(t->title ? t->title : t->name), "shipped",
                                        (int) is_shipped(set, t), "disabled", (int) t->disabled, "ways_out", ways_of(t),
                                        "definition", tenants_definition(set, t), "from", sources_of(set, t));
                if (!one || json_array_append_new(list, one) < 0) {
                        json_decref(list);
                        return NULL;
                }
        }
        return json_pack("{s:o, s:o}", "files", files_of(set), "tenants", list);
}

/* ---- a match ---- */

static const char *const verdicts[] = { "no", "unknown", "yes" };

static void add_line(void *ctx, const struct match_line *line)
{
        (void) json_array_append_new(ctx,
                                     json_pack("{s:s, s:o, s:o, s:s, s:o}", "key", line->key, "wanted",
                                               text_or_null(line->wanted), "had", text_or_null(line->had), "verdict",
                                               verdicts[line->verdict], "why", text_or_null(line->why)));
}

static json_t *rules_of(const struct tenant *t, const struct match_subject *subject)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < t->n_rules; i++) {
                json_t *lines = json_array();
                enum match_verdict v = match_rule(t, i, subject, add_line, lines);
                (void) json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "role", match_role(t, i), "verdict",
                                                             verdicts[v], "conditions", lines));
        }
        return list;
}

static json_t *match_of(const struct tenants *set, const struct tenant *t, const struct match_subject *subject)
{
        uint32_t rule;

        return json_pack("{s:s, s:b, s:s, s:o}", "name", t->name, "disabled", (int) t->disabled, "verdict",
                         verdicts[match_tenant(set, t, subject, &rule)], "rules", rules_of(t, subject));
}

json_t *told_match(const struct tenants *set, const struct match_subject *subject, const char *name)
{
        json_t *list = json_array();
        struct match m;

        match_find(set, subject, &m);
        for (uint32_t i = 0; list && i < set->n; i++)
                if (!name || strcmp(set->list[i].name, name) == 0)
                        (void) json_array_append_new(list, match_of(set, &set->list[i], subject));
        return json_pack("{s:o, s:o, s:o, s:i, s:i, s:o}", "tenant", text_or_null(m.tenant ? m.tenant->name : NULL),
                         "role", text_or_null(m.tenant ? match_role(m.tenant, m.rule) : NULL), "by",
                         text_or_null(!m.tenant    ? NULL
                                      : m.by_place ? "place"
                                                   : "process"),
                         "others", (int) m.n_others, "unknown", (int) m.n_unknown, "tenants", list);
}
