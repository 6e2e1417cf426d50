/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/watch.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessor/show.h"

static const char goes_on[] = "the command goes on without a lease";

enum { AGAIN_EVERY_MS = 1000, AGAIN_AT_MOST_MS = 60 * 1000 };

void watch_init(struct watch *w, struct obtain *o, struct child *child)
{
        *w = (struct watch){ .obtain = o, .handle = o->handle, .lease = o->lease, .quiet = o->ask->quiet };
        w->over = lessor_lease_follow(o->lease) < 0;
        notices_init(&w->notices, o->progress.verb);
        yield_init(&w->yield, o, child, &w->notices);
}

void watch_fini(struct watch *w)
{
        w->over = true;
        yield_fini(&w->yield);
}

bool watch_is_parking(struct watch *w)
{
        return !w->over && yield_was_stopped(&w->yield);
}

bool watch_takes_signal(struct watch *w, const struct signalfd_siginfo *info)
{
        return !w->over && yield_takes_signal(&w->yield, info);
}

/* ---- what is said ---- */

/* Which of ours; RULE_N: a daemon younger than this program has a new one. */
static enum rule rule_of(const char *name)
{
        unsigned rule = RULE_NONE;
        while (rule < RULE_N && strcmp(rule_name((enum rule) rule), name) != 0)
                rule++;
        return (enum rule) rule;
}

static const char *device_of(const struct watch *w, char buf[UUID_TEXT_MAX])
{
        const char *device = lessor_lease_device(w->lease);
        return text_escape(device, strlen(device), buf, UUID_TEXT_MAX);
}

static void say_device_changed(struct watch *w)
{
        char device[UUID_TEXT_MAX];
        bool lost = lessor_lease_state(w->lease) == LESSOR_STATE_LOST;
        if (lost == w->lost)
                return;
        w->lost = lost;
        if (lost)
                notices_say(
                        &w->notices,
                        "%s: its device %s is lost, the driver cannot reach it any more; `lessor devices` shows its "
                        "health, the kernel's log why",
                        lessor_lease_id(w->lease), device_of(w, device));
        else
                notices_say(&w->notices, "%s: its device %s is back", lessor_lease_id(w->lease), device_of(w, device));
}

/* lessord says these again by itself, with back-off, or when it happens anew. */
static bool comes_again(enum rule rule)
{
        return rule == RULE_OVER_USE || (rule >= RULE_IDLE_BEGAN && rule <= RULE_STILL_ORPHANED);
}

static void say_warning(struct watch *w)
{
        char device[UUID_TEXT_MAX];
        const char *id = lessor_lease_id(w->lease), *text = lessor_lease_text(w->lease);
        enum rule rule = rule_of(lessor_lease_rule(w->lease));

        if (rule == RULE_DEVICE_CHANGED) {
                say_device_changed(w);
                return;
        }
        if (rule < RULE_N && w->told[rule] && !comes_again(rule))
                return;
        if (rule < RULE_N)
                w->told[rule] = true;
        if (rule == RULE_OTHER_DEVICE)
                notices_say(&w->notices, "%s: %s (%s)", id, text, device_of(w, device));
        else
                notices_say(&w->notices, "%s: %s", id, text);
}

/* ---- books that were begun anew ---- */

static void ask_again(struct watch *w)
{
        char before[LEASE_ID_TEXT_MAX];
        uint64_t now_ms = clock_now_ms();

        (void) snprintf(before, sizeof(before), "%s", w->obtain->id);
        int r = obtain_adopted(w->obtain, w->yield.child->pid);
        if (r == -EAGAIN && now_ms < w->again_until_ms) {
                w->again_ms = now_ms + AGAIN_EVERY_MS;
                return;
        }
        w->again_ms = 0;
        if (r < 0) {
                if (!w->quiet)
                        notices_say(&w->notices, "%s was lost with lessord's books, and is not to be had again; %s",
                                    before, goes_on);
                w->over = true;
                return;
        }
        w->lease = w->obtain->lease;
        w->over = lessor_lease_follow(w->lease) < 0;
        if (!w->quiet)
                notices_say(&w->notices, "%s was lost with lessord's books: the command's memory is under %s now",
                            before, w->obtain->id);
}

static void say_end(struct watch *w)
{
        bool books_new = strcmp(lessor_lease_rule(w->lease), "books-new") == 0;
        if (!w->yield.has_child) {
                if (!books_new)
                        notices_say(&w->notices, "%s: %s; the command is not started again", lessor_lease_id(w->lease),
                                    lessor_lease_text(w->lease));
                w->books_new = books_new;
                w->over = true;
                return;
        }
        if (books_new) {
                w->again_ms = clock_now_ms();
                w->again_until_ms = w->again_ms + AGAIN_AT_MOST_MS;
                return;
        }
        if (!w->quiet)
                notices_say(&w->notices, "%s: %s; %s", lessor_lease_id(w->lease), lessor_lease_text(w->lease), goes_on);
        w->over = true;
}

/* ---- the loop's side ---- */

nfds_t watch_wants(const struct watch *w, struct pollfd *ret, int *timeout_ms)
{
        if (w->notices.len > 0) {
                uint64_t left_ms = u64_min(u64_sub0(w->notices.due_ms, clock_now_ms()), INT32_MAX);
                if (*timeout_ms < 0 || left_ms < (uint64_t) *timeout_ms)
                        *timeout_ms = (int) left_ms;
        }
        if (w->again_ms != 0) {
                uint64_t left_ms = u64_sub0(w->again_ms, clock_now_ms());
                if (*timeout_ms < 0 || left_ms < (uint64_t) *timeout_ms)
                        *timeout_ms = (int) left_ms;
                return 0;
        }
        if (w->over)
                return 0;
        *ret = (struct pollfd){ .fd = lessor_fd(w->handle), .events = (short) lessor_events(w->handle) };
        return 1 + yield_wants(&w->yield, ret + 1, timeout_ms);
}

/* One piece of news, and back to the loop: a daemon that answers without end shall not keep it from the command. */
void watch_go_on(struct watch *w)
{
        notices_go_on(&w->notices);
        if (w->over)
                return;
        if (w->again_ms != 0) {
                if (clock_now_ms() >= w->again_ms)
                        ask_again(w);
                return;
        }
        yield_go_on(&w->yield);
        int news = lessor_process(w->handle, NULL);
        if (news == LESSOR_NEWS_ASKED || news == LESSOR_NEWS_THAWING || news == LESSOR_NEWS_CHANGED)
                yield_on_news(&w->yield, (enum lessor_news) news);
        if (news == LESSOR_NEWS_WARNING && !w->quiet)
                say_warning(w);
        else if (news == LESSOR_NEWS_ENDED)
                say_end(w);
        else if (news < 0)
                w->over = true;
}
