/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Printing for people and for programs: colour only on a terminal, and nothing from elsewhere reaches it unescaped. */
#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include "base/size.h"
#include "client/client.h"
#include "client/lessor.h"

enum { SHOW_TEXT_MAX = 1024 };

enum show_colour { SHOW_PLAIN, SHOW_BOLD, SHOW_DIM, SHOW_RED, SHOW_YELLOW, SHOW_GREEN };
/* The escape sequence, or "" where standard output is no terminal or NO_COLOR is set. */
const char *show_colour(enum show_colour colour);

/* object[key] as safe text: strings escaped, numbers as they are, null and absent as @fallback. Returns @buf. */
const char *show_field(const json_t *object, const char *key, const char *fallback, char *buf, size_t buf_size);
/* How a size that nobody named was found: "by its last 7 runs". False: it was named, or nothing was known. */
enum { SHOW_SIZED_MAX = 48 };
bool show_sized(const json_t *lease, char buf[SHOW_SIZED_MAX]);
/* object[key] as an amount of memory, "?" when unknown. */
const char *show_bytes(const json_t *object, const char *key, char buf[SIZE_TEXT_MAX]);
/* Escaped, cut to @columns characters with "…" (UTF-8 aware), padded to it when @pad. */
const char *show_cut(const char *text, size_t columns, bool pad, char *buf, size_t buf_size);

/* Pretty JSON and a newline; on a terminal without anything that could be a control sequence. */
void show_json(const json_t *value);
void show_json_line(const json_t *value);

/* A problem object on stderr: "lessor VERB: detail", and who is in the way. */
void show_problem(const char *verb, const struct client_answer *answer);
/* The same of an error of liblessor; returns the exit code: LESSOR_EXIT_REFUSED, or LESSOR_EXIT_AWAY. */
int show_failure(const char *verb, const struct lessor_error *error);
/* Prints why and the cure; returns LESSOR_EXIT_AWAY. */
int show_away(const char *verb, const struct client *client, int r);

/*
 * One question, asked once: 0 and *ret, the body of a 200 or 201 (NULL: it has none), is the caller's. Otherwise the words are
 * on stderr and the exit code is returned.
 * @body  borrowed; NULL = none
 */
int show_call(const char *verb, const char *method, const char *path, const json_t *body, json_t **ret);
/* The same for an answer that may take @wait_ms. */
int show_get_slowly(const char *verb, const char *path, uint64_t wait_ms, json_t **ret);
/*
 * GET @path and give back its body on 200. Otherwise the words are on stderr and the exit code is returned.
 * 0 = *ret is the caller's.
 */
int show_get(const char *verb, const char *path, json_t **ret);
