/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/warn.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/size.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/terminals.h"

enum { WORDS_SIZE = 320, NUMBER_SIZE = 24 };

/* ---- the hook ---- */

static void on_closed(uv_handle_t *handle)
{
        struct warn_hook *h = handle->data;

        h->n_handles--;
}

static void hook_over(struct warn_hook *h)
{
        int code, status;

        if (h->child.pid == 0)
                return;
        (void) uv_poll_stop(&h->poll);
        (void) uv_timer_stop(&h->timer);
        uv_close((uv_handle_t *) &h->poll, on_closed);
        uv_close((uv_handle_t *) &h->timer, on_closed);
        if (eyes_child_reap(&h->child, &code, &status) && (code != CLD_EXITED || status != 0))
                log_warning("event=warn-hook-failed status=%d", status);
        (void) close(h->child.pidfd);
        h->child = (struct eyes_child){ 0 };
}

static void on_exit_seen(uv_poll_t *poll, int status, int events)
{
        (void) status;
        (void) events;
        hook_over(poll->data);
}

static void on_late(uv_timer_t *timer)
{
        struct warn_hook *h = timer->data;

        log_warning("event=warn-hook-late after_ms=%d", WARN_HOOK_MS);
        eyes_child_kill(&h->child); /* its pidfd tells the rest */
}

/* "/usr/local/bin/tell --mail" → its words; no quotes, no shell. Returns how many. */
static size_t split(char *text, char *argv[WARN_ARGS_MAX])
{
        char *rest = NULL;
        size_t n = 0;

        for (char *word = strtok_r(text, " \t", &rest); word && n < WARN_ARGS_MAX - 8;
             word = strtok_r(NULL, " \t", &rest))
                argv[n++] = word;
        return n;
}

static void run_hook(struct daemon *d, const struct action *a, char *what, char *words)
{
        char command[CONF_PATH_MAX], pid[NUMBER_SIZE], uid[NUMBER_SIZE], bytes[NUMBER_SIZE], uuid[UUID_TEXT_MAX];
        char *argv[WARN_ARGS_MAX];
        struct warn_hook *h = NULL;
        struct error err = { 0 };

        (void) snprintf(command, sizeof(command), "%s", d->conf.warn_hook);
        size_t n = split(command, argv);
        if (n == 0)
                return;
        for (size_t i = 0; i < WARN_HOOKS_MOST && !h; i++)
                if (d->warn.hooks[i].child.pid == 0 && d->warn.hooks[i].n_handles == 0)
                        h = &d->warn.hooks[i];
        if (!h) {
                log_warning("event=warn-hook-left-out words=\"%d of them run already\"", WARN_HOOKS_MOST);
                return;
        }
        (void) snprintf(pid, sizeof(pid), "%" PRIu32, a->process.pid);
        (void) snprintf(uid, sizeof(uid), "%" PRIu32, a->uid);
        (void) snprintf(bytes, sizeof(bytes), "%" PRIu64, a->bytes);
        (void) snprintf(uuid, sizeof(uuid), "%s",
                        a->device < d->world->n_devices ? d->world->devices[a->device].uuid : "");
        char *const more[] = { what, pid, uid, bytes, uuid, words };
        for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
                argv[n++] = more[i];
        argv[n] = NULL;
        if (child_start(argv[0], argv, &h->child, &err) < 0) {
                log_warning("event=warn-hook-failed words=\"%s\"", err.msg);
                return;
        }
        (void) close(h->child.sock); /* it has nothing to say to us */
        h->child.sock = -1;
        h->daemon = d;
        h->poll.data = h->timer.data = h;
        if (uv_poll_init(&d->loop, &h->poll, h->child.pidfd) != 0) {
                eyes_child_kill(&h->child);
                return;
        }
        (void) uv_timer_init(&d->loop, &h->timer);
        h->n_handles = 2;
        (void) uv_poll_start(&h->poll, UV_READABLE, on_exit_seen);
        (void) uv_timer_start(&h->timer, on_late, WARN_HOOK_MS, 0);
}

/* ---- the words ---- */

static void words_for(const struct daemon *d, const struct action *a, char words[WORDS_SIZE])
{
        char name[COMM_MAX * 4 + 1], size[SIZE_TEXT_MAX], span[DURATION_TEXT_MAX], end[DURATION_TEXT_MAX + 48] = "";
        const struct process *p = world_process_find(d->world, a->process);
        uint64_t now_ms = d->world->now_ms;

        (void) text_escape(p ? p->comm : "?", p ? strnlen(p->comm, COMM_MAX) : 1, name, sizeof(name));
        if (a->why.rule == RULE_STRANGER_NOTICED)
                (void) snprintf(end, sizeof(end), " It is to be ended in %s.",
                                duration_text(a->why.start_ms > now_ms ? a->why.start_ms - now_ms : 1000, span));
        (void) snprintf(words, WORDS_SIZE,
                        "lessor: your process %" PRIu32 " (%s) holds %s of GPU %" PRIu32
                        " without a lease.%s Give it one: lessor adopt %" PRIu32,
                        a->process.pid, name, size_text_short(a->bytes, size), a->device, end, a->process.pid);
}

void warn_act(struct daemon *d, const struct action *a)
{
        char words[WORDS_SIZE], what[16];

        if (a->kind != ACTION_STRANGER ||
            (a->why.rule != RULE_STRANGER_WARNED && a->why.rule != RULE_STRANGER_NOTICED) || a->uid == UINT32_MAX)
                return;
        (void) snprintf(what, sizeof(what), "%s", a->why.rule == RULE_STRANGER_WARNED ? "warned" : "noticed");
        words_for(d, a, words);
        unsigned n = d->conf.warn_terminals ? terminals_tell("/dev/pts", a->uid, words) : 0;
        log_info("event=owner-%s pid=%" PRIu32 " uid=%" PRIu32 " terminals=%u", what, a->process.pid, a->uid, n);
        if (d->conf.warn_hook[0])
                run_hook(d, a, what, words);
}

void warn_stop(struct daemon *d)
{
        for (size_t i = 0; i < WARN_HOOKS_MOST; i++) {
                if (d->warn.hooks[i].child.pid != 0)
                        eyes_child_kill(&d->warn.hooks[i].child);
                hook_over(&d->warn.hooks[i]);
        }
}
