/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Many pieces of work that know nothing of each other, on as many threads as wanted. Each writes its result where only it
 * writes, so what is printed afterwards, in order, is the same bytes whatever the number of threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

struct batch {
        size_t n;         /* pieces */
        unsigned threads; /* 0: one for each CPU we may use */
        int (*work)(void *context, size_t piece, struct error *err);
        void *context;
        const char
                *progress; /* "lessor-sim run": a bar of it on standard error, where that is a terminal; NULL: none */
};

/* 0: all is done. Else what the first of them (by number) that failed gave; the rest may not have been begun. */
int batch_run(const struct batch *batch, struct error *err);
