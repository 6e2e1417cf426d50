/* SPDX-License-Identifier: Apache-2.0 */
#include "store/account.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/number.h"
#include "store/walk.h"

struct known { /* a lease of the world's table, and where it is counted */
        uint64_t lease_id;
        uint32_t row;
        bool counted;
};

struct accounting {
        const struct account_options *options;
        journal_step_fn *step;
        void *step_ctx;
        struct account *ret;
        struct world *world;
        bool begun;
        uint64_t seq;     /* the last record that is in the world */
        uint64_t wall_ms; /* of that */
        size_t cap;
        struct known known[LEASES_MAX];
        struct actions out;
};

static void accounting_free(struct accounting *a)
{
        walk_world_free(a->world);
        free(a);
}
DEFINE_CLEANUP(struct accounting *, accounting_free)

/* ---- rows ---- */

static int row_new(struct accounting *a, const struct lease *lease, uint32_t *ret, struct error *err)
{
        struct account *account = a->ret;

        if (account->n_rows == a->cap) {
                size_t more = a->cap ? a->cap * 2 : 64;
                struct account_row *rows = reallocarray(account->rows, more, sizeof(*rows));
                if (!rows)
                        return error_set(err, ENOMEM, "no memory for the sums");
                account->rows = rows;
                a->cap = more;
        }
        struct account_row *row = &account->rows[account->n_rows];
        *row = (struct account_row){ .uid = lease->uid, .is_rest = account->n_rows == ACCOUNT_ROWS_MAX - 1 };
        if (!row->is_rest)
                memcpy(row->consumer, lease->consumer, sizeof(row->consumer));
        *ret = (uint32_t) account->n_rows++;
        return 0;
}

static int row_find(struct accounting *a, const struct lease *lease, uint32_t *ret, struct error *err)
{
        for (uint32_t i = 0; i < a->ret->n_rows; i++) {
                const struct account_row *row = &a->ret->rows[i];
                if (row->is_rest || (row->uid == lease->uid && strcmp(row->consumer, lease->consumer) == 0)) {
                        *ret = i;
                        return 0;
                }
        }
        return row_new(a, lease, ret, err);
}

/* ---- what a lease does, for so long ---- */

static void add(struct account_row *row, enum account_what what, uint64_t bytes, uint64_t ms)
{
        row->ms[what] = u64_add_sat(row->ms[what], ms);
        row->byte_ms[what] += (unsigned __int128) bytes * ms;
}

static void add_lease(struct world *w, const struct lease *lease, uint64_t from_ms, uint64_t to_ms,
                      struct account_row *row)
{
        uint64_t n = 1U + lease->n_more; /* on each of its devices, all the time */
        uint64_t ms = u64_mul_sat(to_ms - from_ms, n);

        if (lease->state == LEASE_QUEUED) {
                add(row, ACCOUNT_WAITED, lease->bytes,
                    u64_mul_sat(u64_sub0(to_ms, u64_max(from_ms, lease->booked_ms)), n));
        } else if (lease->state == LEASE_PARKED) {
                add(row, ACCOUNT_PARKED, lease->bytes, ms);
        } else if (lease->state != LEASE_DRAINING) { /* it has ended: what is left of it is nobody's by now */
                const struct holder *h;
                bool idle = lease_n_parts(lease) != 0;
                add(row, ACCOUNT_HELD, lease->bytes, ms);
                each_part (w, lease, h)
                        idle = idle && holder_idle_since_ms(h) != 0;
                if (idle)
                        add(row, ACCOUNT_IDLE, lease->bytes, ms);
        }
}

/* The world was as it is until @now_ms, which was @wall_ms. A lease that ends in the moment in which it begins is one all the same. */
static int pass(struct accounting *a, uint64_t now_ms, uint64_t wall_ms, struct error *err)
{
        struct world *w = a->world;
        uint64_t ms = u64_sub0(now_ms, w->now_ms), counts_ms = u64_sub0(wall_ms, a->options->since_wall_ms);

        ms = u64_min(ms, counts_ms);
        a->wall_ms = u64_max(a->wall_ms, wall_ms);
        if (wall_ms < a->options->since_wall_ms)
                return 0;
        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct lease *lease = &w->leases[i];
                struct known *known = &a->known[i];

                if (w->lease_ids[i] == 0)
                        continue;
                if (known->lease_id != w->lease_ids[i]) {
                        *known = (struct known){ .lease_id = w->lease_ids[i] };
                        int r = row_find(a, lease, &known->row, err);
                        if (r < 0)
                                return r;
                }
                struct account_row *row = &a->ret->rows[known->row];
                row->n_leases += !known->counted;
                known->counted = true;
                add_lease(w, lease, now_ms - ms, now_ms, row);
        }
        return 0;
}

/* ---- the walk ---- */

