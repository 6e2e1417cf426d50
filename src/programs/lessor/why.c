/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "model/lease.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

/* The daemon's story, line by line: the line ends are ours, everything else in it is escaped. */
static void print_lines(const char *text)
{
        while (*text != '\0') {
                char line[SHOW_TEXT_MAX];
                size_t n = strcspn(text, "\n");
                (void) printf("%s\n", text_escape(text, n, line, sizeof(line)));
                text += n + (text[n] == '\n');
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
        if (json) {
                show_json(body);
        } else {
                print_lines(json_text(body, "text", ""));
        }
        json_decref(body);
        return LESSOR_EXIT_OK;
}
