/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I1, I2 and I7: what is committed on a device by design 4.1, from what was said of it and promised on it, counted here and
 * not asked of the core. A bound that the core may exceed, never undercut: claims of heads are lent, a lease that is being
 * taken away may have given its reservation to the claim already, and what is left of an ended one is believed.
 */
#include <inttypes.h>
#include <stdio.h>
#include "arbiter/free.h"
#include "trial/trial.h"

struct sum {
        uint64_t promised, holders, untaken, known, unknown;
};

static bool is_of_lease(struct trial *t, const struct row_said *row, uint32_t card)
{
        const struct book *b = book_of(t, row->lease_id);
        return b && b->life >= LIFE_ACTIVE && b->life <= LIFE_DRAINS && book_is_on(b, card);
}

static void add_others(struct trial *t, uint32_t card, struct sum *sum)
{
        const struct said *said = &t->cards[card].said;
        uint64_t display = 0;
        bool has_display = false, is_known = true;

        for (uint32_t i = 0; i < said->n_rows; i++) {
                const struct row_said *row = &said->rows[i];
                if (is_of_lease(t, row, card))
                        continue;
                if (row->graphics) {
                        has_display = true;
                        is_known = is_known && row->known;
                        display += row->bytes;
                } else if (row->known) {
                        sum->known += row->bytes;
                }
        }
        if (!has_display)
                return;
        uint64_t r = t->config.display_bytes;
        sum->holders += r;
        if (!is_known) {
                sum->unknown += r;
                return;
        }
        sum->known += display;
        sum->untaken += u64_sub0(r, display);
}

static void add_lease(struct trial *t, uint32_t card, uint64_t id, struct sum *sum)
{
        const struct book *b = &t->books[id];
        const struct said *said = &t->cards[card].said;
        bool promises = book_lives(b) && (b->parked == PARKED_NOT || b->parked == PARKED_BACK);
        uint64_t u = 0, r = promises ? b->bytes : 0;
        bool known = !b->managed && b->parked != PARKED_BACK; /* what of it is back already nobody can tell */

        if (b->life == LIFE_GRANTED) {
                sum->promised += r;
                sum->untaken += r;
                return;
        }
        for (uint32_t i = 0; i < said->n_rows; i++)
                if (said->rows[i].lease_id == id) {
                        u += said->rows[i].bytes;
                        known = known && said->rows[i].known;
                }
        sum->holders += r;
        if (!known) {
                sum->unknown += r;
                return;
        }
        sum->known += u;
        sum->untaken += u64_sub0(r, u);
}

uint64_t check_committed_bytes(struct trial *t, uint32_t card)
{
        const struct said *said = &t->cards[card].said;
        struct sum sum = { 0 };

        add_others(t, card, &sum);
        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                uint64_t id = t->world->lease_ids[i];
                const struct book *b = book_of(t, id);
                if (id != 0 && b && b->life >= LIFE_GRANTED && b->life <= LIFE_DRAINS && book_is_on(b, card))
                        add_lease(t, card, id, &sum);
        }
        if (!said->per_process)
                return u64_max(said->used_bytes, sum.holders) + sum.promised;
        uint64_t residue = u64_sub0(said->used_bytes, sum.known);
        return u64_max(sum.holders + sum.promised, said->used_bytes + sum.untaken + u64_sub0(sum.unknown, residue));
}

static void show(struct trial *t, uint32_t card)
{
        const struct said *said = &t->cards[card].said;

        if (!t->verbose)
                return;
        printf("# card %u: %" PRIu64 " of %" PRIu64 " used\n", card, said->used_bytes, t->cards[card].total_bytes);
        for (uint32_t i = 0; i < said->n_rows; i++)
                printf("#   said: pid %u of L%" PRIu64 " %" PRIu64 "%s%s\n", said->rows[i].identity.pid,
                       said->rows[i].lease_id, said->rows[i].bytes, said->rows[i].known ? "" : " unknown",
                       said->rows[i].graphics ? " graphics" : "");
        for (uint64_t id = 1; id <= t->last_lease_id; id++)
                if (t->books[id].life >= LIFE_GRANTED && t->books[id].life <= LIFE_DRAINS &&
                    book_is_on(&t->books[id], card))
                        printf("#   mine: L%" PRIu64 " r %" PRIu64 " life %u parked %u%s\n", id, t->books[id].bytes,
                               t->books[id].life, t->books[id].parked, t->books[id].managed ? " managed" : "");
        for (uint32_t i = 0; i < t->world->n_holders; i++) {
                const struct holder *h = &t->world->holders[i];
                if (h->kind != HOLDER_NONE && h->device == card)
                        printf("#   core: %s r %" PRIu64 " u %" PRIu64 "%s, lease row %u\n",
                               holder_kind_name((enum holder_kind) h->kind), h->reserved_bytes, h->used_bytes,
                               h->used_known ? "" : " unknown", h->lease.index);
        }
}

static void check_promises(struct trial *t, uint32_t card)
{
        uint64_t sum = 0;

        world_each_holder_on (t->world, i, card)
                sum += t->world->holders[i].reserved_bytes;
        if (sum > t->cards[card].total_bytes) {
                show(t, card);
                trial_break(t, "I1: a grant makes card %u promise %" PRIu64 " of %" PRIu64, card, sum,
                            t->cards[card].total_bytes);
        }
}

void check_free(struct trial *t, uint32_t card)
{
        const struct said *said = &t->cards[card].said;
        bool adopts = t->input.kind == INPUT_REQUEST && t->sent.adopt;
        bool granted = t->granted[card] && !adopts;

        if (granted)
                check_promises(t, card);
        if ((!said->told || !said->used_known || t->cards[card].lost) && t->world->devices[card].budget_bytes == 0 &&
            said->told && device_free_bytes(t->world, card) != 0)
                trial_break(t, "I7: card %u has no figure, and something of it is free", card);
        if (!said->told || !said->used_known || !said->settled || t->cards[card].lost || adopts)
                return;
        uint64_t mine = check_committed_bytes(t, card);
        if (granted && mine > t->cards[card].total_bytes) {
                show(t, card);
                trial_break(t, "I2: a grant on card %u, where %" PRIu64 " of %" PRIu64 " are committed", card, mine,
                            t->cards[card].total_bytes);
        }
        uint64_t theirs = device_committed_bytes(t->world, card);
        if (theirs < mine) {
                show(t, card);
                trial_break(t, "I7: committed on card %u is %" PRIu64 ", by the books %" PRIu64, card, theirs, mine);
        }
}
