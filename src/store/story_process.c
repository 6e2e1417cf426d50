/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of a pid: facts and looks that name it, orders about it, and the leases it was under, by its own tree or by that of
 * who started it. All of the journal is walked once; of what is older than its records the events are left.
 */
#include "store/story_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "base/size.h"
#include "model/lease.h"
#include "store/walk.h"

enum {
        OWNERS_MAX = 16384, /* of leases, at most: the oldest are forgotten */
        PROCESSES_OF_PID = 16,
        SEEN_MAX = 64
};

/* Who owns or is a lease: whose children are under it. */
struct owner {
        struct identity identity;
        uint64_t cgroup_id;
        uint64_t lease_id;
};

/* One process that had the pid, on one device. */
struct sight {
        struct identity identity;
        char uuid[UUID_TEXT_MAX];
        uint64_t first_bytes, peak_bytes, last_bytes;
        uint64_t last_seq, last_wall_ms, last_now_ms;
        uint64_t n_looks;
};

struct search {
        struct telling *t;
        uint32_t pid;
        struct owner *owners; /* a ring: the oldest are forgotten */
        size_t n_owners;
        struct identity met[PROCESSES_OF_PID];
        struct sight sights[SEEN_MAX];
        uint32_t n_sights;
        uint64_t first_seq;  /* of the records that are kept */
        uint64_t last_event; /* of those without one, that was looked at */
};

/* ---- leases ---- */

static void is_under(struct search *s, uint64_t lease_id)
{
        struct story *story = s->t->story;

        if (lease_id == 0)
                return;
        for (uint32_t i = 0; i < story->n_leases; i++)
                if (story->leases[i] == lease_id)
                        return;
        if (story->n_leases == STORY_LEASES_MAX) {
                memmove(&story->leases[0], &story->leases[1], (STORY_LEASES_MAX - 1) * sizeof(story->leases[0]));
                story->n_leases--;
                story->is_cut = true;
        }
        story->leases[story->n_leases++] = lease_id;
}

static void note_owner(struct search *s, struct identity identity, uint64_t cgroup_id, uint64_t lease_id)
{
        if (lease_id == 0 || (identity_is_none(identity) && cgroup_id == 0))
                return;
        s->owners[s->n_owners++ % OWNERS_MAX] =
                (struct owner){ .identity = identity, .cgroup_id = cgroup_id, .lease_id = lease_id };
        if (identity.pid == s->pid)
                is_under(s, lease_id);
}

static void find_owner(struct search *s, const struct process *p)
{
        size_t n = s->n_owners < OWNERS_MAX ? s->n_owners : OWNERS_MAX;

        for (size_t i = 0; i < n; i++) {
                const struct owner *o = &s->owners[i];
                bool under = o->cgroup_id != 0 && o->cgroup_id == p->cgroup_id;
                for (uint32_t a = 0; !under && a < p->n_ancestors; a++)
                        under = !identity_is_none(o->identity) && identity_equal(o->identity, p->ancestors[a]);
                if (under)
                        is_under(s, o->lease_id);
        }
}

static void met(struct search *s, struct identity identity)
{
        struct story *story = s->t->story;

        if (identity.start_ticks == 0) /* whoever gave it did not know */
                return;
        for (uint32_t i = 0; i < story->n_processes && i < PROCESSES_OF_PID; i++)
                if (identity_equal(s->met[i], identity))
                        return;
        if (story->n_processes < PROCESSES_OF_PID)
                s->met[story->n_processes] = identity;
        story->n_processes++;
}

/* ---- what was seen ---- */

printf_like(5, 6) static void seen(struct search *s, uint64_t seq, uint64_t wall_ms, uint64_t now_ms, const char *fmt,
                                   ...)
{
        va_list args;

        struct telling_step *step = telling_add_seen(s->t, seq, wall_ms, now_ms, s->pid);
        if (!step)
                return;
        va_start(args, fmt);
        (void) vsnprintf(step->step.text, sizeof(step->step.text), fmt, args);
        va_end(args);
}

