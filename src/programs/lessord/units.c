/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/units.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define MANAGER SYSTEMD ".Manager"

enum { PATH_SIZE = 256, WORD_SIZE = 32, LOOK_AGAIN_MS = 100 };

enum phase {
        PHASE_LOADING, /* its object, and with it what it is */
        PHASE_BEFORE,  /* its state */
        PHASE_CALLING, /* StopUnit or StartUnit */
        PHASE_JOB,     /* until its job is removed */
        PHASE_AFTER,   /* its state, as long as it is between two */
        PHASE_PROCESS, /* its main process */
};

struct unit_order {
        struct units *units;
        uint64_t order_id, lease_id; /* order_id 0: nobody asked, somebody else moved it */
        enum manager_verb verb;
        enum phase phase;
        sd_bus_slot *slot; /* the call that is out */
        uv_timer_t timer;
        uint64_t deadline_ms;
        char name[MANAGER_NAME_MAX];
        char path[PATH_SIZE];
        char job[PATH_SIZE];     /* "" = not known yet */
        char removed[PATH_SIZE]; /* a job of this unit that was removed before ours was named */
        char result[WORD_SIZE];  /* of ours: "done" … */
        char state[WORD_SIZE];   /* ActiveState */
        char load[WORD_SIZE];    /* LoadState */
        bool can_start, can_stop, transient;
};

static void look(struct unit_order *o, enum phase phase);

/* ---- the end of an order ---- */

static void on_closed(uv_handle_t *handle)
{
        free(handle->data);
}

static void forget(struct unit_order *o)
{
        for (unsigned i = 0; i < UNITS_MAX; i++)
                if (o->units->orders[i] == o)
                        o->units->orders[i] = NULL;
        o->slot = sd_bus_slot_unref(o->slot);
        uv_close((uv_handle_t *) &o->timer, on_closed);
}

static void finish(struct unit_order *o, enum outcome outcome, enum hand_why why, const struct manager_outcome *runs)
{
        struct units *u = o->units;
        struct manager_outcome out = runs ? *runs : (struct manager_outcome){ 0 };

        out.order_id = o->order_id;
        out.lease_id = o->lease_id;
        out.outcome = (uint8_t) outcome;
        out.why = (uint8_t) why;
        if (o->order_id != 0)
                log_info("event=unit-%s unit=%s order=%" PRIu64 " result=%s why=%s job=%s state=%s",
                         manager_verb_name(o->verb), o->name, o->order_id, outcome_name(outcome), hand_why_name(why),
                         o->result[0] ? o->result : "-", o->state[0] ? o->state : "-");
        forget(o);
        u->host.submit(u->host.ctx, &out);
}

/* Nobody asked: there is nothing to answer. */
static bool is_watch(const struct unit_order *o)
{
        return o->order_id == 0;
}

/* Was anything asked for that may be carried out? */
static bool may_be_done(const struct unit_order *o)
{
        return o->phase >= PHASE_CALLING;
}

static void no_answer(struct unit_order *o)
{
        if (is_watch(o))
                forget(o);
        else if (may_be_done(o))
                finish(o, OUTCOME_FAILED, HAND_WHY_LOST, NULL);
        else
                finish(o, OUTCOME_BLOCKED, HAND_WHY_MANAGER_AWAY, NULL);
}

/* Something that was asked was answered by an error. */
static void on_error(struct unit_order *o, const sd_bus_error *e)
{
        log_info("event=unit-error unit=%s order=%" PRIu64 " error=%s", o->name, o->order_id, e->name ? e->name : "?");
        if (is_watch(o))
                forget(o);
        else if (bus_error_is_silence(e))
                no_answer(o);
        else if (o->phase > PHASE_CALLING)
                finish(o, OUTCOME_FAILED, HAND_WHY_LOST, NULL);
        else if (bus_error_is_refusal(e))
                finish(o, OUTCOME_BLOCKED, HAND_WHY_FORBIDDEN, NULL);
        else if (o->verb == MANAGER_STOP) /* nothing was stopped */
                finish(o, OUTCOME_BLOCKED, HAND_WHY_MANAGER_FAILED, NULL);
        else
                finish(o, OUTCOME_FAILED, HAND_WHY_MANAGER_FAILED, NULL);
}

/* ---- time ---- */

static void on_timer(uv_timer_t *timer)
{
        struct unit_order *o = timer->data;

        if (uv_now(timer->loop) >= o->deadline_ms)
                no_answer(o);
        else
                look(o, PHASE_AFTER);
}

