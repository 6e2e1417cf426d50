/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to put a grant on the disk: one turn of the daemon with a reading and a request that is granted at once,
 * decided by the real core, encoded and committed; beside a bare SQLite commit of one row with as many bytes, with the same
 * settings, in the same folder, in turns. Prints one JSON object; medians in microseconds.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arbiter/arbiter.h"
#include "base/clock.h"
#include "store/journal.h"

enum { ROUNDS = 4000, HELD_LEASES = 50 };
#define GIB (UINT64_C(1) << 30)

static const char uuid[] = "GPU-1c3a2f60-0b7d-4c57-9f0e-52cf4d4be7a1";

struct bench {
        struct world *world;
        struct actions *out;
        struct journal *journal;
        sqlite3 *bare;
        sqlite3_stmt *insert;
        uint64_t now_ms;
        uint64_t n_actions;
};

static void must(int r, const struct error *err)
{
        if (r >= 0)
                return;
        (void) fprintf(stderr, "bench_commit: %s\n", err->msg);
        exit(1);
}

static void must_sqlite(sqlite3 *db, int rc)
{
        if (rc == SQLITE_OK || rc == SQLITE_DONE)
                return;
        (void) fprintf(stderr, "bench_commit: %s\n", sqlite3_errmsg(db));
        exit(1);
}

static void decide(struct bench *b, struct input *input)
{
        struct error err = { 0 };

        input->now_ms = b->now_ms;
        arbiter_step(b->world, input, b->out);
        b->n_actions += b->out->n;
        must(journal_append(b->journal, input, b->out, clock_now_wall_ms(), &err), &err);
}

static void look(struct bench *b)
{
        struct occupancy row = { .identity = { 4711, 99 }, .used_bytes = GIB, .flags = ROW_USED_KNOWN | ROW_COMPUTE };
        struct input input = { .kind = INPUT_READING };
        struct reading *r = &input.reading;

        (void) snprintf(r->uuid, sizeof(r->uuid), "%s", uuid);
        r->taken_ms = b->now_ms;
        r->total_bytes = 24 * GIB;
        r->used_bytes = GIB;
        r->used_known = r->per_process_known = r->settled = true;
        r->n_rows = 1;
        r->rows = &row;
        decide(b, &input);
}

static void ask(struct bench *b)
{
        struct input input = { .kind = INPUT_REQUEST };
        struct request *r = &input.request;

        r->token = b->now_ms;
        r->uid = 1000;
        r->priority = 3;
        r->bytes = GIB / 16;
        r->collected = true;
        r->binding.kind = BINDING_PROCESS;
        r->binding.owner = (struct identity){ 4711, 99 };
        (void) snprintf(r->name, sizeof(r->name), "python3 train.py --config small.yaml");
        (void) snprintf(r->consumer, sizeof(r->consumer), "train.py");
        decide(b, &input);
}

static void release_oldest(struct bench *b)
{
        struct error err = { 0 };
        struct input input = { .kind = INPUT_RELEASE };
        uint64_t oldest = 0;

        for (uint32_t i = 0; i < b->world->n_leases; i++)
                if (b->world->lease_ids[i] != 0 && (oldest == 0 || b->world->lease_ids[i] < oldest))
                        oldest = b->world->lease_ids[i];
        input.call = (struct lease_call){ .lease_id = oldest, .uid = 1000, .end_reason = END_RELEASED };
        decide(b, &input);
        must(journal_commit(b->journal, &err), &err);
}

static void open_journal(struct bench *b, const char *dir)
{
        struct journal_restored restored;
        struct error err = { 0 };
        struct config config;
        char path[256];

        (void) snprintf(path, sizeof(path), "%s/journal.db", dir);
        must(journal_open(&b->journal, path, NULL, &err), &err);
        must(journal_restore(b->journal, b->world, NULL, NULL, &restored, &err), &err);
        config_defaults(&config);
        world_init(b->world, &config);
        must(journal_snapshot(b->journal, b->world, "bench", clock_now_wall_ms(), &err), &err);

        struct input eyes = { .kind = INPUT_EYES, .eyes = { .answering = true } };
        struct input device = { .kind = INPUT_DEVICE, .device = { .total_bytes = 24 * GIB, .health = DEVICE_OK } };
        (void) snprintf(device.device.uuid, sizeof(device.device.uuid), "%s", uuid);
        decide(b, &eyes);
        decide(b, &device);
        must(journal_commit(b->journal, &err), &err);
}

