/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the messages between lessord and its programs (eyes.h, warden.h, gate.h) have in common: a version and a kind, then
 * fields. One description of each message serves both directions: code_x() reads a field or writes it, and checks its range
 * either way. So what is written and what is accepted cannot drift apart. For the files of this room.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "wire/bytes.h"

struct codec {
        bool writing;
        struct bytes_reader r;
        struct bytes_writer w;
        const char *broken; /* name of the first field outside its range */
};

bool codec_failed(const struct codec *c);

/* ---- fields ---- */

void code_require(struct codec *c, const char *what, bool holds);
/* Refused while reading, it is @min: a count stays inside its array while the rest of the decoder runs off harmlessly. */
void code_u32(struct codec *c, const char *what, uint32_t *v, uint32_t min, uint32_t max);
void code_u64(struct codec *c, const char *what, uint64_t *v, uint64_t min, uint64_t max);
void code_i32(struct codec *c, int32_t *v);
void code_bool(struct codec *c, bool *v);
void code_text(struct codec *c, const char *what, char *text, size_t size, bool may_be_empty);
/* All @size bytes travel, zeros behind the text: printable, not empty, and only one way to write it. */
void code_program(struct codec *c, char *text, size_t size);

/* Of @min … @n - 1. */
#define code_enum(c, what, field, min, n)                                                                              \
        do {                                                                                                           \
                uint32_t v_ = (uint32_t) * (field);                                                                    \
                code_u32((c), (what), &v_, (min), (uint32_t) (n) -1);                                                  \
                *(field) = (__typeof__(*(field))) v_;                                                                  \
        } while (0)

/* ---- a message: its head, the caller's fields, its end ---- */

/* @who: "eyes", "warden", "gate", for the words. */
void codec_write(struct codec *c, void *buf, size_t size, uint32_t version, uint32_t kind);
/* -EINVAL: a field is outside its range; -EMSGSIZE: it does not fit. */
int codec_written(const struct codec *c, const char *who, const char *kind, size_t *ret_n, struct error *err);

/* -EBADMSG: longer than @max, or shorter than a head. */
int codec_read(struct codec *c, const char *who, const void *data, size_t n_data, size_t max, uint32_t *ret_version,
               uint32_t *ret_kind, struct error *err);
int codec_refuse_version(const char *who, uint32_t version, uint32_t ours, struct error *err); /* -EPROTONOSUPPORT */
int codec_refuse_kind(const char *who, uint32_t kind, struct error *err);                      /* -EBADMSG */
/* -EBADMSG: a field is outside its range, or the bytes do not end where the fields do. */
int codec_was_read(const struct codec *c, const char *who, const char *kind, struct error *err);
