/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/audits.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api/audit_facts.h"
#include "api/json_memory.h"
#include "api/place.h"
#include "base/clock.h"
#include "base/log.h"
#include "programs/lessord/daemon.h"
#include "senses/proc.h"

enum {
        MS_A_TICK = 1000 / PROC_TICKS_PER_S,
        TOLD_LATELY_MS = 60 * 1000, /* its input may not be stepped yet */
        ENDED_LATELY_MS = 60 * 1000,
        HANDS_WAIT_MS = 5000, /* without their word then: what is audited is not to be lost for it */
};

static struct audits_row *row_of(const struct audits *a, struct identity who)
{
        for (size_t i = a->n; i > 0; i--)
                if (a->rows[i - 1].audit.pid == who.pid && a->rows[i - 1].audit.start_ticks == who.start_ticks)
                        return &a->rows[i - 1];
        return NULL;
}

static void drop(struct audits *a, struct audits_row *row)
{
        free((void *) (uintptr_t) row->audit.facts);
        *row = a->rows[--a->n];
}

/* Who is not in the world any more, and whose end the eyes did not live to tell. */
static void forget(struct daemon *d)
{
        struct audits *a = &d->audits;

        for (size_t i = a->n; i > 0; i--) {
                struct audits_row *row = &a->rows[i - 1];
                const struct identity who = { row->audit.pid, row->audit.start_ticks };
                if (daemon_now_ms(d) - row->told_ms > TOLD_LATELY_MS && !world_process_find(d->world, who))
                        drop(a, row);
        }
}

/* Not at once: what is asked for before its record is on the disk is told from here. */
static void forget_ended(struct daemon *d)
{
        for (size_t i = d->audits.n; i > 0; i--) {
                struct audits_row *row = &d->audits.rows[i - 1];
                if (row->ended_ms != 0 && d->world->now_ms - row->ended_ms > ENDED_LATELY_MS)
                        drop(&d->audits, row);
        }
}

static struct audits_row *row_new(struct daemon *d)
{
        struct audits *a = &d->audits;

        if (a->n == a->cap)
                forget(d);
        if (a->n == a->cap && a->cap < 2 * PROCESSES_MAX) {
                size_t cap = a->cap ? 2 * a->cap : 16;
                void *grown = reallocarray(a->rows, cap, sizeof(*a->rows));
                if (!grown)
                        return NULL;
                a->rows = grown;
                a->cap = cap;
        }
        return a->n < a->cap ? &a->rows[a->n] : NULL;
}

/* ---- what is kept ---- */

static void look_at(const struct process_source *source, struct identity who, struct audit_ancestor *ret)
{
        struct proc_stat stat;
        int fd = -1;

        *ret = (struct audit_ancestor){ .is_gone = true };
        int r = proc_open_pid(source->proc_root, who.pid, &fd);
        if (r == 0)
                r = proc_read_stat(fd, &stat);
        if (fd >= 0)
                (void) close(fd);
        if (r == -EACCES || r == -EPERM) /* it may well live */
                ret->is_gone = false;
        if (r < 0 || stat.start_ticks != who.start_ticks)
                return;
        ret->is_gone = false;
        memcpy(ret->comm, stat.comm, sizeof(ret->comm));
}

_Static_assert((int) EYES_COMM_SIZE == (int) PROC_COMM_SIZE, "both are what the kernel shows at most");

static uint64_t started_wall_ms(struct daemon *d, uint64_t start_ticks)
{
        uint64_t up_ms = clock_now_ms() + clock_asleep_ms(), began_ms = start_ticks * MS_A_TICK;

        return began_ms <= up_ms && up_ms - began_ms < daemon_wall_ms(d) ? daemon_wall_ms(d) - (up_ms - began_ms) : 0;
}

/* @more: NULL where nothing came of it, and then all stays as it was. */
static void replace_facts(struct audits_row *row, char *more, size_t n)
{
        if (json_memory_take_failed() || !more || n > JOURNAL_AUDIT_FACTS_MAX) {
                free(more);
                return;
        }
        free((void *) (uintptr_t) row->audit.facts);
        row->audit.facts = more;
        row->audit.n_facts = n;
}

/* ---- the engine ---- */

static void on_engine(void *ctx, const struct container_facts *facts, const char *why)
{
        struct audits_question *q = ctx;
        struct audits_row *row = row_of(&q->daemon->audits, q->who);
        size_t n = 0;

        (void) why;
        q->question = NULL;
        if (!row)
                return;
        row->is_asked = false;
        char *more = facts ? audit_facts_add_container(row->audit.facts, row->audit.n_facts, facts, &n) : NULL;
        replace_facts(row, more, n);
}

/* A user's own engine is not the one at engine_socket. */
static void ask_engine(struct daemon *d, const struct eyes_process *told, struct audits_row *row)
{
        const char *socket = d->conf.doors.engine_socket;
        struct audits_question *q = NULL;
        struct place place = { 0 };

        if (told->cgroup_known)
                place_of_cgroup(told->cgroup_path, &place);
        if (place.kind != PLACE_CONTAINER || place.of_user || socket[0] == '\0')
                return;
        for (size_t i = 0; i < AUDITS_QUESTIONS_MAX && !q; i++)
                if (!d->audits.questions[i].question)
                        q = &d->audits.questions[i];
        if (!q)
                return; /* so many at once: what is known without it will do */
        *q = (struct audits_question){ .daemon = d, .who = { told->pid, told->start_ticks } };
        q->question = engine_ask(&d->loop, socket, place.container, on_engine, q);
        row->is_asked = q->question != NULL;
}

