/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Callers in containers (security S03). The kernel tells that a caller lives in another pid namespace and which cgroup it is
 * in; the engine that made the cgroup wrote the container's id into its name. Pure over text: nothing here asks anybody.
 *
 * Only names that root's own engine can have made count: every folder above the container's is a slice or one of the
 * engines' own. Whoever was given a cgroup to divide (a service, a login session) could otherwise call a folder of his like
 * somebody's container. What lies below user-N.slice is a container of user N, and can act as that user at most.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        CONTAINER_ID_SIZE = 65, /* 64 hexadecimal digits */
        CONTAINER_ID_MIN = 12,  /* what engines show of it, and the shortest that may stand in a configuration */
        CONTAINER_NAME_MAX = 128,
        CONTAINER_IMAGE_MAX = 256,
        CONTAINER_LABEL_MAX = 192,
        CONTAINER_LABELS_MAX = 4,
        CONTAINER_RULES_MAX = 64,
        CONTAINER_SECTION_MAX = 64,
};

/* One [container SECTION] of lessord.conf: which containers, and what they may do. Everything that is given must fit; one
 * of id, name, image and labels is. */
struct container_rule {
        char section[CONTAINER_SECTION_MAX];
        char id[CONTAINER_ID_SIZE];      /* the whole id or its beginning, CONTAINER_ID_MIN digits at least; "" = any */
        char name[CONTAINER_NAME_MAX];   /* without the leading slash */
        char image[CONTAINER_IMAGE_MAX]; /* as the engine shows it; without a tag: any tag */
        uint32_t n_labels;
        char labels[CONTAINER_LABELS_MAX][CONTAINER_LABEL_MAX]; /* "key=value" */
        uint32_t uid;         /* whose leases these are; never an administrator's rights */
        uint8_t priority_min; /* smallest number it may ask for; 0 = as users */
};

/* Where a caller's container is, from its cgroup. */
struct container_place {
        char id[CONTAINER_ID_SIZE];
        bool of_user; /* below a user's slice: made by that user's own engine */
        uint32_t user_uid;
};

/* What the engine says about it; "" = not told. */
struct container_facts {
        char name[CONTAINER_NAME_MAX];
        char image[CONTAINER_IMAGE_MAX];
        const char *const *labels; /* "key=value"; the caller's */
        size_t n_labels;
};

/* False: no container that can be told from others. @cgroup_path: "/system.slice/docker-<id>.scope". */
bool container_of_cgroup(const char *cgroup_path, struct container_place *ret);
/* The first rule that fits; NULL. @facts NULL: the engine was not asked, so only rules that go by the id alone fit. */
const struct container_rule *container_match(const struct container_rule *rules, size_t n,
                                             const struct container_place *place, const struct container_facts *facts);
/* Is there a rule that might fit if the engine told more? */
bool container_needs_engine(const struct container_rule *rules, size_t n, const struct container_place *place);
/* Can these bytes be an id, or the beginning of one? */
bool container_id_is_wellformed(const char *text, size_t n);
