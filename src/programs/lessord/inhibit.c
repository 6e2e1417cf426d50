/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/inhibit.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

#define LOGIND "org.freedesktop.login1"
#define LOGIND_PATH "/org/freedesktop/login1"
#define MANAGER LOGIND ".Manager"

static void let_go(struct inhibit *h)
{
        if (h->fd >= 0)
                (void) close(h->fd);
        h->fd = -1;
}

static const char *name_of(unsigned what)
{
        return what == PAUSE_SLEEP ? "sleep" : "shutdown";
}

static void tell(struct inhibit *h, enum pause_what what, bool thaws)
{
        struct input input = { .kind = INPUT_PAUSE, .pause = { .what = (uint8_t) what, .thaws = thaws } };

        h->host.submit(h->host.ctx, &input);
}

/* ---- the lock ---- */

static int on_taken(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct inhibit *h = userdata;
        const char *sender = sd_bus_message_get_sender(m);
        int fd = -1;

        (void) error;
        h->taking = sd_bus_slot_unref(h->taking);
        if (sd_bus_message_is_method_error(m, NULL)) {
                const sd_bus_error *e = sd_bus_message_get_error(m);
                if (bus_error_is_silence(e))
                        (void) snprintf(h->words, sizeof(h->words), "there is no logind that answers");
                else
                        (void) snprintf(h->words, sizeof(h->words),
                                        "logind does not let sleep wait for lessord: %.100s",
                                        e->message ? e->message : e->name);
        } else if (sd_bus_message_read_basic(m, 'h', &fd) <= 0 || (fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0) {
                (void) snprintf(h->words, sizeof(h->words), "logind's answer is not understood");
        } else {
                let_go(h);
                h->fd = fd;
                h->words[0] = '\0';
                (void) snprintf(h->peer, sizeof(h->peer), "%s", sender ? sender : "");
                log_info("event=sleep-waits words=\"sleep and shutdown wait until memory that is on its way has "
                         "arrived\"");
                return 0;
        }
        log_info("event=sleep-does-not-wait words=\"%s\"", h->words);
        return 0;
}

static void take(struct inhibit *h)
{
        if (h->taking || h->fd >= 0 || !h->bus->up)
                return;
        if (sd_bus_call_method_async(h->bus->sd, &h->taking, LOGIND, LOGIND_PATH, MANAGER, "Inhibit", on_taken, h,
                                     "ssss", "sleep:shutdown", "lessor",
                                     "memory that is on its way off a GPU, or back, arrives first", "delay") < 0)
                h->taking = NULL;
        bus_touch(h->bus);
}

/* ---- the pause ---- */

static void on_look(uv_timer_t *timer)
{
        struct inhibit *h = timer->data;
        uint64_t for_ms = uv_now(timer->loop) - h->began_ms;
        bool ready =
                h->host.ready(h->host.ctx, (enum pause_what) h->pausing) && (!h->thaws || for_ms >= INHIBIT_THAW_MS);

        if (!ready && for_ms < INHIBIT_MOST_MS)
                return;
        (void) uv_timer_stop(&h->timer);
        log_line(ready ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "event=may-%s after_ms=%" PRIu64 " arrived=%d",
                 name_of(h->pausing), for_ms, ready);
        let_go(h);
}

static void begin(struct inhibit *h, enum pause_what what)
{
        log_info("event=before-%s", name_of(what));
        h->pausing = (uint8_t) what;
        h->thaws = what == PAUSE_SHUTDOWN || h->host.thaws_before_sleep(h->host.ctx);
        h->began_ms = uv_now(h->timer.loop);
        tell(h, what, h->thaws);
        (void) uv_timer_start(&h->timer, on_look, INHIBIT_LOOK_MS, INHIBIT_LOOK_MS);
}

static void end(struct inhibit *h)
{
        if (h->pausing == PAUSE_NONE)
                return;
        log_info("event=after-%s", name_of(h->pausing));
        h->pausing = PAUSE_NONE;
        (void) uv_timer_stop(&h->timer);
        tell(h, PAUSE_NONE, false);
}

static int on_prepare(struct inhibit *h, sd_bus_message *m, enum pause_what what)
{
        const char *sender = sd_bus_message_get_sender(m);
        int begins;

        if (!sender || strcmp(sender, h->peer) != 0 || sd_bus_message_read_basic(m, 'b', &begins) <= 0)
                return 0; /* anybody may send a signal by that name */
        if (begins) {
                begin(h, what);
        } else {
                end(h);
                let_go(h);
                take(h);
        }
        return 0;
}

static int on_sleep(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        (void) error;
        return on_prepare(userdata, m, PAUSE_SLEEP);
}

static int on_shutdown(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        (void) error;
        return on_prepare(userdata, m, PAUSE_SHUTDOWN);
}

/* ---- logind, and the bus ---- */

/* logind was started anew, and knows of no lock; or it is gone, and nobody will tell that the machine is awake. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct inhibit *h = userdata;
        const char *name, *before, *after;

        (void) error;
        if (sd_bus_message_read(m, "sss", &name, &before, &after) < 0 || strcmp(name, LOGIND) != 0)
                return 0;
        let_go(h);
        if (after[0] == '\0') {
                (void) snprintf(h->words, sizeof(h->words), "there is no logind");
                h->peer[0] = '\0';
                end(h);
                return 0;
        }
        take(h);
        return 0;
}

void inhibit_bus_changed(struct inhibit *h, bool up)
{
        sd_bus *sd = h->bus->sd;

        if (up) {
                (void) sd_bus_match_signal_async(sd, &h->sleep, LOGIND, LOGIND_PATH, MANAGER, "PrepareForSleep",
                                                 on_sleep, NULL, h);
                (void) sd_bus_match_signal_async(sd, &h->shutdown, LOGIND, LOGIND_PATH, MANAGER, "PrepareForShutdown",
                                                 on_shutdown, NULL, h);
                (void) sd_bus_add_match_async(
                        sd, &h->owner,
                        "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                        "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" LOGIND "'",
                        on_owner, NULL, h);
                take(h);
                return;
        }
        h->sleep = sd_bus_slot_unref(h->sleep);
        h->shutdown = sd_bus_slot_unref(h->shutdown);
        h->owner = sd_bus_slot_unref(h->owner);
        h->taking = sd_bus_slot_unref(h->taking);
        let_go(h);
        h->words[0] = '\0';
        end(h); /* nobody would say when it is over */
}

const char *inhibit_words(const struct inhibit *h)
{
        if (h->fd >= 0)
                return "";
        if (!h->bus->up && h->bus->words[0])
                return h->bus->words;
        return h->words[0] ? h->words : "logind has not answered yet";
}

void inhibit_init(struct inhibit *h, struct bus *bus, const struct inhibit_host *host)
{
        *h = (struct inhibit){ .bus = bus, .host = *host, .fd = -1 };
        (void) uv_timer_init(bus->loop, &h->timer);
        h->timer.data = h;
}

void inhibit_stop(struct inhibit *h)
{
        h->sleep = sd_bus_slot_unref(h->sleep);
        h->shutdown = sd_bus_slot_unref(h->shutdown);
        h->owner = sd_bus_slot_unref(h->owner);
        h->taking = sd_bus_slot_unref(h->taking);
        let_go(h);
        uv_close((uv_handle_t *) &h->timer, NULL);
}
