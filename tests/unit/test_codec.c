/* SPDX-License-Identifier: Apache-2.0 */
/* What the journal keeps, as bytes: there and back, and nothing else accepted. */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "books.h"
#include "model/lease.h"
#include "store/codec.h"
#include "store/codec_action.h"
#include "store/codec_input.h"
#include "store/codec_world.h"

CODEC_GUARDS_ON

enum { SEEDS = 60 };

static uint8_t buf[CODEC_ACTIONS_MAX]; /* the largest of them */
static uint8_t again[sizeof(buf)];
static struct occupancy rows[ROWS_MAX], rows_again[ROWS_MAX];
static struct error err;

static size_t world_encode(const struct world *world, uint8_t **ret)
{
        size_t n = 0, size = codec_world_size_max(world);

        *ret = malloc(size);
        assert_non_null(*ret);
        assert_int_equal(codec_world_encode(world, *ret, size, &n, &err), 0);
        return n;
}

/* ---- there and back ---- */

static void input_of_every_kind_comes_back_as_it_was(void **state)
{
        (void) state;
        for (unsigned kind = INPUT_NONE + 1; kind < INPUT_KIND_N; kind++)
                for (uint32_t seed = 0; seed < SEEDS; seed++) {
                        struct input in, out;
                        size_t n, n_again;

                        books_input((enum input_kind) kind, seed, &in, rows);
                        assert_int_equal(codec_input_encode(&in, buf, CODEC_INPUT_MAX, &n, &err), 0);
                        assert_int_equal(codec_input_decode(buf, n, &out, rows_again, &err), 0);
                        if (kind == INPUT_READING) {
                                assert_ptr_equal(out.reading.rows, rows_again);
                                assert_memory_equal(rows, rows_again, in.reading.n_rows * sizeof(*rows));
                                in.reading.rows = rows_again;
                        }
                        assert_memory_equal(&in, &out, sizeof(in));
                        assert_int_equal(codec_input_encode(&out, again, sizeof(again), &n_again, &err), 0);
                        assert_int_equal(n_again, n);
                        assert_memory_equal(buf, again, n);
                }
}

static void actions_come_back_as_they_were(void **state)
{
        (void) state;
        struct actions *in = calloc(1, sizeof(*in)), *out = calloc(1, sizeof(*out));
        static const uint32_t counts[] = { 0, 1, 2, 77, ACTIONS_MAX };

        assert_true(in && out);
        for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
                size_t n;

                in->n = counts[k];
                in->more = k % 2;
                for (uint32_t i = 0; i < in->n; i++)
                        books_action(i * 7, &in->items[i]);
                assert_int_equal(codec_actions_encode(in, buf, CODEC_ACTIONS_MAX, &n, &err), 0);
                assert_int_equal(codec_actions_decode(buf, n, out, &err), 0);
                assert_int_equal(out->n, in->n);
                assert_int_equal(out->more, in->more);
                assert_memory_equal(in->items, out->items, in->n * sizeof(*in->items));
        }
        free(in);
        free(out);
}

static void populated_world_comes_back_byte_by_byte(void **state)
{
        (void) state;
        struct world *in = books_world_new(), *out = books_world_new();

        for (uint32_t seed = 0; seed < SEEDS; seed += 7) {
                uint8_t *bytes, *bytes_again;

                books_world_zero(in);
                books_world_zero(out);
                books_world_fill(in, seed);
                size_t n = world_encode(in, &bytes);
                assert_int_equal(codec_world_decode(bytes, n, out, &err), 0);
                assert_memory_equal(in, out, sizeof(*in));
                assert_int_equal(world_encode(out, &bytes_again), n);
                assert_memory_equal(bytes, bytes_again, n);
                free(bytes);
                free(bytes_again);
        }
        books_world_free(in);
        books_world_free(out);
}

