/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is free (design 4.1), by hand-made tables of holders: the worked examples A1 … A10, and a loop of random tables
 * against the formula written down a second time. Figures are in tenths of a G; each example runs in GiB and in bytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "arbiter/free.h"
#include "cm.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
enum { UNKNOWN = -1, ANY = -2, ROWS = 4 };

static const uint64_t scales[] = { 1, 3, GIB };

struct row {
        enum holder_kind kind;
        int64_t r, u; /* u: UNKNOWN */
        bool managed, uncollected;
};

struct card {
        const char *name;
        int64_t total;
        int64_t used;   /* UNKNOWN: no device figure */
        int64_t driver; /* what it keeps with no process listed */
        int64_t budget;
        bool no_rows; /* no per-process figures at all */
        struct row rows[ROWS];
        int64_t free, committed, unattributed; /* ANY */
};

static int rows_failed;
static struct world *world;

static int setup(void **state)
{
        (void) state;
        struct config config;

        rows_failed = 0;
        memset(&config, 0, sizeof(config));
        config_defaults(&config);
        world = calloc(1, sizeof(*world));
        assert_non_null(world);
        world_init(world, &config);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        free(world);
        return 0;
}

static void forget_everything(void)
{
        memset(world->devices, 0, world->n_devices * sizeof(world->devices[0]));
        for (uint32_t i = 0; i < world->n_holders; i++)
                if (world->holders[i].kind != HOLDER_NONE)
                        world_holder_drop(world, &world->holders[i]);
        world->n_devices = world->n_holders = 0;
}

static struct device *device_of(uint64_t total, uint64_t used)
{
        uint32_t index;
        struct device *device = world_device_new(world, &index);

        assert_non_null(device);
        device->health = DEVICE_OK;
        device->total_bytes = total;
        device->used_bytes = used;
        device->used_known = device->per_process_known = device->settled = true;
        device->driver_own_known = true;
        device->reading_ms = 1;
        return device;
}

static struct holder *holder_of(enum holder_kind kind, uint32_t device, uint64_t r, uint64_t u)
{
        struct holder *holder = world_holder_new(world, kind, device);

        assert_non_null(holder);
        holder->reserved_bytes = r;
        holder->used_bytes = u;
        holder->used_known = true;
        if (kind == HOLDER_CLAIM)
                holder->claim_kind = CLAIM_PLAN;
        return holder;
}

static void lay(const struct card *card, uint64_t scale)
{
        forget_everything();
        struct device *device =
                device_of((uint64_t) card->total * scale, card->used == UNKNOWN ? 0 : (uint64_t) card->used * scale);
        device->driver_own_bytes = (uint64_t) card->driver * scale;
        device->per_process_known = !card->no_rows;
        if (card->used == UNKNOWN) {
                device->health = DEVICE_NO_MEMORY_READING;
                device->used_known = false;
                device->budget_bytes = (uint64_t) card->budget * scale;
        }
        for (int i = 0; i < ROWS && card->rows[i].kind != HOLDER_NONE; i++) {
                const struct row *row = &card->rows[i];
                struct holder *holder = holder_of(row->kind, 0, (uint64_t) row->r * scale,
                                                  row->u == UNKNOWN ? 0 : (uint64_t) row->u * scale);
                holder->used_known = row->u != UNKNOWN;
                holder->managed = row->managed;
                holder->uncollected = row->uncollected;
        }
}

static void play(const struct card *cards, size_t n)
{
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < sizeof(scales) / sizeof(*scales); k++) {
                        const struct card *c = &cards[i];
                        struct sums sums;

                        lay(c, scales[k]);
                        sums_of_device(world, 0, &sums);
                        row_check(c->name, device_free_bytes(world, 0) == (uint64_t) c->free * scales[k]);
                        row_check(c->name, sums_free_bytes(&sums) == (uint64_t) c->free * scales[k]);
                        if (c->committed != ANY) {
                                row_check(c->name,
                                          device_committed_bytes(world, 0) == (uint64_t) c->committed * scales[k]);
                                row_check(c->name, sums_committed_bytes(&sums) == (uint64_t) c->committed * scales[k]);
                        }
                        if (c->unattributed != ANY)
                                row_check(c->name, device_unattributed_bytes(world, 0) ==
                                                           (uint64_t) c->unattributed * scales[k]);
                }
        rows_end();
}
#define play_all(cards) play((cards), sizeof(cards) / sizeof(*(cards)))