static int on_segment(void *ctx, const struct walk_segment *segment, struct error *err)
{
        struct accounting *a = ctx;

        /* Ticks that decided nothing are in no record, but they passed. Behind what is missing nobody knows what was. */
        if (a->begun && a->seq + 1 == segment->first_seq) {
                int r = pass(a, segment->world->now_ms, segment->wall_ms, err);
                if (r < 0)
                        return r;
        }
        if (!a->begun)
                a->ret->from_wall_ms = u64_max(segment->wall_ms, a->options->since_wall_ms);
        if (!segment->same_core && a->ret->same_core) {
                a->ret->same_core = false;
                (void) snprintf(a->ret->core_version, sizeof(a->ret->core_version), "%s", segment->core_version);
        }
        a->begun = true;
        a->seq = segment->first_seq - 1;
        a->wall_ms = u64_max(a->wall_ms, segment->wall_ms);
        walk_world_zero(a->world);
        world_copy(a->world, segment->world);
        return 0;
}

static int on_record(void *ctx, const struct walk_record *record, struct error *err)
{
        struct accounting *a = ctx;
        const struct input *in = record->input;

        /* While the machine was off nobody had anything of it. */
        if (in->kind != INPUT_RESTART || !in->restart.rebooted) {
                int r = pass(a, in->now_ms, record->wall_ms, err);
                if (r < 0)
                        return r;
        }
        a->step(a->step_ctx, a->world, in, &a->out);
        a->seq = record->seq;
        a->ret->n_records++;
        return 0;
}

static void on_damage(void *ctx, const char *words)
{
        struct accounting *a = ctx;

        if (a->ret->n_damages++ == 0)
                (void) snprintf(a->ret->damage, sizeof(a->ret->damage), "%s", words);
}

static int by_row(const void *left, const void *right)
{
        const struct account_row *a = left, *b = right;

        if (a->is_rest != b->is_rest)
                return a->is_rest ? 1 : -1;
        if (a->uid != b->uid)
                return a->uid < b->uid ? -1 : 1;
        return strcmp(a->consumer, b->consumer);
}

static void sort(struct account *account)
{
        if (account->n_rows > 1)
                qsort(account->rows, account->n_rows, sizeof(*account->rows), by_row);
}

int account_read(struct journal *j, const struct account_options *options, journal_step_fn *step, void *ctx,
                 struct account *ret, struct error *err)
{
        auto_call(accounting_freep) struct accounting *a = calloc(1, sizeof(*a));
        const struct walk_since all = { .kind = WALK_ALL };

        *ret = (struct account){ .same_core = true };
        if (!a || !(a->world = walk_world_new()))
                return error_set(err, ENOMEM, "no memory to read the journal");
        a->options = options;
        a->step = step;
        a->step_ctx = ctx;
        a->ret = ret;
        const struct walk_visitor walking = {
                .ctx = a, .segment = on_segment, .record = on_record, .damage = on_damage
        };
        int r = journal_walk(j, &all, &walking, err);
        if (r == 0 && a->begun && options->until_now_ms != 0)
                r = pass(a, options->until_now_ms, options->until_wall_ms, err);
        ret->until_wall_ms = u64_max(a->wall_ms, ret->from_wall_ms);
        sort(ret);
        return r;
}

void account_fini(struct account *account)
{
        free(account->rows);
        *account = (struct account){ 0 };
}

/* ---- fewer rows ---- */

static void merge(struct account_row *into, const struct account_row *row)
{
        into->n_leases += row->n_leases;
        for (unsigned what = 0; what < ACCOUNT_WHAT_N; what++) {
                into->ms[what] = u64_add_sat(into->ms[what], row->ms[what]);
                into->byte_ms[what] += row->byte_ms[what];
        }
}

/* Rows are in order, so those that become equal are neighbours once they were sorted again. */
static void fold(struct account *account, bool all, uint32_t uid)
{
        size_t n = 0;

        for (size_t i = 0; i < account->n_rows; i++)
                if (all || account->rows[i].uid != uid)
                        memset(account->rows[i].consumer, 0, sizeof(account->rows[i].consumer));
        sort(account);
        for (size_t i = 0; i < account->n_rows; i++) {
                if (n > 0 && by_row(&account->rows[n - 1], &account->rows[i]) == 0)
                        merge(&account->rows[n - 1], &account->rows[i]);
                else
                        account->rows[n++] = account->rows[i];
        }
        account->n_rows = n;
}

void account_fold_by_user(struct account *account)
{
        fold(account, true, 0);
}

void account_fold_for(struct account *account, uint32_t uid)
{
        fold(account, false, uid);
}

/* ---- figures ---- */

uint64_t account_mib_s(unsigned __int128 byte_ms)
{
        unsigned __int128 mib_s = (byte_ms >> 20) / 1000;
        return mib_s > UINT64_MAX ? UINT64_MAX : (uint64_t) mib_s;
}

const char *account_what_name(enum account_what what)
{
        static const char *const names[ACCOUNT_WHAT_N] = { "held", "idle", "waited", "parked" };
        return what < ACCOUNT_WHAT_N ? names[what] : "?";
}