static struct sight *sight_of(struct search *s, struct identity identity, const char *uuid)
{
        for (uint32_t i = 0; i < s->n_sights; i++)
                if (identity_equal(s->sights[i].identity, identity) && strcmp(s->sights[i].uuid, uuid) == 0)
                        return &s->sights[i];
        if (s->n_sights == SEEN_MAX)
                return NULL;
        struct sight *sight = &s->sights[s->n_sights++];
        *sight = (struct sight){ .identity = identity };
        memcpy(sight->uuid, uuid, sizeof(sight->uuid));
        return sight;
}

static void on_row(struct search *s, const struct walk_record *record, const struct occupancy *row)
{
        const struct input *in = record->input;
        struct sight *sight = sight_of(s, row->identity, in->reading.uuid);
        char size[SIZE_TEXT_MAX];

        met(s, row->identity);
        if (!sight)
                return;
        if (sight->n_looks++ == 0) {
                sight->first_bytes = row->used_bytes;
                seen(s, record->seq, record->wall_ms, in->now_ms, "first seen on %s with %s", sight->uuid,
                     row->flags & ROW_USED_KNOWN ? size_text_short(row->used_bytes, size) : "an unknown amount");
        }
        sight->peak_bytes = u64_max(sight->peak_bytes, row->used_bytes);
        sight->last_bytes = row->used_bytes;
        sight->last_seq = record->seq;
        sight->last_wall_ms = record->wall_ms;
        sight->last_now_ms = in->now_ms;
}

static void tell_last_sights(struct search *s)
{
        char last[SIZE_TEXT_MAX], peak[SIZE_TEXT_MAX];

        for (uint32_t i = 0; i < s->n_sights; i++) {
                const struct sight *x = &s->sights[i];
                if (x->n_looks > 1)
                        seen(s, x->last_seq, x->last_wall_ms, x->last_now_ms,
                             "last seen on %s with %s, at most %s, in %" PRIu64 " looks that were kept", x->uuid,
                             size_text_short(x->last_bytes, last), size_text_short(x->peak_bytes, peak), x->n_looks);
        }
}

static void on_facts(struct search *s, const struct walk_record *record)
{
        const struct process *p = &record->input->process;

        met(s, p->identity);
        find_owner(s, p);
        seen(s, record->seq, record->wall_ms, record->input->now_ms,
             "a process of uid %" PRIu32 ", child of pid %" PRIu32, p->uid, p->ppid);
}

/* ---- the walk ---- */

static int on_segment(void *ctx, const struct walk_segment *segment, struct error *err)
{
        struct search *s = ctx;
        const struct world *w = segment->world;

        (void) err;
        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct binding *b = &w->leases[i].binding;
                note_owner(s, b->owner, b->cgroup_id, w->lease_ids[i]);
                note_owner(s, b->root, 0, w->lease_ids[i]);
        }
        for (uint32_t i = 0; i < w->n_processes; i++) {
                const struct process *p = &w->processes[i];
                if (p->identity.pid != s->pid)
                        continue;
                met(s, p->identity);
                if (!ref_is_none(p->lease) && p->lease.index < w->n_leases)
                        is_under(s, w->lease_ids[p->lease.index]);
        }
        return 0;
}

/* The lease that a request became, by its answer. */
static uint64_t answered(const struct walk_record *record, uint64_t token)
{
        for (uint32_t i = 0; token != 0 && i < record->actions->n; i++)
                if (record->actions->items[i].token == token && record->actions->items[i].lease_id != 0)
                        return record->actions->items[i].lease_id;
        return 0;
}

