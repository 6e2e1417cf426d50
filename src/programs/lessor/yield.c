/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/yield.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/duration.h"
#include "base/number.h"
#include "programs/lessor/look.h"

enum {
        TIME_MS = 30 * 1000, /* where lessord names none */
        SPARE_MS = 2000,     /* before it is over: what was killed has to leave the device, too */
        AGAIN_MS = 1000,     /* lessord did not answer */
        TREE_GONE_MS = 2000, /* for what was killed to be gone */
        TREE_LOOK_MS = 5,
        HOOK_BACK_MS = 30 * 1000,
};

void yield_init(struct yield *y, struct obtain *o, struct child *child, struct notices *notices)
{
        *y = (struct yield){ .obtain = o, .child = child, .notices = notices, .has_child = true };
        y->quiet = o->ask->quiet;
        y->hook.call.fd = -1;
}

void yield_fini(struct yield *y)
{
        hook_end(&y->hook);
}

/* ---- words ---- */

static json_t *park_of(struct yield *y, json_t **ret_lease)
{
        *ret_lease = json_loads(lessor_lease_json(y->obtain->lease), 0, NULL);
        return json_object_get(*ret_lease, "park");
}

static void tell_parked(struct yield *y, const char *how)
{
        char who[LOOK_WHOM_MAX], span[DURATION_TEXT_MAX], back[96];
        json_t *lease, *park = park_of(y, &lease);
        uint64_t ms;

        if (json_amount(park, "expected_back_ms", &ms))
                (void) snprintf(back, sizeof(back), "expected back in about %s", duration_text(ms, span));
        else if (strcmp(json_text(park, "cause", ""), "person") == 0)
                (void) snprintf(back, sizeof(back), "`lessor thaw %s` brings it back", y->obtain->id);
        else
                (void) snprintf(back, sizeof(back), "when it is back is not known");
        notices_say(y->notices, "%s %s %s; %s", y->obtain->id, how, look_whom(park, who), back);
        json_decref(lease);
}

static void tell_asked(struct yield *y, const char *words)
{
        char who[LOOK_WHOM_MAX];
        json_t *lease, *park = park_of(y, &lease);

        notices_say(y->notices, "%s gives way %s: %s", y->obtain->id, look_whom(park, who), words);
        json_decref(lease);
}

/* ---- what is said to lessord ---- */

static void say(struct yield *y, unsigned what)
{
        y->says = what;
        y->say_ms = clock_now_ms();
        if (y->say_ms == 0)
                y->say_ms = 1;
}

static void say_now(struct yield *y)
{
        struct lessor_lease *lease = y->obtain->lease;
        int r = 0;

        (void) lessor_set_if_down(y->obtain->handle, LESSOR_IF_DOWN_FAIL, 0);
        if (y->says == YIELD_SAYS_YIELDED)
                r = lessor_lease_yielded(lease, NULL);
        else if (y->says == YIELD_SAYS_THAW)
                r = lessor_lease_thaw(lease, NULL);
        else
                r = lessor_lease_activate(lease, (int) y->child->pid, y->child->tree.cgroup_id, NULL);
        /* Not in that state any more: then it is not needed. */
        y->say_ms = r == -EHOSTDOWN || r == -EBUSY || r == -EDQUOT ? clock_now_ms() + AGAIN_MS : 0;
}

/* ---- giving way ---- */

static uint64_t time_ms(const struct yield *y)
{
        uint64_t ms;
        return lessor_lease_park_deadline_ms(y->obtain->lease, &ms) ? ms : TIME_MS;
}

static void end_command(struct yield *y)
{
        uint64_t ms = time_ms(y);

        if (y->step == YIELD_ENDING || !y->has_child)
                return;
        if (!y->quiet)
                tell_asked(y, "the command is ended, and started again later");
        y->step = YIELD_ENDING;
        y->kill_ms = clock_now_ms() + ms - u64_min(SPARE_MS, ms / 4);
        (void) tree_signal(&y->child->tree, y->child->pid, SIGTERM);
}

static void post(struct yield *y, const char *state, uint64_t due_ms, uint8_t step)
{
        struct error err = { 0 };
        json_t *lease, *park = park_of(y, &lease);
        json_t *body = json_pack("{s:s, s:s, s:s, s:I, s:O?, s:O?}", "lease", y->obtain->id, "state", state, "device",
                                 y->obtain->device, "bytes", (json_int_t) y->obtain->bytes, "deadline_ms",
                                 json_object_get(park, "deadline_ms"), "for", json_object_get(park, "for"));
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

        y->step = step;
        if (!text || hook_begin(&y->hook, &y->obtain->ask->hook, text, due_ms, &err) < 0) {
                notices_say(y->notices, "%s: its hook could not be asked: %s", y->obtain->id,
                            text ? err.msg : "no memory");
                y->step = step == YIELD_TELLING ? YIELD_NOTHING : YIELD_AWAY;
        }
        free(text);
        json_decref(body);
        json_decref(lease);
}

