/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/conf_sections.h"
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "base/size.h"
#include "model/lease.h"
#include "model/limits.h"

void conf_sections_fini(struct conf_sections *s)
{
        free(s->containers);
        *s = (struct conf_sections){ 0 };
}

/* ---- users and groups ---- */

static int find_user(const char *name, uint32_t *ret, struct error *err)
{
        uint64_t id;
        const struct passwd *pw;

        if (parse_u64("uid", name, 0, UINT32_MAX - 1, &id, NULL) == 0) {
                *ret = (uint32_t) id;
                return 0;
        }
        pw = getpwnam(name);
        if (!pw)
                return error_set(err, ENOENT,
                                 "there is no user \"%s\" here; write the name as getent passwd has it, or a uid",
                                 name);
        *ret = pw->pw_uid;
        return 0;
}

static int find_group(const char *name, uint32_t *ret, struct error *err)
{
        uint64_t id;
        const struct group *gr;

        if (parse_u64("gid", name, 0, UINT32_MAX - 1, &id, NULL) == 0) {
                *ret = (uint32_t) id;
                return 0;
        }
        gr = getgrnam(name);
        if (!gr)
                return error_set(err, ENOENT,
                                 "there is no group \"%s\" here; write the name as getent group has it, or a gid",
                                 name);
        *ret = gr->gr_gid;
        return 0;
}

static int begin_people(struct conf_sections *s, struct config *core, bool is_group, const char *name,
                        struct error *err)
{
        struct conf_people people = { .is_group = is_group };
        int r = is_group ? find_group(name, &people.id, err) : find_user(name, &people.id, err);

        if (r < 0)
                return r;
        (void) snprintf(people.name, sizeof(people.name), "%s", name);
        for (uint32_t i = 0; i < core->n_quotas; i++)
                if (s->people[i].is_group == is_group && s->people[i].id == people.id)
                        return error_set(err, EEXIST, "[%s] stands here a second time", s->at);
        if (core->n_quotas >= QUOTAS_MAX)
                return error_set(err, ENOSPC, "there may be %d sections for users and groups", QUOTAS_MAX);
        s->people[core->n_quotas] = people;
        core->quotas[core->n_quotas] = config_quota(core, QUOTA_EVERYONE);
        core->n_quotas++;
        return 0;
}

static const struct quota_key {
        const char *name;
        enum { QUOTA_COUNT, QUOTA_AMOUNT, QUOTA_SPAN } kind;
        size_t at;
        uint64_t min, max;
} quota_keys[] = {
        { "priority_min", QUOTA_COUNT, offsetof(struct quota, priority_min), 1, 5 },
        { "leases_max", QUOTA_COUNT, offsetof(struct quota, leases_max), 0, LEASES_MAX },
        { "waiting_max", QUOTA_COUNT, offsetof(struct quota, waiting_max), 0, ENTRIES_MAX },
        { "pins_max", QUOTA_COUNT, offsetof(struct quota, pins_max), 0, LEASES_MAX },
        { "bytes_max", QUOTA_AMOUNT, offsetof(struct quota, bytes_max), 0, SIZE_BYTES_MAX },
        { "slot_max", QUOTA_SPAN, offsetof(struct quota, slot_max_ms), 0, DURATION_MAX_MS },
        { "pin_max", QUOTA_SPAN, offsetof(struct quota, pin_max_ms), 0, DURATION_MAX_MS },
};

static int quota_line(struct quota *quota, const struct quota_key *key, const char *text, struct error *err)
{
        char *at = (char *) quota + key->at;
        struct size amount = { .kind = SIZE_BYTES };
        uint64_t value = 0;
        int r = 0;

        if (key->kind == QUOTA_COUNT) {
                r = parse_u64(key->name, text, key->min, key->max, &value, err);
        } else if (strcmp(text, "0") != 0 && key->kind == QUOTA_SPAN) {
                r = duration_parse(key->name, text, &value, err);
        } else if (strcmp(text, "0") != 0) {
                r = size_parse(key->name, text, &amount, err);
                if (r == 0 && amount.kind != SIZE_BYTES)
                        r = error_set(err, EINVAL, "%s: write an amount such as 20GiB, no percentage", key->name);
                value = amount.bytes;
        }
        if (r < 0)
                return r;
        if (key->kind == QUOTA_COUNT) {
                uint32_t v32 = (uint32_t) value;
                memcpy(at, &v32, sizeof(v32));
        } else {
                memcpy(at, &value, sizeof(value));
        }
        return 0;
}

static int people_line(struct conf_sections *s, struct config *core, const char *key, const char *value,
                       struct error *err)
{
        for (size_t i = 0; i < sizeof(quota_keys) / sizeof(quota_keys[0]); i++) {
                if (strcmp(quota_keys[i].name, key) != 0)
                        continue;
                if (s->seen & (UINT32_C(1) << i))
                        return error_set(err, EINVAL, "%s stands in [%s] a second time", key, s->at);
                s->seen |= UINT32_C(1) << i;
                return quota_line(&core->quotas[core->n_quotas - 1], &quota_keys[i], value, err);
        }
        return error_set(
                err, EINVAL,
                "%s is no key of [%s]; allowed: priority_min leases_max waiting_max pins_max bytes_max slot_max "
                "pin_max",
                key, s->at);
}

