/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/lineage.h"
#include <string.h>

enum { INIT_PID = 1 };

/* ---- the tree ---- */

static uint32_t *bucket_of(struct lineage *l, uint32_t pid)
{
        return &l->buckets[(pid * UINT32_C(2654435761)) >> 7 & (LINEAGE_BUCKETS - 1)];
}

/* The last process that had this number; NULL: none that is remembered. */
static struct lineage_node *newest_of(const struct lineage *l, uint32_t pid)
{
        struct lineage *mine = (struct lineage *) (uintptr_t) l; /* looks, and changes nothing */

        for (uint32_t at = *bucket_of(mine, pid); at != 0; at = mine->nodes[at - 1].next)
                if (mine->nodes[at - 1].who.pid == pid)
                        return &mine->nodes[at - 1];
        return NULL;
}

static bool can_have_started(const struct lineage_who *who, uint64_t ticks)
{
        return ticks >= who->from_ticks && ticks - who->from_ticks <= who->slack_ticks;
}

static struct lineage_node *parent_of(const struct lineage *l, const struct lineage_node *node)
{
        return node->parent != 0 ? (struct lineage_node *) (uintptr_t) &l->nodes[node->parent - 1] : NULL;
}

static uint32_t row_of(const struct lineage *l, const struct lineage_node *node)
{
        return (uint32_t) (node - l->nodes);
}

static struct lineage_node *add_node(struct lineage *l, struct lineage_who who)
{
        uint32_t row;

        if (l->free != 0) {
                row = l->free - 1;
                l->free = l->nodes[row].next;
        } else if (l->n_used < LINEAGE_NODES) {
                row = l->n_used++;
        } else {
                l->n_refused++;
                return NULL;
        }
        uint32_t *bucket = bucket_of(l, who.pid);
        l->nodes[row] = (struct lineage_node){ .who = who, .next = *bucket, .seen = true };
        *bucket = row + 1;
        l->n_nodes++;
        return &l->nodes[row];
}

static void free_node(struct lineage *l, struct lineage_node *node)
{
        uint32_t *at = bucket_of(l, node->who.pid), row = row_of(l, node);

        while (*at != row + 1)
                at = &l->nodes[*at - 1].next;
        *at = node->next;
        *node = (struct lineage_node){ .next = l->free };
        l->free = row + 1;
        l->n_nodes--;
}

/* Who has ended and left nobody behind is forgotten, and so on upwards. */
static void prune(struct lineage *l, struct lineage_node *node)
{
        while (node && node->gone && node->n_children == 0) {
                struct lineage_node *parent = parent_of(l, node);
                if (parent)
                        parent->n_children--;
                free_node(l, node);
                node = parent;
        }
}

static void set_gone(struct lineage *l, struct lineage_node *node, uint64_t at_ticks)
{
        node->gone = true;
        node->gone_ticks = at_ticks;
        prune(l, node);
}

static void link_to(struct lineage *l, struct lineage_node *child, struct lineage_node *parent, enum lineage_link link)
{
        if (child->parent != 0 || !parent || parent == child ||
            parent->who.from_ticks > child->who.from_ticks + child->who.slack_ticks)
                return;
        child->parent = row_of(l, parent) + 1;
        child->link = (uint8_t) link;
        parent->n_children++;
}

/* Above @node only so many in a row may have ended: the nearest of a longer run makes way. It stays an ancestor's child. */
static void shorten(struct lineage *l, struct lineage_node *node)
{
        struct lineage_node *nearest = parent_of(l, node);
        unsigned n = 0;

        for (struct lineage_node *at = nearest; at && at->gone && n <= LINEAGE_GONE_RUN; at = parent_of(l, at))
                n++;
        if (n <= LINEAGE_GONE_RUN || !parent_of(l, nearest))
                return;
        struct lineage_node *above = parent_of(l, nearest);
        node->parent = row_of(l, above) + 1;
        node->link = nearest->link > node->link ? nearest->link : node->link;
        above->n_children++;
        nearest->n_children--;
        prune(l, nearest);
}

void lineage_init(struct lineage *l)
{
        l->free = l->n_used = l->n_nodes = 0;
        l->n_refused = l->n_records = 0;
        l->record_gap = l->scanning = false;
        l->gap_ticks = UINT64_MAX;
        memset(l->buckets, 0, sizeof(l->buckets));
}

/* ---- what happens ---- */

