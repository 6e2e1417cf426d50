/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fields of one JSON object on its way: into a jansson value, where it becomes part of a larger one, or straight into
 * text, where it is an answer of its own. The latter costs a fifth, and a lease is shown with every call about one.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/strbuf.h"

struct fields { /* one of the two */
        json_t *object;
        struct strbuf *text; /* without memory it says failed */
};

/* At least one field stands between the two. */
void fields_begin(struct fields *f);
void fields_end(struct fields *f);
/* An object in the object, as its field @key: fill what is returned, then close it. */
struct fields fields_open(struct fields *f, const char *key);
void fields_close(struct fields *f, struct fields *inner);

/* Keys are words of ours. Amounts above 2^63-1 are that; a text that is NULL or "" is null, one that is not UTF-8 escaped. */
void fields_u64(struct fields *f, const char *key, uint64_t n);
void fields_u64_or_null(struct fields *f, const char *key, bool known, uint64_t n);
void fields_bool(struct fields *f, const char *key, bool value);
void fields_text(struct fields *f, const char *key, const char *text);
/* Takes over @value; NULL: there was no memory for it. */
void fields_value(struct fields *f, const char *key, json_t *value);
