/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "api/json_text.h"
#include "api/lease_json.h"
#include "api/take.h"
#include "model/lease.h"
#include "model/way_out.h"

enum { PERCENT_ALL_MILLI = 100000 };
#define ALLOWED_SLOT "1 ms … 365 days"
/* Two of a series never meet, also where a day has only 23 h and the first of them was late. */
#define BOOKING_DAILY_MAX_MS (UINT64_C(20) * 3600 * 1000)

static int take_bytes(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        ask->request.learned = json_is_string(value) && strcmp(json_string_value(value), "learned") == 0;
        if (ask->request.learned) {
                ask->request.percent_milli = PERCENT_ALL_MILLI; /* where nothing is known */
                return 0;
        }
        return take_amount(value, "bytes", &ask->request.bytes, &ask->request.percent_milli, p);
}

static int take_ask_priority(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_priority(value, &ask->request.priority, p);
}

static int take_for_ms(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_ms(value, "for_ms", &ask->request.slot_ms, p);
}

static int take_for(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_text(value, "for", &ask->request.slot_ms, p);
}

static int take_start(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        ask->books = true;
        return take_moment(value, "start", &ask->start_wall_ms, p);
}

static int take_in(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        ask->books = true;
        return take_span_text(value, "in", &ask->start_in_ms, p);
}

static int take_every(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        ask->request.daily = json_is_string(value) && strcmp(json_string_value(value), "day") == 0;
        return ask->request.daily ? 0 : take_refuse(p, "every", value, "\"day\"", "leave it out for once");
}

static int take_wait_ms(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_ms(value, "wait_ms", &ask->request.wait_ms, p);
}

static int take_wait(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_span_text(value, "wait", &ask->request.wait_ms, p);
}

static int take_mode(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const struct {
                const char *name;
                enum lease_ask_mode mode;
        } modes[] = { { "wait", LEASE_ASK_WAIT }, { "queue", LEASE_ASK_QUEUE }, { "now", LEASE_ASK_NOW } };

        for (size_t i = 0; json_is_string(value) && i < sizeof(modes) / sizeof(modes[0]); i++) {
                if (strcmp(json_string_value(value), modes[i].name) == 0) {
                        ask->mode = modes[i].mode;
                        return 0;
                }
        }
        return take_refuse(p, "mode", value, "wait, queue, now", "leave it out to wait for the grant");
}

static int take_name(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_text(value, "name", ask->request.name, sizeof(ask->request.name),
                         "1 … 63 bytes without control characters", p);
}

static int take_consumer(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_text(value, "consumer", ask->request.consumer, sizeof(ask->request.consumer),
                         "1 … 63 bytes without control characters", p);
}

static int take_device(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_text(value, "device", ask->request.device_uuid, sizeof(ask->request.device_uuid),
                         "a device's UUID or the beginning of one (see /api/devices), or null for any", p);
}

static int take_managed(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "managed", &ask->request.managed, p);
}

static int take_kill_at_end(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "kill_at_end", &ask->request.kill_at_end, p);
}

static int take_kill_left(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "kill_left", &ask->request.kill_left, p);
}

static int take_filler(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "filler", &ask->request.filler, p);
}

static int take_no_stop(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "no_stop", &ask->request.no_stop, p);
}

static int take_exclusive(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "exclusive", &ask->request.exclusive, p);
}

static int take_gpus(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        uint64_t n = 1;
        int r = take_count(value, "gpus", 1, GANG_MAX, "1 to 8", "take several leases where it wants more", &n, p);

        ask->request.n_more = (uint8_t) (n - 1);
        return r;
}

static int take_adopt_pid(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_pid(value, "pid", "name the process that is to come under a lease", &ask->adopt_pid, p);
}

static int take_adopt_cgroup(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        return take_bool(value, "cgroup", &ask->adopt_cgroup, p);
}