static void full_world_fits_its_bound_and_an_empty_one_is_small(void **state)
{
        (void) state;
        struct world *in = books_world_new(), *out = books_world_new();
        struct world *pattern = books_world_new();
        uint8_t *bytes;

        assert_true(world_encode(in, &bytes) < 400);
        free(bytes);

        books_world_fill(pattern, 1);
        books_world_fill(in, 1);
        in->n_devices = DEVICES_MAX;
        in->n_leases = LEASES_MAX;
        in->n_entries = ENTRIES_MAX;
        in->n_holders = HOLDERS_MAX;
        in->n_users = USERS_MAX;
        in->n_habits = HABITS_MAX;
        in->n_processes = PROCESSES_MAX;
        in->n_occupancies = OCCUPANCIES_MAX;
        for (uint32_t i = 0; i < LEASES_MAX; i++) {
                in->leases[i] = pattern->leases[0];
                in->lease_ids[i] = i;
        }
        for (uint32_t i = 0; i < ENTRIES_MAX; i++)
                in->entries[i] = pattern->entries[0];
        for (uint32_t i = 0; i < HOLDERS_MAX; i++)
                in->holders[i] = pattern->holders[1];
        for (uint32_t i = 0; i < HABITS_MAX; i++) {
                in->habits[i] = pattern->habits[0];
                memset(in->habits[i].consumer, 'c', sizeof(in->habits[i].consumer) - 1);
        }
        for (uint32_t i = 0; i < PROCESSES_MAX; i++) {
                in->processes[i] = pattern->processes[0];
                memset(in->processes[i].ancestors, 1, sizeof(in->processes[i].ancestors));
                memset(in->processes[i].comm, 'x', COMM_MAX - 1);
        }
        for (uint32_t i = 0; i < OCCUPANCIES_MAX; i++)
                in->occupancies[i] = pattern->occupancies[0];
        size_t n = world_encode(in, &bytes);
        print_message("# a world full to the brim: %zu bytes of at most %zu\n", n, codec_world_size_max(in));
        assert_int_equal(codec_world_decode(bytes, n, out, &err), 0);
        assert_true(out->n_processes == PROCESSES_MAX && out->lease_ids[LEASES_MAX - 1] == LEASES_MAX - 1);
        free(bytes);
        books_world_free(pattern);
        books_world_free(in);
        books_world_free(out);
}

static void largest_action_and_input_fit_their_bounds(void **state)
{
        (void) state;
        struct action a;
        struct input in;
        size_t n;

        books_action(BLOCKERS_MAX, &a);
        for (uint32_t i = 0; i < BLOCKERS_MAX; i++)
                a.why.blockers[i].bytes = UINT64_MAX;
        assert_int_equal(codec_action_encode(&a, buf, CODEC_ACTION_MAX, &n, &err), 0);
        books_input(INPUT_READING, 2, &in, rows); /* ROWS_MAX of them */
        memset(in.reading.uuid, 'u', sizeof(in.reading.uuid) - 1);
        assert_int_equal(codec_input_encode(&in, buf, CODEC_INPUT_MAX, &n, &err), 0);
        books_input(INPUT_REQUEST, 1, &in, rows);
        memset(in.request.device_uuid, 'u', sizeof(in.request.device_uuid) - 1);
        memset(in.request.name, 'u', sizeof(in.request.name) - 1);
        memset(in.request.consumer, 'u', sizeof(in.request.consumer) - 1);
        assert_int_equal(codec_input_encode(&in, buf, CODEC_INPUT_MAX, &n, &err), 0);
}

/* ---- nothing else ---- */

static int decode_any(unsigned what, const uint8_t *data, size_t n, struct world *world)
{
        static struct actions actions;
        struct input in;

        if (what == 0)
                return codec_input_decode(data, n, &in, rows_again, &err);
        if (what == 1)
                return codec_actions_decode(data, n, &actions, &err);
        books_world_zero(world);
        return codec_world_decode(data, n, world, &err);
}

static size_t encode_some(unsigned what, unsigned k, uint8_t *data, size_t size)
{
        size_t n = 0;

        if (what == 0) {
                struct input in;
                books_input((enum input_kind)(1 + k % (INPUT_KIND_N - 1)), k % 2, &in, rows);
                assert_int_equal(codec_input_encode(&in, data, size, &n, &err), 0);
        } else if (what == 1) {
                static struct actions actions;
                actions.n = k % 4;
                for (uint32_t i = 0; i < actions.n; i++)
                        books_action(i + k, &actions.items[i]);
                assert_int_equal(codec_actions_encode(&actions, data, size, &n, &err), 0);
        } else {
                struct world *world = books_world_new();
                books_world_fill(world, k);
                assert_int_equal(codec_world_encode(world, data, size, &n, &err), 0);
                books_world_free(world);
        }
        return n;
}

