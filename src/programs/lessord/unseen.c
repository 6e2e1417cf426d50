/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/unseen.h"
#include <string.h>
#include "base/clock.h"
#include "programs/lessord/audits.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/eyes_facts.h"
#include "programs/lessord/eyes_link.h"

/* Their numbers are beside those of the core's actions, which count from 1. */
#define ORDERS_FROM (UINT64_C(1) << 62)

static bool is_unseen(const struct process *p)
{
        return p->state == PROCESS_LIVE && p->guard == GUARD_UNSEEN && p->uid != UINT32_MAX && p->identity.pid > 1 &&
               p->identity.start_ticks != 0;
}

static struct unseen_one *find(struct unseen *u, struct identity who)
{
        for (uint32_t i = 0; i < UNSEEN_MAX; i++)
                if (identity_equal(u->items[i].who, who))
                        return &u->items[i];
        return NULL;
}

/* Who is gone is forgotten; when all of them live, whoever may be asked about soonest. */
static struct unseen_one *make(struct daemon *d, struct identity who)
{
        struct unseen_one *place = NULL;

        for (uint32_t i = 0; i < UNSEEN_MAX; i++) {
                struct unseen_one *one = &d->unseen.items[i];
                if (one->order_id == 0 && one->who.pid != 0 && !world_process_find(d->world, one->who))
                        *one = (struct unseen_one){ 0 };
                if (one->order_id == 0 && (!place || one->again_ms < place->again_ms))
                        place = one;
        }
        if (place)
                *place = (struct unseen_one){ .who = who };
        return place;
}

static uint32_t n_out(const struct unseen *u)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < UNSEEN_MAX; i++)
                n += u->items[i].order_id != 0;
        return n;
}

static void order(struct daemon *d, struct unseen_one *one, uint32_t uid, const char *script)
{
        one->order_id = ORDERS_FROM + ++d->unseen.n_orders;
        one->of_script = script[0] != '\0';
        const struct warden_order order = {
                .order_id = one->order_id,
                .verb = WARDEN_LOOK,
                .pid = one->who.pid,
                .start_ticks = one->who.start_ticks,
                .owner_uid = uid,
        };
        hands_look_at(d, &order, script);
}

/* True: it is to be tried again. */
static bool ask(struct daemon *d, const struct process *p, uint64_t now_ms)
{
        struct unseen *u = &d->unseen;
        struct unseen_one *one = find(u, p->identity);

        if (!one)
                one = make(d, p->identity);
        if (!one || one->order_id != 0 || now_ms < one->again_ms)
                return !one || (one->order_id == 0 && one->again_ms < now_ms + UNSEEN_LATER_MS / 2);
        if (n_out(u) >= UNSEEN_AT_ONCE)
                return true;
        order(d, one, p->uid, "");
        return false;
}

static void on_timer(uv_timer_t *timer)
{
        struct daemon *d = timer->data;
        uint64_t now_ms = clock_now_ms();
        bool again = false;

        if (!hands_are_up(d))
                return; /* they wake us */
        for (uint32_t i = 0; i < d->world->n_processes; i++)
                if (is_unseen(&d->world->processes[i]))
                        again = ask(d, &d->world->processes[i], now_ms) || again;
        if (again)
                (void) uv_timer_start(timer, on_timer, UNSEEN_AGAIN_MS, 0);
}

void unseen_wake(struct daemon *d)
{
        if (d->unseen.started && !uv_is_active((uv_handle_t *) &d->unseen.timer))
                (void) uv_timer_start(&d->unseen.timer, on_timer, UNSEEN_SOON_MS, 0);
}

static void tell(struct daemon *d, const struct process *known, const struct warden_answer *a, enum script_kind kind)
{
        const struct eyes_process facts = { .pid = known->identity.pid,
                                            .start_ticks = known->identity.start_ticks,
                                            .uid_known = true,
                                            .uid = known->uid,
                                            .exe_known = true,
                                            .exe_dev = a->program_dev,
                                            .exe_inode = a->program_inode };
        struct input input = { .kind = INPUT_PROCESS, .process = *known };

        input.process.program = eyes_facts_file_number(true, a->program_dev, a->program_inode);
        eyes_facts_script(kind, eyes_facts_file_number(a->file_inode != 0, a->file_dev, a->file_inode), &input.process);
        input.process.guard = (uint8_t) eyes_link_guard(d->eyes, &facts, GUARD_NONE);
        input.process.lease = (struct ref){ 0 }; /* the core's own */
        daemon_submit(d, &input);
}

static bool is_soon(const struct warden_answer *a)
{
        return a->why == WARDEN_WHY_RATE || a->why == WARDEN_WHY_AWAY || a->why == WARDEN_WHY_LOST ||
               a->why == WARDEN_WHY_BUSY;
}

/* What the hands said of @one. */
static void take(struct daemon *d, struct unseen_one *one, const struct warden_answer *a, const char *path)
{
        const struct process *known = world_process_find(d->world, one->who);
        bool seen = a->result == WARDEN_DONE && a->program_inode != 0;
        char script[WARDEN_PATH_SIZE] = "";
        bool asked_of_script = one->of_script;

        one->order_id = 0;
        /* Also of who was seen: new eyes name him anew, and again without it. */
        one->again_ms = clock_now_ms() + (seen || is_soon(a) ? UNSEEN_AGAIN_MS : UNSEEN_LATER_MS);
        if (!seen || !known || !is_unseen(known)) {
                if (!is_soon(a))
                        audits_seen(d, one->who, NULL, NULL);
                return;
        }
        enum script_kind kind = audits_script(d, one->who, path, script, sizeof(script));
        if (kind == SCRIPT_FILE && !asked_of_script) {
                order(d, one, known->uid, script);
                return;
        }
        audits_seen(d, one->who, path, a);
        tell(d, known, a, kind);
}

bool unseen_asks(const struct daemon *d, const struct process *process)
{
        return d->unseen.started && hands_are_up(d) && is_unseen(process);
}

bool unseen_answer(struct daemon *d, const struct warden_answer *a, const char *path)
{
        struct unseen_one *one = NULL;

        if (a->order_id <= ORDERS_FROM)
                return false;
        hands_link_settled(d->hands.link, a->order_id);
        for (uint32_t i = 0; i < UNSEEN_MAX && !one; i++)
                if (d->unseen.items[i].order_id == a->order_id)
                        one = &d->unseen.items[i];
        if (!one)
                return true; /* of a daemon before this one */
        take(d, one, a, path);
        unseen_wake(d); /* more may wait */
        return true;
}

void unseen_start(struct daemon *d)
{
        if (d->paths.mode != PATHS_SYSTEM)
                return;
        (void) uv_timer_init(&d->loop, &d->unseen.timer);
        d->unseen.timer.data = d;
        d->unseen.started = true;
}

void unseen_stop(struct daemon *d)
{
        if (d->unseen.started)
                uv_close((uv_handle_t *) &d->unseen.timer, NULL);
        d->unseen.started = false;
}