static bool started_just_before(const struct lineage_who *who, uint64_t at_ticks)
{
        return who->slack_ticks == 0 && who->from_ticks <= at_ticks && at_ticks - who->from_ticks <= LINEAGE_FORK_SLACK;
}

void lineage_fork(struct lineage *l, uint32_t parent, uint32_t child, uint64_t at_ticks)
{
        uint64_t slack = at_ticks < LINEAGE_FORK_SLACK ? at_ticks : LINEAGE_FORK_SLACK;
        struct lineage_node *node = newest_of(l, child);

        if (child == 0 || parent == child)
                return;
        if (node && node->who.from_ticks > at_ticks)
                return; /* told late: the number is another one's already */
        bool scanned = node && !node->gone && !node->told && started_just_before(&node->who, at_ticks);
        unsigned n_owed = 0;
        if (node && !node->gone && !scanned) {
                n_owed = node->n_owed + 1U; /* its end is told after this, or was lost: then a scan follows */
                set_gone(l, node, node->who.from_ticks);
        }

        /* Ended, by what was told: its first thread is, and another one forks. The number was given to nobody since. */
        struct lineage_node *from = newest_of(l, parent);
        if (from && from->who.from_ticks > at_ticks)
                from = NULL; /* a scan saw who has the number by now; who had it then is not known */
        if (from)
                shorten(l, from);
        if (!scanned)
                node = add_node(l, (struct lineage_who){ child, at_ticks - slack, slack });
        if (node) {
                node->told = true;
                node->n_owed = (uint8_t) (scanned ? node->n_owed : n_owed < UINT8_MAX ? n_owed : UINT8_MAX);
        }
        if (node)
                link_to(l, node, from, LINEAGE_EVENT);
}

void lineage_exit(struct lineage *l, uint32_t pid, uint64_t at_ticks)
{
        struct lineage_node *node = newest_of(l, pid);

        if (!node || node->gone || node->who.from_ticks > at_ticks)
                return;
        if (node->n_owed > 0)
                node->n_owed--;
        else
                set_gone(l, node, at_ticks);
}

void lineage_seen(struct lineage *l, uint32_t pid, const struct lineage_look *look)
{
        struct lineage_node *node = newest_of(l, pid);

        if (pid == 0 || (node && node->who.from_ticks > look->start_ticks))
                return; /* the second: an old look */
        /* When events were lost, another one may have had the number in between: moments are not enough to be the same. */
        bool same =
                node && can_have_started(&node->who, look->start_ticks) && !(l->scanning && node->who.slack_ticks != 0);
        if (node && !node->gone && !same)
                set_gone(l, node, node->who.from_ticks);
        node = newest_of(l, pid);
        if (!node || node->gone)
                node = add_node(l, (struct lineage_who){ .pid = pid });
        if (!node)
                return;
        node->who = (struct lineage_who){ .pid = pid, .from_ticks = look->start_ticks };
        node->seen = true;
        if (look->ppid > INIT_PID) { /* init takes every orphan: no news */
                struct lineage_node *parent = newest_of(l, look->ppid);
                if (parent && !parent->gone)
                        link_to(l, node, parent, LINEAGE_PARENT);
        }
}

void lineage_scan_begin(struct lineage *l, uint64_t now_ticks)
{
        l->gap_ticks = now_ticks;
        l->scanning = true;
        for (uint32_t i = 0; i < l->n_used; i++) {
                l->nodes[i].seen = false;
                l->nodes[i].n_owed = 0;
        }
}

void lineage_scan_end(struct lineage *l)
{
        l->scanning = false;
        for (uint32_t i = 0; i < l->n_used; i++) {
                struct lineage_node *node = &l->nodes[i];
                if (node->who.pid != 0 && !node->gone && !node->seen)
                        set_gone(l, node, node->who.from_ticks);
        }
}

void lineage_record(struct lineage *l, uint32_t pid, uint32_t ppid, int64_t begun_ticks, uint64_t lasted_ticks)
{
        int64_t from = begun_ticks - LINEAGE_SECOND;
        struct lineage_record *r = &l->records[l->n_records++ % LINEAGE_RECORDS];

        *r = (struct lineage_record){ .pid = pid,
                                      .ppid = ppid,
                                      .from_ticks = from > 0 ? (uint64_t) from : 0,
                                      .slack_ticks = 2 * LINEAGE_SECOND,
                                      .gap = l->record_gap };
        if (__builtin_add_overflow(r->from_ticks, lasted_ticks, &r->end_ticks))
                r->end_ticks = UINT64_MAX / 2;
        l->record_gap = false;
}