static void S14_every_truncation_is_refused_in_words(void **state)
{
        (void) state;
        struct world *world = books_world_new();

        for (unsigned what = 0; what < 3; what++)
                for (unsigned k = 0; k < (what == 2 ? 1 : 30); k++) {
                        size_t n = encode_some(what, k, buf, sizeof(buf));
                        for (size_t cut = 0; cut < n; cut++) {
                                uint8_t *exact = malloc(cut ? cut : 1); /* one byte too far is seen by the sanitizer */
                                assert_non_null(exact);
                                memcpy(exact, buf, cut);
                                err.msg[0] = '\0';
                                assert_int_equal(decode_any(what, exact, cut, world), -EBADMSG);
                                assert_true(err.msg[0] != '\0');
                                free(exact);
                        }
                        buf[n] = 0;
                        assert_int_equal(decode_any(what, buf, n + 1, world), -EBADMSG);
                }
        books_world_free(world);
}

/* What a flipped bit makes is refused, or it is another record: then it is written again exactly like that. */
static void S14_every_flipped_bit_is_refused_or_means_something_else(void **state)
{
        (void) state;
        struct world *world = books_world_new();
        static struct actions actions;
        size_t n_refused = 0, n_other = 0;

        for (unsigned what = 0; what < 3; what++)
                for (unsigned k = 0; k < (what == 2 ? 1 : 15); k++) {
                        size_t n = encode_some(what, k, buf, sizeof(buf)), n_again = 0;
                        for (size_t bit = 0; bit < 8 * n; bit += what == 2 ? 3 : 1) {
                                if (bit / 8 < 2)
                                        continue; /* the version: an older one is written as ours */
                                struct input in;
                                int r;
                                buf[bit / 8] ^= (uint8_t) (1 << bit % 8);
                                if (what == 0)
                                        r = codec_input_decode(buf, n, &in, rows_again, &err);
                                else if (what == 1)
                                        r = codec_actions_decode(buf, n, &actions, &err);
                                else {
                                        books_world_zero(world);
                                        r = codec_world_decode(buf, n, world, &err);
                                }
                                n_refused += r < 0;
                                n_other += r == 0;
                                if (r == 0 && what == 0)
                                        r = codec_input_encode(&in, again, sizeof(again), &n_again, &err);
                                else if (r == 0 && what == 1)
                                        r = codec_actions_encode(&actions, again, sizeof(again), &n_again, &err);
                                else if (r == 0)
                                        r = codec_world_encode(world, again, sizeof(again), &n_again, &err);
                                if (r == 0) {
                                        assert_int_equal(n_again, n);
                                        assert_memory_equal(again, buf, n);
                                } else {
                                        assert_true(r == -EBADMSG || r == -EPROTONOSUPPORT);
                                }
                                buf[bit / 8] ^= (uint8_t) (1 << bit % 8);
                        }
                }
        assert_true(n_refused > 100 && n_other > 100);
        books_world_free(world);
}

static void another_version_is_told_apart_from_damage(void **state)
{
        (void) state;
        struct world *world = books_world_new();

        for (unsigned what = 0; what < 3; what++) {
                size_t n = encode_some(what, 1, buf, sizeof(buf));
                buf[0] = CODEC_VERSION + 1;
                assert_int_equal(decode_any(what, buf, n, world), -EPROTONOSUPPORT);
                buf[0] = CODEC_VERSION_OLDEST - 1;
                assert_int_equal(decode_any(what, buf, n, world), -EPROTONOSUPPORT);
        }
        books_world_free(world);
}