static int take_yield_by(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const char allowed[] = "a list of cooperate, checkpoint, release, restart, kill; or text with commas";
        static const char cure[] = "leave it out if it may not be taken back at all";
        struct ways_out ways = { 0 };
        uint32_t bad_at;

        if (json_is_string(value)) {
                if (!ways_out_parse_declared(json_string_value(value), &ways, &bad_at))
                        return take_refuse(p, "yield_by", value, allowed, cure);
                ask->request.ways = ways;
                return 0;
        }
        if (!json_is_array(value))
                return take_refuse(p, "yield_by", value, allowed, cure);

        size_t i;
        json_t *word;
        json_array_foreach(value, i, word)
        {
                if (!json_is_string(word) || strchr(json_string_value(word), ',') ||
                    !ways_out_parse_declared(json_string_value(word), &ways, &bad_at))
                        return take_refuse(p, "yield_by", value, allowed, cure);
        }
        ask->request.ways = ways;
        return 0;
}

static int take_bind(const json_t *value, struct lease_ask *ask, struct problem *p)
{
        static const char allowed[] = "{\"to\":\"process\",\"pid\":N}, {\"to\":\"connection\"}, "
                                      "{\"to\":\"heartbeat\",\"ttl_ms\":60000}";
        static const char cure[] = "leave it out to bind the lease to the calling process";
        struct binding *binding = &ask->request.binding;
        const json_t *pid = NULL, *ttl = NULL;
        const char *to = json_is_object(value) ? json_string_value(json_object_get(value, "to")) : NULL;
        const char *key;
        json_t *inner;

        if (!to)
                return take_refuse(p, "bind", value, allowed, cure);
        json_object_foreach((json_t *) (uintptr_t) value, key, inner)
        {
                if (strcmp(key, "pid") == 0)
                        pid = json_is_null(inner) ? NULL : inner;
                else if (strcmp(key, "ttl_ms") == 0)
                        ttl = json_is_null(inner) ? NULL : inner;
                else if (strcmp(key, "to") != 0)
                        return take_refuse(p, "bind", value, allowed, cure);
        }

        uint64_t n = 0;
        if (strcmp(to, "process") == 0 && !ttl) {
                binding->kind = BINDING_PROCESS;
                if (pid &&
                    take_count(pid, "bind.pid", 1, LEASE_PID_MAX, "1 … 4194304, a living process of the same user",
                               "leave it out for the calling process", &n, p) < 0)
                        return -1;
                ask->bind_pid = (uint32_t) n;
                return 0;
        }
        if (strcmp(to, "connection") == 0 && !pid && !ttl) {
                binding->kind = BINDING_CONNECTION;
                return 0;
        }
        if (strcmp(to, "heartbeat") == 0 && !pid) {
                binding->kind = BINDING_HEARTBEAT;
                binding->ttl_ms = LEASE_TTL_DEFAULT_MS;
                return ttl ? take_count(ttl, "bind.ttl_ms", LEASE_TTL_MIN_MS, LEASE_TTL_MAX_MS,
                                        "1000 … 86400000 (1 s … 1 day)", "leave it out for 60000", &binding->ttl_ms, p)
                           : 0;
        }
        return take_refuse(p, "bind", value, allowed, cure);
}

/* What is asked for, and what may be said then. */
enum { FOR_LEASE = 1, FOR_PLAN = 2, FOR_ADOPT = 4, FOR_ALL = 7 };

static const struct key {
        const char *name;
        int (*take)(const json_t *value, struct lease_ask *ask, struct problem *p);
        unsigned where;
} keys[] = {
        { "bytes", take_bytes, FOR_ALL },
        { "priority", take_ask_priority, FOR_ALL },
        { "for_ms", take_for_ms, FOR_ALL },
        { "for", take_for, FOR_ALL },
        { "mode", take_mode, FOR_LEASE | FOR_PLAN },
        { "start", take_start, FOR_LEASE | FOR_PLAN },
        { "in", take_in, FOR_LEASE | FOR_PLAN },
        { "every", take_every, FOR_LEASE | FOR_PLAN },
        { "wait_ms", take_wait_ms, FOR_LEASE | FOR_PLAN },
        { "wait", take_wait, FOR_LEASE | FOR_PLAN },
        { "device", take_device, FOR_ALL },
        { "name", take_name, FOR_ALL },
        { "consumer", take_consumer, FOR_ALL },
        { "managed", take_managed, FOR_ALL },
        { "yield_by", take_yield_by, FOR_ALL },
        { "filler", take_filler, FOR_LEASE | FOR_PLAN },
        { "no_stop", take_no_stop, FOR_ALL },
        { "kill_at_end", take_kill_at_end, FOR_ALL },
        { "kill_left", take_kill_left, FOR_ALL },
        { "exclusive", take_exclusive, FOR_ALL },
        { "gpus", take_gpus, FOR_LEASE | FOR_PLAN },
        { "bind", take_bind, FOR_LEASE | FOR_PLAN },
        { "pid", take_adopt_pid, FOR_ADOPT },
        { "cgroup", take_adopt_cgroup, FOR_ADOPT },
};

