/* SPDX-License-Identifier: Apache-2.0 */
#include "api/enforce_json.h"
#include <string.h>
#include "api/json_text.h"
#include "api/take.h"
#include "base/number.h"

#define MODES "\"observe\", \"warn\" or \"enforce\""
#define APPROVE_FIELDS "pid for for_ms here"
#define SPELLING "there is no such field here; check its spelling"

/* A required field; NULL with the problem. */
static const json_t *needed(const json_t *object, const char *name, const char *allowed, struct problem *p)
{
        if (take_is_given(object, name))
                return json_object_get(object, name);
        (void) take_refuse(p, name, NULL, allowed, "say which");
        return NULL;
}

/* Nothing but @names (with blanks around each). */
static int only(const json_t *object, const char *names, const char *allowed, struct problem *p)
{
        const char *name;
        json_t *value;

        json_object_foreach((json_t *) (uintptr_t) object, name, value)
        {
                size_t n = strlen(name);
                const char *at = n != 0 ? strstr(names, name) : NULL;
                while (at && !(at > names && at[-1] == ' ' && at[n] == ' '))
                        at = strstr(at + 1, name);
                if (!at)
                        return take_refuse(p, name, value, allowed, SPELLING);
        }
        return 0;
}

int enforce_json_parse(const char *data, size_t n, struct enforce_call *ret, struct problem *p)
{
        enum enforce_mode mode;
        auto_json *object = json_text_object(data, n, p);

        if (!object || only(object, " mode ", "mode", p) < 0)
                return -1;
        const json_t *value = needed(object, "mode", MODES, p);
        if (!value)
                return -1;
        if (!json_is_string(value) || !enforce_mode_parse(json_string_value(value), &mode))
                return take_refuse(p, "mode", value, MODES, "write one of them");
        *ret = (struct enforce_call){ .what = ENFORCE_CALL_MODE, .mode = (uint8_t) mode };
        return 0;
}

int approve_json_parse(const char *data, size_t n, struct enforce_call *ret, uint32_t *ret_pid, struct problem *p)
{
        struct enforce_call call = { .what = ENFORCE_CALL_APPROVE };
        auto_json *object = json_text_object(data, n, p);

        if (!object || only(object, " " APPROVE_FIELDS " ", APPROVE_FIELDS, p) < 0)
                return -1;
        const json_t *pid = needed(object, "pid", "a process id", p);
        if (!pid || take_pid(pid, "pid", "name a process that runs", ret_pid, p) < 0)
                return -1;
        if (take_is_given(object, "for") && take_is_given(object, "for_ms"))
                return take_refuse(p, "for_ms", json_object_get(object, "for_ms"), "one of the two fields",
                                   "leave one of them out");
        if (take_is_given(object, "for") && take_span_text(json_object_get(object, "for"), "for", &call.for_ms, p) < 0)
                return -1;
        if (take_is_given(object, "for_ms") &&
            take_span_ms(json_object_get(object, "for_ms"), "for_ms", &call.for_ms, p) < 0)
                return -1;
        if (take_is_given(object, "here") && take_bool(json_object_get(object, "here"), "here", &call.here, p) < 0)
                return -1;
        *ret = call;
        return 0;
}

int unapprove_json_parse(const char *data, size_t n, struct enforce_call *ret, struct problem *p)
{
        auto_json *object = json_text_object(data, n, p);
        const char *allowed = "the id of an approval, such as \"A3\"";
        uint64_t id;

        if (!object || only(object, " approval ", "approval", p) < 0)
                return -1;
        const json_t *value = needed(object, "approval", allowed, p);
        if (!value)
                return -1;
        const char *text = json_is_string(value) ? json_string_value(value) : "";
        if (text[0] != 'A' || parse_u64("approval", text + 1, 1, INT64_MAX, &id, NULL) < 0)
                return take_refuse(p, "approval", value, allowed, "see /api/approvals");
        *ret = (struct enforce_call){ .what = ENFORCE_CALL_UNAPPROVE, .approval_id = id };
        return 0;
}
