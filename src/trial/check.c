/* SPDX-License-Identifier: Apache-2.0 */
/* What must never happen (design 5), looked for after every step that said something. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include "arbiter/free.h"
#include "arbiter/rank.h"
#include "trial/trial.h"

enum { WORLD_CHECK_EVERY = 16 };

/* ---- a grant ---- */

/* How long those that came before @b said that they would run, where it may run, from when it came. */
static uint64_t declared_ahead_ms(const struct trial *t, const struct book *b, uint64_t devices)
{
        uint64_t longest = 0;

        for (uint64_t id = 1; id <= t->last_lease_id; id++) {
                const struct book *other = &t->books[id];
                if (other->granted_ms != 0 && other->arrived_ms < b->arrived_ms && (devices & other->devices) != 0)
                        longest = u64_max(longest, u64_sub0(other->slot_end_ms, b->arrived_ms));
        }
        return longest;
}

/* Something is promised there for a time at which @e would still run. */
static bool is_before_booking(const struct trial *t, const struct entry *e, uint32_t device)
{
        for (uint32_t i = 0; i < t->world->n_entries; i++) {
                const struct entry *b = &t->world->entries[i];
                if (b->kind == ENTRY_BOOKING && (b->devices & (UINT64_C(1) << device)) &&
                    (e->limit_ms == 0 || t->now_ms + e->limit_ms > b->due_ms))
                        return true;
        }
        return false;
}

/* I11: somebody of 2 to 4 waits beyond every reason, and something that came later begins. */
static void check_waits(struct trial *t, const struct action *a, const struct book *later)
{
        if (later->priority == PRIORITY_URGENT || later->was_head || later->due_ms != 0 ||
            (a->why.rule != RULE_FITS && a->why.rule != RULE_PASSES_HEAD && a->why.rule != RULE_RECLAIMED))
                return;
        for (uint32_t i = 0; i < t->world->n_entries; i++) {
                const struct entry *e = &t->world->entries[i];
                const struct lease *l = e->kind == ENTRY_REQUEST ? world_lease_get(t->world, e->lease) : NULL;
                const struct book *b = l ? book_of(t, l->id) : NULL;
                if (!b || b->life != LIFE_WAITS || l->id == a->lease_id || b->arrived_ms >= later->arrived_ms ||
                    l->priority < PRIORITY_INTERACTIVE || l->priority > PRIORITY_BATCH || b->stepped_aside ||
                    e->n_more != 0 || later->n_more != 0 || !(e->devices & (UINT64_C(1) << a->device)) ||
                    e->wait_kind == WAIT_ABOVE_CEILING || e->held_since_ms != 0 || is_before_booking(t, e, a->device))
                        continue;
                uint64_t bound = MINUTES(30) + SECONDS(600) * u64_sub0(l->priority, PRIORITY_INTERACTIVE) +
                                 2 * t->config.immune_max_ms;
                if (b->waits_since_ms == 0 || t->now_ms - b->waits_since_ms <= bound ||
                    later->arrived_ms <= b->waits_since_ms + MINUTES(30) || e->demand_bytes > a->bytes)
                        continue;
                if (t->now_ms - b->waits_since_ms > bound + declared_ahead_ms(t, b, e->devices))
                        trial_break(t,
                                    "I11: L%" PRIu64 " came %" PRIu64 " s after L%" PRIu64
                                    ", which wants no more, and begins before it (%s)",
                                    a->lease_id, (later->arrived_ms - b->arrived_ms) / 1000, l->id,
                                    rule_name((enum rule) a->why.rule));
        }
}

/* Who gave way and took its memory again without a word is on its way off once more, or stuck on it: it is beside whoever was
 * let in meanwhile, and has no right to be alone until it comes back in order. */
static void check_beside(struct trial *t, const struct action *a, const struct book *b)
{
        for (uint64_t id = 1; id <= t->last_lease_id; id++) {
                const struct book *other = &t->books[id];
                if (id != a->lease_id && book_is_here(other) && !other->gave_way &&
                    (other->devices & b->devices) != 0 && (other->exclusive || b->exclusive))
                        trial_break(t, "L%" PRIu64 " beside L%" PRIu64 ", and one of them is exclusive", a->lease_id,
                                    id);
        }
}

