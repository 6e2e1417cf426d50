/* SPDX-License-Identifier: Apache-2.0 */
/* The real core and the journal: what was decided is decided again, byte by byte, wherever the daemon died. */
#include "cm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arbiter/arbiter.h"
#include "books.h"
#include "store/codec_world.h"
#include "store/journal.h"

#define GiB(n) ((uint64_t) (n) << 30)
static const char boot_id[] = "6e2a0d5c-7b1f-4b7e-9d43-0c2f5a1b8e77";
enum { DEVICES = 3, PIDS = 40, STEPS = 6000 };

struct play {
        uint64_t random;
        uint64_t now_ms;
        uint64_t used_bytes[PIDS]; /* of process 100 + i on device i % DEVICES; 0 = not there */
        struct occupancy rows[ROWS_MAX];
};

static uint32_t pick(struct play *p, uint32_t n)
{
        p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t) (p->random >> 33) % n;
}

static void play_reading(struct play *p, uint32_t device, struct reading *r)
{
        (void) snprintf(r->uuid, sizeof(r->uuid), "GPU-%u", device);
        r->taken_ms = p->now_ms;
        r->total_bytes = GiB(24);
        r->used_bytes = GiB(1) / 4;
        r->used_known = r->per_process_known = r->settled = true;
        for (uint32_t i = device; i < PIDS; i += DEVICES)
                if (p->used_bytes[i] > 0) {
                        struct occupancy *row = &p->rows[r->n_rows++];
                        memset(row, 0, sizeof(*row));
                        row->identity.pid = 100 + i;
                        row->identity.start_ticks = 5000 + i;
                        row->used_bytes = p->used_bytes[i];
                        row->flags = ROW_USED_KNOWN | ROW_COMPUTE;
                        r->used_bytes += row->used_bytes;
                }
        r->rows = p->rows;
}

/* The beginning: eyes, devices, processes; then whatever comes. */
static void play_input(struct play *p, uint32_t step, struct input *in)
{
        uint32_t what = pick(p, 100), pid = pick(p, PIDS);

        memset(in, 0, sizeof(*in));
        p->now_ms += pick(p, 400);
        in->now_ms = p->now_ms;
        if (step == 0) {
                in->kind = INPUT_EYES;
                in->eyes.answering = true;
        } else if (step <= DEVICES) {
                in->kind = INPUT_DEVICE;
                (void) snprintf(in->device.uuid, sizeof(in->device.uuid), "GPU-%u", step - 1);
                in->device.total_bytes = GiB(24);
                in->device.health = DEVICE_OK;
        } else if (step <= DEVICES + PIDS) {
                in->kind = INPUT_PROCESS;
                in->process.identity.pid = 100 + step - DEVICES - 1;
                in->process.identity.start_ticks = 5000 + step - DEVICES - 1;
                in->process.uid = 1000 + pid % 4;
                in->process.ppid = 1;
        } else if (what < 40) {
                if (pick(p, 3) == 0)
                        p->used_bytes[pid] = pick(p, 2) ? GiB(pick(p, 6)) : 0;
                in->kind = INPUT_READING;
                play_reading(p, pick(p, DEVICES), &in->reading);
        } else if (what < 60) {
                in->kind = INPUT_REQUEST;
                in->request.token = step;
                in->request.uid = 1000 + pid % 4;
                in->request.priority = (uint8_t) (2 + pick(p, 4));
                in->request.bytes = GiB(1 + pick(p, 12));
                in->request.slot_ms = pick(p, 2) ? 1000 * (uint64_t) (10 + pick(p, 600)) : 0;
                in->request.collected = pick(p, 4) != 0;
                in->request.no_wait = pick(p, 6) == 0;
                in->request.binding.kind = BINDING_PROCESS;
                in->request.binding.owner.pid = 100 + pid;
                in->request.binding.owner.start_ticks = 5000 + pid;
                (void) snprintf(in->request.name, sizeof(in->request.name), "run %u", step);
        } else if (what < 85) {
                in->kind = (uint8_t) (what < 65 ? INPUT_RENEW : what < 70 ? INPUT_ACTIVATE : INPUT_RELEASE);
                in->call.token = step;
                in->call.lease_id = 1 + pick(p, 1 + step / 5);
                in->call.uid = 0;
                in->call.is_admin = true;
                in->call.end_reason = in->kind == INPUT_RELEASE ? END_RELEASED_ADMIN : END_NONE;
        } else {
                in->kind = INPUT_TICK;
        }
}

