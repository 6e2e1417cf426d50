/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message.h"
#include <errno.h>
#include <string.h>

bool codec_failed(const struct codec *c)
{
        return c->broken || (c->writing ? c->w.failed : c->r.failed);
}

/* ---- fields ---- */

void code_require(struct codec *c, const char *what, bool holds)
{
        if (!holds && !codec_failed(c))
                c->broken = what;
}

void code_u32(struct codec *c, const char *what, uint32_t *v, uint32_t min, uint32_t max)
{
        if (c->writing)
                bytes_put_u32(&c->w, *v);
        else
                *v = bytes_get_u32(&c->r);
        code_require(c, what, *v >= min && *v <= max);
        if (codec_failed(c) && !c->writing)
                *v = min;
}

void code_u64(struct codec *c, const char *what, uint64_t *v, uint64_t min, uint64_t max)
{
        if (c->writing)
                bytes_put_u64(&c->w, *v);
        else
                *v = bytes_get_u64(&c->r);
        code_require(c, what, *v >= min && *v <= max);
}

void code_i32(struct codec *c, int32_t *v)
{
        if (c->writing)
                bytes_put_i32(&c->w, *v);
        else
                *v = bytes_get_i32(&c->r);
}

void code_bool(struct codec *c, bool *v)
{
        if (c->writing)
                bytes_put_bool(&c->w, *v);
        else
                *v = bytes_get_bool(&c->r);
}

void code_text(struct codec *c, const char *what, char *text, size_t size, bool may_be_empty)
{
        if (c->writing) {
                size_t n = strnlen(text, size);
                code_require(c, what, n < size);
                bytes_put_blob(&c->w, text, n < size ? n : 0);
                code_require(c, what, may_be_empty || n > 0);
                return;
        }
        bool fits = bytes_get_text(&c->r, text, size);
        code_require(c, what, !fits || may_be_empty || text[0]);
}

void code_program(struct codec *c, char *text, size_t size)
{
        size_t n = 0;

        if (c->writing)
                bytes_put_data(&c->w, text, size);
        else
                (void) bytes_get_data(&c->r, text, size);
        while (n < size && text[n] > ' ' && text[n] <= '~')
                n++;
        code_require(c, "program", n > 0 && n < size);
        for (; n < size; n++)
                code_require(c, "program", text[n] == '\0');
}

/* ---- messages ---- */

void codec_write(struct codec *c, void *buf, size_t size, uint32_t version, uint32_t kind)
{
        *c = (struct codec){ .writing = true };
        bytes_writer_init(&c->w, buf, size);
        bytes_put_u16(&c->w, (uint16_t) version);
        bytes_put_u16(&c->w, (uint16_t) kind);
        code_require(c, "version", version > 0 && version <= UINT16_MAX);
}

int codec_written(const struct codec *c, const char *who, const char *kind, size_t *ret_n, struct error *err)
{
        if (c->broken)
                return error_set(err, EINVAL, "%s message %s: field %s is outside its range", who, kind, c->broken);
        if (!bytes_writer_ok(&c->w))
                return error_set(err, EMSGSIZE, "%s message %s does not fit into %zu bytes", who, kind, c->w.cap);
        *ret_n = c->w.at;
        return 0;
}

int codec_read(struct codec *c, const char *who, const void *data, size_t n_data, size_t max, uint32_t *ret_version,
               uint32_t *ret_kind, struct error *err)
{
        *c = (struct codec){ .writing = false };
        if (n_data > max)
                return error_set(err, EBADMSG, "%s message of %zu bytes; at most %zu are allowed", who, n_data, max);
        bytes_reader_init(&c->r, data, n_data);
        *ret_version = bytes_get_u16(&c->r);
        *ret_kind = bytes_get_u16(&c->r);
        return c->r.failed ? error_set(err, EBADMSG, "%s message is shorter than its header", who) : 0;
}

int codec_refuse_version(const char *who, uint32_t version, uint32_t ours, struct error *err)
{
        return error_set(err, EPROTONOSUPPORT, "%s message has version %u, this program speaks %u", who, version, ours);
}

int codec_refuse_kind(const char *who, uint32_t kind, struct error *err)
{
        return error_set(err, EBADMSG, "%s message has the unknown kind %u", who, kind);
}

int codec_was_read(const struct codec *c, const char *who, const char *kind, struct error *err)
{
        if (c->broken)
                return error_set(err, EBADMSG, "%s message %s: field %s is outside its range", who, kind, c->broken);
        if (!bytes_reader_at_end(&c->r))
                return error_set(err, EBADMSG, "%s message %s: %s", who, kind,
                                 c->r.failed ? "ends early or has a malformed field" : "has bytes after its end");
        return 0;
}
