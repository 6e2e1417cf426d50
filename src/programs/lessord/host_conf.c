/* SPDX-License-Identifier: Apache-2.0 */
/* What the API sees of the configuration, and reading it again. */
#include <jansson.h>
#include "api/view.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/host_conf.h"
#include "programs/lessord/reload.h"
#include "tenants/told.h"

uint32_t host_quota_row(void *ctx, uint32_t uid, const uint32_t *gids, size_t n_gids)
{
        const struct daemon *d = ctx;
        return conf_quota_row(&d->conf.sections, &d->conf.core, uid, gids, n_gids);
}

const char *host_quota_name(void *ctx, uint32_t row)
{
        static char name[CONF_NAME_SIZE + 8];
        const struct daemon *d = ctx;
        return conf_quota_name(&d->conf.sections, &d->conf.core, row, name);
}

static json_t *sections(const struct daemon *d)
{
        json_t *list = json_array();
        char name[CONF_NAME_SIZE + 16];

        for (uint32_t i = 0; list && i < d->conf.core.n_quotas; i++)
                (void) json_array_append_new(
                        list, json_string(conf_quota_name(&d->conf.sections, &d->conf.core, i + 1, name)));
        for (uint32_t i = 0; list && i < d->conf.sections.n_containers; i++)
                (void) json_array_append_new(list,
                                             json_sprintf("container %s", d->conf.sections.containers[i].section));
        if (list && d->conf.sections.has_gate)
                (void) json_array_append_new(list, json_string("gate"));
        return list;
}

json_t *host_config_json(void *ctx)
{
        const struct daemon *d = ctx;
        struct conf_shown key;
        json_t *list = json_array();

        for (size_t i = 0; list && conf_show(&d->conf, i, &key); i++)
                (void) json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "key", key.name, "value",
                                                             key.value, "default", key.otherwise, "help", key.help));
        return json_pack("{s:o, s:s, s:o, s:o, s:o}", "file", view_text(reload_path(d)), "from",
                         reload_source_name(d->conf_source), "error", view_text_or_null(d->conf_error), "keys", list,
                         "sections", sections(d));
}

json_t *host_tenants_json(void *ctx)
{
        const struct daemon *d = ctx;
        json_t *ret = told_tenants(&d->tenants.set);

        if (ret)
                (void) json_object_set_new(ret, "error", view_text_or_null(d->tenants.error));
        return ret;
}

int host_reload(void *ctx, struct error *err)
{
        return reload_now(ctx, err);
}
