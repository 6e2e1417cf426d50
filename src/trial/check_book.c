/* SPDX-License-Identifier: Apache-2.0 */
/* What was promised for later (design 2, 4.2), and who is held in place (4.4): by what was said before. */
#include <inttypes.h>
#include "trial/trial.h"

/* A booking that is due: what it may take until it is there, or until somebody gives way for it. */
enum { THERE_MS = 2000 + 3000, HELD_MS = 2000 + 3000, RECENT_MS = 5000, IDLE_WORD_MS = 1000 };

static const struct entry *entry_of(struct trial *t, uint64_t lease_id)
{
        const struct lease *l = world_lease_by_id(t->world, lease_id);
        return l ? world_entry_get(t->world, l->entry) : NULL;
}

static bool is_booked_on(struct trial *t, uint64_t lease_id, uint32_t card)
{
        const struct book *b = book_of(t, lease_id);
        const struct entry *e = b && b->life == LIFE_WAITS && b->due_ms != 0 ? entry_of(t, lease_id) : NULL;
        return e && (e->devices & (UINT64_C(1) << card));
}

/* ---- nobody is let in who would be in its way ---- */

/* By no way out that it named, and none that was seen to work. */
static bool stays_put(struct trial *t, uint64_t lease_id)
{
        const struct lease *l = world_lease_by_id(t->world, lease_id);
        return l && ways_out_usable(&l->ways) == 0 && !l->filler;
}

/* What cannot be taken back from those who are there on @card, and have not said that they leave by then. */
static uint64_t stays_bytes(struct trial *t, uint32_t card, uint64_t at_ms)
{
        uint64_t sum = 0;

        for (uint64_t id = 1; id <= t->last_lease_id; id++) {
                const struct book *b = &t->books[id];
                bool leaves = b->slot_end_ms != 0 && b->slot_end_ms <= at_ms;
                if (book_is_here(b) && book_is_on(b, card) && !leaves && b->parked == PARKED_NOT && stays_put(t, id))
                        sum += b->bytes;
        }
        return sum;
}

static uint64_t booked_bytes(struct trial *t, uint32_t card, uint64_t at_ms)
{
        uint64_t sum = 0;

        for (uint64_t id = 1; id <= t->last_lease_id; id++) {
                const struct book *b = &t->books[id];
                if (is_booked_on(t, id, card) && b->due_ms <= at_ms && at_ms < b->due_ms + b->slot_ms)
                        sum += entry_of(t, id)->demand_bytes; /* of a share: less, where less can be given by now */
        }
        return sum;
}

/* Whoever has begun since the last look may be who has what is there, and not the driver; and where nobody has seen yet what that
 * keeps, so may whoever cannot be read. */
static uint64_t there_is_bytes(const struct trial *t, uint32_t card)
{
        const struct card *at = &t->cards[card];

        if (!t->world->devices[card].driver_own_known)
                return at->total_bytes;
        for (uint64_t id = 1; id <= t->last_lease_id; id++)
                if (book_is_here(&t->books[id]) && book_is_on(&t->books[id], card) &&
                    t->books[id].granted_ms >= at->said.taken_ms)
                        return at->total_bytes;
        return at->total_bytes - at->driver_bytes;
}

static void check_beside_bookings_on(struct trial *t, const struct action *a, uint32_t card, const struct book *later)
{
        uint64_t end_ms = later->slot_ms != 0 ? t->now_ms + later->slot_ms : UINT64_MAX;

        if (later->priority == PRIORITY_URGENT || later->due_ms != 0 || !stays_put(t, a->lease_id))
                return; /* ahead of them all; one of them; or taken back when the time has come */
        for (uint64_t id = 1; id <= t->last_lease_id; id++) {
                const struct book *b = &t->books[id];
                uint64_t begins_ms = u64_max(b->due_ms, t->now_ms);
                if (!is_booked_on(t, id, card) || end_ms <= begins_ms || b->due_ms + b->slot_ms <= t->now_ms)
                        continue;
                uint64_t stays = stays_bytes(t, card, begins_ms), booked = booked_bytes(t, card, begins_ms);
                uint64_t had = there_is_bytes(t, card);
                if (stays + booked + a->bytes > had)
                        trial_break(t,
                                    "booking: L%" PRIu64 " begins, would be there when L%" PRIu64
                                    " does, and cannot be taken back: %" PRIu64 " and %" PRIu64 " and %" PRIu64
                                    " of %" PRIu64,
                                    a->lease_id, id, stays, booked, a->bytes, had);
        }
}

