/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/bus.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"

enum { MESSAGES_AT_ONCE = 64 };

static void arm(struct bus *b);
static void connect_now(struct bus *b);

static const char *name_of(const struct bus *b)
{
        return b->kind == BUS_USER ? "user" : "system";
}

static void free_poll(uv_handle_t *handle)
{
        free(handle);
}

static void drop_poll(struct bus *b)
{
        if (!b->poll)
                return;
        (void) uv_poll_stop(b->poll);
        uv_close((uv_handle_t *) b->poll, free_poll);
        b->poll = NULL;
}

static void on_retry(uv_timer_t *timer)
{
        connect_now(timer->data);
}

static void fall(struct bus *b, int error)
{
        bool was_up = b->up;

        (void) snprintf(b->words, sizeof(b->words), "the %s bus is not to be had: %s", name_of(b), strerror(-error));
        if (was_up || b->retry_ms == 0)
                log_info("event=bus-away bus=%s words=\"%s\"", name_of(b), b->words);
        drop_poll(b);
        sd_bus_close_unref(b->sd);
        b->sd = NULL;
        b->up = false;
        if (b->stopping)
                return;
        b->retry_ms = was_up || b->retry_ms == 0        ? BUS_RETRY_FIRST_MS
                      : b->retry_ms < BUS_RETRY_MOST_MS ? b->retry_ms * 2
                                                        : BUS_RETRY_MOST_MS;
        (void) uv_timer_start(&b->timer, on_retry, b->retry_ms, 0);
        if (was_up)
                b->on_state(b->ctx, false);
}

static void drain(struct bus *b)
{
        int r = 0;

        b->inside = true;
        for (unsigned i = 0; i < MESSAGES_AT_ONCE && b->sd; i++) {
                r = sd_bus_process(b->sd, NULL);
                if (r <= 0)
                        break;
        }
        b->inside = false;
        if (!b->sd)
                return;
        if (r >= 0 && !b->up && sd_bus_is_ready(b->sd) > 0) {
                b->up = true;
                b->words[0] = '\0';
                b->retry_ms = BUS_RETRY_FIRST_MS;
                log_info("event=bus-up bus=%s", name_of(b));
                b->on_state(b->ctx, true);
                if (!b->sd) /* what was asked there could not even be written */
                        return;
        }
        if (r >= 0 && sd_bus_is_open(b->sd) <= 0)
                r = -ENOTCONN;
        if (r < 0)
                fall(b, r);
        else
                arm(b);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
        (void) status;
        (void) events;
        drain(poll->data); /* also of an error: sd-bus finds out what it is */
}

static void on_timer(uv_timer_t *timer)
{
        drain(timer->data);
}

/* What sd-bus waits for, as the loop has it. */
static void arm(struct bus *b)
{
        int wanted = sd_bus_get_events(b->sd);
        uint64_t until_us = UINT64_MAX, now_us = clock_now_ms() * 1000;

        if (wanted < 0 || sd_bus_get_timeout(b->sd, &until_us) < 0) {
                fall(b, -ENOTCONN);
                return;
        }
        int events = ((wanted & POLLIN) ? UV_READABLE : 0) | ((wanted & POLLOUT) ? UV_WRITABLE : 0);
        if (uv_poll_start(b->poll, events, on_poll) != 0) {
                fall(b, -EIO);
                return;
        }
        if (until_us == UINT64_MAX)
                (void) uv_timer_stop(&b->timer);
        else
                (void) uv_timer_start(&b->timer, on_timer, until_us > now_us ? (until_us - now_us) / 1000 + 1 : 0, 0);
}

void bus_touch(struct bus *b)
{
        if (b->sd && !b->inside)
                arm(b);
}

static void connect_now(struct bus *b)
{
        int r = b->kind == BUS_USER ? sd_bus_open_user(&b->sd) : sd_bus_open_system(&b->sd);

        if (r < 0)
                b->sd = NULL;
        b->poll = r < 0 ? NULL : calloc(1, sizeof(*b->poll));
        if (r >= 0 && (!b->poll || uv_poll_init(b->loop, b->poll, sd_bus_get_fd(b->sd)) != 0)) {
                free(b->poll);
                b->poll = NULL;
                r = -ENOMEM;
        }
        if (r < 0) {
                fall(b, r);
                return;
        }
        b->poll->data = b;
        (void) sd_bus_set_method_call_timeout(b->sd, (uint64_t) BUS_CALL_MS * 1000);
        drain(b);
}

void bus_start(struct bus *b, uv_loop_t *loop, enum bus_kind kind, bus_state_fn *on_state, void *ctx)
{
        *b = (struct bus){ .loop = loop, .kind = kind, .on_state = on_state, .ctx = ctx };
        (void) uv_timer_init(loop, &b->timer);
        b->timer.data = b;
        connect_now(b);
}

void bus_stop(struct bus *b)
{
        if (!b->loop)
                return;
        b->stopping = true;
        b->up = false;
        drop_poll(b);
        if (b->sd)
                sd_bus_close_unref(b->sd);
        b->sd = NULL;
        uv_close((uv_handle_t *) &b->timer, NULL);
        b->loop = NULL;
}

bool bus_error_is_silence(const sd_bus_error *e)
{
        return sd_bus_error_has_names(e, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT, SD_BUS_ERROR_DISCONNECTED,
                                      SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                                      "org.freedesktop.DBus.Error.TimedOut", "System.Error.ETIMEDOUT",
                                      "System.Error.ECONNRESET", "System.Error.ENOTCONN") > 0;
}

bool bus_error_is_refusal(const sd_bus_error *e)
{
        return sd_bus_error_has_names(e, SD_BUS_ERROR_ACCESS_DENIED, SD_BUS_ERROR_AUTH_FAILED,
                                      SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED) > 0 ||
               (e && e->name && strncmp(e->name, "org.freedesktop.PolicyKit1.Error.", 33) == 0);
}
