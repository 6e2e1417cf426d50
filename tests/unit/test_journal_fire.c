/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal at every single write (A4, F76, F77): a life of the real core (grants, collections, releases, snapshots,
 * pruning, a clean end in the middle) is lived once for each thing it does to the disk, and that one goes wrong. Whatever
 * went wrong, the world that is read afterwards is one that was: as of the last turn that was acknowledged, or of the one
 * that was under way (complete); after a power cut as of some earlier one, never with a hole. From there the life is lived
 * to its end, and the end is always the same.
 */
#include "desk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arbiter/arbiter.h"
#include "fault_vfs.h"
#include "store/codec_world.h"

enum { TURNS = 20, TURN_OF_CLEAN_END = 11, BOOKS_MAX = 16384 };
#define GIB (UINT64_C(1) << 30)
static const char boot_id[] = "6e2a0d5c-7b1f-4b7e-9d43-0c2f5a1b8e77";
static const struct journal_options options = { .segment_records = 12, .keep_segments = 2, .keep_events = 12 };

/* The books after each turn, as they must be. */
static struct {
        size_t n;
        uint8_t bytes[BOOKS_MAX];
} told[TURNS + 1];

struct life {
        char dir[64], path[96];
        struct journal *j;
        struct world *world;
        struct actions *out;
        struct error err;
        uint32_t turn;   /* the next one; those before it were acknowledged */
        bool under_way;  /* it has been handed to the journal */
        bool has_ended;  /* clean, in the middle */
        bool was_synced; /* and that ending went through: what was before it survives a power cut too */
};

/* ---- the story ---- */

static void tell_core(struct life *l, struct input *in)
{
        in->now_ms = 1000 * (uint64_t) (l->turn + 1);
        arbiter_step(l->world, in, l->out);
        if (l->j && journal_append(l->j, in, l->out, 1700000000000 + in->now_ms, &l->err) < 0)
                fail_msg("journal_append: %s", l->err.msg);
}

static void tell_reading(struct life *l)
{
        struct input in = { .kind = INPUT_READING };

        (void) snprintf(in.reading.uuid, sizeof(in.reading.uuid), "GPU-0");
        in.reading.taken_ms = 1000 * (uint64_t) (l->turn + 1);
        in.reading.total_bytes = 24 * GIB;
        in.reading.used_known = in.reading.per_process_known = in.reading.settled = true;
        tell_core(l, &in);
}

static void tell_request(struct life *l, bool collected)
{
        struct input in = { .kind = INPUT_REQUEST };

        in.request.token = l->turn;
        in.request.uid = 1000;
        in.request.priority = 3;
        in.request.bytes = GIB;
        in.request.collected = collected;
        in.request.binding.kind = BINDING_PROCESS;
        in.request.binding.owner = (struct identity){ 100, 5000 };
        (void) snprintf(in.request.name, sizeof(in.request.name), "run %u", l->turn);
        tell_core(l, &in);
}

static void tell_call(struct life *l, enum input_kind kind, bool oldest)
{
        struct input in = { .kind = (uint8_t) kind };

        for (uint32_t i = 0; i < l->world->n_leases; i++) {
                uint64_t id = l->world->lease_ids[i];
                if (id != 0 && (in.call.lease_id == 0 || (id < in.call.lease_id) == oldest))
                        in.call.lease_id = id;
        }
        in.call.uid = 1000;
        in.call.end_reason = kind == INPUT_RELEASE ? END_RELEASED : END_NONE;
        tell_core(l, &in);
}

static void tell_beginning(struct life *l)
{
        struct input eyes = { .kind = INPUT_EYES, .eyes = { .answering = true } };
        struct input device = { .kind = INPUT_DEVICE, .device = { .total_bytes = 24 * GIB, .health = DEVICE_OK } };

        (void) snprintf(device.device.uuid, sizeof(device.device.uuid), "GPU-0");
        tell_core(l, &eyes);
        tell_core(l, &device);
}

static void tell_turn(struct life *l)
{
        if (l->turn == 0)
                tell_beginning(l);
        tell_reading(l);
        switch (l->turn % 4) {
        case 0:
                tell_request(l, true);
                break;
        case 1:
                tell_request(l, false);
                break;
        case 2:
                tell_call(l, INPUT_ACTIVATE, false);
                break;
        default:
                tell_call(l, INPUT_RELEASE, true);
                break;
        }
}

