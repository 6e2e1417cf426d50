/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One field of what a client writes, JSON → C. Each takes the value as it stands there, never null, and returns 0, or -1
 * with a problem that names the field, what was given, what is allowed, and the cure. @ret is written on success only.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "api/problem.h"

void take_jsonp(json_t **value); /* for __cleanup__ */
#define auto_json __attribute__((__cleanup__(take_jsonp))) json_t

/* Is it there, and not null? */
bool take_is_given(const json_t *object, const char *name);
/* A field that is wrong, with the value as it was written. Returns -1. */
int take_refuse(struct problem *p, const char *field, const json_t *value, const char *allowed, const char *cure);

int take_count(const json_t *value, const char *field, uint64_t min, uint64_t max, const char *allowed,
               const char *cure, uint64_t *ret, struct problem *p);
int take_bool(const json_t *value, const char *field, bool *ret, struct problem *p);
/* Copies into a field of @size bytes; longer texts and control characters are refused, never cut. */
int take_text(const json_t *value, const char *field, char *to, size_t size, const char *allowed, struct problem *p);
/* An amount: one of the two results is 0. */
int take_amount(const json_t *value, const char *field, uint64_t *ret_bytes, uint64_t *ret_percent_milli,
                struct problem *p);
int take_priority(const json_t *value, uint8_t *ret, struct problem *p);
/* 1 ms … 365 days: as whole milliseconds, or as text such as "2h". */
int take_span_ms(const json_t *value, const char *field, uint64_t *ret, struct problem *p);
int take_span_text(const json_t *value, const char *field, uint64_t *ret, struct problem *p);
/* A moment as RFC 3339 has it, with its offset. */
int take_moment(const json_t *value, const char *field, uint64_t *ret_wall_ms, struct problem *p);
int take_pid(const json_t *value, const char *field, const char *cure, uint32_t *ret, struct problem *p);

#define TAKE_ALLOWED_SIZE "1 … 2^63-1 bytes, or text such as \"1500M\", \"12G\", \"12GB\", \"90%\", \"all\""