/* ---- containers ---- */

static int begin_container(struct conf_sections *s, const char *name, struct error *err)
{
        if (!s->containers) {
                s->containers = calloc(CONTAINER_RULES_MAX, sizeof(*s->containers));
                if (!s->containers)
                        return error_set(err, ENOMEM, "no memory for [%s]", s->at);
        }
        for (uint32_t i = 0; i < s->n_containers; i++)
                if (strcmp(s->containers[i].section, name) == 0)
                        return error_set(err, EEXIST, "[%s] stands here a second time", s->at);
        if (s->n_containers >= CONTAINER_RULES_MAX)
                return error_set(err, ENOSPC, "there may be %d sections for containers", CONTAINER_RULES_MAX);
        struct container_rule *rule = &s->containers[s->n_containers++];
        rule->uid = UINT32_MAX;
        (void) snprintf(rule->section, sizeof(rule->section), "%s", name);
        return 0;
}

static int copy_text(char *to, size_t size, const char *key, const char *value, struct error *err)
{
        if (strlen(value) >= size)
                return error_set(err, EINVAL, "%s: at most %zu bytes", key, size - 1);
        memcpy(to, value, strlen(value) + 1);
        return 0;
}

enum container_key { KEY_ID, KEY_NAME, KEY_IMAGE, KEY_LABEL, KEY_UID, KEY_PRIORITY_MIN, CONTAINER_KEYS_N };

static int set_container_key(struct container_rule *rule, enum container_key key, const char *name, const char *value,
                             struct error *err)
{
        uint64_t n;

        switch (key) {
        case KEY_ID:
                if (strlen(value) < CONTAINER_ID_MIN || !container_id_is_wellformed(value, strlen(value)))
                        return error_set(err, EINVAL, "id: %d to 64 hexadecimal digits, as the engine shows them",
                                         CONTAINER_ID_MIN);
                return copy_text(rule->id, sizeof(rule->id), name, value, err);
        case KEY_NAME:
                return copy_text(rule->name, sizeof(rule->name), name, value, err);
        case KEY_IMAGE:
                return copy_text(rule->image, sizeof(rule->image), name, value, err);
        case KEY_LABEL:
                if (!strchr(value, '='))
                        return error_set(err, EINVAL, "label: write key=value");
                if (rule->n_labels >= CONTAINER_LABELS_MAX)
                        return error_set(err, ENOSPC, "label: at most %d in a section", CONTAINER_LABELS_MAX);
                return copy_text(rule->labels[rule->n_labels++], CONTAINER_LABEL_MAX, name, value, err);
        case KEY_UID:
                return find_user(value, &rule->uid, err);
        case KEY_PRIORITY_MIN:
                if (parse_u64(name, value, 1, 5, &n, err) < 0)
                        return -EINVAL;
                rule->priority_min = (uint8_t) n;
                return 0;
        case CONTAINER_KEYS_N:
                break;
        }
        return -EINVAL;
}

static int container_line(struct conf_sections *s, const char *key, const char *value, struct error *err)
{
        static const char *const names[CONTAINER_KEYS_N] = { "id", "name", "image", "label", "uid", "priority_min" };

        for (unsigned i = 0; i < CONTAINER_KEYS_N; i++) {
                if (strcmp(names[i], key) != 0)
                        continue;
                if (i != KEY_LABEL && (s->seen & (1U << i)))
                        return error_set(err, EINVAL, "%s stands in [%s] a second time", key, s->at);
                s->seen |= 1U << i;
                return set_container_key(&s->containers[s->n_containers - 1], (enum container_key) i, key, value, err);
        }
        return error_set(err, EINVAL, "%s is no key of [%s]; allowed: id name image label uid priority_min", key,
                         s->at);
}

static int check_container(const struct container_rule *rule, struct error *err)
{
        if (!rule->id[0] && !rule->name[0] && !rule->image[0] && rule->n_labels == 0)
                return error_set(err, EINVAL,
                                 "[container %s] says of no container which: give id, name, image or label",
                                 rule->section);
        if (rule->uid == UINT32_MAX)
                return error_set(err, EINVAL, "[container %s] needs uid: the user whose leases these are",
                                 rule->section);
        if (rule->uid == 0)
                return error_set(err, EINVAL, "[container %s]: uid cannot be root's; name the user who runs it",
                                 rule->section);
        return 0;
}

/* ---- classes of priority ---- */

static int begin_class(struct conf_sections *s, const char *name, struct error *err)
{
        uint8_t priority;

        if (!priority_parse(name, &priority))
                return error_set(
                        err, EINVAL,
                        "[%s]: there is no such class; allowed: urgent, interactive, normal, batch, filler, or "
                        "1 to 5",
                        s->at);
        s->class = priority - 1U;
        if (s->classes & (1U << s->class))
                return error_set(err, EEXIST, "[%s] stands here a second time", s->at);
        s->classes |= 1U << s->class;
        return 0;
}