static void wait_for(struct unit_order *o, uint64_t ms)
{
        uint64_t now_ms = uv_now(o->timer.loop), left_ms = o->deadline_ms > now_ms ? o->deadline_ms - now_ms : 0;

        (void) uv_timer_start(&o->timer, on_timer, ms < left_ms ? ms : left_ms, 0);
}

/* ---- asking ---- */

/* The answer goes to @handler; a call that cannot even be queued is one that nobody answered. */
static bool asked(struct unit_order *o, int r)
{
        if (r >= 0) {
                wait_for(o, UINT64_MAX);
                bus_touch(o->units->bus);
                return true;
        }
        o->slot = NULL;
        no_answer(o);
        return false;
}

static void copy_word(char *to, size_t size, const char *from)
{
        size_t n = strcspn(from, "\n\t \"");

        (void) snprintf(to, size, "%.*s", (int) (n < size ? n : size - 1), from);
}

/* One property of a{sv}; others are skipped. */
static int read_property(struct unit_order *o, sd_bus_message *m, uint32_t *ret_pid)
{
        static const struct {
                const char *name;
                size_t at, size;
        } words[] = {
                { "LoadState", offsetof(struct unit_order, load), WORD_SIZE },
                { "ActiveState", offsetof(struct unit_order, state), WORD_SIZE },
        };
        static const struct {
                const char *name;
                size_t at;
        } flags[] = {
                { "CanStart", offsetof(struct unit_order, can_start) },
                { "CanStop", offsetof(struct unit_order, can_stop) },
                { "Transient", offsetof(struct unit_order, transient) },
        };
        const char *name, *text;
        int flag, r;

        r = sd_bus_message_read_basic(m, 's', &name);
        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (strcmp(name, words[i].name) == 0) {
                        r = sd_bus_message_read(m, "v", "s", &text);
                        if (r > 0)
                                copy_word((char *) o + words[i].at, words[i].size, text);
                        return r;
                }
        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
                if (strcmp(name, flags[i].name) == 0) {
                        r = sd_bus_message_read(m, "v", "b", &flag);
                        if (r > 0)
                                *(bool *) ((char *) o + flags[i].at) = flag != 0;
                        return r;
                }
        if (strcmp(name, "MainPID") == 0)
                return sd_bus_message_read(m, "v", "u", ret_pid);
        return sd_bus_message_skip(m, "v");
}

static int read_properties(struct unit_order *o, sd_bus_message *m, uint32_t *ret_pid)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_property(o, m, ret_pid);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r;
}

static bool is_word(const char *word, const char *const *list)
{
        for (; *list; list++)
                if (strcmp(word, *list) == 0)
                        return true;
        return false;
}

static bool is_down(const struct unit_order *o)
{
        return is_word(o->state, (const char *const[]){ "inactive", "failed", NULL });
}

static bool is_running(const struct unit_order *o)
{
        return is_word(o->state, (const char *const[]){ "active", "reloading", NULL });
}

/* ---- after ---- */

static int on_process(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct unit_order *o = userdata;
        struct manager_outcome runs = { 0 };
        uint32_t pid = 0;

        (void) error;
        o->slot = sd_bus_slot_unref(o->slot);
        if (sd_bus_message_is_method_error(m, NULL)) {
                on_error(o, sd_bus_message_get_error(m));
                return 0;
        }
        bool known = read_properties(o, m, &pid) >= 0 && pid != 0 &&
                     o->units->host.identify(o->units->host.ctx, pid, o->name, &runs);
        if (is_watch(o)) {
                if (known)
                        finish(o, OUTCOME_DONE, HAND_WHY_NONE, &runs);
                else
                        forget(o);
        } else if (o->verb == MANAGER_START) {
                finish(o, known ? OUTCOME_DONE : OUTCOME_FAILED, known ? HAND_WHY_NONE : HAND_WHY_MANAGER_FAILED,
                       &runs);
        } else { /* it was to be stopped, and runs */
                bool by_others = strcmp(o->result, "done") == 0 || strcmp(o->result, "canceled") == 0;
                finish(o, OUTCOME_FAILED, by_others ? HAND_WHY_RUNS_AGAIN : HAND_WHY_MANAGER_FAILED, &runs);
        }
        return 0;
}

