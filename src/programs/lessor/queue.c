/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

int verb_queue_main(const struct verb *verb, int argc, char **argv)
{
        bool json = false;
        json_t *body = NULL;
        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        code = show_get(verb->name, "/api/queue", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        json_t *queue = json_object_get(body, "queue");
        if (json)
                show_json(queue);
        else
                look_queue(queue);
        json_decref(body);
        return LESSOR_EXIT_OK;
}