static void A1_untaken_reservation_beside_a_stranger_leaves_6_of_24(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "r 10 u 2, stranger 8", .total = 240, .used = 100,
                  .rows = { { HOLDER_LEASE, 100, 20 }, { HOLDER_STRANGER, 0, 80 } }, .free = 60, .committed = 180,
                  .unattributed = 0 },
        };
        play_all(cards);
}

static void A2_F53_display_takes_its_reservation_or_what_it_uses(void **state)
{
        (void) state;
        static const struct card cards[] = {
                /* MiB here */
                { "u 900", .total = 8192, .used = 900, .rows = { { HOLDER_DISPLAY, 1024, 900 } }, .free = 7168,
                  .committed = 1024, .unattributed = 0 },
                { "u 1400", .total = 8192, .used = 1400, .rows = { { HOLDER_DISPLAY, 1024, 1400 } }, .free = 6792,
                  .committed = 1400, .unattributed = 0 },
        };
        play_all(cards);
        lay(&cards[0], MIB);
        assert_int_equal(device_free_bytes(world, 0), 7168 * MIB);
}

static void A3_managed_memory_hides_from_the_process_list(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "marked", .total = 240, .used = 189, .rows = { { HOLDER_LEASE, 200, 5, .managed = true } },
                  .free = 40, .committed = 200, .unattributed = ANY },
                { "unmarked", .total = 240, .used = 189, .rows = { { HOLDER_LEASE, 200, 5 } }, .free = 0,
                  .committed = 384, .unattributed = 184 },
        };
        play_all(cards);
}

static void A4_without_per_process_figures_the_larger_of_used_and_reserved_counts(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "U 12", .total = 240, .used = 120, .no_rows = true,
                  .rows = { { HOLDER_LEASE, 100, UNKNOWN }, { HOLDER_LEASE, 40, UNKNOWN } }, .free = 100,
                  .committed = 140, .unattributed = ANY },
                { "U 17", .total = 240, .used = 170, .no_rows = true,
                  .rows = { { HOLDER_LEASE, 100, UNKNOWN }, { HOLDER_LEASE, 40, UNKNOWN } }, .free = 70,
                  .committed = 170, .unattributed = ANY },
                { "U 12, and the driver keeps 1", .total = 240, .used = 120, .driver = 10, .no_rows = true,
                  .rows = { { HOLDER_LEASE, 100, UNKNOWN }, { HOLDER_LEASE, 40, UNKNOWN } }, .free = 90,
                  .committed = 150, .unattributed = ANY },
        };
        play_all(cards);
}

static void A5_claims_and_uncollected_grants_never_hide_in_what_nobody_can_attribute(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "lease alone", .total = 240, .used = 120, .no_rows = true, .rows = { { HOLDER_LEASE, 100, UNKNOWN } },
                  .free = 120, .committed = 120, .unattributed = ANY },
                { "with a claim", .total = 240, .used = 120, .no_rows = true,
                  .rows = { { HOLDER_LEASE, 100, UNKNOWN }, { HOLDER_CLAIM, 60, 0 } }, .free = 60, .committed = 180,
                  .unattributed = ANY },
                { "with an uncollected grant", .total = 240, .used = 120, .no_rows = true,
                  .rows = { { HOLDER_LEASE, 100, UNKNOWN }, { HOLDER_LEASE, 60, 0, .uncollected = true } }, .free = 60,
                  .committed = 180, .unattributed = ANY },
                { "an uncollected grant marked as managed, figures known", .total = 240, .used = 120,
                  .rows = { { HOLDER_LEASE, 60, 0, .managed = true, .uncollected = true } }, .free = 60,
                  .committed = 180, .unattributed = ANY },
                { "an uncollected grant whose figure is unknown, too", .total = 240, .used = 120, .no_rows = true,
                  .rows = { { HOLDER_LEASE, 100, UNKNOWN }, { HOLDER_LEASE, 60, UNKNOWN, .uncollected = true } },
                  .free = 60, .committed = 180, .unattributed = ANY },
        };
        play_all(cards);
}

