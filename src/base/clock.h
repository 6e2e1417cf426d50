/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The clocks. The core never reads either: time is an input there. */
#include <stdint.h>

uint64_t clock_now_ms(void);      /* CLOCK_MONOTONIC: orders and deadlines; stands still while the machine sleeps */
uint64_t clock_now_ns(void);      /* the same in nanoseconds, for measurements */
uint64_t clock_now_wall_ms(void); /* CLOCK_REALTIME: for people only */
uint64_t clock_asleep_ms(void); /* how long the machine slept since it was started: CLOCK_BOOTTIME - CLOCK_MONOTONIC */
