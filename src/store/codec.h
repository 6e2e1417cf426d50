/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to the codecs: how one table of fields per struct becomes a writer, a reader and a guard.
 *
 *         #define USER_FIELDS(F, S) F(S, U32, uid, 0) F(S, BOOL, in_use, 0) …
 *         CODEC_STRUCT(user, USER_FIELDS, 40)
 *
 * makes put_user() and get_user(), which check the same limits and go through the same bytes in the same order: what is
 * read can be written again, what is written can be read again. Little-endian, field by field; padding never travels.
 *
 * The guard: each struct's table must name every field, in declaration order, and the struct must have the size it had
 * when the table was written. A field that somebody adds, even into padding, is a compile error in this room until it has
 * its row here.
 *
 * Older bytes stay readable, so that leases outlive an upgrade. A new field says since when it is written:
 *
 *         F(S, SINCE, pinned, (4, BOOL, 0))                  read as 0 from what version 3 wrote
 *         F(S, SINCE_OR, bytes_max, (4, U64, 0, UINT64_MAX)) the same with another value than 0 (numbers only)
 *
 * Its version is CODEC_VERSION, which is one more than what tests/upgrade/previous writes: raised once after each release,
 * not with each field. So no row is ever taken out or moved, enums grow at their end only, arrays keep their length; texts
 * and limits may grow. A new table of the world needs nothing but SINCE at its number of rows.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/error.h"
#include "model/action.h"
#include "model/input.h"
#include "model/process.h"
#include "model/world.h"
#include "wire/bytes.h"

/* Stands at the head of each blob. Written is the newest; read is whatever lies between. */
enum {
        CODEC_VERSION = 4,
        CODEC_VERSION_OLDEST = 3,
        CODEC_SHORT_NUMBERS = 4 /* numbers of 64 bits as put_u64() since */
};

/* A cursor that remembers the first field whose value is not possible: a compile-time name, for the words of the error. */
struct put {
        struct bytes_writer w;
        const char *bad;
};
struct get {
        struct bytes_reader r;
        const char *bad;
        uint16_t version; /* of the bytes */
};

void put_bad(struct put *c, const char *what);
void get_bad(struct get *c, const char *what);

/* ---- kinds of field ---- */

void put_u64(struct put *c, uint64_t v); /* 1 to 10 bytes */
uint64_t get_u64(struct get *c, const char *what);
void put_below(struct put *c, const char *what, uint64_t v, uint64_t n, size_t n_bytes); /* 0 … n-1 in so many bytes */
uint64_t get_below(struct get *c, const char *what, uint64_t n, size_t n_bytes);
void put_index(struct put *c, const char *what, uint32_t v, uint32_t n); /* 0 … n-1, or UINT32_MAX = none */
uint32_t get_index(struct get *c, const char *what, uint32_t n);
void put_ref(struct put *c, const char *what, struct ref v, uint32_t n); /* of a table of n rows */
struct ref get_ref(struct get *c, const char *what, uint32_t n);
void put_text(struct put *c, const char *what, const char *text, size_t size);
void get_text(struct get *c, const char *what, char *text, size_t size);

/*
 * A row that may be empty: one byte 0 and, where the struct starts with its generation, that; or one byte 1 and the whole
 * row. An empty row is one whose fields are all 0, so all of its bytes but the generation's: found by looking at what was
 * written, and a full row that would have fitted the short form is refused: one row, one spelling.
 */
size_t put_row_begin(struct put *c);
void put_row_end(struct put *c, size_t begun, bool has_generation);
bool get_row_begin(struct get *c, bool has_generation, uint32_t *ret_generation, size_t *ret_begun); /* true: full */
void get_row_end(struct get *c, const char *what, bool has_generation, size_t begun);

/*                 S       the struct's name           T  one of the kinds below
 *                 f       the field                   a  its limit, struct or table */