static void A6_residue_covers_reservations_of_holders_with_unknown_readings(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "U 5", .total = 240, .used = 50, .rows = { { HOLDER_LEASE, 60, 10 }, { HOLDER_LEASE, 80, UNKNOWN } },
                  .free = 100, .committed = 140, .unattributed = 40 },
                { "U 12", .total = 240, .used = 120,
                  .rows = { { HOLDER_LEASE, 60, 10 }, { HOLDER_LEASE, 80, UNKNOWN } }, .free = 70, .committed = 170,
                  .unattributed = 110 },
                { "U 9, driver 1", .total = 240, .used = 90, .driver = 10,
                  .rows = { { HOLDER_LEASE, 60, 10 }, { HOLDER_LEASE, 80, UNKNOWN } }, .free = 90, .committed = 150,
                  .unattributed = 70 },
                { "U lags behind", .total = 240, .used = 30,
                  .rows = { { HOLDER_LEASE, 80, 80 }, { HOLDER_LEASE, 100, 100 } }, .free = 60, .committed = 180,
                  .unattributed = 0 },
        };
        play_all(cards);
}

static void A7_over_use_counts_and_raises_no_reservation(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "U 6", .total = 240, .used = 60, .rows = { { HOLDER_LEASE, 40, 60 } }, .free = 180, .committed = 60,
                  .unattributed = 0 },
                { "U 9", .total = 240, .used = 90, .rows = { { HOLDER_LEASE, 40, 60 } }, .free = 150, .committed = 90,
                  .unattributed = 30 },
        };
        play_all(cards);
        assert_int_equal(world->holders[0].reserved_bytes, 40 * GIB);
}

static void A8_debt_leaves_nothing_free_and_is_told_unclamped(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "r 16 u 4, stranger 12", .total = 240, .used = 160,
                  .rows = { { HOLDER_LEASE, 160, 40 }, { HOLDER_STRANGER, 0, 120 } }, .free = 0, .committed = 280,
                  .unattributed = 0 },
        };
        play_all(cards); /* 28 of 24: a debt of 4 */
}

static void A9_draining_and_parked_leases_count_what_is_still_there(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "draining", .total = 240, .used = 120, .rows = { { HOLDER_LEASE, 0, 120 } }, .free = 120,
                  .committed = 120, .unattributed = 0 },
                { "draining, with a claim", .total = 240, .used = 120,
                  .rows = { { HOLDER_LEASE, 0, 120 }, { HOLDER_CLAIM, 50, 0 } }, .free = 70, .committed = 170,
                  .unattributed = 0 },
                { "parked beside another", .total = 240, .used = 51,
                  .rows = { { HOLDER_LEASE, 0, 1 }, { HOLDER_LEASE, 60, 50 } }, .free = 179, .committed = 61,
                  .unattributed = 0 },
        };
        play_all(cards);
}

static void A10_without_a_device_figure_only_a_budget_gives_room(void **state)
{
        (void) state;
        static const struct card cards[] = {
                { "no budget", .total = 240, .used = UNKNOWN, .rows = { { HOLDER_LEASE, 50, 30 } }, .free = 0,
                  .committed = ANY, .unattributed = ANY },
                { "budget 16", .total = 240, .used = UNKNOWN, .budget = 160, .rows = { { HOLDER_LEASE, 50, 30 } },
                  .free = 110, .committed = 50, .unattributed = ANY },
                { "budget 16, and no total at all", .total = 0, .used = UNKNOWN, .budget = 160,
                  .rows = { { HOLDER_LEASE, 50, 30 } }, .free = 110, .committed = 50, .unattributed = ANY },
                { "budget 16, more promised", .total = 240, .used = UNKNOWN, .budget = 160,
                  .rows = { { HOLDER_LEASE, 50, 30 }, { HOLDER_LEASE, 120, UNKNOWN } }, .free = 0, .committed = 170,
                  .unattributed = ANY },
        };
        play_all(cards);
}

static void device_without_figure_budget_or_health_is_unusable(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                enum device_health health;
                bool used_known;
                uint64_t budget;
                bool usable;
        } rows[] = {
                { "healthy with a figure", DEVICE_OK, true, 0, true },
                { "healthy, the figure fails to come", DEVICE_OK, false, 0, false },
                { "no memory figure", DEVICE_NO_MEMORY_READING, false, 0, false },
                { "no memory figure, a budget", DEVICE_NO_MEMORY_READING, false, GIB, true },
                { "lost", DEVICE_LOST, true, 0, false },
                { "lost, with a budget", DEVICE_LOST, false, GIB, false },
                { "fault", DEVICE_FAULT, true, 0, false },
                { "a card in MIG mode", DEVICE_PARENT, true, 0, false },
                { "an empty row", DEVICE_ABSENT, true, 0, false },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                forget_everything();
                struct device *device = device_of(24 * GIB, 0);
                device->health = (uint8_t) rows[i].health;
                device->used_known = rows[i].used_known;
                device->budget_bytes = rows[i].budget;
                row_check(rows[i].name, device_is_usable(device) == rows[i].usable);
                if (!rows[i].used_known && rows[i].budget == 0) /* unknown is never 0 used */
                        row_check(rows[i].name, device_free_bytes(world, 0) == 0);
        }
        rows_end();
}