static void ask_process(struct unit_order *o)
{
        o->phase = PHASE_PROCESS;
        (void) asked(o, sd_bus_call_method_async(o->units->bus->sd, &o->slot, SYSTEMD, o->path,
                                                 "org.freedesktop.DBus.Properties", "GetAll", on_process, o, "s",
                                                 SYSTEMD ".Service"));
}

static void judge(struct unit_order *o)
{
        if (is_running(o))
                ask_process(o);
        else if (is_watch(o))
                forget(o);
        else if (!is_down(o))
                wait_for(o, LOOK_AGAIN_MS); /* on its way: activating, deactivating */
        else if (o->verb == MANAGER_STOP)
                finish(o, OUTCOME_DONE, HAND_WHY_NONE, NULL);
        else
                finish(o, OUTCOME_FAILED, HAND_WHY_MANAGER_FAILED, NULL);
}

/* ---- the job ---- */

static void job_is_over(struct unit_order *o, const char *result)
{
        copy_word(o->result, sizeof(o->result), result);
        look(o, PHASE_AFTER);
}

static int on_called(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct unit_order *o = userdata;
        const char *job;

        (void) error;
        o->slot = sd_bus_slot_unref(o->slot);
        if (sd_bus_message_is_method_error(m, NULL)) {
                on_error(o, sd_bus_message_get_error(m));
                return 0;
        }
        o->phase = PHASE_JOB;
        if (sd_bus_message_read_basic(m, 'o', &job) <= 0 || strlen(job) >= sizeof(o->job)) {
                look(o, PHASE_AFTER); /* whatever it is called: the state tells */
                return 0;
        }
        (void) snprintf(o->job, sizeof(o->job), "%s", job);
        if (strcmp(o->job, o->removed) == 0)
                look(o, PHASE_AFTER);
        else
                wait_for(o, UINT64_MAX);
        return 0;
}

static void call(struct unit_order *o)
{
        o->phase = PHASE_CALLING;
        (void) asked(o, sd_bus_call_method_async(o->units->bus->sd, &o->slot, SYSTEMD, SYSTEMD_PATH, MANAGER,
                                                 o->verb == MANAGER_STOP ? "StopUnit" : "StartUnit", on_called, o, "ss",
                                                 o->name, "replace"));
}

static void begin_watch(struct units *u, const char *name, uint64_t lease_id);

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct units *u = userdata;
        const char *job, *unit, *result, *sender = sd_bus_message_get_sender(m);
        uint32_t id;
        bool ours = false;

        (void) error;
        if (!sender || strcmp(sender, u->peer) != 0 || sd_bus_message_read(m, "uoss", &id, &job, &unit, &result) < 0)
                return 0;
        for (unsigned i = 0; i < UNITS_MAX; i++) {
                struct unit_order *o = u->orders[i];
                if (!o || strcmp(o->name, unit) != 0)
                        continue;
                ours = true;
                if (o->phase == PHASE_JOB && strcmp(o->job, job) == 0) {
                        job_is_over(o, result);
                } else if (o->phase == PHASE_CALLING) {
                        (void) snprintf(o->removed, sizeof(o->removed), "%s", job);
                        copy_word(o->result, sizeof(o->result), result);
                }
        }
        uint64_t lease_id = ours ? 0 : u->host.lease_of(u->host.ctx, unit);
        if (lease_id != 0)
                begin_watch(u, unit, lease_id);
        return 0;
}

/* ---- before ---- */

static void go_on(struct unit_order *o)
{
        if (is_watch(o)) {
                judge(o);
                return;
        }
        if (o->verb == MANAGER_STOP && is_down(o)) {
                finish(o, OUTCOME_DONE, HAND_WHY_NONE, NULL);
                return;
        }
        if (o->verb == MANAGER_STOP &&
            (strcmp(o->load, "loaded") != 0 || !o->can_start || !o->can_stop || o->transient)) {
                finish(o, OUTCOME_BLOCKED, HAND_WHY_NO_WAY_BACK, NULL);
                return;
        }
        call(o);
}

static int on_state(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct unit_order *o = userdata;
        uint32_t pid;

        (void) error;
        o->slot = sd_bus_slot_unref(o->slot);
        if (sd_bus_message_is_method_error(m, NULL))
                on_error(o, sd_bus_message_get_error(m));
        else if (read_properties(o, m, &pid) < 0)
                no_answer(o);
        else if (o->phase == PHASE_BEFORE)
                go_on(o);
        else
                judge(o);
        return 0;
}

