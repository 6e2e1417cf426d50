/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include <stdio.h>

int verb_devices_main(const struct verb *verb, int argc, char **argv)
{
        bool json = false;
        json_t *body = NULL;
        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        code = show_get(verb->name, "/api/devices", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        json_t *devices = json_object_get(body, "devices");
        if (json)
                show_json(devices);
        else
                look_devices(devices, true);
        json_decref(body);
        return LESSOR_EXIT_OK;
}
