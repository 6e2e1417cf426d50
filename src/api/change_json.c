/* SPDX-License-Identifier: Apache-2.0 */
#include "api/change_json.h"
#include <string.h>
#include "api/json_text.h"
#include "api/take.h"

static int take_change_priority(const json_t *value, struct change *change, struct problem *p)
{
        change->what |= CHANGE_PRIORITY;
        return take_priority(value, &change->priority, p);
}

/* null: no limit any more. */
static int take_for(const json_t *value, struct change *change, struct problem *p)
{
        change->what |= CHANGE_SLOT;
        return json_is_null(value) ? 0 : take_span_text(value, "for", &change->slot_ms, p);
}

static int take_for_ms(const json_t *value, struct change *change, struct problem *p)
{
        change->what |= CHANGE_SLOT;
        return json_is_null(value) ? 0 : take_span_ms(value, "for_ms", &change->slot_ms, p);
}

static int take_extend(const json_t *value, struct change *change, struct problem *p)
{
        change->what |= CHANGE_EXTEND;
        return take_span_text(value, "extend", &change->slot_ms, p);
}

static int take_extend_ms(const json_t *value, struct change *change, struct problem *p)
{
        change->what |= CHANGE_EXTEND;
        return take_span_ms(value, "extend_ms", &change->slot_ms, p);
}

static int take_pin(const json_t *value, struct change *change, struct problem *p)
{
        if (json_is_boolean(value)) {
                change->what |= json_is_true(value) ? CHANGE_PIN : CHANGE_UNPIN;
                change->pin_ms = CHANGE_PIN_LONGEST;
                return 0;
        }
        if (!json_is_string(value))
                return take_refuse(p, "pin", value, "true, false, or a span such as \"2h\"",
                                   "true pins it for as long as you may");
        change->what |= CHANGE_PIN;
        return take_span_text(value, "pin", &change->pin_ms, p);
}

static const struct {
        const char *name;
        int (*take)(const json_t *value, struct change *change, struct problem *p);
        bool takes_null;
} keys[] = {
        { "priority", take_change_priority, false },
        { "for", take_for, true },
        { "for_ms", take_for_ms, true },
        { "extend", take_extend, false },
        { "extend_ms", take_extend_ms, false },
        { "pin", take_pin, false },
};

static int take_key(const char *name, const json_t *value, struct change *change, struct problem *p)
{
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                if (strcmp(keys[i].name, name) != 0)
                        continue;
                return json_is_null(value) && !keys[i].takes_null ? 0 : keys[i].take(value, change, p);
        }
        return take_refuse(p, name, value, "priority for for_ms extend extend_ms pin",
                           "there is no such field here; check its spelling");
}

int change_json_parse(const char *data, size_t n, struct change *ret, struct problem *reterr)
{
        auto_json *object = json_text_object(data, n, reterr);
        struct change change = { 0 };
        unsigned n_spans = 0;
        const char *name;
        json_t *value;

        if (!object)
                return -1;
        json_object_foreach(object, name, value)
        {
                if (take_key(name, value, &change, reterr) < 0)
                        return -1;
                n_spans += strncmp(name, "for", 3) == 0 || (strncmp(name, "extend", 6) == 0 && !json_is_null(value));
        }
        if (n_spans > 1)
                return problem_field(reterr, "extend", "", 0, "one of for, for_ms, extend, extend_ms",
                                     "leave the others out");
        if (change.what == 0)
                return problem_field(reterr, "priority", "", 0, "one of priority, for, extend, pin",
                                     "say what is to be changed");
        *ret = change;
        return 0;
}
