/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "api/view.h"

json_t *view_problem(const struct problem *problem)
{
        char urn[64];
        (void) snprintf(urn, sizeof(urn), "urn:lessor:problem:%s", problem->type);

        json_t *object = json_pack("{s:s, s:s, s:i, s:o}", "type", urn, "title", problem->title, "status",
                                   problem->status, "detail", view_text_or_null(problem->detail));
        if (object && problem->field[0]) {
                (void) json_object_set_new(object, "field", view_text_or_null(problem->field));
                (void) json_object_set_new(object, "given", json_string(problem->given));
                (void) json_object_set_new(object, "allowed", json_string(problem->allowed));
                (void) json_object_set_new(object, "cure", json_string(problem->cure));
        }
        return object;
}