void check_beside_bookings(struct trial *t, const struct action *a, const struct book *later)
{
        for (uint32_t c = 0; c < t->n_cards; c++)
                if (book_is_on(later, c))
                        check_beside_bookings_on(t, a, c, later);
}

/* ---- it is there at its time ---- */

static bool is_seen(const struct trial *t, uint32_t card)
{
        const struct said *said = &t->cards[card].said;

        return !t->cards[card].lost && t->eyes_open && !t->degraded && said->told && said->settled &&
               said->used_known && said->per_process && t->now_ms - said->arrived_ms <= RECENT_MS;
}

/* Somebody who may be ahead of it: urgent, another booking, or memory that is already on its way to somebody. */
static bool is_anybody_ahead(struct trial *t, uint32_t card, uint64_t but)
{
        for (uint32_t i = 0; i < t->world->n_entries; i++) {
                const struct entry *e = &t->world->entries[i];
                const struct lease *l = e->kind == ENTRY_NONE ? NULL : world_lease_get(t->world, e->lease);
                if (l && l->id != but && (e->devices & (UINT64_C(1) << card)) &&
                    (e->priority == PRIORITY_URGENT || (e->kind == ENTRY_BOOKING && e->due_ms <= t->now_ms)))
                        return true;
        }
        for (uint32_t i = 0; i < t->world->n_plans; i++)
                if (t->world->plans[i].id != 0)
                        return true;
        return false;
}

/* Does everybody on @card stand there as he was promised, at work and with nothing under way? */
static bool is_calm(struct trial *t, uint32_t card)
{
        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                const struct lease *l = &t->world->leases[i];
                const struct book *b = t->world->lease_ids[i] != 0 ? book_of(t, l->id) : NULL;
                if (b && b->life >= LIFE_GRANTED && book_is_on(b, card) && (l->state != LEASE_ACTIVE || l->exclusive))
                        return false;
        }
        return true;
}

/* Bytes that come for the asking: who never said no, is no equal at work, and needs no host memory to go. */
static uint64_t may_be_asked_bytes(struct trial *t, uint32_t card, const struct book *booking)
{
        uint8_t easy = WAY_OUT_BIT(WAY_OUT_COOPERATE) | WAY_OUT_BIT(WAY_OUT_RESTART);
        uint64_t sum = 0;

        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                const struct lease *l = &t->world->leases[i];
                const struct book *b = t->world->lease_ids[i] != 0 ? book_of(t, l->id) : NULL;
                const struct holder *h = b ? world_part_on(t->world, l, card) : NULL;
                if (!h || b->life != LIFE_ACTIVE || l->n_more != 0 || h->pinned || h->protected || !h->used_known ||
                    h->managed || !(b->ways & easy) || b->asked_ms != 0 || l->park.returned_ms != 0 || l->ending ||
                    l->park.not_before_ms > t->now_ms || l->owner_gone)
                        continue;
                if (booking->priority + t->config.margin <= l->priority &&
                    booking->priority + t->config.margin <= l->kept_rank)
                        sum += u64_min(h->used_bytes, b->bytes);
        }
        return sum;
}

