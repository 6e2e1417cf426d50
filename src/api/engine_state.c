/* SPDX-License-Identifier: Apache-2.0 */
#include "api/engine_state.h"
#include <jansson.h>
#include "api/json_text.h"

bool engine_state_parse(const char *data, size_t n, struct engine_state *ret)
{
        const json_int_t pid_max = 4194304; /* PID_MAX_LIMIT */

        *ret = (struct engine_state){ 0 };
        if (!json_text_depth_is_fine(data, n, JSON_DEPTH_MAX))
                return false;
        json_t *object = json_loadb(data, n, JSON_REJECT_DUPLICATES, NULL);
        json_t *state = json_object_get(object, "State"), *host = json_object_get(object, "HostConfig");
        json_t *running = json_object_get(state, "Running"), *pid = json_object_get(state, "Pid");
        bool fine = json_is_boolean(running) && json_is_integer(pid) && json_integer_value(pid) >= 0 &&
                    json_integer_value(pid) <= pid_max;

        if (fine) {
                ret->running = json_is_true(running);
                ret->restarting = json_is_true(json_object_get(state, "Restarting"));
                ret->pid = ret->running ? (uint32_t) json_integer_value(pid) : 0;
                ret->removed_at_end = json_is_true(json_object_get(host, "AutoRemove"));
        }
        json_decref(object);
        return fine;
}
