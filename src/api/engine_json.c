/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/engine_json.h"
#include "api/json_text.h"
#include "base/escape.h"

enum { LABELS_MAX = 256 };

static void copy_text(const json_t *value, char *to, size_t size)
{
        const char *text = json_string_value(value);

        if (text && strlen(text) < size && text_is_plain(text, strlen(text)))
                (void) snprintf(to, size, "%s", text);
}

static bool take_labels(json_t *object, struct container_facts *facts)
{
        const char *key;
        json_t *value;

        if (!json_is_object(object) || json_object_size(object) == 0)
                return true;
        char **labels = calloc(LABELS_MAX, sizeof(*labels));
        if (!labels)
                return false;
        facts->labels = (const char *const *) labels;
        json_object_foreach(object, key, value)
        {
                size_t size = strlen(key) + json_string_length(value) + 2;
                if (!json_is_string(value) || facts->n_labels == LABELS_MAX)
                        continue;
                if (!(labels[facts->n_labels] = malloc(size)))
                        return false;
                (void) snprintf(labels[facts->n_labels++], size, "%s=%s", key, json_string_value(value));
        }
        return true;
}

void engine_facts_free(struct container_facts *facts)
{
        for (size_t i = 0; i < facts->n_labels; i++)
                free((void *) (uintptr_t) facts->labels[i]);
        free((void *) (uintptr_t) facts->labels);
        *facts = (struct container_facts){ 0 };
}

bool engine_parse(const char *data, size_t n, struct container_facts *ret)
{
        struct container_facts facts = { 0 };

        if (!json_text_depth_is_fine(data, n, JSON_DEPTH_MAX))
                return false;
        json_t *object = json_loadb(data, n, JSON_REJECT_DUPLICATES, NULL);
        json_t *config = json_object_get(object, "Config");
        bool fine = json_is_object(object) && json_is_object(config) &&
                    take_labels(json_object_get(config, "Labels"), &facts);
        if (fine) {
                copy_text(json_object_get(object, "Name"), facts.name, sizeof(facts.name));
                if (facts.name[0] == '/')
                        memmove(facts.name, facts.name + 1, strlen(facts.name));
                copy_text(json_object_get(config, "Image"), facts.image, sizeof(facts.image));
                *ret = facts;
        } else {
                engine_facts_free(&facts);
        }
        json_decref(object);
        return fine;
}