static void check_is_there(struct trial *t, uint64_t id)
{
        struct book *b = book_of(t, id);
        const struct entry *e = entry_of(t, id);
        uint32_t card = e ? (uint32_t) __builtin_ctzll(e->devices) : 0;

        bool due = e && t->now_ms >= b->due_ms && t->now_ms + RECENT_MS < b->due_ms + b->slot_ms;
        if (!due || card >= t->n_cards || !is_seen(t, card) || is_anybody_ahead(t, card, id) || !is_calm(t, card)) {
                b->fits_since_ms = 0;
                return;
        }
        uint64_t committed = u64_max(check_committed_bytes(t, card), card_used_bytes(t, card));
        uint64_t total = t->cards[card].total_bytes;
        bool fits = committed + e->demand_bytes <= total;
        bool comes = t->hands_up && committed + e->demand_bytes <= total + may_be_asked_bytes(t, card, b);
        if (!fits && !comes) {
                b->fits_since_ms = 0;
                return;
        }
        if (b->fits_since_ms == 0)
                b->fits_since_ms = t->now_ms;
        if (t->now_ms - b->fits_since_ms > THERE_MS)
                trial_break(t, "booking: L%" PRIu64 " is due since %" PRIu64 " ms, %s, and is not there", id,
                            t->now_ms - b->due_ms, fits ? "fits" : "others would give way");
}

/* ---- held in place ---- */

/* Says that it works, or said so a moment ago. */
static bool is_at_work(const struct trial *t, const struct holder *h, uint64_t grace_ms)
{
        return h->tells_idle &&
               (h->idle_since_ms == 0 || t->now_ms <= h->idle_since_ms + t->config.hold_after_ms + grace_ms);
}

/* Somebody more important than a filler; who is over time is one himself. */
static bool is_anybody_at_work(struct trial *t, const struct lease *but)
{
        world_each_holder_of (t->world, i, HOLDER_LEASE) {
                const struct holder *h = &t->world->holders[i];
                const struct lease *l = lease_is_on(but, h->device) ? world_lease_get(t->world, h->lease) : NULL;
                if (l && l != but && l->state == LEASE_ACTIVE && is_at_work(t, h, IDLE_WORD_MS) &&
                    l->priority < PRIORITY_FILLER && !l->over_time)
                        return true;
        }
        return false;
}

/* Who is locked in place is a filler whose program may be checkpointed, beside somebody who says that he works. */
void check_hold(struct trial *t, const struct action *a)
{
        const struct lease *l = world_lease_by_id(t->world, a->lease_id);
        const struct book *b = book_of(t, a->lease_id);
        const struct holder *h = l ? world_holder_get(t->world, l->holder) : NULL;

        if (!l || !h)
                return;
        if (!t->world->config.hold_in_place || t->degraded)
                trial_break(t, "held: L%" PRIu64 " is locked in place, and nobody may be", a->lease_id);
        if (h->pinned || h->protected || (l->priority < PRIORITY_FILLER && !l->over_time))
                trial_break(t, "held: L%" PRIu64 " is locked in place, and is no filler to be held", a->lease_id);
        const struct habit *habit = world_habit_find(t->world, l->uid, l->consumer);
        bool proven = l->ways.proven || (habit && habit->proven); /* by an earlier run of the same */
        if (!(b->ways & WAY_OUT_BIT(WAY_OUT_CHECKPOINT)) && !b->filler && !proven)
                trial_break(t, "held: L%" PRIu64 " is locked in place, and nobody said that it may be", a->lease_id);
        if (!is_anybody_at_work(t, l))
                trial_break(t, "held: L%" PRIu64 " is locked in place for nobody who works", a->lease_id);
}

static void check_let_go(struct trial *t, const struct lease *l)
{
        struct book *b = book_of(t, l->id);

        if (!b || l->state != LEASE_HELD || l->park.step != PARK_HELD_HERE ||
            (t->world->config.hold_in_place && is_anybody_at_work(t, l))) {
                if (b)
                        b->held_since_ms = 0;
                return;
        }
        if (b->held_since_ms == 0)
                b->held_since_ms = t->now_ms;
        if (t->now_ms - b->held_since_ms > HELD_MS)
                trial_break(t, "held: L%" PRIu64 " is kept locked for nobody since %" PRIu64 " ms", l->id,
                            t->now_ms - b->held_since_ms);
}

void check_promises_in_time(struct trial *t)
{
        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                const struct lease *l = &t->world->leases[i];
                if (t->world->lease_ids[i] == 0)
                        continue;
                if (l->booked_ms != 0 && l->state == LEASE_QUEUED && book_of(t, l->id))
                        check_is_there(t, l->id);
                if (t->config.hold_in_place || l->state == LEASE_HELD)
                        check_let_go(t, l);
        }
}