void lineage_record_gap(struct lineage *l)
{
        l->record_gap = true;
}

/* ---- records ---- */

static uint64_t oldest_record(const struct lineage *l)
{
        return l->n_records > LINEAGE_RECORDS ? l->n_records - LINEAGE_RECORDS : 0;
}

static const struct lineage_record *record_at(const struct lineage *l, uint64_t i)
{
        return &l->records[i % LINEAGE_RECORDS];
}

static struct lineage_who who_of(const struct lineage_record *r)
{
        return (struct lineage_who){ r->pid, r->from_ticks, r->slack_ticks };
}

static bool may_be_same(const struct lineage_who *a, const struct lineage_who *b)
{
        return a->pid == b->pid && a->from_ticks <= b->from_ticks + b->slack_ticks &&
               b->from_ticks <= a->from_ticks + a->slack_ticks;
}

/* Who is being asked about: a process with what is known of it. */
struct place {
        struct lineage_who who;
        const struct lineage_node *node; /* in the tree; NULL: not there */
        uint64_t record;                 /* its own, NO_RECORD: not known which */
        bool lives;
        struct lineage_look now; /* of one that lives */
};
#define NO_RECORD UINT64_MAX

static struct place place_of_record(const struct lineage *l, uint64_t i)
{
        return (struct place){ .who = who_of(record_at(l, i)), .record = i };
}

/* Of one that lives: who it is is known to the tick. */
static bool place_of_living(const struct lineage *l, uint32_t pid, lineage_look_fn *look, void *ctx, struct place *ret)
{
        *ret = (struct place){ .record = NO_RECORD, .lives = true };
        if (!look(ctx, pid, &ret->now))
                return false;
        ret->who = (struct lineage_who){ .pid = pid, .from_ticks = ret->now.start_ticks };
        const struct lineage_node *node = newest_of(l, pid);
        if (node && !node->gone && can_have_started(&node->who, ret->now.start_ticks))
                ret->node = node;
        return true;
}

static struct place place_of_node(const struct lineage *l, const struct lineage_node *node, lineage_look_fn *look,
                                  void *ctx)
{
        struct place place;

        if (!node->gone && place_of_living(l, node->who.pid, look, ctx, &place) && place.node == node)
                return place;
        return (struct place){ .who = node->who, .node = node, .record = NO_RECORD };
}

/* The record of one that ended: the only one that it can be, where none is missing since it began. */
static bool find_record(const struct lineage *l, const struct lineage_who *who, uint64_t *ret)
{
        uint64_t oldest = oldest_record(l);
        bool found = false, covered = false;

        if (l->record_gap)
                return false;
        for (uint64_t i = l->n_records; i > oldest && !covered; i--) {
                struct lineage_who other = who_of(record_at(l, i - 1));
                if (may_be_same(who, &other)) {
                        if (found)
                                return false;
                        found = true;
                        *ret = i - 1;
                }
                covered = record_at(l, i - 1)->end_ticks + record_at(l, i - 1)->slack_ticks < who->from_ticks;
                if (record_at(l, i - 1)->gap && !covered)
                        return false;
        }
        return found && covered;
}

/* Who had the number @pid when record @i was written: whoever ended first after it, or lives. */
static bool who_lived_at(const struct lineage *l, uint64_t i, uint32_t pid, lineage_look_fn *look, void *ctx,
                         struct place *ret)
{
        const struct lineage_record *r = record_at(l, i);
        bool gap = false;

        for (uint64_t j = i + 1; j < l->n_records; j++) {
                const struct lineage_record *next = record_at(l, j);
                gap = gap || next->gap;
                if (next->pid != pid)
                        continue;
                *ret = place_of_record(l, j);
                return !gap || next->from_ticks + next->slack_ticks <= r->end_ticks;
        }
        return place_of_living(l, pid, look, ctx, ret) && ret->now.start_ticks <= r->end_ticks;
}

static bool step_by_record(const struct lineage *l, const struct place *at, lineage_look_fn *look, void *ctx,
                           struct place *ret)
{
        uint64_t i = at->record;

        if (i == NO_RECORD && !find_record(l, &at->who, &i))
                return false;
        return record_at(l, i)->ppid != 0 && who_lived_at(l, i, record_at(l, i)->ppid, look, ctx, ret);
}