static void begin_world(struct life *l)
{
        struct config config;

        config_defaults(&config);
        world_init(l->world, &config);
}

static size_t books_of(struct life *l, uint8_t *buf)
{
        size_t n = 0;

        if (codec_world_encode(l->world, buf, BOOKS_MAX, &n, &l->err) < 0)
                fail_msg("%s", l->err.msg);
        return n;
}

/* Without any disk: what has to come out. */
static int tell_all_once(void **state)
{
        struct life l = { .world = books_world_new(), .out = calloc(1, sizeof(*l.out)) };

        (void) state;
        fault_vfs_install();
        begin_world(&l);
        for (; l.turn < TURNS; l.turn++) {
                told[l.turn].n = books_of(&l, told[l.turn].bytes);
                tell_turn(&l);
        }
        told[TURNS].n = books_of(&l, told[TURNS].bytes);
        books_world_free(l.world);
        free(l.out);
        return 0;
}

/* ---- living it on a disk ---- */

static void core(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

/* Which turn the books are of; -1: they never were. */
static int turn_of_books(struct life *l)
{
        static uint8_t now[BOOKS_MAX];
        size_t n = books_of(l, now);

        for (int i = 0; i <= TURNS; i++)
                if (told[i].n == n && memcmp(told[i].bytes, now, n) == 0)
                        return i;
        return -1;
}

/* The world is read; @at_least: the turn that it must have come to. */
static int read_world(struct life *l, uint32_t at_least)
{
        struct journal_restored restored;

        books_world_zero(l->world);
        int r = journal_restore(l->j, l->world, core, NULL, &restored, &l->err);
        if (r < 0)
                return r;
        if (restored.degraded)
                fail_msg("degraded: %s", journal_degraded(l->j));
        assert_true(restored.agreed);
        if (restored.fresh)
                begin_world(l);
        int turn = turn_of_books(l);
        if (turn < 0)
                fail_msg("books that never were, after turn %u", l->turn);
        if ((uint32_t) turn < at_least || (uint32_t) turn > l->turn + (l->under_way ? 1 : 0))
                fail_msg("books of turn %d; acknowledged were %u, %sunder way", turn, l->turn,
                         l->under_way ? "one was " : "none was ");
        l->turn = (uint32_t) turn;
        l->under_way = false;
        return 0;
}

static int start(struct life *l, uint32_t at_least)
{
        int r = journal_open(&l->j, l->path, &options, &l->err);
        if (r < 0)
                return r;
        r = read_world(l, at_least);
        return r < 0 ? r : journal_snapshot(l->j, l->world, boot_id, 1700000000000, &l->err);
}

static void end(struct life *l)
{
        journal_close(l->j);
        l->j = NULL;
}

static int live(struct life *l)
{
        while (l->turn < TURNS) {
                if (l->turn == TURN_OF_CLEAN_END && !l->has_ended) {
                        int r = journal_snapshot(l->j, l->world, boot_id, 1700000000000, &l->err);
                        if (r < 0)
                                return r;
                        l->has_ended = true;
                        end(l);
                        l->was_synced = !fault_is_dead();
                        r = start(l, l->turn);
                        if (r < 0)
                                return r;
                }
                tell_turn(l);
                l->under_way = true;
                int r = journal_commit(l->j, &l->err);
                if (r < 0)
                        return r;
                l->under_way = false;
                l->turn++;
                if (journal_wants_snapshot(l->j))
                        r = journal_snapshot(l->j, l->world, boot_id, 1700000000000, &l->err);
                else if (l->turn % 5 == 0)
                        r = journal_tidy(l->j, &l->err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- when it goes wrong ---- */

/* The daemon goes on: it throws the batch away, reads the world again, and asks with a snapshot until the disk is back. */
static void go_on(struct life *l, enum fault fault)
{
        if (l->err.code != EIO && (l->err.code != ENOSPC || fault != FAULT_FULL))
                fail_msg("%s at write %u: %d, %s", fault_name(fault), fault_count(), l->err.code, l->err.msg);
        if (!l->j) { /* it could not start */
                fault_end();
        } else {
                journal_discard(l->j);
                uint32_t acknowledged = l->turn;
                bool positioned = journal_last_seq(l->j) > 0 || l->turn > 0;
                if (read_world(l, acknowledged) < 0 && positioned && fault == FAULT_FULL)
                        fail_msg("a full disk cannot be read: %s", l->err.msg);
                if (fault == FAULT_FULL && journal_snapshot(l->j, l->world, boot_id, 1700000000000, &l->err) != -ENOSPC)
                        assert_true(fault_count() < 1000); /* it found room in what there was */
                fault_end();
                end(l);
        }
        if (start(l, l->turn) < 0)
                fail_msg("the disk is good again: %s", l->err.msg);
}

/* The process is gone, perhaps the machine; a new one starts. */
static void start_again(struct life *l, bool is_power_cut)
{
        end(l);
        fault_end();
        if (is_power_cut) {
                char shm[128];
                desk_path(shm, "%s-shm", l->path);
                (void) unlink(shm);
        }
        uint32_t at_least = !is_power_cut ? l->turn : l->was_synced ? TURN_OF_CLEAN_END : 0;
        if (start(l, at_least) < 0)
                fail_msg("after death: %s", l->err.msg);
}

static void assert_ends_well(struct life *l)
{
        struct journal_verified v;

        assert_int_equal(turn_of_books(l), TURNS);
        assert_int_equal(journal_verify(l->j, &v, &l->err), 0);
        if (!v.ok)
                fail_msg("%s", v.words);
        end(l);
        l->turn = TURNS;
        if (start(l, TURNS) < 0)
                fail_msg("%s", l->err.msg);
}

static void begin_life(struct life *l)
{
        *l = (struct life){ .world = books_world_new(), .out = calloc(1, sizeof(*l->out)) };
        assert_non_null(l->out);
        fault_end(); /* of a test that failed */
        /* Syncs are only remembered, so memory is as good a disk as any. */
        desk_path(l->dir, "%s/lessor-fire-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert_non_null(mkdtemp(l->dir));
        desk_path(l->path, "%s/journal.db", l->dir);
}

static void end_life(struct life *l)
{
        static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
        char path[128];

        end(l);
        for (size_t i = 0; i < 4; i++) {
                desk_path(path, "%s%s", l->path, suffixes[i]);
                (void) unlink(path);
        }
        if (rmdir(l->dir) < 0)
                fail_msg("something was left in %s", l->dir);
        books_world_free(l->world);
        free(l->out);
}

/* false: the life was over before its @k-th write. */
static bool life_with(enum fault fault, unsigned k)
{
        struct life l;

        begin_life(&l);
        fault_begin(fault, k, k * 2654435761U + 1);
        int r = start(&l, 0);
        if (r == 0)
                r = live(&l);
        bool has_hit = fault_has_hit();
        if (fault_is_dead())
                start_again(&l, fault >= FAULT_POWER);
        else if (r < 0)
                go_on(&l, fault);
        else
                fault_end();
        if (live(&l) < 0)
                fail_msg("%s at write %u, afterwards: %s", fault_name(fault), k, l.err.msg);
        assert_ends_well(&l);
        end_life(&l);
        return has_hit;
}

static void every_write_with(enum fault fault)
{
        const char *sanitized = getenv("LESSOR_SANITIZED"); /* ten times slower: every fifth */
        unsigned k = 1, stride = sanitized && sanitized[0] == '1' ? 5 : 1;

        while (life_with(fault, k))
                k += stride;
        print_message("# %s: up to write %u, each %u\n", fault_name(fault), k - stride, stride);
        assert_true(k > 100);
}

static void f76_full_disk_at_every_write(void **state)
{
        (void) state;
        every_write_with(FAULT_FULL);
}

static void f76_failing_disk_at_every_write(void **state)
{
        (void) state;
        every_write_with(FAULT_EIO);
        every_write_with(FAULT_SHORT);
}

static void f77_death_at_every_write(void **state)
{
        (void) state;
        every_write_with(FAULT_KILL);
        every_write_with(FAULT_KILL_TORN);
}

static void f77_power_cut_at_every_write(void **state)
{
        (void) state;
        every_write_with(FAULT_POWER);
        every_write_with(FAULT_POWER_TORN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(f76_full_disk_at_every_write),
                cmocka_unit_test(f76_failing_disk_at_every_write),
                cmocka_unit_test(f77_death_at_every_write),
                cmocka_unit_test(f77_power_cut_at_every_write),
        };
        return cmocka_run_group_tests(tests, tell_all_once, NULL);
}
