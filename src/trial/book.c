/* SPDX-License-Identifier: Apache-2.0 */
/* What the core said, written down by somebody else: the books that what must never happen is looked for in. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include "trial/trial.h"

struct book *book_of(struct trial *t, uint64_t lease_id)
{
        return lease_id > 0 && lease_id < LEASES_SEEN_MAX ? &t->books[lease_id] : NULL;
}

bool book_lives(const struct book *b)
{
        return b->life == LIFE_GRANTED || b->life == LIFE_ACTIVE;
}

bool book_is_here(const struct book *b)
{
        return book_lives(b) && b->parked != PARKED_OUT;
}

/* A reading that was taken before grants nothing any more. */
void book_changed(struct trial *t, uint32_t card)
{
        if (card >= t->n_cards || t->input.kind == INPUT_READING)
                return; /* a reading is not older than what it shows */
        t->cards[card].said.changed_ms = t->now_ms;
        t->cards[card].said.fresh = false;
}

/* Told once: to say it again changes nothing. */
static void process_ended(struct trial *t, struct identity identity)
{
        const struct process *known = world_process_find(t->world, identity);

        if (!known || known->state == PROCESS_ENDED)
                return;
        for (uint32_t c = 0; c < t->n_cards; c++)
                if (world_occupancy_find(t->world, c, identity))
                        book_changed(t, c);
}

void book_input(struct trial *t, const struct input *input)
{
        for (uint32_t c = 0; c < t->n_cards; c++)
                t->fresh_before[c] = t->cards[c].said.fresh;
        if (input->kind == INPUT_REQUEST)
                t->sent = input->request;
        if (input->kind == INPUT_PARK)
                t->sent_park = input->park;
        if (input->kind == INPUT_DEVICE)
                for (uint32_t c = 0; c < t->n_cards; c++)
                        if (strcmp(t->cards[c].uuid, input->device.uuid) == 0)
                                book_changed(t, c);
        if (input->kind == INPUT_PROCESS_ENDED)
                process_ended(t, input->process_ended);
        if (input->kind != INPUT_OUTCOME)
                return;
        struct book *b = book_of(t, input->outcome.lease_id);
        if (!b)
                return;
        if (input->outcome.outcome == OUTCOME_BLOCKED)
                b->blocked_ms = t->now_ms;
        if (input->outcome.outcome == OUTCOME_FAILED)
                b->failed_ms = t->now_ms;
}

/* Whose each row is from now on, in what was said and in what is on its way. */
static void rename_rows(struct trial *t, struct row_said *rows, uint32_t n, uint32_t client, uint64_t lease_id)
{
        for (uint32_t i = 0; i < n; i++) {
                uint32_t p = proc_find(t, rows[i].identity);
                if (p != NOBODY && t->procs[p].client == client)
                        rows[i].lease_id = lease_id;
        }
}

static void rename_all_rows(struct trial *t, uint32_t client, uint64_t lease_id)
{
        for (uint32_t c = 0; c < t->n_cards; c++)
                rename_rows(t, t->cards[c].said.rows, t->cards[c].said.n_rows, client, lease_id);
        for (uint32_t l = 0; l < LOOKS_MAX; l++)
                if (t->looks[l].used)
                        rename_rows(t, t->looks[l].said, t->looks[l].n_rows, client, lease_id);
}

static void come_along(struct trial *t, struct book *b, uint64_t lease_id)
{
        uint32_t root = t->clients[b->client].root;

        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].used && t->procs[p].client == NOBODY && t->procs[p].uid == b->uid &&
                    (p == root || (t->procs[p].n_ancestors > 0 &&
                                   identity_equal(t->procs[p].ancestors[0], t->procs[root].identity))))
                        t->procs[p].client = b->client;
        rename_all_rows(t, b->client, lease_id);
        b->adopted = true;
}

static void let_go(struct trial *t, struct book *b)
{
        rename_all_rows(t, b->client, 0);
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].client == b->client)
                        t->procs[p].client = NOBODY;
}

