/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/bytes.h"

#include <endian.h>
#include <string.h>

void bytes_reader_init(struct bytes_reader *r, const void *data, size_t n_data)
{
        *r = (struct bytes_reader){ .data = data, .n_data = n_data };
}

void bytes_reader_fail(struct bytes_reader *r)
{
        r->failed = true;
}

size_t bytes_reader_left(const struct bytes_reader *r)
{
        return r->failed ? 0 : r->n_data - r->at;
}

bool bytes_reader_at_end(const struct bytes_reader *r)
{
        return !r->failed && r->at == r->n_data;
}

const uint8_t *bytes_get_view(struct bytes_reader *r, size_t n)
{
        static const uint8_t nothing[1];

        if (r->failed || n > r->n_data - r->at) {
                r->failed = true;
                return NULL;
        }
        if (n == 0)
                return nothing; /* data may be NULL when there are no bytes at all */
        const uint8_t *p = r->data + r->at;
        r->at += n;
        return p;
}

bool bytes_get_data(struct bytes_reader *r, void *dst, size_t n)
{
        const uint8_t *p = bytes_get_view(r, n);
        if (!p)
                return false;
        if (n > 0)
                memcpy(dst, p, n);
        return true;
}

uint8_t bytes_get_u8(struct bytes_reader *r)
{
        uint8_t v = 0;
        (void) bytes_get_data(r, &v, sizeof(v));
        return v;
}

uint16_t bytes_get_u16(struct bytes_reader *r)
{
        uint16_t v = 0;
        (void) bytes_get_data(r, &v, sizeof(v));
        return le16toh(v);
}

uint32_t bytes_get_u32(struct bytes_reader *r)
{
        uint32_t v = 0;
        (void) bytes_get_data(r, &v, sizeof(v));
        return le32toh(v);
}

uint64_t bytes_get_u64(struct bytes_reader *r)
{
        uint64_t v = 0;
        (void) bytes_get_data(r, &v, sizeof(v));
        return le64toh(v);
}

int32_t bytes_get_i32(struct bytes_reader *r)
{
        return (int32_t) bytes_get_u32(r);
}

int64_t bytes_get_i64(struct bytes_reader *r)
{
        return (int64_t) bytes_get_u64(r);
}

bool bytes_get_bool(struct bytes_reader *r)
{
        uint8_t v = bytes_get_u8(r);
        if (v > 1)
                r->failed = true;
        return v == 1;
}

uint32_t bytes_get_below(struct bytes_reader *r, uint32_t n)
{
        uint32_t v = bytes_get_u32(r);
        if (v < n)
                return v;
        r->failed = true;
        return 0;
}

const uint8_t *bytes_get_blob_view(struct bytes_reader *r, size_t max, size_t *ret_n)
{
        size_t n = bytes_get_u32(r);
        if (n > max)
                r->failed = true;
        const uint8_t *p = bytes_get_view(r, n);
        if (p)
                *ret_n = n;
        return p;
}

bool bytes_get_blob(struct bytes_reader *r, void *dst, size_t max, size_t *ret_n)
{
        size_t n = 0;
        const uint8_t *p = bytes_get_blob_view(r, max, &n);
        if (!p)
                return false;
        if (n > 0)
                memcpy(dst, p, n);
        *ret_n = n;
        return true;
}

bool bytes_get_text(struct bytes_reader *r, char *dst, size_t dst_size)
{
        size_t n = 0;

        dst[0] = '\0';
        const uint8_t *p = bytes_get_blob_view(r, dst_size - 1, &n);
        if (!p)
                return false;
        if (memchr(p, '\0', n)) {
                r->failed = true;
                return false;
        }
        memcpy(dst, p, n);
        dst[n] = '\0';
        return true;
}

void bytes_writer_init(struct bytes_writer *w, void *data, size_t cap)
{
        *w = (struct bytes_writer){ .data = data, .cap = cap };
}

bool bytes_writer_ok(const struct bytes_writer *w)
{
        return !w->failed;
}

void bytes_put_data(struct bytes_writer *w, const void *data, size_t n)
{
        if (w->failed || n > w->cap - w->at) {
                w->failed = true;
                return;
        }
        if (n > 0)
                memcpy(w->data + w->at, data, n);
        w->at += n;
}

void bytes_put_u8(struct bytes_writer *w, uint8_t v)
{
        bytes_put_data(w, &v, sizeof(v));
}

void bytes_put_u16(struct bytes_writer *w, uint16_t v)
{
        v = htole16(v);
        bytes_put_data(w, &v, sizeof(v));
}

void bytes_put_u32(struct bytes_writer *w, uint32_t v)
{
        v = htole32(v);
        bytes_put_data(w, &v, sizeof(v));
}

void bytes_put_u64(struct bytes_writer *w, uint64_t v)
{
        v = htole64(v);
        bytes_put_data(w, &v, sizeof(v));
}

void bytes_put_i32(struct bytes_writer *w, int32_t v)
{
        bytes_put_u32(w, (uint32_t) v);
}

void bytes_put_i64(struct bytes_writer *w, int64_t v)
{
        bytes_put_u64(w, (uint64_t) v);
}

void bytes_put_bool(struct bytes_writer *w, bool v)
{
        bytes_put_u8(w, v ? 1 : 0);
}

void bytes_put_blob(struct bytes_writer *w, const void *data, size_t n)
{
        if (n > UINT32_MAX) {
                w->failed = true;
                return;
        }
        size_t start = w->at;
        bytes_put_u32(w, (uint32_t) n);
        bytes_put_data(w, data, n);
        if (w->failed)
                w->at = start; /* no length without its bytes */
}

void bytes_put_text(struct bytes_writer *w, const char *text)
{
        bytes_put_blob(w, text, strlen(text));
}

void bytes_patch_u32(struct bytes_writer *w, size_t at, uint32_t v)
{
        if (w->failed || at > w->at || w->at - at < sizeof(v)) {
                w->failed = true;
                return;
        }
        v = htole32(v);
        memcpy(w->data + at, &v, sizeof(v));
}