static void signal_command(const struct yield *y, int signal_number)
{
        (void) pidfd_send_signal(y->child->pidfd, signal_number, NULL, 0);
}

static void ask_command(struct yield *y)
{
        const struct ask *ask = y->obtain->ask;

        if (ask->has_hook)
                post(y, "asking", clock_now_ms() + time_ms(y), YIELD_TELLING);
        else if (ask->yield_signal != 0) {
                signal_command(y, ask->yield_signal);
                y->step = YIELD_AWAY;
                say(y, YIELD_SAYS_YIELDED); /* it cannot answer a signal: from now on the device is watched */
        }
        /* else it listens itself, by liblessor or the API */
}

/* It may have its memory again. */
static void call_back(struct yield *y)
{
        const struct ask *ask = y->obtain->ask;

        if (!y->has_child) {
                y->may_start = true;
                return;
        }
        if (y->step == YIELD_ENDING || y->step == YIELD_NOTHING)
                return; /* not gone yet: started again once it is */
        if (ask->has_hook) {
                post(y, "thawing", clock_now_ms() + HOOK_BACK_MS, YIELD_CALLING);
        } else if (ask->yield_signal != 0) {
                signal_command(y, ask->back_signal);
                y->step = YIELD_NOTHING;
        }
        if (y->step != YIELD_CALLING)
                say(y, YIELD_SAYS_ACTIVE);
}

static void tell_state(struct yield *y)
{
        enum lessor_state state = lessor_lease_state(y->obtain->lease);
        bool away = state == LESSOR_STATE_PARKED || state == LESSOR_STATE_HELD;

        if (away && !y->told_parked && !y->quiet)
                tell_parked(y, state == LESSOR_STATE_HELD ? "is held in place" : "is parked");
        if (state == LESSOR_STATE_STUCK && !y->told_stuck)
                notices_say(y->notices, "%s is stuck: %s; `lessor why %s` tells more", y->obtain->id,
                            lessor_lease_text(y->obtain->lease), y->obtain->id);
        if (state == LESSOR_STATE_ACTIVE && y->told_parked && y->has_child && !y->quiet)
                notices_say(y->notices, "%s is back at work", y->obtain->id);
        y->told_stuck = state == LESSOR_STATE_STUCK;
        if (away)
                y->told_parked = true;
        if (state == LESSOR_STATE_ACTIVE && y->has_child)
                y->told_parked = y->explained = false;
}

void yield_on_news(struct yield *y, enum lessor_news news)
{
        const char *way = lessor_lease_park_way(y->obtain->lease);

        if (news == LESSOR_NEWS_ASKED && strcmp(way, "restart") == 0)
                end_command(y);
        else if (news == LESSOR_NEWS_ASKED)
                ask_command(y);
        else if (news == LESSOR_NEWS_THAWING)
                call_back(y);
        tell_state(y);
}

/* ---- the loop's side ---- */

static void wait_at_most(uint64_t until_ms, int *timeout_ms)
{
        uint64_t left_ms = u64_min(u64_sub0(until_ms, clock_now_ms()), INT32_MAX);
        if (*timeout_ms < 0 || left_ms < (uint64_t) *timeout_ms)
                *timeout_ms = (int) left_ms;
}

nfds_t yield_wants(const struct yield *y, struct pollfd *ret, int *timeout_ms)
{
        if (y->step == YIELD_ENDING && y->kill_ms != 0)
                wait_at_most(y->kill_ms, timeout_ms);
        if (y->say_ms != 0)
                wait_at_most(y->say_ms, timeout_ms);
        return hook_wants(&y->hook, ret, timeout_ms);
}

static void on_hook(struct yield *y, enum hook_news news, const struct error *err)
{
        bool calling = y->step == YIELD_CALLING;

        if (news == HOOK_FAILED)
                notices_say(y->notices, "%s: its hook did not %s: %s", y->obtain->id,
                            calling ? "hear that it may have its memory again" : "give way", err->msg);
        if (calling || news == HOOK_DONE)
                say(y, calling ? YIELD_SAYS_ACTIVE : YIELD_SAYS_YIELDED);
        y->step = calling ? YIELD_NOTHING : YIELD_AWAY;
}