static int class_line(struct conf_sections *s, struct config *core, const char *key, const char *value,
                      struct error *err)
{
        struct idle_ladder *ladder = &core->idle[s->class];
        const struct {
                const char *name;
                uint64_t *at;
        } keys[] = { { "idle_notice", &ladder->notice_ms },
                     { "idle_reclaimable", &ladder->reclaimable_ms },
                     { "idle_listed", &ladder->listed_ms } };

        for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                if (strcmp(keys[i].name, key) != 0)
                        continue;
                if (s->seen & (1U << i))
                        return error_set(err, EINVAL, "%s stands in [%s] a second time", key, s->at);
                s->seen |= 1U << i;
                return duration_parse(key, value, keys[i].at, err);
        }
        return error_set(err, EINVAL, "%s is no key of [%s]; allowed: idle_notice idle_reclaimable idle_listed", key,
                         s->at);
}

/* ---- lines ---- */

static int begin(struct conf_sections *s, struct config *core, const char *section, struct error *err)
{
        static const struct {
                const char *word;
                enum conf_section kind;
                bool is_group;
        } words[] = { { "user ", SECTION_PEOPLE, false },
                      { "group ", SECTION_PEOPLE, true },
                      { "container ", SECTION_CONTAINER, false },
                      { "class ", SECTION_CLASS, false } };
        char safe[96];
        int r = conf_sections_end(s, err);

        if (r < 0)
                return r;
        s->seen = 0;
        (void) text_escape(section, strlen(section), safe, sizeof(safe));
        (void) snprintf(s->at, sizeof(s->at), "%s", section);
        if (strcmp(section, "gate") == 0) {
                s->kind = SECTION_GATE;
                if (s->has_gate)
                        return error_set(err, EEXIST, "[gate] stands here a second time");
                s->has_gate = true;
                return 0;
        }
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                size_t n = strlen(words[i].word);
                if (strncmp(section, words[i].word, n) != 0)
                        continue;
                const char *name = section + n + strspn(section + n, " ");
                if (name[0] == '\0' || strlen(name) >= CONF_NAME_SIZE || !text_is_plain(name, strlen(name)))
                        return error_set(err, EINVAL, "[%s]: a name of 1 to %d bytes belongs behind %s", safe,
                                         CONF_NAME_SIZE - 1, words[i].word);
                s->kind = words[i].kind;
                if (s->kind == SECTION_CLASS)
                        return begin_class(s, name, err);
                return s->kind == SECTION_CONTAINER ? begin_container(s, name, err)
                                                    : begin_people(s, core, words[i].is_group, name, err);
        }
        return error_set(
                err, EINVAL,
                "there is no section [%s]; allowed: [user NAME], [group NAME], [container NAME], [class NAME], "
                "[gate]",
                safe);
}

int conf_sections_line(struct conf_sections *s, struct config *core, const char *section, const char *key,
                       const char *value, struct error *err)
{
        if (strlen(section) >= sizeof(s->at))
                return error_set(err, EINVAL, "the name of a section is too long");
        if (s->kind == SECTION_NONE || strcmp(s->at, section) != 0) {
                int r = begin(s, core, section, err);
                if (r < 0)
                        return r;
        }
        char safe[96];
        (void) text_escape(key, strlen(key), safe, sizeof(safe));
        if (s->kind == SECTION_CLASS)
                return class_line(s, core, safe, value, err);
        if (s->kind == SECTION_GATE)
                return gate_conf_line(&s->gate, safe, value, err);
        return s->kind == SECTION_CONTAINER ? container_line(s, safe, value, err)
                                            : people_line(s, core, safe, value, err);
}

int conf_sections_end(const struct conf_sections *s, struct error *err)
{
        if (s->kind == SECTION_GATE)
                return gate_conf_end(&s->gate, err);
        return s->kind == SECTION_CONTAINER ? check_container(&s->containers[s->n_containers - 1], err) : 0;
}

/* ---- which row ---- */

uint32_t conf_quota_row(const struct conf_sections *s, const struct config *core, uint32_t uid, const uint32_t *gids,
                        size_t n_gids)
{
        for (uint32_t i = 0; i < core->n_quotas; i++)
                if (!s->people[i].is_group && s->people[i].id == uid)
                        return i + 1;
        for (uint32_t i = 0; i < core->n_quotas; i++)
                for (size_t k = 0; s->people[i].is_group && k < n_gids; k++)
                        if (s->people[i].id == gids[k])
                                return i + 1;
        return QUOTA_EVERYONE;
}

const char *conf_quota_name(const struct conf_sections *s, const struct config *core, uint32_t row,
                            char buf[CONF_NAME_SIZE + 8])
{
        if (row == QUOTA_EVERYONE || row > core->n_quotas)
                return "everyone";
        (void) snprintf(buf, CONF_NAME_SIZE + 8, "%s %s", s->people[row - 1].is_group ? "group" : "user",
                        s->people[row - 1].name);
        return buf;
}
