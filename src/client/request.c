/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/clock.h"
#include "client/handle.h"

int lessor_request_new(struct lessor_request **ret)
{
        struct lessor_request *q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        q->body = json_object();
        q->wait_ms = LESSOR_FOR_EVER;
        q->refresh_ms = REFRESH_DEFAULT_MS;
        if (!q->body) {
                free(q);
                return -ENOMEM;
        }
        *ret = q;
        return 0;
}

void lessor_request_free(struct lessor_request *q)
{
        if (!q)
                return;
        json_decref(q->body);
        free(q);
}

struct lessor_request *request_copy(const struct lessor_request *q)
{
        struct lessor_request *copy = malloc(sizeof(*copy));
        if (!copy)
                return NULL;
        *copy = *q;
        copy->body = json_deep_copy(q->body);
        if (!copy->body) {
                free(copy);
                return NULL;
        }
        return copy;
}

static int set(struct lessor_request *q, const char *name, json_t *value)
{
        if (!value)
                return -ENOMEM;
        return json_object_set_new(q->body, name, value) < 0 ? -ENOMEM : 0;
}

static int set_text(struct lessor_request *q, const char *name, const char *text)
{
        if (!text)
                return -EINVAL;
        json_t *value = json_string(text);
        return value ? set(q, name, value) : -EINVAL; /* not UTF-8, most likely */
}

static int set_amount(struct lessor_request *q, const char *name, uint64_t amount)
{
        return amount > INT64_MAX ? -EINVAL : set(q, name, json_integer((json_int_t) amount));
}

int lessor_request_set_size(struct lessor_request *q, const char *text)
{
        return set_text(q, "bytes", text);
}

int lessor_request_set_bytes(struct lessor_request *q, uint64_t bytes)
{
        return set_amount(q, "bytes", bytes);
}

int lessor_request_set_priority(struct lessor_request *q, int priority)
{
        return set(q, "priority", json_integer(priority));
}

int lessor_request_set_for_ms(struct lessor_request *q, uint64_t ms)
{
        if (ms != LESSOR_FOR_EVER)
                return set_amount(q, "for_ms", ms);
        (void) json_object_del(q->body, "for_ms");
        return 0;
}

int lessor_request_set_wait_ms(struct lessor_request *q, uint64_t ms)
{
        q->wait_ms = ms;
        return 0;
}

int lessor_request_set_device(struct lessor_request *q, const char *uuid)
{
        return set_text(q, "device", uuid);
}

int lessor_request_set_gpus(struct lessor_request *q, int n_gpus)
{
        return set(q, "gpus", json_integer(n_gpus));
}

int lessor_request_set_name(struct lessor_request *q, const char *name)
{
        return set_text(q, "name", name);
}

int lessor_request_set_consumer(struct lessor_request *q, const char *consumer)
{
        return set_text(q, "consumer", consumer);
}

int lessor_request_set_exclusive(struct lessor_request *q, bool exclusive)
{
        return set(q, "exclusive", json_boolean(exclusive));
}

int lessor_request_set_managed(struct lessor_request *q, bool managed)
{
        return set(q, "managed", json_boolean(managed));
}

int lessor_request_set_yield_by(struct lessor_request *q, const char *ways)
{
        return set_text(q, "yield_by", ways);
}

int lessor_request_set_kill_at_end(struct lessor_request *q, bool kill)
{
        return set(q, "kill_at_end", json_boolean(kill));
}

int lessor_request_set_kill_left(struct lessor_request *q, bool kill)
{
        return set(q, "kill_left", json_boolean(kill));
}

int lessor_request_set_filler(struct lessor_request *q, bool filler)
{
        return set(q, "filler", json_boolean(filler));
}

int lessor_request_set_no_stop(struct lessor_request *q, bool no_stop)
{
        return set(q, "no_stop", json_boolean(no_stop));
}

int lessor_request_bind_to_process(struct lessor_request *q, int pid)
{
        if (pid < 0)
                return -EINVAL;
        q->bound_to = BOUND_TO_PROCESS;
        q->pid = pid;
        return 0;
}

int lessor_request_bind_to_connection(struct lessor_request *q)
{
        q->bound_to = BOUND_TO_CONNECTION;
        return 0;
}

int lessor_request_bind_to_heartbeat(struct lessor_request *q, uint64_t ttl_ms)
{
        if (ttl_ms > INT64_MAX)
                return -EINVAL;
        q->bound_to = BOUND_TO_HEARTBEAT;
        q->ttl_ms = ttl_ms;
        return 0;
}

int lessor_request_set_collect(struct lessor_request *q, bool collect)
{
        q->leaves_uncollected = !collect;
        return 0;
}

int lessor_request_set_key(struct lessor_request *q, const char *key)
{
        static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        size_t n = key ? strlen(key) : 0;
        if (n >= sizeof(q->key) || (key && (n == 0 || strspn(key, allowed) < n)))
                return -EINVAL;
        (void) snprintf(q->key, sizeof(q->key), "%s", key ? key : "");
        return 0;
}

int lessor_request_set_refresh_ms(struct lessor_request *q, uint64_t ms)
{
        q->refresh_ms = ms < REFRESH_LEAST_MS ? REFRESH_LEAST_MS : ms < REFRESH_DEFAULT_MS ? ms : REFRESH_DEFAULT_MS;
        return 0;
}

int lessor_request_set_field(struct lessor_request *q, const char *name, const char *json)
{
        if (!name)
                return -EINVAL;
        if (!json) {
                (void) json_object_del(q->body, name);
                return 0;
        }
        json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
        return value ? json_object_set_new(q->body, name, value) < 0 ? -EINVAL : 0 : -EINVAL;
}

/* ---- what is sent ---- */

void request_new_key(char key[KEY_TEXT_MAX])
{
        uint64_t bits[2] = { clock_now_ns(), (uint64_t) getpid() }; /* for a kernel that is out of random numbers */
        (void) !getrandom(bits, sizeof(bits), GRND_NONBLOCK);
        (void) snprintf(key, KEY_TEXT_MAX, "%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
}

static json_t *bind_json(const struct lessor_request *q)
{
        if (q->bound_to == BOUND_TO_CONNECTION)
                return json_pack("{s:s}", "to", "connection");
        if (q->bound_to == BOUND_TO_HEARTBEAT)
                return q->ttl_ms > 0 ? json_pack("{s:s, s:I}", "to", "heartbeat", "ttl_ms", (json_int_t) q->ttl_ms)
                                     : json_pack("{s:s}", "to", "heartbeat");
        return json_pack("{s:s, s:i}", "to", "process", "pid", q->pid > 0 ? q->pid : (int) getpid());
}

json_t *request_body(const struct lessor_request *q, const char *mode, uint64_t wait_left_ms)
{
        json_t *body = json_copy(q->body), *bind = bind_json(q);
        if (!body || !bind || json_object_set(body, "bind", bind) < 0) {
                json_decref(bind);
                json_decref(body);
                return NULL;
        }
        json_decref(bind);
        if (mode)
                (void) json_object_set_new(body, "mode", json_string(mode));
        if (mode && strcmp(mode, "now") != 0 && wait_left_ms <= INT64_MAX)
                (void) json_object_set_new(body, "wait_ms", json_integer((json_int_t) wait_left_ms));
        return body;
}
