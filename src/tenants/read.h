/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON → C, strictly and by tables: each object is a table of its keys, with where each goes and who reads it. Private to
 * src/tenants. A refusal names file, line, the path of the field, what was given, what is allowed, and the cure. Keys that
 * begin with '_' are people's own remarks and pass, as does "$schema".
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum { READ_PATH_MAX = 256 };

struct reading_json {
        const char *file; /* as it is to be named */
        const char *text;
        size_t n;
        char path[READ_PATH_MAX]; /* JSON pointer to what is being read */
        struct error *err;
};

typedef int read_fn(struct reading_json *r, const json_t *value, void *ret);

struct read_key {
        const char *name;
        size_t offset; /* of where it goes */
        read_fn *read;
};

/* The value at r->path is not allowed: -EINVAL. */
int read_refuse(struct reading_json *r, const json_t *value, const char *allowed, const char *cure);
/* Down to a key or an item, and back to what was returned. */
size_t read_enter(struct reading_json *r, const char *key);
size_t read_enter_item(struct reading_json *r, size_t index);
void read_leave(struct reading_json *r, size_t before);

/*
 * An object: each key that is in the table is read to its offset from @base; another one is refused with the list of them.
 * *ret_given (may be NULL) gets one bit a row.
 */
int read_object(struct reading_json *r, const json_t *value, const struct read_key *keys, size_t n_keys, void *base,
                uint32_t *ret_given);
#define READ_OBJECT(r, value, keys, base, ret_given)                                                                   \
        read_object(r, value, keys, sizeof(keys) / sizeof((keys)[0]), base, ret_given)
/* Keys that must be there, or may not, by their bits: @what says of what ("a probe from http"). */
int read_check_given(struct reading_json *r, const json_t *value, const struct read_key *keys, size_t n_keys,
                     uint32_t given, uint32_t required, uint32_t allowed, const char *what);
#define BIT(row) (1U << (row))
#define CHECK_GIVEN(r, value, keys, given, required, allowed, what)                                                    \
        read_check_given(r, value, keys, sizeof(keys) / sizeof((keys)[0]), given, required, allowed, what)
/* A list of 1 … @max items, each read to @base + i * @each_size; *ret_n gets how many. */
int read_items(struct reading_json *r, const json_t *value, size_t max, read_fn *each, void *base, size_t each_size,
               uint32_t *ret_n);
/* The index of a text in @words, which end with NULL. */
int read_word(struct reading_json *r, const json_t *value, const char *const *words, uint8_t *ret);

/* Single values. Texts are plain: UTF-8 without control characters. */
read_fn read_text;      /* const char *: 1 … 511 bytes */
read_fn read_short;     /* const char *: 1 … 63 bytes */
read_fn read_list;      /* struct tenant_list: 1 … 16 texts */
read_fn read_http_path; /* const char *: "/queue?x=y" */
read_fn read_pointer;   /* const char *: RFC 6901 */
read_fn read_file_path; /* const char *: absolute */
read_fn read_role;      /* const char * */
read_fn read_bool;      /* bool */
read_fn read_true;      /* bool, and nothing but true */
read_fn read_bytes;     /* uint64_t: "12G" */
read_fn read_span_ms;   /* uint64_t: "60s" */
read_fn read_number;    /* int64_t */
read_fn read_scalar;    /* const json_t *: text, whole number, true or false */
read_fn read_user;      /* const char *: whose rights a program gets */
read_fn read_argv;      /* struct tenant_list: an absolute path and arguments */
read_fn read_port;      /* uint16_t */
