/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The two clocks. The core never reads either: time is an input there. */
#include <stdint.h>

uint64_t clock_now_ms(void);      /* CLOCK_MONOTONIC: orders and deadlines; stands still while the machine sleeps */
uint64_t clock_now_ns(void);      /* the same in nanoseconds, for measurements */
uint64_t clock_now_wall_ms(void); /* CLOCK_REALTIME: for people only */