static const struct key *key_by_name(const char *name, unsigned where)
{
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (strcmp(keys[i].name, name) == 0 && (keys[i].where & where))
                        return &keys[i];
        return NULL;
}

static int refuse_unknown(const char *name, const json_t *value, unsigned where, struct problem *p)
{
        char allowed[320] = "";

        for (size_t i = 0, n = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if ((keys[i].where & where) && n < sizeof(allowed))
                        n += (size_t) snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? " " : "", keys[i].name);
        return take_refuse(p, name, value, allowed, "there is no such field here; check its spelling");
}

/* Two fields that say the same thing, or the opposite: nobody knows which was meant. */
static int refuse_pairs(const json_t *object, const struct lease_ask *ask, struct problem *p)
{
        static const char *const pairs[][2] = { { "for", "for_ms" }, { "wait", "wait_ms" }, { "start", "in" } };

        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
                if (take_is_given(object, pairs[i][0]) && take_is_given(object, pairs[i][1]))
                        return take_refuse(p, pairs[i][1], json_object_get(object, pairs[i][1]),
                                           "one of the two fields", "leave one of them out");

        const char *wait = take_is_given(object, "wait") ? "wait" : take_is_given(object, "wait_ms") ? "wait_ms" : NULL;
        if (wait && ask->mode == LEASE_ASK_NOW)
                return take_refuse(p, wait, json_object_get(object, wait), "nothing, with mode now",
                                   "leave it out, or use mode wait");
        if (ask->mode == LEASE_ASK_QUEUE && ask->request.binding.kind == BINDING_CONNECTION)
                return take_refuse(p, "bind", json_object_get(object, "bind"), "process or heartbeat, with mode queue",
                                   "use mode wait, or another binding");
        return 0;
}

/* A booking waits for its time, and for nobody: what it runs under, and what runs, is known when it is collected. */
static int check_booking(const json_t *object, struct lease_ask *ask, struct problem *p)
{
        static const char *const none[] = { "bind", "wait", "wait_ms", "exclusive", "filler" };
        struct request *r = &ask->request;

        if (!ask->books)
                return !r->daily ? 0
                                 : take_refuse(p, "every", json_object_get(object, "every"), "only with start or in",
                                               "say when it begins first");
        for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
                if (take_is_given(object, none[i]) && !json_is_false(json_object_get(object, none[i])))
                        return take_refuse(p, none[i], json_object_get(object, none[i]), "nothing, with start or in",
                                           "leave it out: a booking is nobody's process until it is collected");
        if (take_is_given(object, "mode") && ask->mode != LEASE_ASK_QUEUE)
                return take_refuse(p, "mode", json_object_get(object, "mode"), "queue, with start or in",
                                   "leave it out: it is collected by activate, at its time");
        if (r->slot_ms == 0)
                return problem_field(p, "for", "", 0, ALLOWED_SLOT, "a booking has an end: say how long it is");
        if (r->daily && r->slot_ms > BOOKING_DAILY_MAX_MS)
                return take_refuse(p, take_is_given(object, "for") ? "for" : "for_ms",
                                   json_object_get(object, take_is_given(object, "for") ? "for" : "for_ms"),
                                   "20 h at most, with every day", "make it shorter, or leave every out");
        ask->mode = LEASE_ASK_QUEUE;
        return 0;
}

