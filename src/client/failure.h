/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* struct lessor_error: made here, of answers and of calls that got none. None of these returns NULL: without memory they
 * return one error that says so, and that is never freed. */
#include "client/client.h"
#include "client/lessor.h"

printf_like(3, 4) struct lessor_error *failure_new(int code, const char *type, const char *fmt, ...);
/* A problem object, or an answer that should have been something else. */
struct lessor_error *failure_of_answer(const struct client_answer *answer);
/* No answer at all: @r as client_call() gives it. */
struct lessor_error *failure_of_call(const struct client *client, int r);
/* Hands it out as failure_give(); where the address is what was not found, as -EOPNOTSUPP. */
int failure_is_older(struct lessor_error *error, struct lessor_error **reterr);
struct lessor_error *failure_copy(const struct lessor_error *error);
/* Hands it out, or frees it where nobody wants it. Returns its negative errno. */
int failure_give(struct lessor_error *error, struct lessor_error **reterr);