void audits_told(struct daemon *d, const struct eyes_process *told, const struct process *settled)
{
        struct audit_ancestor ancestors[ANCESTORS_MAX];
        size_t n_facts = 0;

        if (row_of(&d->audits, settled->identity))
                return; /* by eyes of before: what was seen first was nearer to its beginning */
        struct audits_row *row = row_new(d);
        if (!row)
                return;
        for (uint32_t i = 0; i < settled->n_ancestors; i++)
                look_at(&d->processes, settled->ancestors[i], &ancestors[i]);
        char *facts = audit_facts_text(told, settled, ancestors, started_wall_ms(d, told->start_ticks), &n_facts);
        if (json_memory_take_failed() || !facts) {
                free(facts);
                return;
        }
        *row = (struct audits_row){
                .audit = { .wall_ms = daemon_wall_ms(d),
                           .pid = told->pid,
                           .start_ticks = told->start_ticks,
                           .uid_known = told->uid_known,
                           .uid = told->uid_known ? told->uid : 0,
                           .facts = facts,
                           .n_facts = n_facts },
                .told_ms = daemon_now_ms(d),
                .awaits_hands = unseen_asks(d, settled),
        };
        (void) snprintf(row->audit.boot_id, sizeof(row->audit.boot_id), "%s", d->clock.boot_id);
        d->audits.n++;
        ask_engine(d, told, row);
}

/* ---- what the hands say ---- */

void audits_seen(struct daemon *d, struct identity who, const char *path, const struct warden_answer *seen)
{
        struct audits_row *row = row_of(&d->audits, who);
        size_t n = 0;

        if (!row)
                return;
        row->awaits_hands = false;
        if (!path)
                return;
        const struct audit_program program = { path, seen->program_dev, seen->program_inode, seen->file_dev,
                                               seen->file_inode };
        char *more = audit_facts_add_program(row->audit.facts, row->audit.n_facts, &program, &n);
        replace_facts(row, more, n);
}

enum script_kind audits_script(const struct daemon *d, struct identity who, const char *program, char *ret, size_t size)
{
        const struct audits_row *row = row_of(&d->audits, who);

        return audit_facts_script(row ? row->audit.facts : "", row ? row->audit.n_facts : 0, program, ret, size);
}

/* ---- who is a stranger ---- */

static void append(struct daemon *d, struct audits_row *row)
{
        struct error err = { 0 };

        row->is_due = false;
        if (journal_append_audit(d->journal, &row->audit, &err) < 0)
                log_warning("event=audit-lost pid=%u words=\"%s\"", row->audit.pid, err.msg);
}

static void write_down(struct daemon *d, struct identity who)
{
        struct audits_row *row = row_of(&d->audits, who);

        if (row && (row->is_asked || row->awaits_hands))
                row->is_due = true;
        else if (row)
                append(d, row);
}

static void write_answered(struct daemon *d)
{
        for (size_t i = 0; i < d->audits.n; i++) {
                struct audits_row *row = &d->audits.rows[i];
                row->awaits_hands = row->awaits_hands && daemon_now_ms(d) - row->told_ms < HANDS_WAIT_MS;
                if (row->is_due && !row->is_asked && !row->awaits_hands)
                        append(d, row);
        }
}

static bool is_stranger(struct world *w, struct identity who)
{
        world_each_holder_of (w, i, HOLDER_STRANGER)
                if (identity_equal(w->holders[i].process, who))
                        return true;
        return false;
}

void audits_stepped(struct daemon *d, const struct input *input, const struct actions *out)
{
        for (uint32_t i = 0; i < out->n; i++)
                if (out->items[i].kind == ACTION_STRANGER && out->items[i].why.rule == RULE_STRANGER_SEEN)
                        write_down(d, out->items[i].process);
        /* Known from before, by a lessord that kept no such rows, or in a journal that was lost since. */
        if (input->kind == INPUT_PROCESS && is_stranger(d->world, input->process.identity))
                write_down(d, input->process.identity);
        write_answered(d);
        struct audits_row *row = input->kind == INPUT_PROCESS_ENDED ? row_of(&d->audits, input->process_ended) : NULL;
        if (!row)
                return;
        if (row->is_due)
                append(d, row); /* without what its engine would have said */
        row->ended_ms = d->world->now_ms;
        forget_ended(d);
}

const struct journal_audit *audits_find(const struct audits *a, uint32_t pid)
{
        const struct journal_audit *found = NULL;

        for (size_t i = 0; i < a->n; i++) /* the latest */
                if (a->rows[i].audit.pid == pid && (!found || a->rows[i].audit.start_ticks > found->start_ticks))
                        found = &a->rows[i].audit;
        return found;
}

void audits_stop(struct audits *a)
{
        for (size_t i = 0; i < AUDITS_QUESTIONS_MAX; i++)
                if (a->questions[i].question) {
                        engine_cancel(a->questions[i].question);
                        a->questions[i].question = NULL;
                }
}

void audits_fini(struct audits *a)
{
        for (size_t i = 0; i < a->n; i++)
                free((void *) (uintptr_t) a->rows[i].audit.facts);
        free(a->rows);
        *a = (struct audits){ 0 };
}