static void holders_of_other_devices_do_not_count(void **state)
{
        (void) state;
        forget_everything();
        (void) device_of(24 * GIB, 0);
        (void) device_of(24 * GIB, 5 * GIB);
        (void) holder_of(HOLDER_LEASE, 0, 10 * GIB, 0);
        (void) holder_of(HOLDER_STRANGER, 1, 0, 5 * GIB);
        assert_int_equal(device_free_bytes(world, 0), 14 * GIB);
        assert_int_equal(device_free_bytes(world, 1), 19 * GIB);
}

static void absurd_figures_leave_nothing_free_and_never_wrap(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t used, r, u;
                bool known;
        } rows[] = {
                { "used by everybody is 2^64-1", UINT64_MAX, 5 * GIB, 0, true },
                { "used by one is 2^64-1 and by all", UINT64_MAX, 5 * GIB, UINT64_MAX, true },
                { "2^64-1, beside an unknown one", UINT64_MAX, 5 * GIB, 0, false },
                { "reserved 2^64-1", 5 * GIB, UINT64_MAX, 1, true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                forget_everything();
                (void) device_of(24 * GIB, rows[i].used);
                struct holder *holder = holder_of(HOLDER_LEASE, 0, rows[i].r, rows[i].u);
                holder->used_known = rows[i].known;
                (void) holder_of(HOLDER_LEASE, 0, 10 * GIB, 0);
                row_check(rows[i].name, device_free_bytes(world, 0) == 0);
        }
        /* A marker taken for a size hides in no sum: what others were promised still counts. */
        forget_everything();
        (void) device_of(24 * GIB, 4 * GIB);
        (void) holder_of(HOLDER_STRANGER, 0, 0, UINT64_MAX);
        (void) holder_of(HOLDER_STRANGER, 0, 0, UINT64_MAX);
        (void) holder_of(HOLDER_LEASE, 0, 12 * GIB, 0);
        row_check("marker taken for a size", device_free_bytes(world, 0) <= 8 * GIB);
        rows_end();
}

/* A later time is looked at by taking a holder out: what it is known to use comes back, or what its reservation explains. */
static void holder_taken_out_gives_back_only_what_is_proven_its_own(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct card card;
                int64_t free; /* without the first row */
        } rows[] = {
                { "all of it taken", { "", .total = 240, .used = 160, .rows = { { HOLDER_LEASE, 160, 160 } } }, 240 },
                { "some of it taken", { "", .total = 240, .used = 40, .rows = { { HOLDER_LEASE, 160, 40 } } }, 240 },
                { "over-use", { "", .total = 240, .used = 60, .rows = { { HOLDER_LEASE, 40, 60 } } }, 240 },
                { "over-use beside what nobody explains",
                  { "", .total = 240, .used = 90, .rows = { { HOLDER_LEASE, 40, 60 } } },
                  210 },
                { "a claim",
                  { "", .total = 240, .used = 120, .rows = { { HOLDER_CLAIM, 50, 0 }, { HOLDER_LEASE, 0, 120 } } },
                  120 },
                { "unknown, the residue explains less",
                  { "", .total = 240, .used = 50, .rows = { { HOLDER_LEASE, 80, UNKNOWN }, { HOLDER_LEASE, 60, 10 } } },
                  180 },
                { "unknown, the residue is larger",
                  { "", .total = 240, .used = 120,
                    .rows = { { HOLDER_LEASE, 80, UNKNOWN }, { HOLDER_LEASE, 60, 10 } } },
                  150 },
                { "a known one beside an unknown one",
                  { "", .total = 240, .used = 120,
                    .rows = { { HOLDER_LEASE, 60, 10 }, { HOLDER_LEASE, 80, UNKNOWN } } },
                  130 },
                { "the driver's own stays",
                  { "", .total = 240, .used = 90, .driver = 10, .rows = { { HOLDER_LEASE, 200, UNKNOWN } } },
                  230 },
                { "no per-process figures, the driver's own stays",
                  { "", .total = 240, .used = 50, .driver = 10, .no_rows = true,
                    .rows = { { HOLDER_LEASE, 100, UNKNOWN } } },
                  230 },
                { "U lags behind",
                  { "", .total = 240, .used = 30, .rows = { { HOLDER_LEASE, 80, 80 }, { HOLDER_LEASE, 100, 100 } } },
                  140 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct sums sums;
                lay(&rows[i].card, GIB);
                sums_of_device(world, 0, &sums);
                sums_take_out(&sums, &world->holders[0]);
                row_check(rows[i].name, sums_free_bytes(&sums) == (uint64_t) rows[i].free * GIB);
        }
        rows_end();
}

