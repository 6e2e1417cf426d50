/* SPDX-License-Identifier: Apache-2.0 */
#include "api/park_json.h"
#include <string.h>
#include "api/json_text.h"
#include "api/take.h"

struct key {
        const char *name;
        int (*take)(const json_t *value, const char *name, struct park_call *call, struct problem *p);
};

static int take_for(const json_t *value, const char *name, struct park_call *call, struct problem *p)
{
        return take_span_text(value, name, &call->for_ms, p);
}

static int take_for_ms(const json_t *value, const char *name, struct park_call *call, struct problem *p)
{
        return take_span_ms(value, name, &call->for_ms, p);
}

static int take_rehearse(const json_t *value, const char *name, struct park_call *call, struct problem *p)
{
        bool rehearse;
        if (take_bool(value, name, &rehearse, p) < 0)
                return -1;
        call->what = rehearse ? PARK_CALL_REHEARSE : PARK_CALL_PARK;
        return 0;
}

static int take_keep_alive(const json_t *value, const char *name, struct park_call *call, struct problem *p)
{
        return take_span_text(value, name, &call->keep_alive_ms, p);
}

static int take_keep_alive_ms(const json_t *value, const char *name, struct park_call *call, struct problem *p)
{
        return take_span_ms(value, name, &call->keep_alive_ms, p);
}

static const struct key park_keys[] = {
        { "for", take_for }, { "for_ms", take_for_ms }, { "rehearse", take_rehearse }, { 0 }
};
static const struct key idle_keys[] = { { "keep_alive", take_keep_alive },
                                        { "keep_alive_ms", take_keep_alive_ms },
                                        { 0 } };

static const struct key *key_by_name(const struct key *keys, const char *name)
{
        for (; keys->name; keys++)
                if (strcmp(keys->name, name) == 0)
                        return keys;
        return NULL;
}

/* @span, @span_ms: two names of one thing. */
static int refuse_both(const json_t *object, const char *span, const char *span_ms, struct problem *p)
{
        if (!take_is_given(object, span) || !take_is_given(object, span_ms))
                return 0;
        return take_refuse(p, span_ms, json_object_get(object, span_ms), "one of the two fields",
                           "leave one of them out");
}

static int read_keys(const json_t *object, const struct key *keys, const char *allowed, struct park_call *call,
                     struct problem *p)
{
        const char *name;
        json_t *value;

        json_object_foreach((json_t *) (uintptr_t) object, name, value)
        {
                const struct key *key = key_by_name(keys, name);
                if (!key)
                        return take_refuse(p, name, value, allowed, "there is no such field here; check its spelling");
                if (!json_is_null(value) && key->take(value, name, call, p) < 0)
                        return -1;
        }
        return 0;
}

int park_json_parse(const char *data, size_t n, struct park_call *ret, struct problem *reterr)
{
        struct park_call call = { .what = PARK_CALL_PARK };

        if (n > 0) {
                auto_json *object = json_text_object(data, n, reterr);
                if (!object || read_keys(object, park_keys, "for for_ms rehearse", &call, reterr) < 0 ||
                    refuse_both(object, "for", "for_ms", reterr) < 0)
                        return -1;
                if (call.what == PARK_CALL_REHEARSE && call.for_ms != 0)
                        return take_refuse(reterr, "rehearse", json_object_get(object, "rehearse"),
                                           "false, where for is given",
                                           "leave for out: a rehearsal comes back at once");
        }
        *ret = call;
        return 0;
}

int idle_json_parse(const char *data, size_t n, struct park_call *ret, struct problem *reterr)
{
        struct park_call call = { .what = PARK_CALL_IDLE };

        if (n > 0) {
                auto_json *object = json_text_object(data, n, reterr);
                if (!object || read_keys(object, idle_keys, "keep_alive keep_alive_ms", &call, reterr) < 0 ||
                    refuse_both(object, "keep_alive", "keep_alive_ms", reterr) < 0)
                        return -1;
        }
        *ret = call;
        return 0;
}