static void open_book(struct trial *t, const struct action *a)
{
        struct book *b = book_of(t, a->lease_id);

        if (!b)
                trial_break(t, "the trial itself: more than %d leases", LEASES_SEEN_MAX);
        if (a->lease_id <= t->last_lease_id || a->token != t->sent.token)
                trial_break(t, "L%" PRIu64 " answers to request %" PRIu64, a->lease_id, a->token);
        for (uint64_t id = t->last_lease_id + 1; id < a->lease_id; id++)
                t->books[id].life = LIFE_ENDED; /* a number that was drawn and never told */
        t->last_lease_id = a->lease_id;
        *b = (struct book){ .life = LIFE_WAITS,
                            .client = NOBODY,
                            .uid = t->sent.uid,
                            .bytes = a->bytes,
                            .managed = t->sent.managed,
                            .exclusive = t->sent.exclusive,
                            .n_more = t->sent.adopt ? 0 : t->sent.n_more,
                            .kill_at_end = t->sent.kill_at_end,
                            .kill_left = t->sent.kill_left,
                            .filler = t->sent.filler,
                            .due_ms = t->sent.start_ms,
                            .ways = t->sent.ways.named,
                            .priority = t->sent.priority,
                            .slot_ms = t->sent.slot_ms,
                            .arrived_ms = t->now_ms };
        for (uint32_t c = 0; c < t->n_clients; c++)
                if (t->clients[c].token == a->token) {
                        b->client = c;
                        t->clients[c].lease_id = a->lease_id;
                }
}

/* What was seen before that is too old by now, on each of its devices. */
static void all_changed(struct trial *t, const struct book *b)
{
        for (uint32_t c = 0; c < t->n_cards; c++)
                if (book_is_on(b, c))
                        book_changed(t, c);
}

static void note_devices(struct trial *t, const struct action *a, struct book *b)
{
        const struct lease *l = world_lease_by_id(t->world, a->lease_id);

        b->device = a->device;
        b->devices = UINT64_C(1) << a->device;
        for (uint32_t i = 0; l && i < lease_n_parts(l); i++)
                b->devices |= UINT64_C(1) << lease_part(l, i).device;
        if (l && (uint32_t) __builtin_popcountll(b->devices) != 1U + b->n_more)
                trial_break(t, "I10: L%" PRIu64 " asked for %u devices, and is granted on others", a->lease_id,
                            1U + b->n_more);
}

static void granted(struct trial *t, const struct action *a, struct book *b)
{
        note_devices(t, a, b);
        check_grant(t, a);
        b->life = LIFE_GRANTED;
        b->bytes = a->bytes;
        b->granted_ms = t->now_ms;
        b->slot_end_ms = b->slot_ms ? u64_max(t->now_ms, b->due_ms) + b->slot_ms : 0;
        b->fits_since_ms = 0;
        t->count.booked += b->due_ms != 0;
        for (uint32_t c = 0; c < t->n_cards; c++)
                t->granted[c] = t->granted[c] || book_is_on(b, c);
        t->count.grants++;
        t->count.gangs += b->n_more != 0;
        b->backfill = a->why.rule >= RULE_ENDS_IN_TIME && a->why.rule <= RULE_LEDGER_SET_ASIDE;
        t->count.backfills += a->why.rule >= RULE_ENDS_IN_TIME && a->why.rule <= RULE_LEDGER_SET_ASIDE;
        t->count.passes += a->why.rule == RULE_PASSES_HEAD;
        if (a->why.rule == RULE_ADOPTED && b->client != NOBODY)
                come_along(t, b, a->lease_id);
}

static void waits(const struct trial *t, const struct action *a, struct book *b)
{
        bool for_device = a->why.rule == RULE_NO_USABLE_DEVICE || a->why.rule == RULE_READING_STALE ||
                          a->why.rule == RULE_READING_UNSETTLED || a->why.rule == RULE_ABOVE_CEILING;

        if (a->why.rule == RULE_NO_ROOM && a->why.start_ms != 0)
                b->was_head = true;
        if (for_device)
                b->waits_since_ms = 0;
        else if (b->waits_since_ms == 0)
                b->waits_since_ms = t->now_ms;
}

void book_nobody_waited(struct trial *t, uint64_t ms)
{
        for (uint64_t id = 1; id <= t->last_lease_id; id++)
                if (t->books[id].waits_since_ms != 0)
                        t->books[id].waits_since_ms += ms;
        check_strangers_slept(t, ms);
}

static void ended(struct trial *t, const struct action *a, struct book *b)
{
        if (b->life >= LIFE_GRANTED && a->why.end != END_WORKERS_GONE) /* those were not there at the last look */
                all_changed(t, b);
        if (a->why.end == END_UNADOPTED)
                let_go(t, b);
        b->life = LIFE_ENDED;
        b->parked = PARKED_NOT;
        b->charged_bytes = 0;
        t->count.ended++;
}