static void open_bare(struct bench *b, const char *dir)
{
        char path[256];

        (void) snprintf(path, sizeof(path), "%s/bare.db", dir);
        must_sqlite(b->bare, sqlite3_open(path, &b->bare));
        must_sqlite(b->bare, sqlite3_exec(b->bare,
                                          "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                                          "CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB NOT NULL)",
                                          NULL, NULL, NULL));
        must_sqlite(b->bare, sqlite3_prepare_v2(b->bare, "INSERT INTO t (a) VALUES (?1)", -1, &b->insert, NULL));
}

static uint64_t bare_commit_ns(struct bench *b, size_t n_bytes)
{
        static uint8_t bytes[65536];
        uint64_t began_ns = clock_now_ns();

        must_sqlite(b->bare, sqlite3_bind_blob64(b->insert, 1, bytes, n_bytes, SQLITE_STATIC));
        must_sqlite(b->bare, sqlite3_step(b->insert));
        must_sqlite(b->bare, sqlite3_reset(b->insert));
        return clock_now_ns() - began_ns;
}

static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
        return x < y ? -1 : x > y;
}

static double at_us(uint64_t *ns, double share)
{
        qsort(ns, ROUNDS, sizeof(*ns), by_size);
        return (double) ns[(size_t) (share * (ROUNDS - 1))] / 1e3;
}

int main(int argc, char **argv)
{
        static uint64_t ours_ns[ROUNDS], bare_ns[ROUNDS];
        static struct bench b = { .now_ms = 1000 };
        char dir[128];
        struct error err = { 0 };
        size_t n_bytes = 0;

        (void) snprintf(dir, sizeof(dir), "%s/lessor-bench-XXXXXX", argc > 1 ? argv[1] : "/var/tmp");
        b.world = calloc(1, sizeof(*b.world));
        b.out = calloc(1, sizeof(*b.out));
        if (!b.world || !b.out || !mkdtemp(dir))
                return 1;
        open_journal(&b, dir);
        open_bare(&b, dir);

        uint64_t n_actions_before = b.n_actions;
        for (size_t i = 0; i < ROUNDS; i++) {
                b.now_ms += 100;
                look(&b);
                ask(&b);
                n_bytes = journal_pending_bytes(b.journal);
                uint64_t began_ns = clock_now_ns();
                must(journal_commit(b.journal, &err), &err);
                ours_ns[i] = clock_now_ns() - began_ns;
                bare_ns[i] = bare_commit_ns(&b, n_bytes);
                if (i >= HELD_LEASES)
                        release_oldest(&b);
        }
        double ours_us = at_us(ours_ns, 0.5), bare_us = at_us(bare_ns, 0.5);
        (void) printf("{\"name\": \"commit\", \"ratio\": %.3f, \"bytes\": %zu, \"actions\": %.1f,"
                      " \"journal_us\": {\"p50\": %.1f, \"p99\": %.1f}, \"bare_us\": {\"p50\": %.1f, \"p99\": %.1f}}\n",
                      ours_us / bare_us, n_bytes, (double) (b.n_actions - n_actions_before) / ROUNDS, ours_us,
                      at_us(ours_ns, 0.99), bare_us, at_us(bare_ns, 0.99));

        journal_close(b.journal);
        (void) sqlite3_finalize(b.insert);
        (void) sqlite3_close(b.bare);
        static const char *const names[] = { "journal.db", "bare.db" };
        for (size_t i = 0; i < 2; i++) {
                char path[256];
                (void) snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
                (void) unlink(path);
        }
        (void) rmdir(dir);
        free(b.world);
        free(b.out);
        return 0;
}