void yield_go_on(struct yield *y)
{
        struct error err = { 0 };
        uint64_t now_ms = clock_now_ms();

        if (y->step == YIELD_ENDING && y->kill_ms != 0 && now_ms >= y->kill_ms) {
                y->kill_ms = 0;
                (void) tree_signal(&y->child->tree, y->child->pid, SIGKILL);
        }
        enum hook_news news = hook_go_on(&y->hook, &err);
        if (news != HOOK_NOTHING)
                on_hook(y, news, &err);
        if (y->say_ms != 0 && now_ms >= y->say_ms)
                say_now(y);
}

/* ---- the command, and signals meanwhile ---- */

bool yield_is_parked(const struct yield *y)
{
        switch ((unsigned) lessor_lease_state(y->obtain->lease)) {
        case LESSOR_STATE_ASKING:
        case LESSOR_STATE_PARKED:
        case LESSOR_STATE_THAWING:
        case LESSOR_STATE_STUCK:
                return strcmp(lessor_lease_park_way(y->obtain->lease), "checkpoint") == 0;
        }
        return false;
}

bool yield_was_stopped(struct yield *y)
{
        (void) lessor_set_if_down(y->obtain->handle, LESSOR_IF_DOWN_FAIL, 0);
        (void) lessor_lease_refresh(y->obtain->lease, NULL); /* away: as last heard */
        return yield_is_parked(y);
}

static bool ends_a_command(unsigned signal_number)
{
        return signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP ||
               signal_number == SIGQUIT;
}

static bool stops_a_job(unsigned signal_number)
{
        return signal_number == SIGTSTP || signal_number == SIGTTIN || signal_number == SIGTTOU;
}

void yield_explain(struct yield *y)
{
        y->explained = true;
        tell_parked(y, "is parked");
        notices_say(y->notices, "the command does not run meanwhile; the same again ends it for good");
}

bool yield_takes_signal(struct yield *y, const struct signalfd_siginfo *info)
{
        if (y->step == YIELD_ENDING && ends_a_command(info->ssi_signo))
                y->person_ended = true;
        if (!y->has_child || !yield_is_parked(y))
                return false;
        if (stops_a_job(info->ssi_signo) &&
            info->ssi_code > 0) { /* the command stands still already: nobody stops for us */
                signals_stop_by((int) info->ssi_signo);
                return true;
        }
        if (info->ssi_signo == SIGCONT) /* only the hands wake what is checkpointed */
                return true;
        if (!ends_a_command(info->ssi_signo))
                return false;
        /* It waits in the command, which hears it when it is back. */
        if (info->ssi_signo == SIGINT && !y->explained) {
                y->explained = true;
                tell_parked(y, "is parked");
                notices_say(y->notices, "the command gets this when it is back; the same again asks for that now");
        } else {
                notices_say(y->notices, "asking for %s back: the command gets this then", y->obtain->id);
                say(y, YIELD_SAYS_THAW);
        }
        return false;
}

/* What it started, and did not take with it. */
static void end_leftovers(struct yield *y)
{
        uint64_t until_ms = clock_now_ms() + TREE_GONE_MS;
        pid_t first;

        while (tree_count(&y->child->tree, &first) > 0 && clock_now_ms() < until_ms) {
                if (y->child->tree.kind != TREE_DESCENT)
                        (void) tree_signal(&y->child->tree, y->child->pid, SIGKILL);
                else
                        (void) tree_signal(&y->child->tree, getpid(), SIGKILL);
                (void) poll(NULL, 0, TREE_LOOK_MS);
        }
}

bool yield_child_ended(struct yield *y)
{
        if (y->step != YIELD_ENDING || y->person_ended)
                return false;
        end_leftovers(y);
        y->step = YIELD_AWAY;
        y->kill_ms = 0;
        y->has_child = false;
        /* The memory may not be wanted any more by now. */
        enum lessor_state state = lessor_lease_state(y->obtain->lease);
        y->may_start = state == LESSOR_STATE_ACTIVE || state == LESSOR_STATE_THAWING;
        if (!y->may_start)
                say(y, YIELD_SAYS_YIELDED);
        return true;
}

void yield_started(struct yield *y)
{
        y->has_child = true;
        y->may_start = false;
        y->step = YIELD_NOTHING;
        y->say_ms = 0;
        if (!y->quiet)
                notices_say(y->notices, "%s is back at work", y->obtain->id);
        y->told_parked = y->explained = false;
}