/* A slot does not run while its lease is parked. */
static void returned(struct trial *t, struct book *b)
{
        t->count.thaws += b->parked == PARKED_BACK;
        if (b->slot_stands_ms != 0 && b->slot_end_ms != 0)
                b->slot_end_ms += t->now_ms - b->slot_stands_ms;
        b->slot_stands_ms = 0;
        b->by_person = b->gave_way = false;
        b->parked = PARKED_NOT;
}

/* What it gave back before its park was undone may be somebody else's by now: it goes on with what is left of its promise. */
static void undone(struct trial *t, const struct action *a, struct book *b)
{
        const struct lease *l = world_lease_by_id(t->world, a->lease_id);
        const struct holder *h;

        t->count.undone++;
        b->by_person = false;
        if (l)
                each_part (t->world, l, h)
                        b->bytes = u64_min(b->bytes, h->reserved_bytes);
}

static void changed(struct trial *t, struct book *b)
{
        const struct change *c = &t->sent_change;

        if (!c->is_admin && c->uid != b->uid)
                trial_break(t, "somebody else changed a lease of %u", b->uid);
        t->count.changed++;
        if (c->what & CHANGE_PRIORITY)
                b->priority = c->priority;
        if (c->what & CHANGE_START) {
                b->due_ms = c->start_ms;
                t->count.moved++;
        }
        if (!(c->what & (CHANGE_SLOT | CHANGE_EXTEND)))
                return;
        bool extends = c->what & CHANGE_EXTEND, stands = b->slot_stands_ms != 0;
        if (!extends && stands)
                b->slot_stands_ms = t->now_ms;
        uint64_t from_ms = extends ? u64_max(b->slot_end_ms, stands ? b->slot_stands_ms : t->now_ms) : t->now_ms;
        if (b->life == LIFE_WAITS)
                b->slot_ms = extends ? b->slot_ms + c->slot_ms : c->slot_ms;
        else
                b->slot_end_ms = extends || c->slot_ms ? from_ms + c->slot_ms : 0;
}

/* Nothing came back: it was asked in vain, or its memory stayed where it is. */
static bool was_never_away(const struct action *a, const struct book *b)
{
        return a->why.rule == RULE_LET_GO || (a->why.rule == RULE_PARK_UNDONE && b->way != WAY_OUT_CHECKPOINT);
}

/* It comes back at once to where it was: what it has again is what nobody else was given. */
static bool is_rehearsal(struct trial *t, uint64_t lease_id)
{
        const struct lease *l = world_lease_by_id(t->world, lease_id);
        return l && l->park.cause == PARK_REHEARSAL;
}

static void parking(struct trial *t, const struct action *a, struct book *b)
{
        switch ((unsigned) a->kind) {
        case ACTION_ASKED:
                check_asked(t, a);
                if (b->parked != PARKED_OUT) /* who broke his promise is asked again, and stays away in the books */
                        b->parked = PARKED_ASKED;
                b->asked_ms = t->now_ms;
                b->way = (uint8_t) a->why.limit;
                t->count.asked++;
                break;
        case ACTION_PARKED:
                if (a->why.rule == RULE_HELD) { /* in place, with its memory */
                        t->count.held++;
                        break;
                }
                b->parked = PARKED_OUT;
                b->gave_way = true;
                b->parked_ms = t->now_ms;
                if (b->slot_stands_ms == 0)
                        b->slot_stands_ms = t->now_ms;
                b->fits_since_ms = 0;
                t->count.parks++;
                t->count.gang_parks += b->n_more != 0;
                break;
        case ACTION_THAWING:
                check_thawing(t, a);
                b->bytes = a->bytes; /* it counts in full again */
                b->by_person = b->gave_way = false;
                b->parked = PARKED_BACK;
                b->back_ms = t->now_ms;
                for (uint32_t c = 0; c < t->n_cards; c++)
                        if (book_is_on(b, c))
                                t->granted[c] = !is_rehearsal(t, a->lease_id);
                break;
        case ACTION_THAWED:
                if (a->why.rule == RULE_LET_GO)
                        t->count.let_go++;
                else
                        returned(t, b);
                break;
        case ACTION_STUCK:
                check_stuck(t, a);
                b->parked = PARKED_STUCK;
                t->count.stuck++;
                break;
        }
        if (a->kind == ACTION_THAWED && !was_never_away(a, b))
                all_changed(t, b);
}

