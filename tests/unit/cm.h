/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * cmocka with the headers that it needs before itself. Tests are named subject_situation_expectation, so that the report
 * reads as sentences. Never cmocka's skip(): its TAP reads as a failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* One row of a table test that went wrong: says which row, goes on to the next; the test ends with rows_end(). */
#define row_check(name, condition)                                                                                     \
        do {                                                                                                           \
                if (!(condition)) {                                                                                    \
                        print_message("# row \"%s\": %s is not so (%s:%d)\n", (name), #condition, __FILE__, __LINE__); \
                        rows_failed++;                                                                                 \
                }                                                                                                      \
        } while (0)
#define rows_end() assert_int_equal(rows_failed, 0)