static void look(struct unit_order *o, enum phase phase)
{
        o->phase = phase;
        (void) asked(o, sd_bus_call_method_async(o->units->bus->sd, &o->slot, SYSTEMD, o->path,
                                                 "org.freedesktop.DBus.Properties", "GetAll", on_state, o, "s",
                                                 SYSTEMD ".Unit"));
}

static int on_loaded(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct unit_order *o = userdata;
        const char *path, *sender = sd_bus_message_get_sender(m);

        (void) error;
        o->slot = sd_bus_slot_unref(o->slot);
        if (sd_bus_message_is_method_error(m, NULL)) {
                on_error(o, sd_bus_message_get_error(m));
        } else if (sd_bus_message_read_basic(m, 'o', &path) <= 0 || strlen(path) >= sizeof(o->path)) {
                no_answer(o);
        } else {
                (void) snprintf(o->path, sizeof(o->path), "%s", path);
                (void) snprintf(o->units->peer, sizeof(o->units->peer), "%s", sender ? sender : "");
                look(o, PHASE_BEFORE);
        }
        return 0;
}

static struct unit_order *make(struct units *u, const char *name, uint64_t lease_id)
{
        for (unsigned i = 0; i < UNITS_MAX; i++) {
                if (u->orders[i])
                        continue;
                struct unit_order *o = calloc(1, sizeof(*o));
                if (!o)
                        return NULL;
                o->units = u;
                o->lease_id = lease_id;
                (void) snprintf(o->name, sizeof(o->name), "%s", name);
                (void) uv_timer_init(u->bus->loop, &o->timer);
                o->timer.data = o;
                o->deadline_ms = uv_now(u->bus->loop) + UNITS_DEADLINE_MS;
                u->orders[i] = o;
                return o;
        }
        return NULL;
}

static void load(struct unit_order *o)
{
        o->phase = PHASE_LOADING;
        (void) asked(o, sd_bus_call_method_async(o->units->bus->sd, &o->slot, SYSTEMD, SYSTEMD_PATH, MANAGER,
                                                 "LoadUnit", on_loaded, o, "s", o->name));
}

static void begin_watch(struct units *u, const char *name, uint64_t lease_id)
{
        struct unit_order *o = make(u, name, lease_id);

        if (o)
                load(o);
}

static int on_subscribed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        (void) userdata;
        (void) error;
        if (sd_bus_message_is_method_error(m, NULL))
                log_info("event=units-not-watched words=\"%s\"", sd_bus_message_get_error(m)->message);
        return 0;
}

/* Not before the first order: each job of the machine would wake us. */
static void listen_for_jobs(struct units *u)
{
        if (u->jobs)
                return;
        if (sd_bus_match_signal_async(u->bus->sd, &u->jobs, SYSTEMD, SYSTEMD_PATH, MANAGER, "JobRemoved",
                                      on_job_removed, NULL, u) < 0)
                u->jobs = NULL;
        (void) sd_bus_call_method_async(u->bus->sd, NULL, SYSTEMD, SYSTEMD_PATH, MANAGER, "Subscribe", on_subscribed, u,
                                        NULL);
}

void units_order(struct units *u, const char *name, enum manager_verb verb, uint64_t order_id, uint64_t lease_id)
{
        struct manager_outcome blocked = {
                .order_id = order_id, .lease_id = lease_id, .outcome = OUTCOME_BLOCKED, .why = HAND_WHY_MANAGER_AWAY
        };
        struct unit_order *o = u->bus && u->bus->up ? make(u, name, lease_id) : NULL;

        if (!o) {
                u->host.submit(u->host.ctx, &blocked);
                return;
        }
        o->order_id = order_id;
        o->verb = verb;
        listen_for_jobs(u);
        load(o);
}

void units_bus_changed(struct units *u, bool up)
{
        if (up)
                return;
        u->jobs = sd_bus_slot_unref(u->jobs);
        for (unsigned i = 0; i < UNITS_MAX; i++)
                if (u->orders[i])
                        no_answer(u->orders[i]);
}

void units_init(struct units *u, struct bus *bus, const struct units_host *host)
{
        *u = (struct units){ .bus = bus, .host = *host };
}

void units_stop(struct units *u)
{
        u->jobs = sd_bus_slot_unref(u->jobs);
        for (unsigned i = 0; i < UNITS_MAX; i++)
                if (u->orders[i])
                        forget(u->orders[i]);
}