/* ---- random tables against the formula written down again, in signed 128-bit figures ---- */

static uint64_t random_state;

static uint64_t random_next(void) /* splitmix64: a seed means the same everywhere */
{
        uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint64_t random_below(uint64_t n)
{
        return random_next() % n;
}

typedef __int128 wide;

static wide wide_max(wide a, wide b)
{
        return a > b ? a : b;
}

struct expected {
        wide committed, reserved;
};

static struct expected expect_of(uint32_t d)
{
        const struct device *device = &world->devices[d];
        wide used = (wide) device->used_bytes, r_sum = 0, r_holders = 0, promised = 0;
        wide untaken = 0, known_u = 0, unknown_r = 0;

        for (uint32_t i = 0; i < world->n_holders; i++) {
                const struct holder *h = &world->holders[i];
                if (h->kind == HOLDER_NONE || h->device != d)
                        continue;
                wide r = (wide) h->reserved_bytes;
                bool promise = h->kind == HOLDER_CLAIM || h->uncollected;
                r_sum += r;
                if (promise)
                        promised += r;
                else
                        r_holders += r;
                if (promise) {
                        untaken += r;
                } else if (h->used_known && !h->managed) {
                        untaken += wide_max(0, r - (wide) h->used_bytes);
                        known_u += (wide) h->used_bytes;
                } else {
                        unknown_r += r;
                }
        }
        wide residue = wide_max(0, used - (wide) device->driver_own_bytes - known_u);
        if (!device->per_process_known)
                return (struct expected){ wide_max(used, (wide) device->driver_own_bytes + r_holders) + promised,
                                          r_sum };
        return (struct expected){ wide_max(r_sum, used + untaken + wide_max(0, unknown_r - residue)), r_sum };
}

static void random_tables_are_never_more_optimistic_than_the_classic_rule(void **state)
{
        (void) state;
        static const enum holder_kind kinds[] = { HOLDER_DISPLAY, HOLDER_LEASE, HOLDER_TENANT, HOLDER_CLAIM,
                                                  HOLDER_STRANGER };

        for (uint64_t seed = 1; seed <= 20000; seed++) {
                random_state = seed;
                forget_everything();
                uint64_t scale = random_below(3) == 0 ? 1 : random_below(2) ? MIB : GIB;
                for (uint32_t d = 0; d < 2; d++) {
                        struct device *device = device_of(24 * scale, random_below(30) * scale);
                        device->per_process_known = random_below(5) != 0;
                        device->driver_own_bytes = random_below(3) * scale;
                }
                uint64_t n = random_below(9);
                for (uint64_t i = 0; i < n; i++) {
                        enum holder_kind kind = kinds[random_below(5)];
                        uint32_t d = (uint32_t) random_below(2);
                        uint64_t r = kind == HOLDER_STRANGER ? 0 : random_below(14) * scale;
                        uint64_t u = kind == HOLDER_CLAIM ? 0 : random_below(14) * scale;
                        struct holder *h = holder_of(kind, d, r, u);
                        if (kind == HOLDER_CLAIM)
                                continue;
                        h->used_known = world->devices[d].per_process_known && random_below(4) != 0;
                        h->managed = kind == HOLDER_LEASE && random_below(5) == 0;
                        if (kind == HOLDER_LEASE && random_below(5) == 0) {
                                h->uncollected = true;
                                h->used_known = true;
                                h->managed = false;
                                h->used_bytes = 0;
                        }
                }
                for (uint32_t d = 0; d < 2; d++) {
                        struct expected e = expect_of(d);
                        wide total = (wide) world->devices[d].total_bytes;
                        wide free_now = (wide) device_free_bytes(world, d);
                        wide classic = total - wide_max((wide) world->devices[d].used_bytes, e.reserved);

                        if ((wide) device_committed_bytes(world, d) != e.committed)
                                fail_msg("seed %" PRIu64 ", device %u: committed %" PRIu64
                                         ", the formula says %" PRIu64,
                                         seed, d, device_committed_bytes(world, d), (uint64_t) e.committed);
                        if (free_now != wide_max(0, total - e.committed))
                                fail_msg("seed %" PRIu64 ", device %u: free is not what is left", seed, d);
                        if (free_now > wide_max(0, classic))
                                fail_msg("seed %" PRIu64
                                         ", device %u: more optimistic than total - max(used, reserved)",
                                         seed, d);
                        if (free_now > total)
                                fail_msg("seed %" PRIu64 ", device %u: more free than there is", seed, d);
                }
        }
}

/* In whatever order holders leave, what they gave back never adds up to more than was there. */
static void random_tables_taken_apart_end_at_an_empty_device(void **state)
{
        (void) state;
        for (uint64_t seed = 1; seed <= 5000; seed++) {
                random_state = seed;
                forget_everything();
                struct device *device = device_of(24 * GIB, 0);
                device->driver_own_bytes = random_below(2) * GIB;
                uint64_t used = device->driver_own_bytes, n = 1 + random_below(6);
                for (uint64_t i = 0; i < n; i++) {
                        uint64_t u = random_below(6) * GIB;
                        struct holder *h = holder_of(HOLDER_LEASE, 0, random_below(8) * GIB, u);
                        h->used_known = random_below(3) != 0;
                        used += u;
                }
                device->used_bytes = used;

                struct sums sums;
                sums_of_device(world, 0, &sums);
                uint64_t before = sums_committed_bytes(&sums);
                for (uint32_t i = 0; i < world->n_holders; i++) {
                        sums_take_out(&sums, &world->holders[i]);
                        uint64_t after = sums_committed_bytes(&sums);
                        if (after > before)
                                fail_msg("seed %" PRIu64 ": somebody leaves and less is free", seed);
                        if (after < device->driver_own_bytes)
                                fail_msg("seed %" PRIu64 ": more came back than was there", seed);
                        before = after;
                }
                if (sums.reserved_bytes != 0 || sums.known_used_bytes != 0 || sums.known_untaken_bytes != 0 ||
                    sums.unknown_reserved_bytes != 0)
                        fail_msg("seed %" PRIu64 ": everybody left, and the sums say otherwise", seed);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(A1_untaken_reservation_beside_a_stranger_leaves_6_of_24, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(A2_F53_display_takes_its_reservation_or_what_it_uses, setup, teardown),
                cmocka_unit_test_setup_teardown(A3_managed_memory_hides_from_the_process_list, setup, teardown),
                cmocka_unit_test_setup_teardown(A4_without_per_process_figures_the_larger_of_used_and_reserved_counts,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(
                        A5_claims_and_uncollected_grants_never_hide_in_what_nobody_can_attribute, setup, teardown),
                cmocka_unit_test_setup_teardown(A6_residue_covers_reservations_of_holders_with_unknown_readings, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(A7_over_use_counts_and_raises_no_reservation, setup, teardown),
                cmocka_unit_test_setup_teardown(A8_debt_leaves_nothing_free_and_is_told_unclamped, setup, teardown),
                cmocka_unit_test_setup_teardown(A9_draining_and_parked_leases_count_what_is_still_there, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(A10_without_a_device_figure_only_a_budget_gives_room, setup, teardown),
                cmocka_unit_test_setup_teardown(device_without_figure_budget_or_health_is_unusable, setup, teardown),
                cmocka_unit_test_setup_teardown(holders_of_other_devices_do_not_count, setup, teardown),
                cmocka_unit_test_setup_teardown(absurd_figures_leave_nothing_free_and_never_wrap, setup, teardown),
                cmocka_unit_test_setup_teardown(holder_taken_out_gives_back_only_what_is_proven_its_own, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(random_tables_are_never_more_optimistic_than_the_classic_rule, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(random_tables_taken_apart_end_at_an_empty_device, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
