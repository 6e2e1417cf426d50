/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What administrators say to the enforcer, JSON → struct enforce_call. -1 with the problem. */
#include <stddef.h>
#include "api/problem.h"
#include "model/input.h"

int enforce_json_parse(const char *data, size_t n, struct enforce_call *ret, struct problem *reterr);
/* @ret_pid: of whose program it is. */
int approve_json_parse(const char *data, size_t n, struct enforce_call *ret, uint32_t *ret_pid, struct problem *reterr);
int unapprove_json_parse(const char *data, size_t n, struct enforce_call *ret, struct problem *reterr);
