/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cursors over bytes: a reader for what a stranger sent, a writer into a buffer of a fixed size. Integers are
 * little-endian whatever the machine is. Failure sticks: after the first short read or full buffer every later call does
 * nothing and reads give 0, so a decoder is straight-line code with one check at its end:
 *
 *         bytes_reader_init(&r, data, n_data);
 *         msg.pid = bytes_get_u32(&r);
 *         (void) bytes_get_text(&r, msg.name, sizeof(msg.name));
 *         if (!bytes_reader_at_end(&r))           // failed before, or bytes left over
 *                 return error_set(err, EBADMSG, "…");
 *
 * Neither allocates nor does I/O. A cursor borrows its memory and owns nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes_reader {
        const uint8_t *data;
        size_t n_data;
        size_t at; /* bytes read so far; never above n_data */
        bool failed;
};

struct bytes_writer {
        uint8_t *data;
        size_t cap;
        size_t at; /* bytes written so far; never above cap */
        bool failed;
};

/* ---- reading ---- */

void bytes_reader_init(struct bytes_reader *r, const void *data, size_t n_data);
uint8_t bytes_get_u8(struct bytes_reader *r);
uint16_t bytes_get_u16(struct bytes_reader *r);
uint32_t bytes_get_u32(struct bytes_reader *r);
uint64_t bytes_get_u64(struct bytes_reader *r);
int32_t bytes_get_i32(struct bytes_reader *r);
int64_t bytes_get_i64(struct bytes_reader *r);
/* One byte that must be 0 or 1: anything else fails, so that what was read can be written again byte by byte. */
bool bytes_get_bool(struct bytes_reader *r);
/* A u32 that must be below @n: the way to read an enum. Fails, and gives 0, otherwise. */
uint32_t bytes_get_below(struct bytes_reader *r, uint32_t n);
/* @n bytes as they lie, without copying; NULL when there are fewer (and for n = 0 after a failure). */
const uint8_t *bytes_get_view(struct bytes_reader *r, size_t n);
/* Exactly @n bytes into @dst, which is left alone on failure. */
bool bytes_get_data(struct bytes_reader *r, void *dst, size_t n);
/*
 * u32 length, then that many bytes of any value. Fails when longer than @max, so a length a stranger wrote is never
 * believed further than the buffer. The view form gives a pointer into the reader's memory (NULL only on failure).
 */
bool bytes_get_blob(struct bytes_reader *r, void *dst, size_t max, size_t *ret_n);
const uint8_t *bytes_get_blob_view(struct bytes_reader *r, size_t max, size_t *ret_n);
/*
 * The same as a C string: fails on a NUL inside and when text and its NUL do not fit into @dst_size. Other bytes pass as
 * they are (control characters and broken UTF-8 too): whoever prints them uses text_escape(). @dst is "" on failure.
 */
bool bytes_get_text(struct bytes_reader *r, char *dst, size_t dst_size);
/* A decoder's own finding ("pid 0"): marks the reader failed. */
void bytes_reader_fail(struct bytes_reader *r);
size_t bytes_reader_left(const struct bytes_reader *r);
/* True when nothing failed and every byte was consumed. */
bool bytes_reader_at_end(const struct bytes_reader *r);

/* ---- writing ---- */

void bytes_writer_init(struct bytes_writer *w, void *data, size_t cap);
void bytes_put_u8(struct bytes_writer *w, uint8_t v);
void bytes_put_u16(struct bytes_writer *w, uint16_t v);
void bytes_put_u32(struct bytes_writer *w, uint32_t v);
void bytes_put_u64(struct bytes_writer *w, uint64_t v);
void bytes_put_i32(struct bytes_writer *w, int32_t v);
void bytes_put_i64(struct bytes_writer *w, int64_t v);
void bytes_put_bool(struct bytes_writer *w, bool v);
void bytes_put_data(struct bytes_writer *w, const void *data, size_t n); /* as it is, no length */
void bytes_put_blob(struct bytes_writer *w, const void *data, size_t n); /* u32 length first; n up to UINT32_MAX */
void bytes_put_text(struct bytes_writer *w, const char *text);           /* u32 length, bytes, no NUL */
/*
 * Overwrite a u32 written earlier, at offset @at: a length or checksum known only at the end. Outside what is written = fails.
 */
void bytes_patch_u32(struct bytes_writer *w, size_t at, uint32_t v);
/* True when everything fitted; then @w->at is the number of bytes. */
bool bytes_writer_ok(const struct bytes_writer *w);