static void on_input(struct search *s, const struct walk_record *record)
{
        const struct input *in = record->input;

        switch ((enum input_kind) in->kind) {
        case INPUT_READING:
                for (uint32_t i = 0; i < in->reading.n_rows; i++)
                        if (in->reading.rows[i].identity.pid == s->pid)
                                on_row(s, record, &in->reading.rows[i]);
                break;
        case INPUT_PROCESS:
                if (in->process.identity.pid == s->pid)
                        on_facts(s, record);
                break;
        case INPUT_PROCESS_ENDED:
                if (in->process_ended.pid == s->pid)
                        seen(s, record->seq, record->wall_ms, in->now_ms, "it ended");
                break;
        case INPUT_REQUEST: {
                uint64_t lease_id = answered(record, in->request.token);
                note_owner(s, in->request.binding.owner, 0, lease_id);
                note_owner(s, in->request.binding.root, in->request.binding.cgroup_id, lease_id);
                break;
        }
        case INPUT_ACTIVATE:
                note_owner(s, in->call.root, in->call.cgroup_id, in->call.lease_id);
                break;
        case INPUT_MANAGER:
                note_owner(s, in->manager.root, in->manager.cgroup_id, in->manager.lease_id);
                break;
        case INPUT_RECORD:
                if (in->record.process.pid == s->pid)
                        seen(s, record->seq, record->wall_ms, in->now_ms, "%s",
                             input_text(in, (char[INPUT_TEXT_MAX]){ 0 }));
                break;
        case INPUT_NONE:
        case INPUT_TICK:
        case INPUT_CONFIG:
        case INPUT_DEVICE:
        case INPUT_EYES:
        case INPUT_RENEW:
        case INPUT_RELEASE:
        case INPUT_OWNER_ENDED:
        case INPUT_RESTART:
        case INPUT_CHANGE:
        case INPUT_OUTCOME:
        case INPUT_PARK:
        case INPUT_HOST:
        case INPUT_PAUSE:
        case INPUT_ENFORCE:
        case INPUT_KIND_N:
                break;
        }
}

static int on_event(void *ctx, const struct journal_event *event)
{
        struct search *s = ctx;
        const struct action *a = &event->action;

        if (event->seq >= s->first_seq)
                return 1; /* from there on its record is read */
        s->last_event = a->id;
        if (a->process.pid != s->pid)
                return 0;
        (void) telling_add_event(s->t, event);
        is_under(s, a->lease_id);
        return 0;
}

static int on_record(void *ctx, const struct walk_record *record, struct error *err)
{
        struct search *s = ctx;

        on_input(s, record);
        for (uint32_t i = 0; i < record->actions->n; i++) {
                const struct action *a = &record->actions->items[i];
                if (a->process.pid != s->pid || a->kind == ACTION_READ)
                        continue;
                met(s, a->process);
                is_under(s, a->lease_id);
                (void) telling_add_event(s->t, &(struct journal_event){ .seq = record->seq,
                                                                        .wall_ms = record->wall_ms,
                                                                        .now_ms = record->input->now_ms,
                                                                        .action = *a });
        }
        return s->t->failed ? error_set(err, ENOMEM, "no memory for a story") : 0;
}

static void on_damage(void *ctx, const char *words)
{
        struct search *s = ctx;

        (void) words;
        s->t->story->n_damages++;
}

/* Events outlive their records: those that have none any more come first. */
static int search_events(struct search *s, struct error *err)
{
        uint64_t before;
        int r = sql_query_u64(s->t->j->db, "SELECT first_seq FROM segment ORDER BY id LIMIT 1", &s->first_seq, err);

        do {
                const struct journal_events_filter page = { .after_id = s->last_event };
                before = s->last_event;
                if (r == 0)
                        r = journal_events(s->t->j, &page, on_event, s, err);
        } while (r == 0 && s->last_event != before);
        return r < 0 ? r : 0;
}

int telling_process(struct telling *t, uint32_t pid, struct error *err)
{
        struct search *s = calloc(1, sizeof(*s));
        const struct walk_since all = { .kind = WALK_ALL };

        if (s)
                s->owners = calloc(OWNERS_MAX, sizeof(*s->owners));
        if (!s || !s->owners) {
                free(s);
                return error_set(err, ENOMEM, "no memory for a story");
        }
        s->t = t;
        s->pid = pid;
        const struct walk_visitor visitor = {
                .ctx = s, .segment = on_segment, .record = on_record, .damage = on_damage
        };
        int r = search_events(s, err);
        if (r == 0)
                r = journal_walk(t->j, &all, &visitor, err);
        if (r == 0)
                tell_last_sights(s);
        free(s->owners);
        free(s);
        for (uint32_t i = 0; r == 0 && i < t->story->n_leases; i++)
                r = telling_lease(t, t->story->leases[i], 0, err);
        return r;
}