/* Parks by a person: his word, and what takes it back. */
static void person_said(struct trial *t, struct book *b)
{
        const struct park_call *call = &t->sent_park;

        if (call->uid != b->uid && !call->is_admin)
                trial_break(t, "somebody else's word counts for a lease of %u", b->uid);
        t->count.rehearsed += call->what == PARK_CALL_REHEARSE;
        t->count.forgiven += call->what == PARK_CALL_FORGIVE;
        if (call->what == PARK_CALL_PARK) {
                b->by_person = true;
                b->until_ms = call->for_ms != 0 ? t->now_ms + call->for_ms : 0;
        }
        if (call->what == PARK_CALL_THAW || call->what == PARK_CALL_REHEARSE)
                b->by_person = false;
}

static void in_order(struct trial *t, const struct action *a, const struct book *b)
{
        if (a->id != t->next_action_id)
                trial_break(t, "action %" PRIu64 " where %" PRIu64 " was due", a->id, t->next_action_id);
        t->next_action_id++;
        if (a->kind == ACTION_NONE || a->kind >= ACTION_KIND_N)
                trial_break(t, "an action of no kind");
        if (a->kind != ACTION_REFUSED && b && b->life == LIFE_ENDED)
                trial_break(t, "I8: %s about L%" PRIu64 ", which has ended",
                            action_kind_name((enum action_kind) a->kind), a->lease_id);
}

void book_action(struct trial *t, const struct action *a)
{
        struct book *b = book_of(t, a->lease_id);

        in_order(t, a, b);
        if (a->kind == ACTION_QUEUED || (a->kind == ACTION_GRANTED && (!b || b->life == LIFE_NONE))) {
                open_book(t, a);
                b = book_of(t, a->lease_id);
                t->count.queued += a->kind == ACTION_QUEUED;
        }
        if (b && a->why.rule == RULE_STEPPED_ASIDE)
                b->stepped_aside = true;
        if (b && (a->kind == ACTION_QUEUED || a->kind == ACTION_WAITING))
                waits(t, a, b);
        if (b && a->token != 0 && a->token == t->sent_park.token && a->kind != ACTION_REFUSED)
                person_said(t, b);
        if (b && a->why.rule == RULE_PARK_UNDONE)
                undone(t, a, b);
        switch ((enum action_kind) a->kind) {
        case ACTION_GRANTED:
                granted(t, a, b);
                break;
        case ACTION_ACTIVE:
                b->life = LIFE_ACTIVE;
                if (b->parked == PARKED_BACK)
                        returned(t, b);
                break;
        case ACTION_DRAINING:
                if (!book_lives(b))
                        trial_break(t, "I8: L%" PRIu64 " drains, and held nothing", a->lease_id);
                b->life = LIFE_DRAINS;
                t->count.drained++;
                all_changed(t, b);
                break;
        case ACTION_ENDED:
                ended(t, a, b);
                break;
        case ACTION_ASKED:
        case ACTION_PARKED:
        case ACTION_THAWING:
        case ACTION_THAWED:
        case ACTION_STUCK:
                parking(t, a, b);
                break;
        case ACTION_HAND:
                check_order(t, a);
                break;
        case ACTION_REFUSED:
                t->count.refusals++;
                break;
        case ACTION_PLAN:
                t->count.plans += a->why.rule == RULE_PLAN_BEGAN;
                if (a->why.rule == RULE_PLAN_BEGAN) {
                        check_plan_began(t, a);
                        if (b)
                                b->was_head = true; /* as good as a start in sight */
                }
                break;
        case ACTION_STRANGER:
                check_stranger(t, a);
                check_enforced(t, a);
                break;
        case ACTION_ENFORCE:
                check_enforced(t, a);
                break;
        case ACTION_MANAGER:
        case ACTION_READ:
                if (a->device >= t->n_cards)
                        trial_break(t, "a look at device %u", a->device);
                break;
        case ACTION_NONE:
        case ACTION_QUEUED:
        case ACTION_RENEWED:
        case ACTION_WAITING:
        case ACTION_ORPHANED:
        case ACTION_WARNING:
        case ACTION_DEVICE:
        case ACTION_EYES:
        case ACTION_RESTARTED:
        case ACTION_IDLE:
        case ACTION_KIND_N:
                break;
        case ACTION_CHANGED:
                if (a->token != 0 && a->token == t->sent_change.token)
                        changed(t, b);
                break;
        }
}