#define PUT_U32(S, f, a) bytes_put_u32(&c->w, p->f);
#define GET_U32(S, f, a) p->f = bytes_get_u32(&c->r);
#define ZERO_U32(a) 0,
#define PUT_U64(S, f, a) put_u64(c, p->f);
#define GET_U64(S, f, a) p->f = get_u64(c, #S "." #f);
#define ZERO_U64(a) 0,
#define PUT_BOOL(S, f, a) bytes_put_bool(&c->w, p->f);
#define GET_BOOL(S, f, a) p->f = bytes_get_bool(&c->r);
#define ZERO_BOOL(a) 0,
/* Values below a: enums, masks and counts; the number is the width in bits. */
#define PUT_BELOW8(S, f, a) put_below(c, #S "." #f, p->f, a, 1);
#define GET_BELOW8(S, f, a) p->f = (uint8_t) get_below(c, #S "." #f, a, 1);
#define ZERO_BELOW8(a) 0,
#define PUT_BELOW16(S, f, a) put_below(c, #S "." #f, p->f, a, 2);
#define GET_BELOW16(S, f, a) p->f = (uint16_t) get_below(c, #S "." #f, a, 2);
#define ZERO_BELOW16(a) 0,
#define PUT_BELOW32(S, f, a) put_below(c, #S "." #f, p->f, a, 4);
#define GET_BELOW32(S, f, a) p->f = (uint32_t) get_below(c, #S "." #f, a, 4);
#define ZERO_BELOW32(a) 0,
/* An id: SQLite keeps it as a signed number. */
#define CODEC_ID_END (UINT64_C(1) << 63)
#define PUT_ID(S, f, a) put_below(c, #S "." #f, p->f, CODEC_ID_END, 8);
#define GET_ID(S, f, a) p->f = get_below(c, #S "." #f, CODEC_ID_END, 8);
#define ZERO_ID(a) 0,
#define PUT_INDEX(S, f, a) put_index(c, #S "." #f, p->f, a);
#define GET_INDEX(S, f, a) p->f = get_index(c, #S "." #f, a);
#define ZERO_INDEX(a) 0,
#define PUT_REF(S, f, a) put_ref(c, #S "." #f, p->f, a);
#define GET_REF(S, f, a) p->f = get_ref(c, #S "." #f, a);
#define ZERO_REF(a) { 0 },
#define PUT_TEXT(S, f, a) put_text(c, #S "." #f, p->f, sizeof(p->f));
#define GET_TEXT(S, f, a) get_text(c, #S "." #f, p->f, sizeof(p->f));
#define ZERO_TEXT(a) "",
#define PUT_STRUCT(S, f, a) put_##a(c, &p->f);
#define GET_STRUCT(S, f, a) get_##a(c, &p->f);
#define ZERO_STRUCT(a) { 0 },
#define PUT_U64S(S, f, a)                                                                                              \
        for (size_t i = 0; i < (a); i++)                                                                               \
                put_u64(c, p->f[i]);
