/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "model/lease.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

static void print_story(const json_t *body)
{
        char time[48], text[SHOW_TEXT_MAX];
        const json_t *lease = json_object_get(body, "lease");
        size_t i;
        json_t *event;
        json_array_foreach(json_object_get(body, "events"), i, event)
        {
                (void) printf("%s%s%s  ", show_colour(SHOW_DIM), show_field(event, "time", "?", time, sizeof(time)),
                              show_colour(SHOW_PLAIN));
                (void) printf("%s\n", show_field(event, "text", "", text, sizeof(text)));
        }
        if (json_is_object(lease)) {
                char state[32], id[32];
                (void) printf("now: %s is %s: %s\n", show_field(lease, "id", "?", id, sizeof(id)),
                              show_field(lease, "state", "?", state, sizeof(state)),
                              show_field(body, "text", "no more is known", text, sizeof(text)));
                if (json_is_string(json_object_get(lease, "expectation")))
                        (void) printf("expected: %s\n", show_field(lease, "expectation", "", text, sizeof(text)));
        } else {
                (void) printf("in the end: %s\n", show_field(body, "text", "no more is known", text, sizeof(text)));
        }
}

int verb_why_main(const struct verb *verb, int argc, char **argv)
{
        bool json = false;
        char id[LEASE_ID_TEXT_MAX], path[64];
        json_t *body = NULL;
        int code = look_id_options(verb, argc, argv, &json, id, sizeof(id));
        if (code != LOOK_ON)
                return code;
        (void) snprintf(path, sizeof(path), "/api/why/%s", id);
        code = show_get(verb->name, path, &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (json)
                show_json(body);
        else
                print_story(body);
        json_decref(body);
        return LESSOR_EXIT_OK;
}
