/* SPDX-License-Identifier: Apache-2.0 */
#include "store/codec.h"

#include <errno.h>

void put_bad(struct put *c, const char *what)
{
        if (!c->bad)
                c->bad = what;
}

void get_bad(struct get *c, const char *what)
{
        if (!c->bad && !c->r.failed) /* bytes that ran out are told as such */
                c->bad = what;
        bytes_reader_fail(&c->r);
}

/* Seven bits a byte, low ones first; the top bit says that more follow. Most numbers are 0 or short. */
void put_u64(struct put *c, uint64_t v)
{
        for (; v >= 0x80; v >>= 7)
                bytes_put_u8(&c->w, (uint8_t) (v | 0x80));
        bytes_put_u8(&c->w, (uint8_t) v);
}

uint64_t get_u64(struct get *c, const char *what)
{
        uint64_t v = 0;

        if (c->version < CODEC_SHORT_NUMBERS)
                return bytes_get_u64(&c->r);
        for (unsigned shift = 0; shift < 64; shift += 7) {
                uint64_t byte = bytes_get_u8(&c->r);
                bool is_last = byte < 0x80;
                if ((is_last && byte == 0 && shift > 0) || (shift == 63 && byte > 1)) {
                        get_bad(c, what); /* one number, one spelling */
                        return 0;
                }
                v |= (byte & 0x7f) << shift;
                if (is_last)
                        return v;
        }
        return v;
}

static void put_bytes(struct put *c, uint64_t v, size_t n_bytes)
{
        for (size_t i = 0; i < n_bytes; i++)
                bytes_put_u8(&c->w, (uint8_t) (v >> (8 * i)));
}

void put_below(struct put *c, const char *what, uint64_t v, uint64_t n, size_t n_bytes)
{
        if (v >= n)
                put_bad(c, what);
        if (n_bytes == sizeof(v))
                put_u64(c, v);
        else
                put_bytes(c, v, n_bytes);
}

uint64_t get_below(struct get *c, const char *what, uint64_t n, size_t n_bytes)
{
        uint64_t v = 0;

        if (n_bytes == sizeof(v)) {
                v = get_u64(c, what);
        } else {
                const uint8_t *p = bytes_get_view(&c->r, n_bytes);
                for (size_t i = 0; p && i < n_bytes; i++)
                        v |= (uint64_t) p[i] << (8 * i);
        }
        if (v < n)
                return v;
        get_bad(c, what);
        return 0;
}

void put_index(struct put *c, const char *what, uint32_t v, uint32_t n)
{
        if (v >= n && v != UINT32_MAX)
                put_bad(c, what);
        bytes_put_u32(&c->w, v);
}

uint32_t get_index(struct get *c, const char *what, uint32_t n)
{
        uint32_t v = bytes_get_u32(&c->r);

        if (v < n || v == UINT32_MAX)
                return v;
        get_bad(c, what);
        return 0;
}

void put_ref(struct put *c, const char *what, struct ref v, uint32_t n)
{
        put_below(c, what, v.index, n, 4);
        bytes_put_u32(&c->w, v.generation);
}

struct ref get_ref(struct get *c, const char *what, uint32_t n)
{
        struct ref v;

        v.index = (uint32_t) get_below(c, what, n, 4);
        v.generation = bytes_get_u32(&c->r);
        return v;
}

void put_text(struct put *c, const char *what, const char *text, size_t size)
{
        size_t n = strnlen(text, size);

        if (n == size) {
                put_bad(c, what); /* no NUL inside its array */
                n = 0;
        }
        bytes_put_blob(&c->w, text, n);
}

void get_text(struct get *c, const char *what, char *text, size_t size)
{
        bool was_failed = c->r.failed;

        if (!bytes_get_text(&c->r, text, size) && !was_failed && !c->bad)
                c->bad = what;
}

size_t put_row_begin(struct put *c)
{
        size_t begun = c->w.at;

        bytes_put_u8(&c->w, 1);
        return begun;
}

static bool bytes_are_zero(const uint8_t *data, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (data[i] != 0)
                        return false;
        return true;
}

void put_row_end(struct put *c, size_t begun, bool has_generation)
{
        size_t kept = begun + 1 + (has_generation ? sizeof(uint32_t) : 0);

        if (!bytes_writer_ok(&c->w) || !bytes_are_zero(c->w.data + kept, c->w.at - kept))
                return;
        c->w.data[begun] = 0;
        c->w.at = kept;
}

bool get_row_begin(struct get *c, bool has_generation, uint32_t *ret_generation, size_t *ret_begun)
{
        *ret_begun = c->r.at;
        if (bytes_get_bool(&c->r))
                return true;
        if (has_generation)
                *ret_generation = bytes_get_u32(&c->r);
        return false;
}

void get_row_end(struct get *c, const char *what, bool has_generation, size_t begun)
{
        size_t kept = begun + 1 + (has_generation ? sizeof(uint32_t) : 0);

        if (!c->r.failed && bytes_are_zero(c->r.data + kept, c->r.at - kept))
                get_bad(c, what);
}

void put_begin(struct put *c, void *buf, size_t buf_size)
{
        *c = (struct put){ 0 };
        bytes_writer_init(&c->w, buf, buf_size);
        bytes_put_u16(&c->w, CODEC_VERSION);
}

int put_end(struct put *c, const char *blob, size_t *ret_n, struct error *err)
{
        if (c->bad)
                return error_set(err, EINVAL, "%s: %s has an impossible value: not written", blob, c->bad);
        if (!bytes_writer_ok(&c->w))
                return error_set(err, EMSGSIZE, "%s does not fit into %zu bytes", blob, c->w.cap);
        *ret_n = c->w.at;
        return 0;
}

int get_begin(struct get *c, const char *blob, const void *data, size_t n_data, struct error *err)
{
        *c = (struct get){ 0 };
        bytes_reader_init(&c->r, data, n_data);
        c->version = bytes_get_u16(&c->r);
        if (c->r.failed)
                return error_set(err, EBADMSG, "%s: cut off after %zu bytes", blob, n_data);
        if (c->version < CODEC_VERSION_OLDEST || c->version > CODEC_VERSION)
                return error_set(err, EPROTONOSUPPORT, "%s: written in format %u, this program reads %d to %d", blob,
                                 c->version, CODEC_VERSION_OLDEST, CODEC_VERSION);
        return 0;
}

int get_end(struct get *c, const char *blob, struct error *err)
{
        if (c->bad)
                return error_set(err, EBADMSG, "%s: %s has an impossible value (at byte %zu)", blob, c->bad, c->r.at);
        if (c->r.failed)
                return error_set(err, EBADMSG, "%s: cut off or malformed at byte %zu of %zu", blob, c->r.at,
                                 c->r.n_data);
        if (!bytes_reader_at_end(&c->r))
                return error_set(err, EBADMSG, "%s: %zu bytes too many", blob, bytes_reader_left(&c->r));
        return 0;
}