void check_grant(struct trial *t, const struct action *a)
{
        const struct book *b = book_of(t, a->lease_id);

        if (!b || a->device >= t->n_cards || b->life != LIFE_WAITS)
                trial_break(t, "I8: L%" PRIu64 " is granted on %u, and was not waiting", a->lease_id, a->device);
        if (!book_is_on(b, a->device))
                trial_break(t, "I8: L%" PRIu64 " is granted on %u, and has nothing there", a->lease_id, a->device);
        check_beside(t, a, b);
        if (a->why.rule == RULE_ADOPTED)
                return;
        for (uint32_t c = 0; c < t->n_cards; c++) {
                const struct said *said = &t->cards[c].said;
                if (!book_is_on(b, c))
                        continue;
                uint64_t age_ms = t->now_ms - said->taken_ms;
                if (!t->eyes_open || !said->told || !said->used_known || !said->settled || t->cards[c].lost)
                        trial_break(t, "I2: L%" PRIu64 " is granted without a figure to go by", a->lease_id);
                if (age_ms > t->config.reading_max_age_ms || !t->fresh_before[c])
                        trial_break(t, "I2: L%" PRIu64 " is granted on a reading of %" PRIu64 " ms ago%s", a->lease_id,
                                    age_ms, t->fresh_before[c] ? "" : ", older than the last change");
        }
        check_waits(t, a, b);
        check_beside_bookings(t, a, b);
}

/* ---- an order to the hands ---- */

static bool is_signal(const struct action *a)
{
        return a->hand == HAND_SIGNAL || a->hand == HAND_KILL_TREE;
}

/* By what may a process of this lease be ended at all? */
static bool may_end(struct trial *t, const struct book *b)
{
        bool slot_over = b->kill_at_end && b->slot_end_ms != 0 && t->now_ms >= b->slot_end_ms;
        bool way = b->parked == PARKED_ASKED && (b->way == WAY_OUT_KILL || b->way == WAY_OUT_RESTART);

        return slot_over || b->kill_left || way;
}

/* The hands look at the card once more: they have to be told how much may be used there at most. */
static void check_restore(struct trial *t, const struct action *a, const struct proc *p)
{
        uint64_t total = t->cards[p->card].total_bytes, limit = hands_limit_bytes(t, a, p);

        /* what it really has: some may have been given back between the last reading and the lock */
        if (p->away && (limit > total || limit + p->bytes > total))
                trial_break(t,
                            "I2: pid %u of L%" PRIu64 " may be restored beside %" PRIu64 ", with %" PRIu64
                            " of %" PRIu64,
                            a->process.pid, a->lease_id, limit, p->bytes, total);
}

void check_order(struct trial *t, const struct action *a)
{
        struct book *b = book_of(t, a->lease_id);
        uint32_t i = proc_find(t, a->process);

        if (rule_is_enforcement(a->why.rule)) {
                check_stranger_order(t, a);
                return;
        }
        if (!b || b->life == LIFE_NONE || b->life == LIFE_WAITS || b->life == LIFE_ENDED)
                trial_break(t, "I3: an order for L%" PRIu64 ", which holds nothing", a->lease_id);
        if (i != NOBODY && t->procs[i].client != b->client)
                trial_break(t, "I3: an order for L%" PRIu64 " against pid %u, which is not its own", a->lease_id,
                            a->process.pid);
        if (a->hand == HAND_HOLD)
                check_hold(t, a);
        if (a->hand == HAND_RESTORE && i != NOBODY)
                check_restore(t, a, &t->procs[i]);
        if (!is_signal(a))
                return;
        if (!t->world->eyes_answering || t->degraded)
                trial_break(t, "I7: a signal for L%" PRIu64 " while in doubt", a->lease_id);
        if (!may_end(t, b) && !b->ending)
                trial_break(t, "I3: a signal for L%" PRIu64 " that nobody named", a->lease_id);
        if (b->parked == PARKED_ASKED && b->way == WAY_OUT_KILL && !(b->ways & WAY_OUT_BIT(WAY_OUT_KILL)))
                trial_break(t, "I4: L%" PRIu64 " is killed, and kill was never named", a->lease_id);
        b->ending = true;
        if (a->signal != SIGKILL || i == NOBODY || !t->procs[i].alive)
                return;
        if (a->hand == HAND_KILL_TREE && a->cgroup_id == 0)
                trial_break(t, "I3: a tree is killed that nobody made");
}

/* ---- the tables ---- */