/* ---- sessions ---- */

static bool is_above(uint32_t sid, const struct lineage_look *from, lineage_look_fn *look, void *ctx)
{
        struct lineage_look at = *from;

        for (unsigned i = 0; i < LINEAGE_ABOVE_MAX && at.ppid > INIT_PID; i++) {
                if (at.ppid == sid)
                        return true;
                if (!look(ctx, at.ppid, &at))
                        return false;
        }
        return false;
}

/*
 * The leader of the session @sid, in which a process lives that started at @start. While it does, nobody else is given that
 * number. So it is who had the number at that moment, or, where everything was told since, who had it last.
 */
static bool leader_of(const struct lineage *l, uint32_t sid, uint64_t start, lineage_look_fn *look, void *ctx,
                      struct place *ret)
{
        const struct lineage_node *node = newest_of(l, sid);
        bool gap = l->record_gap;

        if (place_of_living(l, sid, look, ctx, ret))
                return ret->who.from_ticks <= start;
        if (node) {
                uint64_t latest = node->who.from_ticks + node->who.slack_ticks;
                *ret = (struct place){ .who = node->who, .node = node, .record = NO_RECORD };
                if (node->gone && latest <= start && start <= node->gone_ticks)
                        return true;
                if (node->who.from_ticks > l->gap_ticks && node->who.from_ticks <= start)
                        return true;
        }
        for (uint64_t i = l->n_records; i > oldest_record(l); i--) {
                const struct lineage_record *r = record_at(l, i - 1);
                if (r->pid == sid) {
                        bool lived_then = r->from_ticks + r->slack_ticks <= start && start <= r->end_ticks;
                        *ret = place_of_record(l, i - 1);
                        return lived_then || (!gap && r->from_ticks <= start);
                }
                gap = gap || r->gap;
        }
        return false;
}

/* ---- the trace ---- */

/* A living process's parent; where the kernel names one that only took it in, its session's leader. @above: a session
 * whose leader was found to be above it. */
static bool step_of_living(const struct lineage *l, const struct place *at, uint32_t *above, lineage_look_fn *look,
                           void *ctx, struct place *ret, enum lineage_link *ret_link)
{
        uint32_t sid = at->now.sid;

        if (sid > INIT_PID && sid != at->who.pid && sid != *above) {
                *ret_link = LINEAGE_SESSION;
                if (!is_above(sid, &at->now, look, ctx) && leader_of(l, sid, at->now.start_ticks, look, ctx, ret))
                        return true;
                *above = sid;
        }
        *ret_link = LINEAGE_PARENT;
        /* A "parent" that started after its child is a later owner of the number. */
        return at->now.ppid != 0 && place_of_living(l, at->now.ppid, look, ctx, ret) &&
               ret->now.start_ticks <= at->now.start_ticks;
}

static bool step_up(const struct lineage *l, const struct place *at, uint32_t *above, lineage_look_fn *look, void *ctx,
                    struct place *ret, enum lineage_link *ret_link)
{
        if (at->node && at->node->parent != 0) {
                *ret_link = (enum lineage_link) at->node->link;
                *ret = place_of_node(l, parent_of(l, at->node), look, ctx);
                return true;
        }
        if (at->lives)
                return step_of_living(l, at, above, look, ctx, ret, ret_link);
        *ret_link = LINEAGE_ACCOUNTED;
        return step_by_record(l, at, look, ctx, ret);
}

size_t lineage_trace(const struct lineage *l, uint32_t pid, const struct lineage_look *self, lineage_look_fn *look,
                     void *ctx, struct lineage_step *ret, size_t max)
{
        struct place at = {
                .who = { .pid = pid, .from_ticks = self->start_ticks }, .record = NO_RECORD, .lives = true, .now = *self
        };
        uint32_t above = 0;
        size_t n = 0;

        const struct lineage_node *node = newest_of(l, pid);
        if (node && !node->gone && can_have_started(&node->who, self->start_ticks))
                at.node = node;
        while (n < max && at.who.pid > INIT_PID) {
                enum lineage_link link;
                struct place next;

                if (!step_up(l, &at, &above, look, ctx, &next, &link))
                        break;
                if (next.who.from_ticks > at.who.from_ticks + at.who.slack_ticks)
                        break; /* nobody is older than his parent */
                ret[n++] = (struct lineage_step){ next.who, link };
                at = next;
        }
        return n;
}