static void real_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

static struct journal *open_and_restore(const char *path, struct world *world, struct journal_restored *restored)
{
        struct journal *j = NULL;
        struct error err;

        if (journal_open(&j, path, NULL, &err) < 0)
                fail_msg("%s", err.msg);
        if (journal_restore(j, world, real_step, NULL, restored, &err) < 0)
                fail_msg("%s", err.msg);
        if (restored->degraded || !restored->agreed)
                fail_msg("differs at record %llu; %s", (unsigned long long) restored->differs_at_seq,
                         journal_degraded(j) ? journal_degraded(j) : "not degraded");
        return j;
}

static void assert_same_books(const struct world *a, const struct world *b)
{
        size_t n_a = 0, n_b = 0, size = codec_world_size_max(a) + codec_world_size_max(b);
        uint8_t *bytes_a = malloc(size), *bytes_b = malloc(size);
        struct error err;

        assert_true(bytes_a && bytes_b);
        if (codec_world_encode(a, bytes_a, size, &n_a, &err) < 0 ||
            codec_world_encode(b, bytes_b, size, &n_b, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(n_a, n_b);
        assert_memory_equal(bytes_a, bytes_b, n_a);
        free(bytes_a);
        free(bytes_b);
}

static void real_core_decides_the_same_again_after_each_restart(void **state)
{
        (void) state;
        char dir[] = "/tmp/lessor-journal-XXXXXX", path[64];
        struct play *p = calloc(1, sizeof(*p));
        struct actions *out = calloc(1, sizeof(*out));
        struct world *world = books_world_new(), *again = books_world_new();
        struct journal_restored restored;
        struct config config;
        struct error err;
        uint64_t n_records = 0, n_restarts = 0;

        assert_true(p && out && mkdtemp(dir));
        (void) snprintf(path, sizeof(path), "%s/journal.db", dir);
        p->random = 20240229;
        p->now_ms = 1000;
        struct journal *j = open_and_restore(path, world, &restored);
        config_defaults(&config);
        world_init(world, &config);
        assert_int_equal(journal_snapshot(j, world, boot_id, 1700000000000, &err), 0);

        for (uint32_t step = 0; step < STEPS; step++) {
                struct input in;
                play_input(p, step, &in);
                do {
                        arbiter_step(world, &in, out);
                        if (in.kind != INPUT_TICK || out->n > 0) /* the rule for ticks, from arbiter.h */
                                if (journal_append(j, &in, out, 1700000000000 + p->now_ms, &err) < 0)
                                        fail_msg("step %u: %s", step, err.msg);
                        in = (struct input){ .kind = INPUT_TICK, .now_ms = in.now_ms };
                } while (out->more);
                if (pick(p, 8) == 0 && journal_commit(j, &err) < 0)
                        fail_msg("step %u: %s", step, err.msg);
                if (pick(p, 400) != 0)
                        continue;
                if (journal_commit(j, &err) < 0)
                        fail_msg("step %u: %s", step, err.msg);
                journal_close(j);
                books_world_zero(again);
                j = open_and_restore(path, again, &restored);
                /* A tick that said nothing may have moved the clock alone, and is not in the journal. */
                assert_true(again->now_ms <= world->now_ms);
                again->now_ms = world->now_ms;
                assert_same_books(world, again);
                struct world *kept = world;
                world = again; /* and it goes on from there */
                again = kept;
                assert_int_equal(journal_snapshot(j, world, boot_id, 1700000000000 + p->now_ms, &err), 0);
                n_records += restored.n_records;
                n_restarts++;
        }
        struct journal_verified v;
        assert_int_equal(journal_verify(j, &v, &err), 0);
        assert_true(v.ok);
        print_message("# %llu records decided again over %llu restarts, %llu events\n", (unsigned long long) n_records,
                      (unsigned long long) n_restarts, (unsigned long long) v.n_events);
        assert_true(n_restarts > 5 && n_records > 2000);

        journal_close(j);
        (void) unlink(path);
        (void) rmdir(dir);
        books_world_free(world);
        books_world_free(again);
        free(p);
        free(out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(real_core_decides_the_same_again_after_each_restart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