static void check_claims(struct trial *t)
{
        world_each_holder_of (t->world, i, HOLDER_CLAIM) {
                const struct holder *h = &t->world->holders[i];
                struct entry *e = world_entry_get(t->world, h->entry);
                if (h->claim_kind == CLAIM_HEAD && (!e || !entry_is_head_of(e, h->device)))
                        trial_break(t, "I10: a claim outlives its head");
                if (h->claim_kind == CLAIM_PLAN && (!e || !world_plan_on(t->world, h->entry, h->device)))
                        trial_break(t, "I10: a claim outlives its plan");
        }
}

static void check_plans(struct trial *t)
{
        for (uint32_t i = 0; i < t->world->n_plans; i++) {
                const struct plan *p = &t->world->plans[i];
                if (p->id == 0)
                        continue;
                if (!world_entry_get(t->world, p->entry))
                        trial_break(t, "I10: plan %" PRIu64 " outlives whom it was for", p->id);
                for (uint32_t v = 0; v < p->n_victims; v++)
                        for (uint32_t k = 0; k < t->world->n_plans; k++)
                                for (uint32_t w = 0; k > i && w < t->world->plans[k].n_victims; w++)
                                        if (t->world->plans[k].id != 0 && p->victims[v].state != VICTIM_DONE &&
                                            !ref_equal(t->world->plans[k].entry, p->entry) && /* one gang's */
                                            t->world->plans[k].victims[w].state != VICTIM_DONE &&
                                            ref_equal(p->victims[v].lease, t->world->plans[k].victims[w].lease))
                                                trial_break(t, "I10: two plans share a victim");
        }
}

static void check_ledger(struct trial *t)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < t->world->n_leases; i++)
                if (t->world->lease_ids[i] != 0)
                        sum += t->world->leases[i].park.charged_bytes;
        if (sum != t->world->ledger_charged_bytes)
                trial_break(t, "I5: the ledger says %" PRIu64 ", its leases %" PRIu64, t->world->ledger_charged_bytes,
                            sum);
}

static void check_lives(struct trial *t)
{
        uint32_t n = 0, n_mine = 0;

        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                uint64_t id = t->world->lease_ids[i];
                const struct book *b = book_of(t, id);
                if (id == 0)
                        continue;
                n++;
                if (!b || b->life == LIFE_ENDED || b->life == LIFE_NONE)
                        trial_break(t, "I8: L%" PRIu64 " ended, and is there", id);
                if ((b->life == LIFE_WAITS) != (t->world->leases[i].state == LEASE_QUEUED))
                        trial_break(t, "I6: L%" PRIu64 " is %s, which nobody said", id,
                                    lease_state_name((enum lease_state) t->world->leases[i].state));
        }
        uint64_t first = t->last_lease_id > 1000 ? t->last_lease_id - 1000 : 1;
        for (uint64_t id = first; id <= t->last_lease_id; id++)
                n_mine += t->books[id].life != LIFE_ENDED && t->books[id].life != LIFE_NONE;
        if (n != n_mine)
                trial_break(t, "I6: %u leases are there, and %u by the books", n, n_mine);
}

void check_step(struct trial *t)
{
        t->count.checks++;
        for (uint32_t c = 0; c < t->n_cards; c++)
                check_free(t, c);
        check_claims(t);
        check_plans(t);
        check_ledger(t);
        check_lives(t);
        if (t->count.checks % WORLD_CHECK_EVERY != 0)
                return;
        const char *wrong = world_check(t->world);
        if (wrong)
                trial_break(t, "%s", wrong);
}

/* I6: whoever comes back has the books it had. */
void check_restored(struct trial *t)
{
        char words[200];

        if (!journal_books_as_kept(t, words, sizeof(words)))
                trial_break(t, "I6: the books after a restart are others: %s", words);
}

/* Such ticks are in no journal. */
void check_silent_tick(struct trial *t)
{
        char words[200];

        if (!journal_books_as_kept(t, words, sizeof(words)))
                trial_break(t, "I6: a tick that said nothing changed the books: %s", words);
}

/* ---- memory that was promised ---- */

static uint64_t truth_of_lease(const struct trial *t, uint32_t client, uint32_t card)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < t->n_procs; i++)
                if (t->procs[i].used && t->procs[i].client == client && t->procs[i].card == card)
                        sum += proc_on_card_bytes(&t->procs[i]);
        return sum;
}

/* What is there of it: also what one of its processes had and is still being freed, while another has grown into it. */
static uint64_t taken_by_lease(const struct trial *t, uint32_t client, uint32_t card)
{
        return truth_of_lease(t, client, card) + card_lags_of(t, card, client);
}