static void value_that_could_not_be_read_back_is_not_written(void **state)
{
        (void) state;
        struct world *world = books_world_new();
        struct input in;
        struct action a;
        uint8_t *bytes = NULL;
        size_t n = 0, size;

        books_input(INPUT_REQUEST, 1, &in, rows);
        in.request.priority = 6;
        assert_int_equal(codec_input_encode(&in, buf, sizeof(buf), &n, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "request.priority"));
        books_input(INPUT_REQUEST, 1, &in, rows);
        memset(in.request.name, 'x', sizeof(in.request.name));
        assert_int_equal(codec_input_encode(&in, buf, sizeof(buf), &n, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "request.name"));
        books_input(INPUT_READING, 1, &in, rows);
        in.reading.n_rows = ROWS_MAX + 1;
        assert_int_equal(codec_input_encode(&in, buf, sizeof(buf), &n, &err), -EINVAL);
        in.kind = INPUT_KIND_N;
        assert_int_equal(codec_input_encode(&in, buf, sizeof(buf), &n, &err), -EINVAL);
        in.kind = INPUT_NONE;
        assert_int_equal(codec_input_encode(&in, buf, sizeof(buf), &n, &err), -EINVAL);
        books_action(1, &a);
        a.why.rule = RULE_N;
        assert_int_equal(codec_action_encode(&a, buf, sizeof(buf), &n, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "reason.rule"));
        books_action(1, &a);
        a.id = UINT64_C(1) << 63; /* SQLite's numbers are signed */
        assert_int_equal(codec_action_encode(&a, buf, sizeof(buf), &n, &err), -EINVAL);

        books_world_fill(world, 1);
        size = codec_world_size_max(world);
        bytes = malloc(size);
        world->leases[2].holder.index = HOLDERS_MAX;
        assert_int_equal(codec_world_encode(world, bytes, size, &n, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "lease.holder"));
        world->leases[2].holder.index = 0;
        assert_int_equal(codec_world_encode(world, bytes, 100, &n, &err), -EMSGSIZE);
        world->n_leases = LEASES_MAX + 1;
        assert_int_equal(codec_world_encode(world, bytes, size, &n, &err), -EINVAL);
        free(bytes);
        books_world_free(world);
}

static void S14_counts_beyond_the_bytes_end_at_once(void **state)
{
        (void) state;
        struct world *world = books_world_new();
        uint8_t *bytes;
        size_t n = world_encode(world, &bytes); /* empty; the counts of rows are its last eight numbers */

        for (size_t i = 0; i < 8; i++) {
                uint8_t kept = bytes[n - 4 * (8 - i)];
                bytes[n - 4 * (8 - i)] = 64;
                books_world_zero(world);
                assert_int_equal(codec_world_decode(bytes, n, world, &err), -EBADMSG);
                bytes[n - 4 * (8 - i)] = kept;
        }
        memset(bytes + n - 32, 0xff, 32);
        books_world_zero(world);
        assert_int_equal(codec_world_decode(bytes, n, world, &err), -EBADMSG);
        free(bytes);
        books_world_free(world);
}

/* ---- what older versions wrote ---- */

struct thing { /* as it is now; version 3 knew neither flag, limit nor the identity */
        uint32_t size;
        bool flag;
        uint8_t kind;
        uint64_t limit;
        struct identity who;
        char name[8];
};
void put_thing(struct put *c, const struct thing *p);
void get_thing(struct get *c, struct thing *p);

#define THING_FIELDS(F, S)                                                                                             \
        F(S, U32, size, 0)                                                                                             \
        F(S, SINCE, flag, (4, BOOL, 0))                                                                                \
        F(S, BELOW8, kind, 5)                                                                                          \
        F(S, SINCE_OR, limit, (4, U64, 0, UINT64_MAX))                                                                 \
        F(S, SINCE, who, (4, STRUCT, identity))                                                                        \
        F(S, TEXT, name, 0)
CODEC_STRUCT(thing, THING_FIELDS, 40)

static void field_that_an_older_version_had_not_is_read_as_its_default(void **state)
{
        static const uint8_t of_version_3[] = { 3, 0, 7, 0, 0, 0, 4, 2, 0, 0, 0, 'a', 'b' };
        struct thing thing = { .size = 7, .flag = true, .kind = 4, .limit = 9, .who = { 1, 2 }, .name = "ab" };
        struct thing read = { 0 };
        struct put put;
        struct get get;
        size_t n;

        (void) state;
        assert_int_equal(get_begin(&get, "thing", of_version_3, sizeof(of_version_3), &err), 0);
        get_thing(&get, &read);
        assert_int_equal(get_end(&get, "thing", &err), 0);
        assert_true(read.size == 7 && read.kind == 4 && strcmp(read.name, "ab") == 0);
        assert_true(!read.flag && read.limit == UINT64_MAX && read.who.pid == 0);

        put_begin(&put, buf, sizeof(buf));
        put_thing(&put, &thing);
        assert_int_equal(put_end(&put, "thing", &n, &err), 0);
        assert_int_equal(n, sizeof(of_version_3) + 1 + 1 + 5);
        assert_int_equal(get_begin(&get, "thing", buf, n, &err), 0);
        read = (struct thing){ 0 };
        get_thing(&get, &read);
        assert_int_equal(get_end(&get, "thing", &err), 0);
        assert_true(read.flag && read.limit == 9 && read.who.start_ticks == 2);
}

