/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sections of lessord.conf, behind the keys that count for everyone:
 *
 *         [user alice]                what one user may have at once; what is not said is as for everyone
 *         [group ml]                  the same for its members; the first group of a user's that stands here counts
 *         [container webui]           a container that may ask (api/container.h)
 *         [class interactive]         when idle holders of that priority are told, reclaimable, listed (model/config.h)
 *         [gate]                      cgroups in which no lease means no device (gate/conf.h)
 */
#include <stddef.h>
#include <stdint.h>
#include "api/container.h"
#include "base/error.h"
#include "gate/conf.h"
#include "model/config.h"

enum { CONF_NAME_SIZE = 64 };

enum conf_section { SECTION_NONE, SECTION_PEOPLE, SECTION_CONTAINER, SECTION_CLASS, SECTION_GATE };

/* Row n of these is quotas[n] of the configuration. */
struct conf_people {
        char name[CONF_NAME_SIZE]; /* as it stands there; a number where no name is */
        bool is_group;
        uint32_t id;
};

struct conf_sections {
        struct conf_people people[QUOTAS_MAX]; /* config.n_quotas of them */
        uint32_t n_containers;
        struct container_rule *containers; /* room for CONTAINER_RULES_MAX, or NULL while there are none */
        struct gate_conf gate;
        bool has_gate;                /* the section stands there */
        char at[CONF_NAME_SIZE + 16]; /* the section that is being read */
        enum conf_section kind;
        uint32_t seen;    /* keys of it, a bit each */
        unsigned class;   /* SECTION_CLASS: which, and which there were */
        unsigned classes; /* a bit each */
};

void conf_sections_fini(struct conf_sections *s);
/* One line of a section. Sets quotas in @core. Negative errno with words (without file and line). */
int conf_sections_line(struct conf_sections *s, struct config *core, const char *section, const char *key,
                       const char *value, struct error *err);
/* When the last line was read: is each section whole? */
int conf_sections_end(const struct conf_sections *s, struct error *err);
/* Which row counts for this user (model/quota.h). */
uint32_t conf_quota_row(const struct conf_sections *s, const struct config *core, uint32_t uid, const uint32_t *gids,
                        size_t n_gids);
/* "everyone", "user alice", "group ml". @buf is the caller's. */
const char *conf_quota_name(const struct conf_sections *s, const struct config *core, uint32_t row,
                            char buf[CONF_NAME_SIZE + 8]);