#define GET_U64S(S, f, a)                                                                                              \
        for (size_t i = 0; i < (a); i++)                                                                               \
                p->f[i] = get_u64(c, #S "." #f);
#define ZERO_U64S(a) { 0 },
/* A small array of counts, a byte each. */
#define PUT_BYTES(S, f, a)                                                                                             \
        for (size_t i = 0; i < (a); i++)                                                                               \
                bytes_put_u8(&c->w, p->f[i]);
#define GET_BYTES(S, f, a)                                                                                             \
        for (size_t i = 0; i < (a); i++)                                                                               \
                p->f[i] = bytes_get_u8(&c->r);
#define ZERO_BYTES(a) { 0 },
/* A small array of structs, each as a row that may be empty. */
#define PUT_ROWS(S, f, a)                                                                                              \
        for (size_t i = 0; i < sizeof(p->f) / sizeof(*p->f); i++) {                                                    \
                size_t begun = put_row_begin(c);                                                                       \
                put_##a(c, &p->f[i]);                                                                                  \
                put_row_end(c, begun, false);                                                                          \
        }
#define GET_ROWS(S, f, a)                                                                                              \
        for (size_t i = 0; i < sizeof(p->f) / sizeof(*p->f); i++) {                                                    \
                size_t begun;                                                                                          \
                if (get_row_begin(c, false, NULL, &begun)) {                                                           \
                        get_##a(c, &p->f[i]);                                                                          \
                        get_row_end(c, #S "." #f, false, begun);                                                       \
                }                                                                                                      \
        }
#define ZERO_ROWS(a) { 0 },

/* A field that older versions did not have: a = (since, kind, its a) or (since, kind, its a, value until then). */
#define CODEC_PARTS(...) __VA_ARGS__
#define PUT_SINCE(S, f, a) PUT_SINCE_PARTS(S, f, CODEC_PARTS a)
#define PUT_SINCE_PARTS(...) PUT_SINCE_FIELD(__VA_ARGS__)
#define PUT_SINCE_FIELD(S, f, since, T, a) PUT_##T(S, f, a)
#define GET_SINCE(S, f, a) GET_SINCE_PARTS(S, f, CODEC_PARTS a)
#define GET_SINCE_PARTS(...) GET_SINCE_FIELD(__VA_ARGS__)
#define GET_SINCE_FIELD(S, f, since, T, a)                                                                             \
        if (c->version >= (since)) {                                                                                   \
                GET_##T(S, f, a)                                                                                       \
        }
#define ZERO_SINCE(a) ZERO_SINCE_PARTS(CODEC_PARTS a)
#define ZERO_SINCE_PARTS(...) ZERO_SINCE_FIELD(__VA_ARGS__)
#define ZERO_SINCE_FIELD(since, T, a) ZERO_##T(a)
#define PUT_SINCE_OR(S, f, a) PUT_SINCE_OR_PARTS(S, f, CODEC_PARTS a)
#define PUT_SINCE_OR_PARTS(...) PUT_SINCE_OR_FIELD(__VA_ARGS__)
#define PUT_SINCE_OR_FIELD(S, f, since, T, a, before) PUT_##T(S, f, a)
#define GET_SINCE_OR(S, f, a) GET_SINCE_OR_PARTS(S, f, CODEC_PARTS a)
#define GET_SINCE_OR_PARTS(...) GET_SINCE_OR_FIELD(__VA_ARGS__)
#define GET_SINCE_OR_FIELD(S, f, since, T, a, before)                                                                  \
        p->f = (before);                                                                                               \
        GET_SINCE_FIELD(S, f, since, T, a)
#define ZERO_SINCE_OR(a) ZERO_SINCE_OR_PARTS(CODEC_PARTS a)
#define ZERO_SINCE_OR_PARTS(...) ZERO_SINCE_OR_FIELD(__VA_ARGS__)
#define ZERO_SINCE_OR_FIELD(since, T, a, before) ZERO_##T(a)

#define CODEC_PUT(S, T, f, a) PUT_##T(S, f, a)
#define CODEC_GET(S, T, f, a) GET_##T(S, f, a)
#define CODEC_ZERO(S, T, f, a) ZERO_##T(a)

#define CODEC_STRUCT(S, FIELDS, SIZE)                                                                                  \
        CODEC_GUARD(S, FIELDS, SIZE)                                                                                   \
        void put_##S(struct put *c, const struct S *p)                                                                 \
        {                                                                                                              \
                FIELDS(CODEC_PUT, S)                                                                                   \
        }                                                                                                              \
        void get_##S(struct get *c, struct S *p)                                                                       \
        {                                                                                                              \
                FIELDS(CODEC_GET, S)                                                                                   \
        }

/* The list of zeros is as long as the table: a field without a row is "missing initializer", an error in these files. */
#define CODEC_GUARD(S, FIELDS, SIZE)                                                                                   \
        _Static_assert(sizeof((struct S){ FIELDS(CODEC_ZERO, S) }) == (SIZE) || UINTPTR_MAX != UINT64_MAX,             \
                       "struct " #S " changed: give each new field its row in the table, with SINCE (codec.h), then "  \
                       "correct this size");
#define CODEC_GUARDS_ON                                                                                                \
        _Pragma("GCC diagnostic error \"-Wmissing-field-initializers\"")                                               \
                _Pragma("GCC diagnostic ignored \"-Wmissing-braces\"")

/* ---- structs that several blobs share (codec_parts.c) ---- */

void put_identity(struct put *c, const struct identity *p);
void get_identity(struct get *c, struct identity *p);
void put_ways_out(struct put *c, const struct ways_out *p);
void get_ways_out(struct get *c, struct ways_out *p);
void put_manager(struct put *c, const struct manager *p);
void get_manager(struct get *c, struct manager *p);
void put_binding(struct put *c, const struct binding *p);
void get_binding(struct get *c, struct binding *p);
void put_quota(struct put *c, const struct quota *p);
void get_quota(struct get *c, struct quota *p);
void put_idempotency(struct put *c, const struct idempotency *p);
void get_idempotency(struct get *c, struct idempotency *p);
void put_idle_ladder(struct put *c, const struct idle_ladder *p);
void get_idle_ladder(struct get *c, struct idle_ladder *p);
void put_config(struct put *c, const struct config *p);
void get_config(struct get *c, struct config *p);
void put_host(struct put *c, const struct host *p);
void get_host(struct get *c, struct host *p);
void put_process(struct put *c, const struct process *p);
void get_process(struct get *c, struct process *p);
void put_occupancy(struct put *c, const struct occupancy *p);
void get_occupancy(struct get *c, struct occupancy *p);

enum { CODEC_PRIORITY_END = PRIORITY_FILLER + 1 };

/* ---- beginnings and ends, the same for each blob ---- */

void put_begin(struct put *c, void *buf, size_t buf_size);
int put_end(struct put *c, const char *blob, size_t *ret_n, struct error *err);
/* Of any blob; 0 = it has none. */
static inline uint16_t codec_version_of(const void *data, size_t n_data)
{
        const uint8_t *p = data;
        return n_data >= 2 ? (uint16_t) ((unsigned) p[0] | (unsigned) p[1] << 8) : 0;
}
/* -EPROTONOSUPPORT: a version that is not read here. */
int get_begin(struct get *c, const char *blob, const void *data, size_t n_data, struct error *err);
int get_end(struct get *c, const char *blob, struct error *err);