static void number_has_one_spelling(void **state)
{
        static const struct {
                const char *name;
                uint8_t bytes[12];
                size_t n;
                bool is_good;
                uint64_t value;
        } numbers[] = {
                { "0", { 0 }, 1, true, 0 },
                { "127", { 0x7f }, 1, true, 127 },
                { "128", { 0x80, 1 }, 2, true, 128 },
                { "2^63", { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1 }, 10, true, UINT64_C(1) << 63 },
                { "2^64-1", { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 }, 10, true, UINT64_MAX },
                { "0, longer", { 0x80, 0 }, 2, false, 0 },
                { "1, longer", { 0x81, 0x80, 0 }, 3, false, 0 },
                { "2^64", { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2 }, 10, false, 0 },
                { "eleven bytes", { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0 }, 11, false, 0 },
                { "cut off", { 0x80 }, 1, false, 0 },
        };
        int rows_failed = 0;

        (void) state;
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
                struct get get = { .version = CODEC_VERSION };
                struct put put = { 0 };

                bytes_reader_init(&get.r, numbers[i].bytes, numbers[i].n);
                uint64_t v = get_u64(&get, "number");
                row_check(numbers[i].name, (get_end(&get, "number", &err) == 0) == numbers[i].is_good);
                if (!numbers[i].is_good)
                        continue;
                row_check(numbers[i].name, v == numbers[i].value);
                bytes_writer_init(&put.w, buf, sizeof(buf));
                put_u64(&put, v);
                row_check(numbers[i].name,
                          put.w.at == numbers[i].n && memcmp(buf, numbers[i].bytes, numbers[i].n) == 0);
        }
        rows_end();
}

static FILE *of_version_3_open(const char *name)
{
        const char *source = getenv("LESSOR_SOURCE_DIR");
        char path[4096];

        assert_non_null(source);
        assert_true(snprintf(path, sizeof(path), "%s/tests/upgrade/v3/%s", source, name) < (int) sizeof(path));
        return fopen(path, "re");
}

/* The very bytes that were written then (one byte in front says what they are). */
static void what_version_3_wrote_is_read_and_written_as_ours(void **state)
{
        static const char *const names[] = {
                "actions_0",           "actions_1",     "actions_2",     "actions_3",         "input_activate",
                "input_config",        "input_device",  "input_eyes",    "input_owner-ended", "input_process",
                "input_process-ended", "input_reading", "input_release", "input_renew",       "input_request",
                "input_restart",       "input_tick",    "world",         "world_empty",
        };
        static struct actions actions;
        struct world *world = books_world_new();

        (void) state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                FILE *f = of_version_3_open(names[i]);
                struct input in;
                size_t n_again = 0;
                int r;

                assert_non_null(f);
                int what = fgetc(f);
                size_t n = fread(buf, 1, sizeof(buf), f);
                (void) fclose(f);
                assert_true(n > 2 && buf[0] == 3 && buf[1] == 0);
                books_world_zero(world);
                if (what == 0)
                        r = codec_input_decode(buf, n, &in, rows_again, &err);
                else if (what == 1)
                        r = codec_actions_decode(buf, n, &actions, &err);
                else
                        r = codec_world_decode(buf, n, world, &err);
                if (r < 0)
                        fail_msg("%s: %s", names[i], err.msg);
                if (what == 0)
                        r = codec_input_encode(&in, again, sizeof(again), &n_again, &err);
                else if (what == 1)
                        r = codec_actions_encode(&actions, again, sizeof(again), &n_again, &err);
                else
                        r = codec_world_encode(world, again, sizeof(again), &n_again, &err);
                assert_int_equal(r, 0);
                assert_true(n_again > 2 && again[0] == CODEC_VERSION && again[1] == 0);
        }
        books_world_free(world);
}