static int parse(const char *data, size_t n, unsigned where, struct lease_ask *ret, struct problem *reterr)
{
        struct lease_ask ask = { .request = { .priority = PRIORITY_NORMAL, .binding = { .kind = BINDING_PROCESS } } };
        auto_json *object = json_text_object(data, n, reterr);
        const char *name;
        json_t *value;

        if (!object)
                return -1;
        json_object_foreach(object, name, value)
        {
                const struct key *key = key_by_name(name, where);
                if (!key)
                        return refuse_unknown(name, value, where, reterr);
                if (!json_is_null(value) && key->take(value, &ask, reterr) < 0)
                        return -1;
        }
        if (refuse_pairs(object, &ask, reterr) < 0 || check_booking(object, &ask, reterr) < 0)
                return -1;
        if (ask.request.exclusive && ask.request.percent_milli != 0 && ask.request.percent_milli != PERCENT_ALL_MILLI)
                return take_refuse(reterr, "bytes", json_object_get(object, "bytes"),
                                   "an amount or all, with exclusive", "leave it out: exclusive is all of a device");
        if (ask.request.learned && (ask.request.exclusive || where == FOR_ADOPT))
                return take_refuse(reterr, "bytes", json_object_get(object, "bytes"),
                                   where == FOR_ADOPT ? TAKE_ALLOWED_SIZE : "an amount or all, with exclusive",
                                   where == FOR_ADOPT ? "leave it out: then it is what the process uses now"
                                                      : "leave it out: exclusive is all of a device");
        if (where == FOR_ADOPT && !take_is_given(object, "pid"))
                return problem_field(reterr, "pid", "", 0, "a process",
                                     "name the process that is to come under a lease");
        if (where != FOR_ADOPT && !take_is_given(object, "bytes") && !ask.request.exclusive)
                return problem_field(reterr, "bytes", "", 0, TAKE_ALLOWED_SIZE ", \"learned\"",
                                     "say how much memory it needs, or exclusive for all of a device");

        if (ask.request.filler && take_is_given(object, "priority") && ask.request.priority != PRIORITY_FILLER)
                return take_refuse(reterr, "priority", json_object_get(object, "priority"), "5, with filler",
                                   "leave one of the two out");
        if (ask.request.filler)
                ask.request.priority = PRIORITY_FILLER;

        ask.request.adopt = where == FOR_ADOPT;
        ask.request.no_wait = ask.mode == LEASE_ASK_NOW;
        ask.request.collected = ask.mode != LEASE_ASK_QUEUE;
        *ret = ask;
        return 0;
}

int lease_json_parse(const char *data, size_t n, struct lease_ask *ret, struct problem *reterr)
{
        return parse(data, n, FOR_LEASE, ret, reterr);
}

int plan_json_parse(const char *data, size_t n, struct lease_ask *ret, struct problem *reterr)
{
        return parse(data, n, FOR_PLAN, ret, reterr);
}

int adopt_json_parse(const char *data, size_t n, struct lease_ask *ret, struct problem *reterr)
{
        return parse(data, n, FOR_ADOPT, ret, reterr);
}

int activate_json_parse(const char *data, size_t n, struct activate_ask *ret, struct problem *reterr)
{
        struct activate_ask ask = { 0 };
        uint64_t pid = 0;
        const char *name;
        json_t *value;

        if (n == 0) {
                *ret = ask;
                return 0;
        }
        auto_json *object = json_text_object(data, n, reterr);
        if (!object)
                return -1;
        json_object_foreach(object, name, value)
        {
                if (strcmp(name, "pid") == 0) {
                        if (!json_is_null(value) &&
                            take_count(value, "pid", 1, LEASE_PID_MAX, "1 … 4194304, a living process of the same user",
                                       "leave it out if nothing runs yet", &pid, reterr) < 0)
                                return -1;
                } else if (strcmp(name, "cgroup_id") == 0) {
                        if (!json_is_null(value) &&
                            take_count(value, "cgroup_id", 1, INT64_MAX, "1 … 2^63-1, the inode of the cgroup's folder",
                                       "leave it out if the command has no cgroup of its own", &ask.cgroup_id,
                                       reterr) < 0)
                                return -1;
                } else {
                        return take_refuse(reterr, name, value, "pid, cgroup_id",
                                           "there is no such field here; check its spelling");
                }
        }
        ask.pid = (uint32_t) pid;
        *ret = ask;
        return 0;
}

int empty_json_parse(const char *data, size_t n, struct problem *reterr)
{
        if (n == 0)
                return 0;

        auto_json *object = json_text_object(data, n, reterr);
        if (!object)
                return -1;
        const char *name = json_object_iter_key(json_object_iter(object));
        if (name)
                return take_refuse(reterr, name, json_object_get(object, name), "nothing", "send no body, or {}");
        return 0;
}
