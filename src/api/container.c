/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "api/container.h"
#include "base/number.h"

struct part {
        const char *at;
        size_t n;
};

static bool is_hex_digit(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool container_id_is_wellformed(const char *text, size_t n)
{
        if (n < CONTAINER_ID_MIN || n >= CONTAINER_ID_SIZE)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_hex_digit(text[i]))
                        return false;
        return true;
}

static bool part_begins(struct part p, const char *with)
{
        size_t n = strlen(with);
        return p.n >= n && memcmp(p.at, with, n) == 0;
}

static bool part_ends(struct part p, const char *with)
{
        size_t n = strlen(with);
        return p.n >= n && memcmp(p.at + p.n - n, with, n) == 0;
}

static bool part_is(struct part p, const char *text)
{
        return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

/* "docker-<id>.scope", or "<id>" alone where the engine makes its folders without systemd. */
static bool take_id(struct part p, char ret_id[CONTAINER_ID_SIZE])
{
        static const char *const prefixes[] = { "docker-", "libpod-", "cri-containerd-", "crio-" };
        const size_t n_id = CONTAINER_ID_SIZE - 1, n_scope = strlen(".scope");

        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
                if (!part_begins(p, prefixes[i]))
                        continue;
                p.at += strlen(prefixes[i]);
                p.n -= strlen(prefixes[i]);
                break;
        }
        if (part_ends(p, ".scope"))
                p.n -= n_scope;
        if (p.n != n_id || !container_id_is_wellformed(p.at, p.n))
                return false;
        memcpy(ret_id, p.at, p.n);
        ret_id[p.n] = '\0';
        return true;
}

/* "user-1000.slice" or "user@1000.service" → 1000 */
static bool take_user(struct part p, const char *before, const char *behind, uint32_t *ret)
{
        char digits[16];
        uint64_t uid;

        if (!part_begins(p, before) || !part_ends(p, behind) || p.n <= strlen(before) + strlen(behind))
                return false;
        size_t n = p.n - strlen(before) - strlen(behind);
        if (n >= sizeof(digits))
                return false;
        memcpy(digits, p.at + strlen(before), n);
        digits[n] = '\0';
        if (parse_u64("uid", digits, 0, UINT32_MAX - 1, &uid, NULL) < 0)
                return false;
        *ret = (uint32_t) uid;
        return true;
}

/* May a container's folder lie below this one? What systemd hands to others to divide ends in .service or .scope. */
static bool is_folder_of_engines(struct part p)
{
        static const char *const names[] = { "docker",     "libpod_parent", "kubepods",
                                             "besteffort", "burstable",     "guaranteed" };

        if (part_ends(p, ".slice"))
                return true;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (part_is(p, names[i]))
                        return true;
        return part_begins(p, "pod") && !part_ends(p, ".service") && !part_ends(p, ".scope");
}

bool container_of_cgroup(const char *cgroup_path, struct container_place *ret)
{
        struct container_place place = { 0 };

        for (const char *at = cgroup_path; *at == '/';) {
                struct part p = { .at = at + 1, .n = strcspn(at + 1, "/") };
                uint32_t uid;

                at = p.at + p.n;
                if (take_id(p, place.id)) { /* the outermost: who is inside can make more folders, but none above it */
                        *ret = place;
                        return true;
                }
                if (take_user(p, "user-", ".slice", &uid)) {
                        place.of_user = true;
                        place.user_uid = uid;
                } else if (!place.of_user && !is_folder_of_engines(p)) { /* below a user's slice all is that user's */
                        return false;
                }
        }
        return false;
}

/* "repo/name" fits "repo/name:tag" and "repo/name@sha256:…"; with a tag it has to be the same. */
static bool image_fits(const char *rule, const char *image)
{
        size_t n = strlen(rule);

        return strncmp(rule, image, n) == 0 &&
               (image[n] == '\0' || ((image[n] == ':' || image[n] == '@') && strchr(image + n + 1, '/') == NULL));
}

static bool label_fits(const char *label, const struct container_facts *facts)
{
        for (size_t i = 0; i < facts->n_labels; i++)
                if (strcmp(label, facts->labels[i]) == 0)
                        return true;
        return false;
}

static bool may_fit(const struct container_rule *rule, const struct container_place *place)
{
        if (!rule->id[0] && !rule->name[0] && !rule->image[0] && rule->n_labels == 0)
                return false; /* it would be everybody's */
        if (place->of_user && rule->uid != place->user_uid)
                return false;
        return strncmp(rule->id, place->id, strlen(rule->id)) == 0;
}

static bool asks_engine(const struct container_rule *rule)
{
        return rule->name[0] || rule->image[0] || rule->n_labels > 0;
}

static bool facts_fit(const struct container_rule *rule, const struct container_facts *facts)
{
        if (!asks_engine(rule))
                return true;
        if (!facts || (rule->name[0] && strcmp(rule->name, facts->name) != 0) ||
            (rule->image[0] && !image_fits(rule->image, facts->image)))
                return false;
        for (uint32_t i = 0; i < rule->n_labels; i++)
                if (!label_fits(rule->labels[i], facts))
                        return false;
        return true;
}

const struct container_rule *container_match(const struct container_rule *rules, size_t n,
                                             const struct container_place *place, const struct container_facts *facts)
{
        for (size_t i = 0; i < n; i++)
                if (may_fit(&rules[i], place) && facts_fit(&rules[i], facts))
                        return &rules[i];
        return NULL;
}

bool container_needs_engine(const struct container_rule *rules, size_t n, const struct container_place *place)
{
        for (size_t i = 0; i < n; i++)
                if (may_fit(&rules[i], place) && asks_engine(&rules[i]))
                        return true;
        return false;
}