static const char *name_of_number(const char *noun, unsigned number)
{
#define NOUN(noun_, name_, of)                                                                                         \
        if (strcmp(noun, noun_) == 0)                                                                                  \
                return name_((enum of) number);
        NOUN("rule", rule_name, rule)
        NOUN("blocker", blocker_kind_name, blocker_kind)
        NOUN("action", action_kind_name, action_kind)
        NOUN("input", input_kind_name, input_kind)
        NOUN("lease", lease_state_name, lease_state)
        NOUN("end", end_reason_name, end_reason)
        NOUN("binding", binding_kind_name, binding_kind)
        NOUN("entry", entry_kind_name, entry_kind)
        NOUN("wait", wait_kind_name, wait_kind)
        NOUN("holder", holder_kind_name, holder_kind)
        NOUN("device", device_health_name, device_health)
        NOUN("way-out", way_out_name, way_out_kind)
#undef NOUN
        return "?";
}

/* Enums travel as numbers: one put between the others would give another meaning to what is stored. */
static void numbers_that_version_3_stored_keep_their_meaning(void **state)
{
        FILE *f = of_version_3_open("names");
        char noun[16], name[64];
        unsigned number, n = 0;

        (void) state;
        assert_non_null(f);
        while (fscanf(f, "%15s %u %63s", noun, &number, name) == 3) {
                assert_string_equal(name_of_number(noun, number), name);
                n++;
        }
        (void) fclose(f);
        assert_true(n > 100);
}

/* ---- seeds for fuzz_journal_record: what is decoded, one byte in front ---- */

static void seed_write(const char *dir, const char *name, unsigned what, const uint8_t *data, size_t n)
{
        char path[4096];

        assert_true(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int) sizeof(path));
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fputc((int) what, f), (int) what);
        assert_int_equal(fwrite(data, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
}

/* LESSOR_WRITE_SEEDS=fuzz/corpus/journal_record build/tests/unit/test_codec makes them anew after a change of format. */
static void seeds_are_written_when_asked_for(void **state)
{
        (void) state;
        const char *dir = getenv("LESSOR_WRITE_SEEDS");
        char name[64];

        if (!dir)
                return;
        (void) mkdir(dir, 0777);
        for (unsigned kind = 1; kind < INPUT_KIND_N; kind++) {
                struct input in;
                size_t n;
                books_input((enum input_kind) kind, 1, &in, rows);
                assert_int_equal(codec_input_encode(&in, buf, sizeof(buf), &n, &err), 0);
                (void) snprintf(name, sizeof(name), "input_%s", input_kind_name((enum input_kind) kind));
                seed_write(dir, name, 0, buf, n);
        }
        for (unsigned k = 0; k < 4; k++) {
                size_t n = encode_some(1, k, buf, sizeof(buf));
                (void) snprintf(name, sizeof(name), "actions_%u", k);
                seed_write(dir, name, 1, buf, n);
        }
        size_t n = encode_some(2, 1, buf, sizeof(buf));
        seed_write(dir, "world", 2, buf, n);
        struct world *world = books_world_new();
        assert_int_equal(codec_world_encode(world, buf, sizeof(buf), &n, &err), 0);
        seed_write(dir, "world_empty", 2, buf, n);
        books_world_free(world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(input_of_every_kind_comes_back_as_it_was),
                cmocka_unit_test(actions_come_back_as_they_were),
                cmocka_unit_test(populated_world_comes_back_byte_by_byte),
                cmocka_unit_test(full_world_fits_its_bound_and_an_empty_one_is_small),
                cmocka_unit_test(largest_action_and_input_fit_their_bounds),
                cmocka_unit_test(S14_every_truncation_is_refused_in_words),
                cmocka_unit_test(S14_every_flipped_bit_is_refused_or_means_something_else),
                cmocka_unit_test(another_version_is_told_apart_from_damage),
                cmocka_unit_test(value_that_could_not_be_read_back_is_not_written),
                cmocka_unit_test(S14_counts_beyond_the_bytes_end_at_once),
                cmocka_unit_test(field_that_an_older_version_had_not_is_read_as_its_default),
                cmocka_unit_test(number_has_one_spelling),
                cmocka_unit_test(what_version_3_wrote_is_read_and_written_as_ours),
                cmocka_unit_test(numbers_that_version_3_stored_keep_their_meaning),
                cmocka_unit_test(seeds_are_written_when_asked_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
