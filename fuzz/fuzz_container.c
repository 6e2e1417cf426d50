/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S03, S09: the cgroup of a caller or of what is adopted, and what a container engine says. The first byte chooses which it is; the rest is the text. Any
 * bytes are safe; an id is 64 hexadecimal digits that stand in the path, and nothing made below a service or scope has one.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "api/container.h"
#include "api/engine_json.h"
#include "api/engine_state.h"
#include "api/managed.h"
#include "base/escape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
        struct container_place place = { 0 };

        if (!container_of_cgroup(path, &place))
                return;
        assert(strlen(place.id) == CONTAINER_ID_SIZE - 1 && container_id_is_wellformed(place.id, strlen(place.id)));
        const char *at = strstr(path, place.id), *unit = strstr(path, ".service/");
        assert(at && (place.of_user || !unit || unit > at));
        const struct container_rule rule = { .name = "x", .uid = place.user_uid };
        assert(container_match(&rule, 1, &place, NULL) == NULL);
}

/* Who is named stands in the path whole, and below a service only where that is a person's manager. */
static void check_managed(const char *path)
{
        struct managed m;

        if (!managed_of_cgroup(path, &m)) {
                assert(m.manager.kind == MANAGER_NONE && m.manager.name[0] == '\0');
                return;
        }
        const char *at = strstr(path, m.manager.name), *unit = strstr(path, ".service/");
        assert(at && (m.of_user || !unit || unit > at));
        if (m.manager.kind == MANAGER_CONTAINER)
                assert(manager_container_is_valid(m.manager.name));
        else
                assert(manager_unit_is_valid(m.manager.name) && m.of_user == (m.manager.kind == MANAGER_USER_UNIT));
}

static void check_state(const char *text, size_t n)
{
        struct engine_state s;

        if (engine_state_parse(text, n, &s))
                assert(s.pid <= 4194304 && (s.running || s.pid == 0));
        else
                assert(!s.running && !s.restarting && !s.removed_at_end && s.pid == 0);
}

static void check_engine(const char *text, size_t n)
{
        struct container_facts facts = { 0 };

        if (!engine_parse(text, n, &facts))
                return;
        assert(text_is_plain(facts.name, strlen(facts.name)) && text_is_plain(facts.image, strlen(facts.image)));
        for (size_t i = 0; i < facts.n_labels; i++)
                assert(strchr(facts.labels[i], '='));
        engine_facts_free(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size == 0)
                return 0;
        char *text = malloc(size);
        if (!text)
                return 0;
        memcpy(text, data + 1, size - 1);
        text[size - 1] = '\0';
        if (data[0] == 'e') {
                check_engine(text, size - 1);
                check_state(text, size - 1);
        } else {
                check_path(text);
                check_managed(text);
        }
        free(text);
        return 0;
}
