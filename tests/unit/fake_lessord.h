/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A lessord that says whatever a test wants: a real socket, answered by the test itself between two steps of the client, or by
 * a child process where the client waits.
 */
#include <stddef.h>
#include "client/lessor.h"

enum { FAKE_REQUEST_MAX = 8192 };

struct fake {
        char dir[64], path[96];
        int listen_fd;
        struct lessor *l;
        struct lessor_lease *lease; /* the last news were about it */
        char request[FAKE_REQUEST_MAX];
        int fd; /* of the call that waits for its answer */
};

void fake_start(struct fake *f);
void fake_stop(struct fake *f);
/* Moves the client on until it has news. */
enum lessor_news fake_news(struct fake *f);
/* Moves the client on, which must have no news, until it has asked something: its text is in f->request. */
void fake_next_call(struct fake *f);
/* Answers that and closes. @headers whole lines with their ends, or "". */
void fake_answer(struct fake *f, int status, const char *headers, const char *body);
void fake_send(struct fake *f, const void *bytes, size_t n);
void fake_hang_up(struct fake *f);
/* The value of a header in f->request, "" = it is not there; and its body. */
const char *fake_header(const struct fake *f, const char *name, char *buf, size_t buf_size);
const char *fake_body(const struct fake *f);

/* A child process that answers calls with these whole answers, one each ("" = hang up), and ends. Returns its pid. */
int fake_script(struct fake *f, const char *const *answers, size_t n_answers);
void fake_script_end(int pid); /* it must have been asked everything */