/* What the driver keeps nobody has seen yet: it looks like memory of whoever cannot be read. */
static bool is_mistaken_for(struct trial *t, uint32_t card, uint64_t lease_id)
{
        const struct lease *l = world_lease_by_id(t->world, lease_id);
        const struct holder *h = l ? world_part_on(t->world, l, card) : NULL;

        return !t->world->devices[card].driver_own_known && h && !holder_reading_is_known(h);
}

/* It had given way, and took its memory again without a word: what it had is nobody's promise, also while it is being freed. */
static bool has_lied(struct trial *t, uint64_t lease_id)
{
        const struct lease *l = world_lease_by_id(t->world, lease_id);
        return l && l->park.broke_promise;
}

/* Is all that is on this card what somebody was promised, and no more? */
static bool is_honest(struct trial *t, uint32_t card)
{
        const struct card *at = &t->cards[card];

        if (at->hidden_bytes != 0)
                return false;
        for (uint32_t i = 0; i < at->n_lags; i++) { /* what is still being freed, too, of who had no business there */
                uint32_t client = at->lags[i].client;
                const struct book *b = client == NOBODY ? NULL : book_of(t, t->clients[client].lease_id);
                if (at->lags[i].until_ms > t->now_ms &&
                    (!b || !book_is_on(b, card) || taken_by_lease(t, client, card) > b->bytes ||
                     has_lied(t, t->clients[client].lease_id)))
                        return false;
        }
        for (uint32_t i = 0; i < t->n_procs; i++) {
                const struct proc *p = &t->procs[i];
                if (!p->used || p->card != card || proc_on_card_bytes(p) == 0)
                        continue;
                const struct book *b = p->client == NOBODY ? NULL : book_of(t, t->clients[p->client].lease_id);
                if (!b || !book_is_here(b) || b->life != LIFE_ACTIVE || !book_is_on(b, card) || b->adopted ||
                    b->parked == PARKED_STUCK || taken_by_lease(t, p->client, card) > b->bytes ||
                    is_mistaken_for(t, card, t->clients[p->client].lease_id))
                        return false;
        }
        return true;
}

/* The promise itself: who stays within what was granted, among others who do, never runs out of memory. */
void check_memory(struct trial *t, uint32_t i, uint64_t bytes)
{
        const struct proc *p = &t->procs[i];
        const struct book *b = p->client == NOBODY ? NULL : book_of(t, t->clients[p->client].lease_id);

        if (!b || b->life != LIFE_ACTIVE || !book_is_on(b, p->card) || b->adopted || t->cards[p->card].lost ||
            (b->parked != PARKED_NOT && b->parked != PARKED_BACK) ||
            taken_by_lease(t, p->client, p->card) + bytes > b->bytes || !is_honest(t, p->card))
                return;
        trial_break(t, "I2: L%" PRIu64 " runs out of memory within its own %" PRIu64 " on card %u, where nobody lied",
                    t->clients[p->client].lease_id, b->bytes, p->card);
}

/* ---- everybody has gone home ---- */

void check_end(struct trial *t)
{
        for (uint32_t i = 0; i < t->world->n_leases; i++)
                if (t->world->lease_ids[i] != 0)
                        trial_break(t, "everybody left, and L%" PRIu64 " is still %s", t->world->lease_ids[i],
                                    lease_state_name((enum lease_state) t->world->leases[i].state));
        for (uint32_t i = 0; i < t->world->n_holders; i++)
                if (t->world->holders[i].kind != HOLDER_NONE)
                        trial_break(t, "I10: everybody left, and a %s is in the books",
                                    holder_kind_name((enum holder_kind) t->world->holders[i].kind));
        if (t->world->ledger_charged_bytes != 0)
                trial_break(t, "I5: everybody left, and %" PRIu64 " are charged", t->world->ledger_charged_bytes);
        for (uint32_t i = 0; i < t->world->n_users; i++)
                if (t->world->users[i].in_use && (t->world->users[i].held_bytes || t->world->users[i].n_leases))
                        trial_break(t, "everybody left, and uid %u holds something", t->world->users[i].uid);
        for (uint32_t c = 0; c < t->n_cards; c++)
                if (!t->cards[c].lost &&
                    device_free_bytes(t->world, c) != t->cards[c].total_bytes - t->cards[c].driver_bytes)
                        trial_break(t, "everybody left, and %" PRIu64 " of %" PRIu64 " are free on card %u",
                                    device_free_bytes(t->world, c), t->cards[c].total_bytes, c);
        const char *wrong = world_check(t->world);
        if (wrong)
                trial_break(t, "%s", wrong);
}
